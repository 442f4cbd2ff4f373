/*
 * State of queue pairs, memory regions, receives and hosts as the NIC and the agent share it: the one home of these
 * structs.
 *
 * They lie in mmap-able arrays.  No lock can be shared between XDP and user space, so every field has one writer, named
 * with its struct: the NIC (the receive path) or the agent.  Only `config.state` may be moved to ERROR by both.  All
 * values are in host order.  Slots never move; a slot's contents change hands only while its key (`qpn`, `rkey`) is 0,
 * and the key is written last.
 *
 * A queue pair has two streams, each with a sender and a receiver of its own: requests (sPSN), and the responses to READs
 * and atomics (rPSN).  Go-back-N numbers responses within the requests' space, as IBTA does; the other transports number
 * them apart (IRN, "Other Considerations"), so that a response stream is sent, acknowledged and repeated like any other.
 */
#ifndef NIC_QP_H
#define NIC_QP_H

#include "state.h"
#include "wire.h"

#define NIC_STREAM_REQUEST  0
#define NIC_STREAM_RESPONSE 1
#define NIC_STREAMS         2

/* READs and atomics that may be outstanding in one direction (IBTA: responder resources); a power of two. */
#define NIC_FETCH_MAX 16

#define NIC_CREDIT_RING 64 /* a power of two */
#define NIC_ALLOTTED    16 /* receives of a shared queue that a queue pair may use at once; a power of two */

/* Bits of nic_qp_config.flags. */
#define NIC_QP_CREDITS       0x1 /* end-to-end flow control by AETH credits (IBTA vol. 1, section 9.7.7.2) */
#define NIC_QP_SRQ           0x2 /* receives come from a shared queue */
#define NIC_QP_HOLD_LAST     0x4 /* Eunomia, appendix A.1: the receiver holds an early last WRITE packet */
#define NIC_QP_SELECTIVE     0x8 /* Eunomia over selective repeat; without it over go-back-N */
#define NIC_QP_CNP           0x10 /* answer CE marks by CNPs (DCQCN's notification point) */

/* What the agent tells the NIC about a queue pair.  Written by the agent only; constant from RTR on. */
struct nic_qp_config {
	wire_u32 qpn;           /* 0: the slot is free */
	wire_u32 state;         /* enum wire_qp_state */
	wire_u32 remote_qpn;
	wire_u32 local_ip;
	wire_u32 remote_ip;
	wire_u32 host;          /* slot of the host that owns the queue pair */
	wire_u32 pd;            /* protection domain: regions of another one do not exist for this queue pair */
	wire_u32 ack_icrc_base; /* see reply.h */
	wire_u16 path_mtu;      /* payload bytes */
	wire_u16 pkey;
	wire_u8 transport;      /* enum nic_transport_id */
	wire_u8 ack_every;      /* go-back-N: acknowledge at least each so many packets; 0: when asked, and at message ends */
	wire_u8 flags;          /* NIC_QP_... */
	wire_u8 priority;       /* PFC priority, 0 to 7 */
	wire_u32 rq;            /* slot of the receive queue */
	wire_u32 xack_icrc_base;
	wire_u32 cnp_icrc_base;
	wire_u16 slots;         /* bitmap slots L, a power of two up to NIC_BITMAP_SLOTS: IRN's BDP cap, MP-RDMA's L */
	wire_u16 window;        /* most packets in flight: IRN's BDP cap, the fixed window */
	wire_u32 first_psn[NIC_STREAMS]; /* of what this side sends */
	wire_u32 random_seed;
	wire_u64 rtt_ns;        /* base round trip: what timers derive from */
	wire_u64 cnp_interval_ns;
	wire_u64 timeout_ns;    /* first retransmission timeout (IRN: RTO_high) */
	wire_u64 timeout_low_ns; /* IRN: RTO_low, used with at most timeout_low_packets in flight */
	wire_u32 timeout_low_packets;
	wire_u16 source_port;   /* the one path of single-path transports, MP-RDMA's base of virtual paths */
	wire_u16 delta;         /* MP-RDMA, section 3.3 */
	wire_u16 initial_window; /* MP-RDMA, section 3.2: IW, packets */
	wire_u16 probe_per_mille; /* MP-RDMA, section 3.5: p, in 1/1000 */
	wire_u16 alpha_per_mille; /* MP-RDMA, section 3.4: alpha, in 1/1000 */
	wire_u8 rnr_timer;      /* what an RNR NAK asks for (IBTA vol. 1, table 45) */
	wire_u8 reserved;
	wire_u64 hold_at;       /* NIC_QP_HOLD_LAST: arena offset of path_mtu bytes for the held packet */
	wire_u32 padding[32];
};

