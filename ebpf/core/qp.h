/*
 * State of queue pairs, memory regions and hosts as the NIC and the agent share it: the one home of these structs.
 *
 * They lie in mmap-able arrays.  Every field has one writer, named with its struct, except `state`, which both sides
 * may move to ERROR.  All values are in host order.  Slots never move; a slot's contents change hands only while its
 * key (`qpn`, `rkey`) is 0, and the key is written last.
 */
#ifndef NIC_QP_H
#define NIC_QP_H

#include "wire.h"

/* What the agent tells the NIC about a queue pair.  Written by the agent only; constant from RTR on. */
struct nic_qp_config {
	wire_u32 qpn;           /* 0: the slot is free */
	wire_u32 state;         /* enum wire_qp_state */
	wire_u32 remote_qpn;
	wire_u32 local_ip;
	wire_u32 remote_ip;
	wire_u32 host;          /* slot of the host that owns the queue pair */
	wire_u32 pd;            /* protection domain: regions of another one do not exist for this queue pair */
	wire_u32 ack_icrc_base; /* see icrc.h */
	wire_u16 path_mtu;      /* payload bytes */
	wire_u16 pkey;
	wire_u8 transport;      /* enum nic_transport_id */
	wire_u8 ack_every;      /* acknowledge at least each so many packets; 0: only when asked, and at message ends */
	wire_u8 reserved[2];
	wire_u32 snd_max;       /* PSN after the highest one handed to the wire; changes with every batch */
	wire_u32 padding[5];
};

/* Responder: written by the NIC only. */
struct nic_responder {
	wire_u64 next_va;         /* where the current message goes on */
	wire_u32 remaining;       /* bytes of the current message still to come; 0: between messages */
	wire_u32 rkey;            /* region of the current message */
	wire_u32 epsn;            /* expected PSN */
	wire_u32 msn;             /* messages completed, modulo 2^24 */
	wire_u16 unacknowledged;  /* packets since the last acknowledgement */
	wire_u8 nak_outstanding;  /* this gap has had its NAK (IBTA vol. 1, section 9.7.5.2.8) */
	wire_u8 reserved;
	wire_u32 gaps;            /* NAKs sent for PSN sequence errors */
	wire_u32 padding[8];
};

/* Requester: written by the NIC only. */
struct nic_requester {
	wire_u32 snd_una;     /* oldest unacknowledged PSN */
	wire_u32 naks;        /* PSN sequence NAKs taken; a change tells the agent to go back to snd_una */
	wire_u32 rnr_naks;    /* the same for RNR NAKs */
	wire_u32 rnr_timer;   /* timer code of the last one (IBTA vol. 1, table 45) */
	wire_u32 error;       /* AETH syndrome of a NAK that ended the queue pair; 0: none */
	wire_u32 acks;
	wire_u32 padding[10];
};

struct nic_qp {
	struct nic_qp_config config;
	struct nic_responder responder;
	struct nic_requester requester;
	wire_u32 padding[16];
};

_Static_assert(sizeof(struct nic_qp_config) == 64, "one cache line");
_Static_assert(sizeof(struct nic_responder) == 64, "one cache line");
_Static_assert(sizeof(struct nic_requester) == 64, "one cache line");
_Static_assert(sizeof(struct nic_qp) == 256, "a power of two, so that an array access is a shift");

/* Access rights of a region (bits of nic_region.access). */
#define NIC_ACCESS_LOCAL_WRITE  0x1
#define NIC_ACCESS_REMOTE_WRITE 0x2
#define NIC_ACCESS_REMOTE_READ  0x4

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

/* What a host's frames did, by enum wire_nic_event, and totals beside it.  Written by the NIC only. */
#define NIC_EVENT_SLOTS 32

struct nic_counters {
	wire_u64 events[NIC_EVENT_SLOTS];
	wire_u64 ce_marked;      /* requests that carried ECN CE */
	wire_u64 bytes_placed;
	wire_u64 replies_sent;   /* ACKs and NAKs */
	wire_u64 replies_lost;   /* could not be built: no room in the frame */
	wire_u64 padding[4];
};

_Static_assert(sizeof(struct nic_counters) == 320, "five cache lines");
_Static_assert(WIRE_NIC_EVENT_CNP_RECEIVED < NIC_EVENT_SLOTS, "room for every event");

/* Hosts by their MAC address.  Slot 0 of the counters belongs to no host: frames for nobody here end there. */
#define NIC_HOST_NONE 0

struct nic_host {
	wire_u64 mac;
	wire_u32 slot;
	wire_u32 ifindex;  /* in the host's own network namespace */
};

/* One line on the ring from NIC to agent: this queue pair has news. */
struct nic_doorbell {
	wire_u32 qp_slot;
	wire_u32 qpn;
};

#endif
