/*
 * A host for the NIC core in user space: what rnic_xdp.c does with maps and helpers, on plain memory.
 *
 * Tests drive it beside the XDP program and demand the same verdicts, bytes and counters of both.
 */
#ifndef NIC_NATIVE_H
#define NIC_NATIVE_H

#include "qp.h"

/* As enum xdp_action. */
enum nic_action { NIC_ACTION_DROP = 1, NIC_ACTION_PASS = 2, NIC_ACTION_TX = 3 };

struct nic_native {
	struct nic_qp *qps;
	struct nic_region *regions;
	struct nic_rq *rqs;
	struct nic_recv *recvs;
	struct nic_counters *counters;
	struct nic_host_state *host_states;
	wire_u8 *arena;
	wire_u64 arena_bytes;
	wire_u64 partner;              /* MAC address of the other end of the host's link: pause frames come from there */
	wire_u64 pause_quantum_ps;
	wire_u32 max_qps, max_regions, max_rqs, max_recvs; /* powers of two */
	wire_u32 doorbells;            /* rung so far */
	wire_u32 check_icrc;
};

/* `length` is the frame's, before and after; a reply may need up to `room` bytes.  `now` in ns. */
int nic_native_receive(struct nic_native *nic, wire_u64 mac, wire_u32 host, wire_u8 *frame, wire_u32 *length,
		       wire_u32 room, wire_u64 now);

/* Single functions of the core. */
int nic_native_psn_distance(wire_u32 psn, wire_u32 base);
wire_u32 nic_native_psn_add(wire_u32 psn, wire_u32 count);
wire_u32 nic_native_credit_code(wire_u32 value);
void nic_native_icrc_bases(struct nic_qp_config *qp);
/* As many words as struct nic_icrc_tables has; returns its bytes. */
wire_u32 nic_native_icrc_tables(wire_u32 *words);

/* Bytes of what a connection adds to RoCEv2's state, as the compiler laid it out. */
enum nic_native_part {
	NIC_PART_MPRDMA,       /* without the receiver's bitmap; see mprdma_state.h */
	NIC_PART_IRN,          /* of both streams, without bitmaps; see irn_state.h */
	NIC_PART_EUNOMIA_IDLE,
	NIC_PART_EUNOMIA_MOST, /* as the paper's table 1 counts */
	NIC_PART_DCQCN
};

wire_u32 nic_native_part_bytes(enum nic_native_part part);

/* The agent's half of a queue pair's transport: see transport.h. */
struct nic_native_send {
	wire_u32 psn, ack_req, retransmission, acknowledge, syndrome;
};

int nic_native_next(struct nic_qp *qp, int stream, wire_u64 now, struct nic_native_send *out);
int nic_native_timer(struct nic_qp *qp, int stream, wire_u64 now);

#endif
