/*
 * Eunomia's memory controller (sections 3.4 and 4): a NIC's small memory, given out in blocks of two bytes.
 *
 * - `master` holds everything that a connection with packets out of order needs: its states and its bitmap blocks.
 * - `block_alloc_bitmap` has a bit for each block, 1 while it is in use.
 * - `metadata_start_index` says where each connection's states begin.
 *
 * Bitmap blocks are taken first-fit from the head of the array, the long runs of metadata from its tail, so that the
 * short ones do not break up the long ones.  Giving back changes the allocation bitmap only, the contents stay: whoever
 * takes a block writes it.
 *
 * A controller belongs to one host and works for all queue pairs of that host.  It takes no lock: a host's packets all
 * come through the one receive queue of its veth, so one CPU at a time works on it.  Two hosts never share one. The
 * agent only reads, but for nic_hd_abandon().
 *
 * A controller full of zeros is empty and ready.
 */
#ifndef NIC_MEMORY_CONTROLLER_H
#define NIC_MEMORY_CONTROLLER_H

#include "bitmap.h"
#include "eunomia_state.h"

#define NIC_MC_WORDS           (NIC_MC_BLOCKS / 32)
/* At least as many as can have states and a bitmap block at once; a power of two, so that an index can be masked. */
#define NIC_MC_CONNECTIONS     (NIC_MC_BLOCKS / 16)
#define NIC_MC_METADATA_BLOCKS 24 /* section 4 */
#define NIC_MC_NONE            0xffffu
#define NIC_MC_ABANDONED       0xff

_Static_assert(NIC_MC_BLOCKS >= 64 && NIC_MC_BLOCKS <= 4096 && (NIC_MC_BLOCKS & (NIC_MC_BLOCKS - 1)) == 0,
	       "NIC_MC_BLOCKS must be a power of two from 64 to 4096");
/* Places beyond the number of connections that fit are never used, so an identifier never reaches NIC_MC_ABANDONED. */
_Static_assert(NIC_MC_BLOCKS / (NIC_MC_METADATA_BLOCKS + 1) < NIC_MC_ABANDONED, "identifiers are one byte");

/*
 * The value itself, below 2^16.  The eBPF verifier follows each value that a loop can leave with through all that comes
 * after it; what depends on memory it does not know, so all of them become one.
 */
WIRE_FN wire_u32 nic_mc_forget(const struct nic_mc *mc, wire_u32 value)
{
	return (value ^ *(const volatile wire_u32 *)&mc->stats.zero) & 0xffff;
}

/* 1 where a run of `count` ones starts; `count` is a constant: 1, 3 or 24. */
WIRE_FN wire_u64 nic_mc_runs(wire_u64 ones, wire_u32 count)
{
	wire_u64 two = ones & (ones >> 1), eight;

	if (count == 1)
		return ones;
	if (count == 3)
		return two & (ones >> 2);
	eight = two & (two >> 2);
	eight &= eight >> 4;
	return eight & (eight >> 8) & (eight >> 16);
}

/* Free blocks of word `word` and of the one behind it, as ones; no run that starts in the first is longer than that. */
WIRE_FN wire_u64 nic_mc_free(const struct nic_mc *mc, wire_u32 word)
{
	wire_u32 low = mc->block_alloc_bitmap[word & (NIC_MC_WORDS - 1)];
	wire_u32 high = word + 1 < NIC_MC_WORDS ? mc->block_alloc_bitmap[(word + 1) & (NIC_MC_WORDS - 1)] : ~0u;

	return ~(low | (wire_u64)high << 32);
}

/* The first free run that starts in a word; NIC_MC_NONE if there is none. */
WIRE_FN wire_u32 nic_mc_first_of_word(const struct nic_mc *mc, wire_u32 word, wire_u32 count)
{
	wire_u32 starts = (wire_u32)nic_mc_runs(nic_mc_free(mc, word), count);

	return starts ? word * 32 + nic_trailing_zeros(starts) : NIC_MC_NONE;
}

/* Section 4, "Finding New Space": the first free run from the head of the array; NIC_MC_NONE if there is none. */
WIRE_FN wire_u32 nic_mc_find_first(const struct nic_mc *mc, wire_u32 count)
{
	wire_u32 found = NIC_MC_NONE;

	for (wire_u32 word = 0; word < NIC_MC_WORDS; word++) {
		found = nic_mc_first_of_word(mc, word, count);
		if (found != NIC_MC_NONE)
			break;
	}
	return nic_mc_forget(mc, found);
}

