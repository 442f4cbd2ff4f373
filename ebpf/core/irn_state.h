/*
 * What IRN (Mittal et al., SIGCOMM 2018) remembers of a stream beyond RoCEv2: bitmaps (state.h) and this.  All zero is
 * the state before the first packet.
 *
 * On the NIC, in bytes for a queue pair with both streams, at L = 128 slots (BDP cap of 100 to 128 packets):
 *
 *  64  2-bitmaps    5.3    of requests at the responder and of responses at the requester: two bits for each slot
 *  32  bitmaps      3.1    of selective acknowledgements at the sender of either: one bit for each slot
 *   6  cursor       3.1    24 bits and the flags, for either sender
 *   6  recover      3.1    24 bits
 *   6  lost_to      -      24 bits; in the paper's logic RNR falls back to RoCE's go-back-N
 *  ---
 * 114  bytes; the paper's own count is five bitmaps and 52 bits, that of Eunomia's table 1 is 125 + 20
 *
 * snd_una, the expected PSN, MSN and the retransmission timer are RoCEv2's own; "seen" is between NIC and agent.
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

#define NIC_IRN_BYTES(slots) (2 * 2 * (slots) / 8 + 2 * (slots) / 8 + 2 * 9)

_Static_assert(NIC_IRN_BYTES(128) == 114 && NIC_IRN_BYTES(128) <= 145, "Eunomia, table 1: IRN at 100 packets");
_Static_assert(sizeof(struct nic_irn_emitter) <= 88, "the room that struct nic_emitter has");

#endif
