/*
 * What each transport remembers of a stream, beside what every reliable connection has (struct nic_receiver and its
 * like): the one list of it, so that the size of a connection on the NIC can be stated and checked.
 *
 * A transport's structs stand in its own header; here they are put together.
 */
#ifndef NIC_STATE_H
#define NIC_STATE_H

#include "eunomia_state.h"
#include "gbn_state.h"
#include "irn_state.h"
#include "mprdma_state.h"
#include "wire.h"

/* Slots of a static bitmap, at most: windows are not larger. */
#define NIC_BITMAP_SLOTS 256
#define NIC_BITMAP_WORDS 4

_Static_assert(NIC_BITMAP_WORDS * 64 == NIC_BITMAP_SLOTS, "a bit a slot");

/* Two bits a slot, in two planes (MP-RDMA, section 3.3; IRN's 2-bitmap); see bitmap.h. */
struct nic_bitmap2 {
	wire_u64 plane[2][NIC_BITMAP_WORDS];
};

/* One bit a slot. */
struct nic_bitmap1 {
	wire_u64 word[NIC_BITMAP_WORDS];
};

/* Written by the NIC. */
union nic_receiver_state {
	struct nic_gbn_receiver gbn;
	struct nic_bitmap2 bitmap;
	struct nic_eunomia_receiver eunomia;
	wire_u64 room[16];
};

/* Written by the NIC. */
union nic_sender_state {
	struct nic_bitmap1 sacked;
	struct nic_mprdma_sender mprdma;
	wire_u64 room[16];
};

/* Written by the agent. */
union nic_emitter_state {
	struct nic_gbn_emitter gbn;
	struct nic_eunomia_emitter eunomia;
	struct nic_irn_emitter irn;
	struct nic_mprdma_emitter mprdma;
	wire_u64 room[11];
};

/* What all queue pairs of a host share, beside its counters.  Written by the NIC, all zero at the start. */
struct nic_host_state {
	union {
		struct nic_mc memory; /* Eunomia */
		wire_u64 room[512];
	};
};

_Static_assert(sizeof(union nic_receiver_state) == 128, "the room that struct nic_receiver has");
_Static_assert(sizeof(union nic_sender_state) == 128, "the room that struct nic_sender has");
_Static_assert(sizeof(union nic_emitter_state) == 88, "the room that struct nic_emitter has");

#endif
