/*
 * Eunomia's hybrid-dynamic bitmap (section 3.3): which packets beyond the first missing one a connection has received.
 *
 * Rows of 16 bits, taken from the memory controller one by one as packets come from further ahead.  The first rows form
 * the circular portion, in which a packet's place is counted from that of the head, modulo its size.  Rows that are
 * added form the linear portion: its first bit is the packet after `tail`, and stays so.  As long as there is a linear
 * portion, `tail` stands still and what the head leaves behind is not used again; once no bit of the circular portion
 * is set, the linear one is absorbed into it, and nothing has to be moved.
 *
 *      row 0  . . . . H x x .        H: head, the first missing packet; x: received; T: tail
 *      row 1  x . . . . . . T        circular: wraps from the end of row 1 to the start of row 0, before H
 *      row 2  . x . . . . . .        linear: starts with the packet after T
 *
 * A PSN takes 4 bytes here as in the paper's Table 7, of which it uses 24 bits.  `size` counts rows.
 *
 * Beside the paper: with several messages outstanding on one queue pair, the responder must learn how many messages the
 * head has passed, and how many of them complete a receive work request.  A packet that ends a message and arrives out
 * of order is marked in a side row, of three blocks, which stand for one row of the bitmap:
 *
 *      next side row (12 bits) | row (4 bits),     message ends,     those of them that complete a receive
 *
 * A side row exists only where there is such a packet: 6 bytes a connection as long as messages are long, 96 at the
 * most. It is not part of the paper's 4 to 82 bytes: the controller's statistics count it apart, as NIC_MC_SIDE.
 */
#ifndef NIC_HD_BITMAP_H
#define NIC_HD_BITMAP_H

#include "memory_controller.h"
#include "psn.h"

#define NIC_HD_BLOCK_BITS 16 /* section 4 */
#define NIC_HD_ROWS       16 /* the cap of 256 bits: no connection starves the others (section 3.3.2) */
#define NIC_HD_CAP        (NIC_HD_BLOCK_BITS * NIC_HD_ROWS)

/* Blocks of a side row, and its first one's parts. */
#define NIC_HD_SIDE_ROW           3
#define NIC_HD_SIDE_NEXT(header)  ((wire_u32)(header) >> 4)
#define NIC_HD_SIDE_OF(header)    ((wire_u32)(header) & 0xf)
#define NIC_HD_SIDE_NONE          0xfffu /* no run of three starts there, even with 4,096 blocks */

/* What the controller keeps of a connection: the rest of Table 7, relative addresses, and one block that §4 leaves. */
struct nic_hd_states {
	wire_u32 head;             /* first missing PSN */
	wire_u32 tail;             /* highest PSN that the circular portion accommodates */
	wire_u32 last_seq;         /* PSN of the last packet, or NIC_HD_NO_LAST */
	wire_u8 head_bm_id;        /* row that contains the head */
	wire_u8 head_bm_index;     /* bit in that row */
	wire_u8 circular_bm_size;  /* rows */
	wire_u8 dynamic_size;      /* rows, circular and linear */
	wire_u16 relative[NIC_HD_ROWS - 1];
	wire_u16 side;             /* Plait's: the first side row, or NIC_HD_SIDE_NONE */
} __attribute__((packed, aligned(2), may_alias));

#define NIC_HD_NO_LAST (~0u)

_Static_assert(sizeof(struct nic_hd_states) == 2 * NIC_MC_METADATA_BLOCKS, "section 4: 24 blocks");
_Static_assert(__builtin_offsetof(struct nic_hd_states, relative) == 16, "section 3.4: 16 bytes of state variables");
/* Table 1: 82 bytes of paper's structure at the most. */
_Static_assert(sizeof(struct nic_hd_addr) + 16 + 2 * (NIC_HD_ROWS - 1) + NIC_HD_CAP / 8 == 82, "Table 1");

