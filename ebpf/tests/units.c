#include "bitmap.h"

#include "units.h"

void unit_bitmap(wire_u32 slots, struct unit_bitmap_step *steps, wire_u32 count)
{
	struct nic_bitmap2 two = { 0 };
	struct nic_bitmap1 one = { 0 };

	for (struct unit_bitmap_step *s = steps; s < steps + count; s++) {
		switch (s->op) {
		case UNIT_GET2:
			s->result[0] = nic_bitmap2_get(&two, slots, s->psn);
			break;
		case UNIT_SET2:
			nic_bitmap2_set(&two, slots, s->psn, (enum nic_slot)s->argument);
			break;
		case UNIT_ADVANCE2: {
			struct nic_advance moved = nic_bitmap2_advance(&two, slots, s->psn);

			s->result[0] = moved.packets;
			s->result[1] = moved.tails;
			s->result[2] = moved.completions;
			break;
		}
		case UNIT_GET1:
			s->result[0] = (wire_u32)nic_bitmap1_get(&one, s->psn);
			break;
		case UNIT_SET1:
			nic_bitmap1_set(&one, s->psn);
			break;
		case UNIT_CLEAR1:
			nic_bitmap1_clear(&one, s->psn, s->argument);
			break;
		case UNIT_HOLE1:
			s->result[0] = nic_bitmap1_hole(&one, s->psn, s->argument);
			break;
		case UNIT_EXTENT1:
			s->result[0] = nic_bitmap1_extent(&one, s->psn, s->argument);
			break;
		}
	}
}

void unit_dcqcn(const struct nic_dcqcn_params *p, struct unit_dcqcn_step *steps, wire_u32 count)
{
	struct nic_dcqcn d;

	nic_dcqcn_init(&d, p);
	for (struct unit_dcqcn_step *s = steps; s < steps + count; s++) {
		do
			s->deadline = nic_dcqcn_advance(&d, p, s->now);
		while (s->deadline && s->deadline <= s->now);
		if (s->op == UNIT_CNP)
			nic_dcqcn_cnp(&d, p, s->now);
		else if (s->op == UNIT_SENT)
			nic_dcqcn_sent(&d, p, s->bytes);
		s->result = d;
	}
}

void unit_dcqcn_derive(struct nic_dcqcn_params *p, wire_u64 line_rate, wire_u64 rtt_ns, wire_u32 packet_bytes)
{
	nic_dcqcn_derive(p, line_rate, rtt_ns, packet_bytes);
}

int unit_dcqcn_notify(wire_u32 sent, wire_u64 last, wire_u64 interval_ns, wire_u64 now)
{
	return nic_dcqcn_notify(sent, last, interval_ns, now);
}
