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

/* ---- two bits a slot ---- */

/*
 * `slots`: a power of two, up to NIC_BITMAP_SLOTS.  Fewer than 64 have a whole word all the same, of which the caller
 * uses that many: it is the caller who refuses a PSN that lies `slots` or more behind the head.
 */
WIRE_FN wire_u32 nic_bitmap2_words(wire_u32 slots)
{
	return slots > 64 ? slots / 64 : 1;
}

WIRE_FN wire_u32 nic_bitmap2_word(wire_u32 words, wire_u32 at)
{
	return at & (words - 1) & (NIC_BITMAP_WORDS - 1);
}

WIRE_FN enum nic_slot nic_bitmap2_get(const struct nic_bitmap2 *b, wire_u32 slots, wire_u32 psn)
{
	wire_u32 word = nic_bitmap2_word(nic_bitmap2_words(slots), psn / 64);

	return (enum nic_slot)(((b->plane[0][word] >> (psn & 63)) & 1) | ((b->plane[1][word] >> (psn & 63)) & 1) << 1);
}

/* The slot is empty. */
WIRE_FN void nic_bitmap2_set(struct nic_bitmap2 *b, wire_u32 slots, wire_u32 psn, enum nic_slot state)
{
	wire_u32 word = nic_bitmap2_word(nic_bitmap2_words(slots), psn / 64);

	b->plane[0][word] |= (wire_u64)((wire_u32)state & 1) << (psn & 63);
	b->plane[1][word] |= (wire_u64)((wire_u32)state >> 1 & 1) << (psn & 63);
}

/* What came into order. */
struct nic_advance {
	wire_u32 packets;
	wire_u32 tails;       /* messages, with and without completion */
	wire_u32 completions;
};

/*
 * Takes the unbroken run of filled slots from `head` on out of the bitmap.  The head moves by `packets`.
 *
 * Which words are looked at follows from the head and the step alone, never from what was found: so the verifier has
 * few ways to follow.
 */
WIRE_FN struct nic_advance nic_bitmap2_advance(struct nic_bitmap2 *b, wire_u32 slots, wire_u32 head)
{
	struct nic_advance moved = { 0, 0, 0 };
	wire_u32 words = nic_bitmap2_words(slots);
	wire_u64 before = ((wire_u64)1 << (head & 63)) - 1; /* of the head's word, what comes last */

	for (wire_u32 step = 0; step < NIC_BITMAP_STEPS && step <= words; step++) {
		wire_u32 word = nic_bitmap2_word(words, head / 64 + step);
		wire_u64 low = b->plane[0][word], high = b->plane[1][word];
		wire_u64 range = step == 0 ? ~before : step == words ? before : ~0ull;
		wire_u64 gaps = ~(low | high) & range;
		wire_u64 run = gaps ? range & ((gaps & -gaps) - 1) : range;

		moved.packets += nic_popcount(run);
		moved.tails += nic_popcount(high & run);
		moved.completions += nic_popcount(high & low & run);
		b->plane[0][word] = low & ~run;
		b->plane[1][word] = high & ~run;
		if (gaps)
			break;
	}
	return moved;
}

/*
 * ---- one bit a PSN; always NIC_BITMAP_SLOTS of them ----
 *
 * The NIC writes it while the agent looks at it, so the compiler must keep its order with the counters that say what is
 * new.  (x86 keeps it too; another processor would need fences, here and at the volatile accesses.)
 */
#define NIC_KEEP_ORDER() __asm__ volatile("" : : : "memory")

WIRE_FN int nic_bitmap1_get(const struct nic_bitmap1 *b, wire_u32 psn)
{
	return (b->word[(psn >> 6) & (NIC_BITMAP_WORDS - 1)] >> (psn & 63)) & 1;
}

WIRE_FN void nic_bitmap1_set(struct nic_bitmap1 *b, wire_u32 psn)
{
	b->word[(psn >> 6) & (NIC_BITMAP_WORDS - 1)] |= 1ull << (psn & 63);
	NIC_KEEP_ORDER();
}

/*
 * Which bits of the step-th word from psn's on belong to the `count` PSNs from psn on; count <= NIC_BITMAP_SLOTS.
 * Without comparisons: each would be two ways for the verifier to follow, at each step.
 */
WIRE_FN wire_u64 nic_bitmap1_range(wire_u32 psn, wire_u32 count, wire_u32 step)
{
	int end = (int)((psn & 63) + count) - (int)(64 * step); /* counted from the word's first bit */
	wire_u64 none = (wire_u64)(long long)((end - 1) >> 31);
	wire_u64 all = (wire_u64)(long long)((63 - end) >> 31);
	wire_u64 range = ((((wire_u64)1 << (end & 63)) - 1) | all) & ~none;

	return step ? range : range & (~0ull << (psn & 63));
}

WIRE_FN wire_u32 nic_bitmap1_word(wire_u32 psn, wire_u32 step)
{
	return (psn / 64 + step) & (NIC_BITMAP_WORDS - 1);
}

/* Forgets `count` PSNs from `psn` on; any count. */
WIRE_FN void nic_bitmap1_clear(struct nic_bitmap1 *b, wire_u32 psn, wire_u32 count)
{
	if (count > NIC_BITMAP_SLOTS)
		count = NIC_BITMAP_SLOTS;
	NIC_KEEP_ORDER();
	for (wire_u32 step = 0; step < NIC_BITMAP_STEPS; step++)
		b->word[nic_bitmap1_word(psn, step)] &= ~nic_bitmap1_range(psn, count, step);
}

/* How far behind `psn` the first PSN lies that is not in the bitmap; `count` when the next `count` all are. */
WIRE_FN wire_u32 nic_bitmap1_hole(const struct nic_bitmap1 *b, wire_u32 psn, wire_u32 count)
{
	if (count > NIC_BITMAP_SLOTS)
		count = NIC_BITMAP_SLOTS;
	NIC_KEEP_ORDER();
	for (wire_u32 step = 0; step < NIC_BITMAP_STEPS; step++) {
		wire_u64 gaps = ~b->word[nic_bitmap1_word(psn, step)] & nic_bitmap1_range(psn, count, step);

		if (gaps)
			return 64 * step + nic_trailing_zeros(gaps) - (psn & 63);
	}
	return count;
}

/* How many of the `count` PSNs from `psn` on there are up to the last that is in the bitmap; 0: none is. */
WIRE_FN wire_u32 nic_bitmap1_extent(const struct nic_bitmap1 *b, wire_u32 psn, wire_u32 count)
{
	wire_u32 extent = 0;

	if (count > NIC_BITMAP_SLOTS)
		count = NIC_BITMAP_SLOTS;
	NIC_KEEP_ORDER();
	for (wire_u32 step = 0; step < NIC_BITMAP_STEPS; step++) {
		wire_u64 found = b->word[nic_bitmap1_word(psn, step)] & nic_bitmap1_range(psn, count, step);

		if (found)
			extent = 64 * step + nic_highest_bit(found) + 1 - (psn & 63);
	}
	return extent;
}

#endif
