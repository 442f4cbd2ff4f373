/*
 * What MP-RDMA (NSDI 2018) remembers of a stream beyond RoCEv2, by writer.  All zero is the state before the first
 * packet.  PSNs are 24 bits in a wire_u32; cwnd is in packets, unsigned Q16.16 (65536 is one packet).
 *
 * On the NIC, in bytes (table 1 of the paper: 66):
 *
 *   8  published     3.2.1  the window as the agent sees it, and what of the agent's is taken into account; see below
 *   4  cwnd          3.2    congestion window
 *   2  inflate       3.2    acknowledgements received less packets acknowledged cumulatively
 *   2  inflate_max   3.2    its maximum in this round trip
 *   4  counted_from  3.2    acknowledgements of packets before this one do not count in inflate any more
 *   4  snd_ooh       3.3    highest PSN that was sacked
 *   4  snd_retx      3.5    next packet to send again
 *   4  recovery      3.5    recovery mode ends when snd_una reaches it
 *   4  epoch_end     3.2    a round trip is over when snd_una has passed it
 *   4  random        3.5    xorshift32, for probing
 *   4  head          -      of the ring of credits; in hardware they go straight to the transmit pipeline
 *  16  bitmap        3.3    at the receiver: two bits for each of L = 64 slots
 *  --
 *  60  and `granted` of the agent, which the NIC adds to its own, makes 64
 *
 * snd_una, rcv_nxt, MSN and the retransmission timer are RoCEv2's own.
 */
#ifndef NIC_MPRDMA_STATE_H
#define NIC_MPRDMA_STATE_H

#include "wire.h"

/* Written by the NIC. */
struct nic_mprdma_sender {
	/* One word, so that the agent never sees half of a change; see struct nic_mprdma_view. */
	wire_u64 published;
	wire_u32 cwnd;
	short inflate;
	short inflate_max;
	wire_u32 counted_from;
	wire_u32 snd_ooh;
	wire_u32 snd_retx;
	wire_u32 recovery;
	wire_u32 epoch_end;
	wire_u32 random;
	wire_u32 head;
	wire_u32 padding;
};

/* Written by the agent; its timers and what it has in hand lie in the host's memory. */
struct nic_mprdma_emitter {
	wire_u32 granted;     /* packets the agent let go by itself, less credits given back; modulo 2^24 */
	wire_u32 command;     /* one word for the NIC, see struct nic_mprdma_command */
	wire_u32 tail;        /* of the ring of credits */
	wire_u32 random;      /* xorshift32, for virtual paths */
	wire_u32 acks_seen;
	wire_u32 una_seen;
	wire_u32 rnr_seen;
	wire_u32 again_next;  /* a timeout's own retransmissions: from here */
	wire_u32 again_end;   /* to before this */
	wire_u32 early;       /* next packet for the burst timer to retransmit early */
	wire_u32 restart_at;  /* snd_una at the last restart */
	wire_u16 hand_path;   /* a credit of two packets, of which one is sent */
	wire_u8 hand_count;
	wire_u8 backoff;      /* doublings of the retransmission timeout */
	wire_u64 burst_at;    /* 3.5: from then on open window goes to random paths */
	wire_u64 timeout_at;  /* 0: nothing is outstanding */
	wire_u64 fresh_at;    /* 3.4: when the last new packet left */
	wire_u64 wake_at;     /* what next() waits for; 0: nothing */
};

/* Less the padding, with a bitmap of L = 64 and the agent's part of snd_nxt. */
#define NIC_MPRDMA_BYTES (sizeof(struct nic_mprdma_sender) - sizeof(wire_u32) + 2 * 64 / 8 + sizeof(wire_u32))

_Static_assert(NIC_MPRDMA_BYTES <= 66, "MP-RDMA, table 1");
_Static_assert(sizeof(struct nic_mprdma_emitter) <= 88, "the room that struct nic_emitter has");

#endif
