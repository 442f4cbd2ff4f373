/* Single parts of the core for tests, in batches: a call into C costs more than what it tests. */
#ifndef NIC_UNITS_H
#define NIC_UNITS_H

#include "dcqcn.h"

enum unit_bitmap_op {
	UNIT_GET2 = 0,
	UNIT_SET2 = 1,
	UNIT_ADVANCE2 = 2,
	UNIT_GET1 = 3,
	UNIT_SET1 = 4,
	UNIT_CLEAR1 = 5,
	UNIT_HOLE1 = 6,
	UNIT_EXTENT1 = 7
};

struct unit_bitmap_step {
	wire_u32 op;
	wire_u32 psn;
	wire_u32 argument;  /* state or count */
	wire_u32 result[3];
};

/* Both kinds of bitmap, empty at first, through all steps; fills in the results. */
void unit_bitmap(wire_u32 slots, struct unit_bitmap_step *steps, wire_u32 count);

enum unit_dcqcn_op { UNIT_CNP = 0, UNIT_SENT = 1, UNIT_WAIT = 2 };

struct unit_dcqcn_step {
	wire_u64 now;
	wire_u32 op;
	wire_u32 bytes;
	struct nic_dcqcn result;
	wire_u64 deadline; /* as it was when the timers had caught up with `now`, before the operation */
};

/* A reaction point from its start through all steps; fills in result and deadline. */
void unit_dcqcn(const struct nic_dcqcn_params *p, struct unit_dcqcn_step *steps, wire_u32 count);
void unit_dcqcn_derive(struct nic_dcqcn_params *p, wire_u64 line_rate, wire_u64 rtt_ns, wire_u32 packet_bytes);
int unit_dcqcn_notify(wire_u32 sent, wire_u64 last, wire_u64 interval_ns, wire_u64 now);

#endif