/*
 * A receiver: of requests (responder) or of responses (requester).  Written by the NIC only.
 *
 * next_va, remaining, rkey, offset: go-back-N's current message.  The transports with an extension need no memory of a
 * message; they have bitmaps, in `transport`.
 */
struct nic_receiver {
	wire_u64 next_va;         /* where the current message goes on */
	wire_u32 remaining;       /* bytes of the current message still to come; 0: between messages */
	wire_u32 rkey;            /* region of the current message */
	wire_u32 epsn;            /* expected PSN (MP-RDMA: rcv_nxt, Eunomia: Head) */
	wire_u32 msn;             /* messages completed in order, modulo 2^24 */
	wire_u16 unacknowledged;  /* packets since the last acknowledgement */
	wire_u8 nak_outstanding;  /* syndrome of the NAK that this gap has had (IBTA vol. 1, section 9.7.5.2.8); 0: none */
	wire_u8 in_send;          /* the current message is a SEND */
	wire_u32 gaps;            /* NAKs sent for PSN sequence errors */
	wire_u32 completed;       /* receives completed in order: their struct nic_recv may be reaped up to here; 24 bits */
	wire_u32 fetches;         /* READs and atomics in order: those of `incoming` before this may be executed; 24 bits */
	wire_u64 cnp_time;        /* when the last CNP went out */
	wire_u32 cnps;
	wire_u32 out_of_order;    /* packets placed ahead of their turn */
	wire_u32 allotted;        /* shared receive queue: receives below this number have their place in nic_qp.allotted */
	wire_u32 length;          /* bytes of the current WRITE; go-back-N */
	union nic_receiver_state transport;
};

/* A sender's half that acknowledgements move.  Written by the NIC only. */
struct nic_sender {
	wire_u32 snd_una;     /* oldest unacknowledged PSN */
	wire_u32 naks;        /* PSN sequence NAKs taken; a change tells the agent to go back to snd_una */
	wire_u32 rnr_naks;    /* the same for RNR NAKs */
	wire_u32 rnr_timer;   /* timer code of the last one (IBTA vol. 1, table 45) */
	wire_u32 error;       /* AETH syndrome of a NAK that ended the queue pair; 0: none */
	wire_u32 acks;
	wire_u32 sacks;       /* acknowledgements that moved nothing but named a packet */
	wire_u32 msn;         /* of the last acknowledgement */
	wire_u32 credit_limit; /* with NIC_QP_CREDITS: SENDs up to this message number may go; 24 bits */
	wire_u32 cnps;        /* congestion notifications taken; a change tells the agent to slow down */
	wire_u32 marks;       /* acknowledgements with ECE */
	wire_u32 error_psn;   /* the PSN that NAK names */
	wire_u32 padding[4];
	union nic_sender_state transport;
};