/* What became of a packet.  The first three leave it tracked; of the others nothing is kept. */
enum nic_hd_outcome {
	NIC_HD_ADVANCED,  /* it was the first missing one: ACK */
	NIC_HD_TRACKED,   /* out of order: SACK */
	NIC_HD_REPEATED,  /* out of order, and known already: SACK */
	NIC_HD_PASSED,    /* before the head: ACK */
	NIC_HD_CAPPED,    /* beyond the cap: NACK */
	NIC_HD_NO_MEMORY, /* the controller has no blocks: NACK */
};

/* The states at block `start`, or NULL where so many blocks do not fit. */
WIRE_FN struct nic_hd_states *nic_hd_states_at(struct nic_mc *mc, wire_u32 start)
{
	if (start > NIC_MC_BLOCKS - NIC_MC_METADATA_BLOCKS)
		return 0;
	/* The verifier does not see that this is the value that was compared. */
	return (struct nic_hd_states *)nic_mc_block(mc, nic_mc_forget(mc, start));
}

WIRE_FN struct nic_hd_states *nic_hd_states(struct nic_mc *mc, const struct nic_hd_addr *addr)
{
	return nic_hd_states_at(mc, (wire_u32)addr->states - 1);
}

WIRE_FN wire_u32 nic_hd_row(const struct nic_hd_states *s, wire_u32 first, wire_u32 row)
{
	return row ? (wire_u16)(first + s->relative[(row - 1) % NIC_HD_ROWS]) : first;
}

/* The highest PSN that both portions accommodate. */
WIRE_FN wire_u32 nic_hd_end(const struct nic_hd_states *s)
{
	return nic_psn_add(s->tail, NIC_HD_BLOCK_BITS * (wire_u32)(s->dynamic_size - s->circular_bm_size));
}

/* Where the bit of a PSN from the head to the end lies, counted from the first bit of row 0. */
WIRE_FN wire_u32 nic_hd_place(const struct nic_hd_states *s, wire_u32 psn)
{
	wire_u32 circular = NIC_HD_BLOCK_BITS * (wire_u32)s->circular_bm_size;
	wire_u32 place = NIC_HD_BLOCK_BITS * (wire_u32)s->head_bm_id + s->head_bm_index;
	int behind_tail = nic_psn_distance(psn, s->tail);

	if (behind_tail > 0)
		return circular + (wire_u32)behind_tail - 1;
	place += (wire_u32)nic_psn_distance(psn, s->head);
	return place >= circular ? place - circular : place;
}

/* States without a row yet: the end lies just before the head. */
WIRE_FN int nic_hd_create(struct nic_mc *mc, struct nic_hd_addr *addr, wire_u32 entry, wire_u32 head)
{
	wire_u32 start = NIC_MC_NONE;
	struct nic_hd_states *s;

	if (entry != NIC_MC_NONE)
		start = nic_mc_find_last(mc, NIC_MC_METADATA_BLOCKS);
	start = nic_mc_take(mc, start, NIC_MC_METADATA_BLOCKS, NIC_MC_METADATA);
	s = nic_hd_states_at(mc, start);
	if (!s)
		return 0;
	s->head = head;
	s->tail = nic_psn_add(head, WIRE_PSN_MASK);
	s->last_seq = NIC_HD_NO_LAST;
	s->head_bm_id = s->head_bm_index = 0;
	s->circular_bm_size = s->dynamic_size = 0;
	s->side = NIC_HD_SIDE_NONE;
	addr->states = (wire_u16)(start + 1);
	nic_mc_enter(mc, entry, start);
	return 1;
}

