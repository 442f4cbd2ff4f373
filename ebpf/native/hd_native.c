#include <stdlib.h>
#include <string.h>

#include "hd_bitmap.h"

#include "hd_native.h"

struct hd_connection {
	struct nic_hd_addr addr;
	wire_u32 expected;
};

struct hd_native {
	struct nic_mc mc;
	wire_u64 steps, block_steps[NIC_MC_USES];
	wire_u32 connections;
	struct hd_connection connection[];
};

struct hd_native *hd_native_new(wire_u32 connections)
{
	struct hd_native *h = calloc(1, sizeof(*h) + connections * sizeof(h->connection[0]));

	if (h)
		h->connections = connections;
	return h;
}

void hd_native_free(struct hd_native *h)
{
	free(h);
}

void hd_native_reset(struct hd_native *h, wire_u32 psn, wire_u32 booked)
{
	/* What was in the array stays there: whoever takes a block must write it. */
	memset(&h->mc.block_alloc_bitmap, 0, sizeof(h->mc) - sizeof(h->mc.master));
	for (wire_u32 i = 0; i < h->connections; i++)
		h->connection[i] = (struct hd_connection){ .expected = psn };
	memset(h->block_steps, 0, sizeof(h->block_steps));
	h->steps = 0;
	for (wire_u32 i = 0; i < booked; i++)
		nic_mc_take(&h->mc, i, 1, NIC_MC_BITMAP);
}

void hd_native_run(struct hd_native *h, const struct hd_step *steps, wire_u32 count, struct hd_result *results)
{
	for (wire_u32 i = 0; i < count; i++) {
		struct hd_connection *c = &h->connection[steps[i].connection % h->connections];
		struct nic_advance moved = { 0, 0, 0 };
		enum nic_hd_outcome outcome = NIC_HD_PASSED;

		if (steps[i].what & HD_STEP_ABANDON) {
			nic_hd_abandon(&h->mc, &c->addr);
			*c = (struct hd_connection){ .expected = steps[i].psn };
		} else {
			outcome = nic_hd_receive(&h->mc, &c->addr, c->expected, steps[i].psn,
						 (enum nic_slot)(steps[i].what & 3),
						 !!(steps[i].what & HD_STEP_LAST), &moved);
			c->expected = nic_psn_add(c->expected, moved.packets);
		}
		h->steps++;
		for (int use = 0; use < NIC_MC_USES; use++)
			h->block_steps[use] += h->mc.stats.blocks[use];
		if (results)
			results[i] = (struct hd_result){ outcome, moved.packets, moved.tails, moved.completions };
	}
}

void hd_native_usage(const struct hd_native *h, wire_u64 *four)
{
	four[0] = h->steps;
	memcpy(four + 1, h->block_steps, sizeof(h->block_steps));
}

wire_u32 hd_native_expected(const struct hd_native *h, wire_u32 connection)
{
	return h->connection[connection % h->connections].expected;
}

struct hd_view hd_native_view(struct hd_native *h, wire_u32 connection)
{
	const struct nic_hd_addr *addr = &h->connection[connection % h->connections].addr;
	struct nic_hd_states *s = nic_hd_states(&h->mc, addr);
	struct hd_view view = { 0 };

	if (!s)
		return view;
	view = (struct hd_view){
		.bitmap = 1,
		.head = s->head,
		.tail = s->tail,
		.last_seq = s->last_seq,
		.head_bm_id = s->head_bm_id,
		.head_bm_index = s->head_bm_index,
		.circular_bm_size = s->circular_bm_size,
		.dynamic_size = s->dynamic_size,
		.metadata = (wire_u32)addr->states - 1,
		.side = s->side,
	};
	for (wire_u32 row = 0; row < s->dynamic_size && row < 16; row++)
		view.rows[row] = nic_hd_row(s, addr->first, row);
	return view;
}

wire_u32 hd_native_blocks(void)
{
	return NIC_MC_BLOCKS;
}

void hd_native_used(const struct hd_native *h, wire_u8 *used)
{
	for (wire_u32 block = 0; block < NIC_MC_BLOCKS; block++)
		used[block] = h->mc.block_alloc_bitmap[block / 32] >> (block % 32) & 1;
}

void hd_native_stats(const struct hd_native *h, wire_u32 *nine)
{
	const struct nic_mc_stats *s = &h->mc.stats;
	wire_u32 values[9] = {
		s->blocks[NIC_MC_METADATA], s->blocks[NIC_MC_BITMAP], s->blocks[NIC_MC_SIDE], s->connections,
		s->peak_blocks, s->created, s->collected, s->reclaimed, s->refused,
	};

	memcpy(nine, values, sizeof(values));
}

void hd_native_sizes(wire_u32 *idle, wire_u32 *metadata, wire_u32 *bitmap, wire_u32 *alloc_bitmap,
		     wire_u32 *start_index)
{
	*idle = sizeof(struct nic_hd_addr);
	*metadata = sizeof(struct nic_hd_states);
	*bitmap = NIC_HD_CAP / 8;
	*alloc_bitmap = sizeof(((struct nic_mc *)0)->block_alloc_bitmap);
	*start_index = sizeof(((struct nic_mc *)0)->metadata_start_index);
}

wire_u32 hd_native_take(struct hd_native *h, int from_tail, wire_u32 count)
{
	wire_u32 start = NIC_MC_NONE;

	/* The core knows its counts when it is compiled. */
	switch (count) {
	case 1:
		start = from_tail ? nic_mc_find_last(&h->mc, 1) : nic_mc_find_first(&h->mc, 1);
		break;
	case 3:
		start = from_tail ? nic_mc_find_last(&h->mc, 3) : nic_mc_find_first(&h->mc, 3);
		break;
	case 24:
		start = from_tail ? nic_mc_find_last(&h->mc, 24) : nic_mc_find_first(&h->mc, 24);
		break;
	}
	start = nic_mc_take(&h->mc, start, count, NIC_MC_BITMAP);
	nic_mc_note_peak(&h->mc);
	return start;
}

void hd_native_give(struct hd_native *h, wire_u32 start, wire_u32 count)
{
	nic_mc_give(&h->mc, start, count, NIC_MC_BITMAP);
}
