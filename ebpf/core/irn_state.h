/*
 * What IRN (Mittal et al., SIGCOMM 2018) remembers of a stream beyond RoCEv2: the receiver's 2-bitmap, the sender's bitmap
 * of selective acknowledgements (state.h), and this.  All zero is the state before the first packet.
 *
 * The paper's section on NIC state has the same: two bitmaps a receiver, one a sender, the packet to retransmit, the
 * recovery sequence and four flags.
 */
#ifndef NIC_IRN_STATE_H
#define NIC_IRN_STATE_H

#include "wire.h"

/* Written by the agent. */
struct nic_irn_emitter {
	wire_u32 cursor;      /* in recovery: the packet to send again, or the last one that was */
	wire_u32 recover;     /* recovery ends when this has been acknowledged */
	wire_u32 lost_to;     /* packets before this count as lost whatever was acknowledged behind them */
	wire_u32 una_seen;
	wire_u32 naks_seen;
	wire_u32 rnr_seen;
	wire_u64 armed;       /* what the retransmission timeout counts from */
	wire_u8 in_recovery;
	wire_u8 pending;      /* `cursor` is still to be sent */
	wire_u8 backoff;      /* doublings of the timeout */
	wire_u8 reserved[5];
};

#endif