/* Adds rows until the end reaches `psn`: the first row of all is circular, all others are linear. */
WIRE_FN enum nic_hd_outcome nic_hd_reach(struct nic_mc *mc, struct nic_hd_addr *addr, struct nic_hd_states *s,
					 wire_u32 psn)
{
	int beyond = nic_psn_distance(psn, nic_hd_end(s));
	wire_u32 rows, word = 0;

	if (beyond <= 0)
		return NIC_HD_TRACKED;
	rows = ((wire_u32)beyond + NIC_HD_BLOCK_BITS - 1) / NIC_HD_BLOCK_BITS;
	if (rows > NIC_HD_ROWS - (wire_u32)s->dynamic_size)
		return NIC_HD_CAPPED;
	if (rows > NIC_MC_BLOCKS - nic_mc_blocks_in_use(mc)) {
		mc->stats.refused++;
		return NIC_HD_NO_MEMORY;
	}
	/* One pass over the allocation bitmap gives all rows: first-fit never has to look back. */
	for (wire_u32 i = 0; i < NIC_MC_WORDS + NIC_HD_ROWS; i++) {
		wire_u32 at;

		word = nic_mc_forget(mc, word);
		rows = nic_mc_forget(mc, rows);
		if (!rows)
			break;
		at = nic_mc_first_of_word(mc, word, 1);
		if (at == NIC_MC_NONE) {
			word++;
			continue;
		}
		nic_mc_take(mc, at, 1, NIC_MC_BITMAP);
		*nic_mc_block(mc, at) = 0;
		if (s->dynamic_size)
			s->relative[(s->dynamic_size - 1) % NIC_HD_ROWS] = (wire_u16)(at - addr->first);
		else
			addr->first = (wire_u16)at;
		s->dynamic_size++;
		rows--;
	}
	if (!s->circular_bm_size) {
		s->circular_bm_size = 1;
		s->tail = nic_psn_add(s->tail, NIC_HD_BLOCK_BITS);
	}
	return NIC_HD_TRACKED;
}

/* The side row of a row, or NIC_HD_SIDE_NONE. */
WIRE_FN wire_u32 nic_hd_side_row(struct nic_mc *mc, const struct nic_hd_states *s, wire_u32 row)
{
	wire_u32 at = s->side;

	for (int step = 0; step < NIC_HD_ROWS; step++) {
		wire_u32 header;

		at = nic_mc_forget(mc, at);
		if (at == NIC_HD_SIDE_NONE)
			break;
		header = *nic_mc_block(mc, at);
		if (NIC_HD_SIDE_OF(header) == row)
			break;
		at = NIC_HD_SIDE_NEXT(header);
	}
	return at;
}

/* Notes that the packet at `place` ends a message. */
WIRE_FN int nic_hd_mark_end(struct nic_mc *mc, struct nic_hd_states *s, wire_u32 place, wire_u32 slot)
{
	wire_u32 row = place / NIC_HD_BLOCK_BITS % NIC_HD_ROWS;
	wire_u32 at = nic_hd_side_row(mc, s, row);
	wire_u16 bit = (wire_u16)(1u << place % NIC_HD_BLOCK_BITS);

	if (at == NIC_HD_SIDE_NONE) {
		at = nic_mc_take(mc, nic_mc_find_first(mc, NIC_HD_SIDE_ROW), NIC_HD_SIDE_ROW, NIC_MC_SIDE);
		if (at == NIC_MC_NONE)
			return 0;
		*nic_mc_block(mc, at) = (wire_u16)(s->side << 4 | row);
		*nic_mc_block(mc, at + 1) = 0;
		*nic_mc_block(mc, at + 2) = 0;
		s->side = (wire_u16)at;
	}
	*nic_mc_block(mc, at + 1) |= bit;
	if (slot == NIC_SLOT_TAIL_COMPLETION)
		*nic_mc_block(mc, at + 2) |= bit;
	return 1;
}

/* Takes out the marks of packets that the head has passed: those whose bit is no longer set in the bitmap. */
WIRE_FN void nic_hd_pass_ends(struct nic_mc *mc, const struct nic_hd_addr *addr, const struct nic_hd_states *s,
			      struct nic_advance *moved)
{
	wire_u32 at = s->side, tails = moved->tails, completions = moved->completions;

	for (int step = 0; step < NIC_HD_ROWS; step++) {
		wire_u32 header, waiting;
		wire_u16 *ends, *completing;

		at = nic_mc_forget(mc, at);
		if (at == NIC_HD_SIDE_NONE)
			break;
		header = *nic_mc_block(mc, at);
		waiting = *nic_mc_block(mc, nic_hd_row(s, addr->first, NIC_HD_SIDE_OF(header)));
		ends = nic_mc_block(mc, at + 1);
		completing = nic_mc_block(mc, at + 2);
		tails += nic_popcount(*ends & ~waiting);
		completions += nic_popcount(*completing & ~waiting);
		*ends &= (wire_u16)waiting;
		*completing &= (wire_u16)waiting;
		at = NIC_HD_SIDE_NEXT(header);
	}
	moved->tails = tails;
	moved->completions = completions;
}

