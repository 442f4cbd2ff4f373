/*
 * One connection's life over MP-RDMA for tests: sender, receiver and the network between them, moved by a list of steps.
 * A model takes the same list; what both say is compared.
 */
#ifndef MPRDMA_HISTORY_H
#define MPRDMA_HISTORY_H

#include "qp.h"

enum mprdma_step {
	MPRDMA_POST = 0,       /* the next message */
	MPRDMA_WAIT = 1,       /* argument: sixteenths of a round trip */
	MPRDMA_SEND = 2,       /* as many packets as may go, at most 1 + argument */
	MPRDMA_DATA = 3,       /* a packet arrives; argument: see MPRDMA_MARKED and below */
	MPRDMA_DATA_TWICE = 4, /* and stays under way */
	MPRDMA_DATA_LOST = 5,
	MPRDMA_ACK = 6,
	MPRDMA_ACK_TWICE = 7,
	MPRDMA_ACK_LOST = 8,
	MPRDMA_STEPS = 9
};

/* Bits of the argument of what arrives; the others: how many places behind the oldest one. */
#define MPRDMA_MARKED    0x80
#define MPRDMA_NOT_READY 0x40 /* a SEND finds no receive */
#define MPRDMA_PLACES    0x3f


#define MPRDMA_PACKETS 1024 /* posted in a history, at most */
#define MPRDMA_FLIGHT  256  /* under way in one direction, at most; more are lost */

#define MPRDMA_MESSAGE_SEND        0x1 /* it completes a receive */
#define MPRDMA_MESSAGE_SYNCHRONISE 0x2

struct mprdma_history {
	struct nic_qp_config config; /* of both ends */
	const wire_u16 *packets;     /* of each message */
	const wire_u8 *flags;        /* MPRDMA_MESSAGE_... of each message */
	wire_u32 messages;
	const wire_u8 *steps;        /* step, argument, step, argument, ... */
	wire_u32 count;
	wire_u32 rounds;             /* after the steps the network is faultless, for so many half round trips at most */
	int *said;                   /* what is compared */
	wire_u32 room;
};

struct mprdma_sent {
	wire_u32 psn;
	wire_u16 path;
	wire_u16 flags;
};

struct mprdma_ack {
	wire_u32 psn;
	wire_u32 sack_psn;
	wire_u16 path;
	wire_u8 flags;
	wire_u8 syndrome;
	wire_u8 event;     /* what the data packet ended with */
	wire_u8 placed;    /* 1: its payload went to its place, 2: to another one */
	wire_u16 reserved;
};

/* How many numbers were said; more than `room` are not written. */
wire_u32 mprdma_history_run(const struct mprdma_history *h);

/*
 * The same parts one at a time, for a network that a test makes itself: a stream of WRITE packets from `a` to `b`.
 * `rung`: the NIC has left news for the agent since the last call.
 */
int mprdma_next(struct nic_qp *a, wire_u64 now, int rung, struct mprdma_sent *out);
void mprdma_data(struct nic_qp *b, const struct mprdma_sent *data, int marked, struct mprdma_ack *out);
void mprdma_take(struct nic_qp *a, const struct mprdma_ack *ack);
/*
 * Agent and NIC in threads of their own, as in user space and XDP: `packets` of one packet each through a network that
 * loses `lost` of 1000 packets and acknowledgements.  Returns how many were delivered; it gives up when for `patience_ns`
 * nothing is.
 */
wire_u32 mprdma_race(struct nic_qp *a, struct nic_qp *b, wire_u32 packets, wire_u32 lost, wire_u64 patience_ns);
/* What a connection takes on the NIC beyond RoCEv2. */
wire_u32 mprdma_bytes(void);

#endif