/* A sender's half that sending and timers move.  Written by the agent only. */
struct nic_emitter {
	wire_u32 snd_nxt;     /* PSN after the highest one handed to the wire; moves before the packet leaves */
	wire_u32 posted;      /* PSN after the last packet of what has been posted */
	wire_u64 deadline;    /* when timer() wants to be called; 0: never */
	wire_u64 active;      /* when a packet last left */
	wire_u32 timeouts;
	wire_u32 retransmissions;
	/*
	 * 24 bits.  Of the response stream: READs and atomics answered, so that their places in `incoming` are free; of the
	 * request stream: receives that the agent has completed, so that their places in `allotted` are.
	 */
	wire_u32 served;
	wire_u32 synchronise; /* where the next synchronise message starts that is not begun yet; `posted`: there is none */
	union nic_emitter_state transport;
};

/* What an acknowledgement lets go (MP-RDMA's ACK clocking): entries of a ring, written by the NIC, taken by the agent. */
struct nic_credit {
	wire_u32 psn;   /* of the retransmission that is wanted, where count_kind says so */
	wire_u16 path;  /* virtual path: UDP source port */
	wire_u8 count;  /* packets, 1 or 2 */
	wire_u8 kind;   /* the transport's own */
};

/* A READ or atomic request that came in.  Written by the NIC only; the agent executes it once `fetches` has passed it. */
struct nic_incoming {
	wire_u64 va;
	wire_u64 swap_add;
	wire_u64 compare;
	wire_u32 rkey;
	wire_u32 length;
	wire_u32 psn;
	wire_u8 opcode;
	wire_u8 valid;
	wire_u8 repeated;  /* go-back-N: the requester asks again; an atomic is answered with what it had then */
	wire_u8 reserved;
};

enum nic_outgoing_kind { NIC_OUTGOING_NONE = 0, NIC_OUTGOING_READ = 1, NIC_OUTGOING_ATOMIC = 2 };

/* A READ or atomic that this side waits for.  Written by the agent; `original` by the NIC. */
struct nic_outgoing {
	wire_u64 va;       /* where the response goes, in region lkey */
	wire_u64 original; /* atomics: what was there */
	wire_u32 lkey;
	wire_u32 length;   /* of an atomic: 8 */
	wire_u32 psn;      /* go-back-N: PSN of the request and of its first response */
	wire_u32 kind;     /* enum nic_outgoing_kind */
};

struct nic_qp {
	struct nic_qp_config config;
	struct nic_receiver receiver[NIC_STREAMS];
	struct nic_sender sender[NIC_STREAMS];
	struct nic_emitter emitter[NIC_STREAMS];
	struct nic_incoming incoming[NIC_FETCH_MAX];
	struct nic_outgoing outgoing[NIC_FETCH_MAX];
	struct nic_credit credits[NIC_STREAMS][NIC_CREDIT_RING];
	wire_u32 allotted[NIC_ALLOTTED]; /* shared receive queue: which receive is this queue pair's number n; by the NIC */
	wire_u32 placing; /* by the NIC: odd while it works on a packet with payload; see nic_settle() */
	wire_u32 padding[143];
};

_Static_assert(sizeof(struct nic_qp_config) == 256, "four cache lines");
_Static_assert(sizeof(struct nic_receiver) == 192, "one cache line and the transport's");
_Static_assert(sizeof(struct nic_sender) == 192, "one cache line and the transport's");
_Static_assert(sizeof(struct nic_emitter) == 128, "two cache lines");
_Static_assert(sizeof(struct nic_credit) == 8, "one store");
_Static_assert(sizeof(struct nic_qp) == 4096, "a power of two, so that an array access is a shift");

/* Access rights of a region (bits of nic_region.access), as in enum ibv_access_flags. */
#define NIC_ACCESS_LOCAL_WRITE   0x1
#define NIC_ACCESS_REMOTE_WRITE  0x2
#define NIC_ACCESS_REMOTE_READ   0x4
#define NIC_ACCESS_REMOTE_ATOMIC 0x8