/* Whether the first `rows` rows hold no bit. */
WIRE_FN int nic_hd_clear(struct nic_mc *mc, const struct nic_hd_addr *addr, const struct nic_hd_states *s,
			 wire_u32 rows)
{
	wire_u16 bits = 0;

	for (wire_u32 row = 0; row < NIC_HD_ROWS; row++)
		if (row < rows)
			bits |= *nic_mc_block(mc, nic_hd_row(s, addr->first, row));
	return !bits;
}

/*
 * The packet at the head has come: the head moves to the next missing one and takes out the bits that it passes.  Then,
 * if no bit of the circular portion is set, the linear portion becomes part of it: the head's place is chosen so that
 * all set bits stay where they are.
 */
WIRE_FN void nic_hd_advance(struct nic_mc *mc, const struct nic_hd_addr *addr, struct nic_hd_states *s,
			    struct nic_advance *moved)
{
	wire_u32 circular = NIC_HD_BLOCK_BITS * (wire_u32)s->circular_bm_size;
	wire_u32 all = NIC_HD_BLOCK_BITS * (wire_u32)s->dynamic_size;
	int covered = nic_psn_distance(nic_hd_end(s), s->head);      /* packets behind the head that have a bit */
	int to_tail = nic_psn_distance(s->tail, s->head);            /* those of them in the circular portion */
	wire_u32 place = NIC_HD_BLOCK_BITS * (wire_u32)s->head_bm_id + s->head_bm_index;
	int count = 1;                                               /* packets passed */

	/* Each row once, and the one that holds the head twice. */
	for (int step = 0; step <= NIC_HD_ROWS; step++) {
		wire_u32 at, row, column, ones, room;
		wire_u16 *block, mask;
		int left;

		count = (int)nic_mc_forget(mc, (wire_u32)count);
		if (count > covered)
			break;
		if (count <= to_tail) {
			at = place + (wire_u32)count;
			if (at >= circular)
				at -= circular;
			left = to_tail + 1 - count;
		} else {
			at = circular + (wire_u32)(count - to_tail) - 1;
			left = covered + 1 - count;
		}
		row = at / NIC_HD_BLOCK_BITS % NIC_HD_ROWS;
		column = at % NIC_HD_BLOCK_BITS;
		room = NIC_HD_BLOCK_BITS - column;
		if ((int)room > left)
			room = (wire_u32)left;
		block = nic_mc_block(mc, nic_hd_row(s, addr->first, row));
		ones = nic_trailing_zeros(~(wire_u64)(*block >> column));
		if (ones > room)
			ones = room;
		mask = (wire_u16)(((1u << ones) - 1) << column);
		*block &= (wire_u16)~mask;
		count += (int)ones;
		if (ones < room)
			break;
	}
	nic_hd_pass_ends(mc, addr, s, moved);
	moved->packets += (wire_u32)count;
	s->head = nic_psn_add(s->head, (wire_u32)count);
	if (circular == all) {
		place += (wire_u32)count;
		if (place >= all)
			place -= all;
		s->tail = nic_psn_add(s->tail, (wire_u32)count);
	} else if (count > to_tail || nic_hd_clear(mc, addr, s, s->circular_bm_size)) {
		place = circular + (wire_u32)(count - to_tail) - 1;
		if (place == all)
			place = 0;
		s->circular_bm_size = s->dynamic_size;
		s->tail = nic_psn_add(s->head, all - 1);
	} else {
		place += (wire_u32)count;
		if (place >= circular)
			place -= circular;
	}
	s->head_bm_id = (wire_u8)(place / NIC_HD_BLOCK_BITS);
	s->head_bm_index = (wire_u8)(place % NIC_HD_BLOCK_BITS);
}

