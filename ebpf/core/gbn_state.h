/* What go-back-N remembers of a stream beside what every reliable connection has, by writer. */
#ifndef NIC_GBN_STATE_H
#define NIC_GBN_STATE_H

#include "wire.h"

/* Of the request stream.  Written by the NIC. */
struct nic_gbn_receiver {
	wire_u32 held; /* replies held back, since READs or atomics before them were not answered yet */
};

/* Written by the agent. */
struct nic_gbn_emitter {
	wire_u32 nxt;       /* PSN to send next: snd_nxt, or before it after going back */
	wire_u32 una_seen;  /* of struct nic_sender, as timer() saw it last */
	wire_u32 naks_seen;
	wire_u32 rnr_seen;
	wire_u32 unasked;   /* packets since one that asked for an acknowledgement */
	wire_u32 backoff;   /* doublings of the retransmission timeout */
	wire_u32 held_seen; /* of the response stream: held replies that have gone out */
	wire_u32 begun;     /* 0: una_seen and nxt do not stand yet */
};

#endif
