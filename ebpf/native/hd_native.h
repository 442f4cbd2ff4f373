/*
 * The hybrid-dynamic bitmap and its memory controller in user space, for tests and for the memory experiment: one
 * host's controller, and connections that count their packets.  Steps go in by the batch, since a call from Python
 * costs more than the step.
 */
#ifndef NIC_HD_NATIVE_H
#define NIC_HD_NATIVE_H

#include "wire.h"

struct hd_native;

#define HD_STEP_LAST    4
#define HD_STEP_ABANDON 8

struct hd_step {
	wire_u32 connection;
	wire_u32 psn;
	wire_u32 what; /* enum nic_slot, HD_STEP_LAST; HD_STEP_ABANDON: the connection ends, another takes its place */
};

struct hd_result {
	wire_u32 outcome; /* enum nic_hd_outcome */
	wire_u32 packets, tails, completions;
};

/* Table 7's variables, the rows' blocks and Plait's side rows. */
struct hd_view {
	wire_u32 bitmap; /* 0: there is none, and the rest is 0 */
	wire_u32 head, tail, last_seq;
	wire_u32 head_bm_id, head_bm_index, circular_bm_size, dynamic_size;
	wire_u32 metadata, side;
	wire_u32 rows[16];
};

struct hd_native *hd_native_new(wire_u32 connections);
void hd_native_free(struct hd_native *h);
/* An empty controller with `blocks` booked blocks at its head, and connections that expect `psn`. */
void hd_native_reset(struct hd_native *h, wire_u32 psn, wire_u32 booked);
/* `results` may be NULL. */
void hd_native_run(struct hd_native *h, const struct hd_step *steps, wire_u32 count, struct hd_result *results);
wire_u32 hd_native_expected(const struct hd_native *h, wire_u32 connection);
struct hd_view hd_native_view(struct hd_native *h, wire_u32 connection);

wire_u32 hd_native_blocks(void);
/* A byte a block: 1 while it is in use. */
void hd_native_used(const struct hd_native *h, wire_u8 *used);
/* In use: metadata, bitmap and side blocks, connections; then peak blocks, created, collected, reclaimed, refused. */
void hd_native_stats(const struct hd_native *h, wire_u32 *nine);
/* Since the last reset: steps, and metadata, bitmap and side blocks in use after each of them, summed up. */
void hd_native_usage(const struct hd_native *h, wire_u64 *four);
/* Bytes: what an idle connection holds, its states and addresses, its bitmap at the cap; the controller's arrays. */
void hd_native_sizes(wire_u32 *idle, wire_u32 *metadata, wire_u32 *bitmap, wire_u32 *alloc_bitmap,
		     wire_u32 *start_index);

/* The allocator alone: `from_tail` 0 or 1, `count` 1, 3 or 24; NIC_MC_NONE (0xffff) where there is no room. */
wire_u32 hd_native_take(struct hd_native *h, int from_tail, wire_u32 count);
void hd_native_give(struct hd_native *h, wire_u32 start, wire_u32 count);

#endif