/* A registered range of the arena.  Written by the agent only. */
struct nic_region {
	wire_u64 va;
	wire_u64 length;
	wire_u64 arena_offset;
	wire_u32 rkey;     /* 0: the slot is free */
	wire_u32 access;
	wire_u32 pd;
	wire_u32 owner_ip;
	wire_u64 padding[3];
};

_Static_assert(sizeof(struct nic_region) == 64, "one cache line");

/*
 * A receive queue, of one queue pair or shared.  Receives have sequence numbers (IRN: recv_WQE_SN) from 0, 24 bits; the
 * one with number n lies in recvs[base + (n & mask)].  Written by the agent, but for `taken`.
 *
 * A shared queue's receives are taken in the order of need; which of them a queue pair's own numbers mean is in its
 * `allotted`.
 */
struct nic_rq {
	wire_u32 base;
	wire_u32 mask;
	wire_u32 posted;   /* number after the newest receive */
	wire_u32 in_use;   /* 0: there is no such queue */
	wire_u64 taken;    /* shared queues, by the NIC: number after the last one taken; wide, as eBPF's compare-and-swap is */
	wire_u32 padding[2];
};

_Static_assert(sizeof(struct nic_rq) == 32, "a power of two");

/* Bits of nic_recv.flags. */
#define NIC_RECV_IMMEDIATE  0x1
#define NIC_RECV_INVALIDATE 0x2
#define NIC_RECV_WRITE      0x4 /* completed by a WRITE with immediate */
#define NIC_RECV_ERROR      0x8 /* the message did not fit */
#define NIC_RECV_PROTECTION 0x10 /* its memory is not the queue pair's to write */

/*
 * One posted receive.  va, length, lkey: written by the agent, which also clears the flags.  The others, by the NIC when
 * the message's last packet comes, maybe before its turn: IRN's premature CQE.  They count once the receiver's `completed`
 * has passed the receive.  NIC_RECV_ERROR and NIC_RECV_PROTECTION count in the receive at `completed` of a queue pair in
 * ERROR: it ends with that error, those behind it are flushed.
 */
struct nic_recv {
	wire_u64 va;
	wire_u32 length;
	wire_u32 lkey;
	wire_u32 byte_len;
	wire_u32 immediate; /* or the key to invalidate */
	wire_u32 flags;
	wire_u32 reserved;
};

_Static_assert(sizeof(struct nic_recv) == 32, "a power of two");

/* What a host's frames did, by enum wire_nic_event, and totals beside it.  Written by the NIC only. */
#define NIC_EVENT_SLOTS    64
#define NIC_PFC_PRIORITIES 8

struct nic_counters {
	wire_u64 events[NIC_EVENT_SLOTS];
	wire_u64 ce_marked;      /* requests that carried ECN CE */
	wire_u64 bytes_placed;
	wire_u64 replies_sent;   /* ACKs, NAKs and CNPs */
	wire_u64 replies_lost;   /* could not be built: no room in the frame */
	wire_u64 cnps_sent;
	wire_u64 padding[3];
	wire_u64 pause_until[NIC_PFC_PRIORITIES]; /* PFC: no data of that priority may leave before (ns, CLOCK_MONOTONIC) */
};

_Static_assert(sizeof(struct nic_counters) == 640, "ten cache lines");
_Static_assert(WIRE_NIC_EVENT_PAUSE_RECEIVED < NIC_EVENT_SLOTS, "room for every event");

/* Hosts by their MAC address.  Slot 0 of the counters belongs to no host: frames for nobody here end there. */
#define NIC_HOST_NONE 0

struct nic_host {
	wire_u64 mac;
	wire_u32 slot;
	wire_u32 ifindex;  /* in the host's own network namespace */
	wire_u64 pause_quantum_ps; /* PFC: 512 bit times at the link's rate (IEEE 802.1Qbb; 802.3 annex 31B.2), in ps */
};

/* One line on the ring from NIC to agent: this queue pair has news. */
struct nic_doorbell {
	wire_u32 qp_slot;
	wire_u32 qpn;
};

#endif