/* A packet behind the head. */
WIRE_FN enum nic_hd_outcome nic_hd_track(struct nic_mc *mc, struct nic_hd_addr *addr, struct nic_hd_states *s,
					 wire_u32 psn, wire_u32 slot)
{
	enum nic_hd_outcome outcome = nic_hd_reach(mc, addr, s, psn);
	wire_u32 place, bit;
	wire_u16 *row;

	if (outcome != NIC_HD_TRACKED)
		return outcome;
	place = nic_hd_place(s, psn);
	row = nic_mc_block(mc, nic_hd_row(s, addr->first, place / NIC_HD_BLOCK_BITS % NIC_HD_ROWS));
	bit = 1u << place % NIC_HD_BLOCK_BITS;
	if (*row & bit)
		return NIC_HD_REPEATED;
	if (slot != NIC_SLOT_RECEIVED && !nic_hd_mark_end(mc, s, place, slot))
		return NIC_HD_NO_MEMORY;
	*row |= (wire_u16)bit;
	return NIC_HD_TRACKED;
}

/* Gives back everything that the connection with this place in the index holds; `first`: the block of its row 0. */
WIRE_FN void nic_hd_release(struct nic_mc *mc, wire_u32 place, wire_u32 first)
{
	struct nic_mc_entry *entry = &mc->metadata_start_index[place & (NIC_MC_CONNECTIONS - 1)];
	wire_u32 start = nic_mc_entry_start(entry);
	struct nic_hd_states *s = nic_hd_states_at(mc, start);
	wire_u32 side;

	if (!s)
		return;
	side = s->side;
	for (wire_u32 row = 0; row < NIC_HD_ROWS; row++) {
		if (row < s->dynamic_size)
			nic_mc_give(mc, nic_hd_row(s, first, row), 1, NIC_MC_BITMAP);
		side = nic_mc_forget(mc, side);
		if (side != NIC_HD_SIDE_NONE) {
			nic_mc_give(mc, side, NIC_HD_SIDE_ROW, NIC_MC_SIDE);
			side = NIC_HD_SIDE_NEXT(*nic_mc_block(mc, side));
		}
	}
	nic_mc_give(mc, start, NIC_MC_METADATA_BLOCKS, NIC_MC_METADATA);
	entry->connection = 0;
	mc->stats.connections--;
}

/* Where nic_hd_abandon() left the address of row 0. */
WIRE_FN wire_u32 nic_hd_abandoned_first(struct nic_mc *mc, wire_u32 place)
{
	struct nic_mc_entry *entry = &mc->metadata_start_index[place & (NIC_MC_CONNECTIONS - 1)];
	struct nic_hd_states *s = nic_hd_states_at(mc, nic_mc_entry_start(entry));

	return s ? s->head : 0;
}

WIRE_FN void nic_hd_note_last(struct nic_hd_states *s, wire_u32 psn)
{
	if (s->last_seq == NIC_HD_NO_LAST || nic_psn_distance(psn, s->last_seq) > 0)
		s->last_seq = psn;
}

/* Section 3.5.3: everything up to the last packet came in order, and nothing of what follows it is tracked. */
WIRE_FN wire_u32 nic_hd_finished(struct nic_mc *mc, const struct nic_hd_addr *addr, const struct nic_hd_states *s)
{
	return s->last_seq != NIC_HD_NO_LAST && nic_psn_distance(s->head, s->last_seq) > 0 &&
	       nic_hd_clear(mc, addr, s, s->dynamic_size);
}

