/*
 * Static cyclic bitmaps over PSNs: bit (or slot) n stands for the one PSN congruent to n among those that a window of
 * no more than that many packets can hold.
 *
 * struct nic_bitmap2, of receivers: IRN's 2-bitmap ("Last packet issues") and MP-RDMA's array of two-bit slots (section
 * 3.3, figure 6) are the same thing.  The bits of a slot lie in two planes, so that 64 slots are looked at together.
 * Invariant: all slots behind the head are empty, that is, advance() is called whenever the head's slot is filled.
 *
 * struct nic_bitmap1, of senders: which packets were selectively acknowledged.
 *
 * eBPF has no instructions to count or find bits, and its verifier wants to see every index masked and every loop end:
 * a walk over a cyclic range of all words takes at most five steps, since the first and the last may share a word.
 */
#ifndef NIC_BITMAP_H
#define NIC_BITMAP_H

#include "state.h"

#define NIC_BITMAP_STEPS (NIC_BITMAP_WORDS + 1)

/* MP-RDMA's four states of a slot: bit 0 is in plane 0, bit 1 in plane 1. */
enum nic_slot {
	NIC_SLOT_EMPTY = 0,
	NIC_SLOT_RECEIVED = 1,
	NIC_SLOT_TAIL = 2,           /* the last packet of a message: its turn advances the MSN */
	NIC_SLOT_TAIL_COMPLETION = 3 /* and completes a receive */
};

WIRE_FN wire_u32 nic_popcount(wire_u64 x)
{
	x -= (x >> 1) & 0x5555555555555555ull;
	x = (x & 0x3333333333333333ull) + ((x >> 2) & 0x3333333333333333ull);
	x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0full;
	return (wire_u32)((x * 0x0101010101010101ull) >> 56);
}

/* How many low bits are 0: 64 for 0. */
WIRE_FN wire_u32 nic_trailing_zeros(wire_u64 x)
{
	return nic_popcount((x & -x) - 1);
}

/* Position of the highest 1; x is not 0. */
WIRE_FN wire_u32 nic_highest_bit(wire_u64 x)
{
	x |= x >> 1;
	x |= x >> 2;
	x |= x >> 4;
	x |= x >> 8;
	x |= x >> 16;
	x |= x >> 32;
	return nic_popcount(x) - 1;
}

/* `count` ones from bit `at`; 1 <= count <= 64 - at. */
WIRE_FN wire_u64 nic_ones(wire_u32 at, wire_u32 count)
{
	return (~0ull >> ((64 - count) & 63)) << (at & 63);
}

/* ---- two bits a slot ---- */

/* `slots`: a power of two, 1 to NIC_BITMAP_SLOTS. */
WIRE_FN enum nic_slot nic_bitmap2_get(const struct nic_bitmap2 *b, wire_u32 slots, wire_u32 psn)
{
	wire_u32 at = psn & (slots - 1);
	wire_u32 word = (at >> 6) & (NIC_BITMAP_WORDS - 1);

	return (enum nic_slot)(((b->plane[0][word] >> (at & 63)) & 1) | ((b->plane[1][word] >> (at & 63)) & 1) << 1);
}

/* The slot is empty. */
WIRE_FN void nic_bitmap2_set(struct nic_bitmap2 *b, wire_u32 slots, wire_u32 psn, enum nic_slot state)
{
	wire_u32 at = psn & (slots - 1);
	wire_u32 word = (at >> 6) & (NIC_BITMAP_WORDS - 1);

	b->plane[0][word] |= (wire_u64)((wire_u32)state & 1) << (at & 63);
	b->plane[1][word] |= (wire_u64)((wire_u32)state >> 1 & 1) << (at & 63);
}

/* What came into order. */
struct nic_advance {
	wire_u32 packets;
	wire_u32 tails;       /* messages, with and without completion */
	wire_u32 completions;
};