/* The same backward from the tail. */
WIRE_FN wire_u32 nic_mc_find_last(const struct nic_mc *mc, wire_u32 count)
{
	wire_u32 found = NIC_MC_NONE;

	for (wire_u32 i = 0; i < NIC_MC_WORDS; i++) {
		wire_u32 word = NIC_MC_WORDS - 1 - i;
		wire_u32 starts = (wire_u32)nic_mc_runs(nic_mc_free(mc, word), count);

		if (starts) {
			found = word * 32 + nic_highest_bit(starts);
			break;
		}
	}
	return nic_mc_forget(mc, found);
}

/* Marks `count` <= 24 blocks from `start` as in use, or as free. */
WIRE_FN void nic_mc_mark(struct nic_mc *mc, wire_u32 start, wire_u32 count, int used)
{
	wire_u32 word = start / 32;
	wire_u64 mask = ((1ull << count) - 1) << (start % 32);
	wire_u32 *low = &mc->block_alloc_bitmap[word & (NIC_MC_WORDS - 1)];
	wire_u32 *high = &mc->block_alloc_bitmap[(word + 1) & (NIC_MC_WORDS - 1)];

	if (used) {
		*low |= (wire_u32)mask;
		*high |= (wire_u32)(mask >> 32);
	} else {
		*low &= ~(wire_u32)mask;
		*high &= ~(wire_u32)(mask >> 32);
	}
}

WIRE_FN wire_u32 nic_mc_blocks_in_use(const struct nic_mc *mc)
{
	return mc->stats.blocks[NIC_MC_METADATA] + mc->stats.blocks[NIC_MC_BITMAP] + mc->stats.blocks[NIC_MC_SIDE];
}

/* Books `count` blocks from `start`, which a find function gave; NIC_MC_NONE goes through and counts as refused. */
WIRE_FN wire_u32 nic_mc_take(struct nic_mc *mc, wire_u32 start, wire_u32 count, enum nic_mc_use use)
{
	if (start == NIC_MC_NONE) {
		mc->stats.refused++;
		return start;
	}
	nic_mc_mark(mc, start, count, 1);
	mc->stats.blocks[use] += count;
	return start;
}

WIRE_FN void nic_mc_note_peak(struct nic_mc *mc)
{
	wire_u32 in_use = nic_mc_blocks_in_use(mc);

	if (in_use > mc->stats.peak_blocks)
		mc->stats.peak_blocks = in_use;
}

WIRE_FN void nic_mc_give(struct nic_mc *mc, wire_u32 start, wire_u32 count, enum nic_mc_use use)
{
	nic_mc_mark(mc, start, count, 0);
	mc->stats.blocks[use] -= count;
}

/* The block at `at`; every access to the array goes through here. */
WIRE_FN wire_u16 *nic_mc_block(struct nic_mc *mc, wire_u32 at)
{
	return &mc->master[at & (NIC_MC_BLOCKS - 1)];
}

WIRE_FN wire_u32 nic_mc_entry_start(const struct nic_mc_entry *entry)
{
	return entry->start[0] | (wire_u32)entry->start[1] << 8;
}

/* The first free place of the index; `abandoned` becomes the first that is to be collected, or NIC_MC_NONE. */
WIRE_FN wire_u32 nic_mc_find_entry(const struct nic_mc *mc, wire_u32 *abandoned)
{
	wire_u32 found = NIC_MC_NONE, old = NIC_MC_NONE;

	for (wire_u32 i = 0; i < NIC_MC_CONNECTIONS; i++) {
		wire_u8 connection = *(const volatile wire_u8 *)&mc->metadata_start_index[i].connection;

		if (connection == NIC_MC_ABANDONED && old == NIC_MC_NONE)
			old = nic_mc_forget(mc, i);
		else if (!connection && found == NIC_MC_NONE)
			found = nic_mc_forget(mc, i);
	}
	*abandoned = old;
	return found;
}

/* The place of the connection whose states begin at `start`. */
WIRE_FN wire_u32 nic_mc_entry_of(const struct nic_mc *mc, wire_u32 start)
{
	wire_u32 found = NIC_MC_NONE;

	for (wire_u32 i = 0; i < NIC_MC_CONNECTIONS; i++) {
		const struct nic_mc_entry *entry = &mc->metadata_start_index[i];

		if (entry->connection && nic_mc_entry_start(entry) == start) {
			found = i;
			break;
		}
	}
	return nic_mc_forget(mc, found);
}

WIRE_FN void nic_mc_enter(struct nic_mc *mc, wire_u32 entry, wire_u32 start)
{
	struct nic_mc_entry *e = &mc->metadata_start_index[entry & (NIC_MC_CONNECTIONS - 1)];

	e->connection = (wire_u8)(entry + 1);
	e->start[0] = (wire_u8)start;
	e->start[1] = (wire_u8)(start >> 8);
	mc->stats.connections++;
	mc->stats.created++;
}

#endif