/* A packet for which there is a bitmap or must be one: it is ahead of its turn, or the one at a bitmap's head. */
WIRE_FN wire_u32 nic_hd_manage(struct nic_mc *mc, struct nic_hd_addr *addr, wire_u32 expected, wire_u32 psn,
			       wire_u32 slot, wire_u32 last, struct nic_advance *moved)
{
	wire_u32 created = nic_mc_forget(mc, !addr->states), abandoned = NIC_MC_NONE;
	wire_u32 outcome = NIC_HD_NO_MEMORY, leaves = 0;
	struct nic_hd_states *s;

	if (created) {
		wire_u32 entry = nic_mc_find_entry(mc, &abandoned);

		nic_hd_create(mc, addr, entry, expected);
	}
	/* Otherwise the verifier would follow all that comes once for a bitmap that is new, and once for another. */
	created = nic_mc_forget(mc, created);
	abandoned = nic_mc_forget(mc, abandoned);
	s = nic_hd_states(mc, addr);
	if (s) {
		if (psn == expected) {
			nic_hd_advance(mc, addr, s, moved);
			outcome = NIC_HD_ADVANCED;
		} else {
			outcome = nic_hd_track(mc, addr, s, psn, slot);
		}
		outcome = nic_mc_forget(mc, outcome);
		if (last && outcome <= NIC_HD_TRACKED)
			nic_hd_note_last(s, psn);
		leaves = nic_hd_finished(mc, addr, s);
		mc->stats.collected += leaves;
		leaves |= created && outcome != NIC_HD_TRACKED;
	}
	if (nic_mc_forget(mc, leaves)) {
		nic_hd_release(mc, nic_mc_entry_of(mc, (wire_u32)addr->states - 1), addr->first);
		addr->states = addr->first = 0;
	}
	if (abandoned != NIC_MC_NONE) {
		mc->stats.reclaimed++;
		nic_hd_release(mc, abandoned, nic_hd_abandoned_first(mc, abandoned));
	}
	return outcome;
}

/*
 * A packet with PSN `psn` that may be executed came.  `expected`: the first missing PSN, as the transport knows it;
 * with a bitmap, that is the bitmap's head.  `slot`: what the packet is to its message, not NIC_SLOT_EMPTY.  `last`: it
 * is the connection's last one, for now (section 3.2.1).  Fills `moved` for NIC_HD_ADVANCED and leaves it alone
 * otherwise.
 *
 * A bitmap comes to be with the first packet out of order, and goes when everything up to the last one is in order; it
 * also goes if the packet it was made for did not fit.
 */
WIRE_FN enum nic_hd_outcome nic_hd_receive(struct nic_mc *mc, struct nic_hd_addr *addr, wire_u32 expected, wire_u32 psn,
					   enum nic_slot slot, int last, struct nic_advance *moved)
{
	int ahead = nic_psn_distance(psn, expected);
	wire_u32 outcome;

	if (ahead < 0)
		return NIC_HD_PASSED;
	if (ahead >= NIC_HD_CAP)
		return NIC_HD_CAPPED;
	if (ahead == 0)
		*moved = (struct nic_advance){ 0, nic_mc_forget(mc, slot >= NIC_SLOT_TAIL),
					       nic_mc_forget(mc, slot == NIC_SLOT_TAIL_COMPLETION) };
	if (ahead == 0 && !addr->states) {
		moved->packets = 1;
		return NIC_HD_ADVANCED;
	}
	outcome = nic_hd_manage(mc, addr, expected, psn, nic_mc_forget(mc, slot), nic_mc_forget(mc, last != 0), moved);
	nic_mc_note_peak(mc);
	return (enum nic_hd_outcome)nic_mc_forget(mc, outcome);
}

/*
 * Agent: the connection's queue pair takes no packets any more, and none is on its way through the NIC.  The NIC gives
 * back what it held when the next connection needs a bitmap.  The states of a connection that is over are nobody's, so
 * the address that the NIC needs is left in them.
 */
WIRE_FN void nic_hd_abandon(struct nic_mc *mc, const struct nic_hd_addr *addr)
{
	struct nic_hd_states *s = nic_hd_states(mc, addr);
	wire_u32 entry = nic_mc_entry_of(mc, (wire_u32)addr->states - 1);

	if (!s || entry == NIC_MC_NONE)
		return;
	s->head = addr->first;
	/* After the address: the NIC looks at this first. */
	*(volatile wire_u8 *)&mc->metadata_start_index[entry & (NIC_MC_CONNECTIONS - 1)].connection = NIC_MC_ABANDONED;
}

#endif