/* Takes the unbroken run of filled slots from `head` on out of the bitmap.  The head moves by `packets`. */
WIRE_FN struct nic_advance nic_bitmap2_advance(struct nic_bitmap2 *b, wire_u32 slots, wire_u32 head)
{
	struct nic_advance moved = { 0, 0, 0 };
	wire_u32 width = slots < 64 ? slots : 64;
	wire_u32 at = head & (slots - 1);
	wire_u32 left = slots;

	for (int step = 0; step < NIC_BITMAP_STEPS; step++) {
		wire_u32 word = (at >> 6) & (NIC_BITMAP_WORDS - 1);
		wire_u32 bit = at & (width - 1);
		wire_u32 room = width - bit < left ? width - bit : left;
		wire_u64 low = b->plane[0][word], high = b->plane[1][word], mask;
		wire_u32 run = nic_trailing_zeros(~((low | high) >> (bit & 63)));

		if (run > room)
			run = room;
		if (!run)
			break;
		mask = nic_ones(bit, run);
		moved.packets += run;
		moved.tails += nic_popcount(high & mask);
		moved.completions += nic_popcount(high & low & mask);
		b->plane[0][word] = low & ~mask;
		b->plane[1][word] = high & ~mask;
		left -= room;
		if (run < room || !left)
			break;
		at = (at + room) & (slots - 1);
	}
	return moved;
}

/* ---- one bit a PSN; always NIC_BITMAP_SLOTS of them ---- */

WIRE_FN int nic_bitmap1_get(const struct nic_bitmap1 *b, wire_u32 psn)
{
	return (b->word[(psn >> 6) & (NIC_BITMAP_WORDS - 1)] >> (psn & 63)) & 1;
}

WIRE_FN void nic_bitmap1_set(struct nic_bitmap1 *b, wire_u32 psn)
{
	b->word[(psn >> 6) & (NIC_BITMAP_WORDS - 1)] |= 1ull << (psn & 63);
}

/* One step of a walk: how many of `left` PSNs from `psn` on lie in psn's word. */
WIRE_FN wire_u32 nic_bitmap1_room(wire_u32 psn, wire_u32 left)
{
	wire_u32 room = 64 - (psn & 63);

	return room < left ? room : left;
}

/* Forgets `count` PSNs from `psn` on; any count. */
WIRE_FN void nic_bitmap1_clear(struct nic_bitmap1 *b, wire_u32 psn, wire_u32 count)
{
	wire_u32 left = count < NIC_BITMAP_SLOTS ? count : NIC_BITMAP_SLOTS;

	for (int step = 0; step < NIC_BITMAP_STEPS; step++) {
		wire_u32 room = nic_bitmap1_room(psn, left);

		if (!left)
			break;
		b->word[(psn >> 6) & (NIC_BITMAP_WORDS - 1)] &= ~nic_ones(psn & 63, room);
		psn += room;
		left -= room;
	}
}

/* How far behind `psn` the first PSN lies that is not in the bitmap; `count` when the next `count` all are. */
WIRE_FN wire_u32 nic_bitmap1_hole(const struct nic_bitmap1 *b, wire_u32 psn, wire_u32 count)
{
	wire_u32 seen = 0;

	if (count > NIC_BITMAP_SLOTS)
		count = NIC_BITMAP_SLOTS;
	for (int step = 0; step < NIC_BITMAP_STEPS; step++) {
		wire_u32 at = psn + seen;
		wire_u32 room = nic_bitmap1_room(at, count - seen);
		wire_u32 run = nic_trailing_zeros(~(b->word[(at >> 6) & (NIC_BITMAP_WORDS - 1)] >> (at & 63)));

		if (run < room)
			return seen + run;
		seen += room;
		if (seen == count)
			break;
	}
	return count;
}

/* How many of the `count` PSNs from `psn` on there are up to the last that is in the bitmap; 0: none is. */
WIRE_FN wire_u32 nic_bitmap1_extent(const struct nic_bitmap1 *b, wire_u32 psn, wire_u32 count)
{
	wire_u32 seen = 0, extent = 0;

	if (count > NIC_BITMAP_SLOTS)
		count = NIC_BITMAP_SLOTS;
	for (int step = 0; step < NIC_BITMAP_STEPS; step++) {
		wire_u32 at = psn + seen;
		wire_u32 room = nic_bitmap1_room(at, count - seen);
		wire_u64 found;

		if (seen == count)
			break;
		found = (b->word[(at >> 6) & (NIC_BITMAP_WORDS - 1)] >> (at & 63)) & nic_ones(0, room);
		if (found)
			extent = seen + nic_highest_bit(found) + 1;
		seen += room;
	}
	return extent;
}

#endif
