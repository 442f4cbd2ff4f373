/*
 * What Eunomia keeps: of a stream at the receiver and in the agent, and the memory that all streams of a host share
 * (see memory_controller.h and hd_bitmap.h).  All zero is the state before the first packet.
 */
#ifndef NIC_EUNOMIA_STATE_H
#define NIC_EUNOMIA_STATE_H

#include "wire.h"

/* Blocks of two bytes: section 4's capacity.  A power of two from 64 to 4096. */
#ifndef NIC_MC_BLOCKS
#define NIC_MC_BLOCKS 1024
#endif

/* Section 4: three bytes, a connection's number and the block where its states begin. */
struct nic_mc_entry {
	wire_u8 connection; /* its place in the index + 1; 0: free; NIC_MC_ABANDONED: to be collected */
	wire_u8 start[2];   /* low byte first */
};

_Static_assert(sizeof(struct nic_mc_entry) == 3, "section 4: 1 byte connection ID, 2 bytes starting index");

/* What blocks in use are for. */
enum nic_mc_use {
	NIC_MC_METADATA = 0, /* states and relative addresses, 24 blocks a connection */
	NIC_MC_BITMAP = 1,   /* rows of HD bitmaps */
	NIC_MC_SIDE = 2,     /* message ends beside the bitmap: Plait's addition, see hd_bitmap.h */
	NIC_MC_USES = 3
};

/* Beside the memory that is modelled, so that it can be watched; not part of it. */
struct nic_mc_stats {
	wire_u32 blocks[NIC_MC_USES]; /* in use now */
	wire_u32 connections;         /* with states now */
	wire_u32 peak_blocks;
	wire_u32 created;
	wire_u32 collected; /* given back by garbage collection */
	wire_u32 reclaimed; /* given back after nic_hd_abandon() */
	wire_u32 refused;   /* requests for blocks that found none */
	wire_u32 zero;      /* see nic_mc_forget() */
};

/* The memory controller's three arrays (section 4).  Written by the NIC, but for nic_hd_abandon(). */
struct nic_mc {
	wire_u16 master[NIC_MC_BLOCKS];
	wire_u32 block_alloc_bitmap[NIC_MC_BLOCKS / 32];
	struct nic_mc_entry metadata_start_index[NIC_MC_BLOCKS / 16];
	struct nic_mc_stats stats;
};

/* Table 7's "HD Bitmap Addr": all that a connection without packets out of order holds; zeros are NULL. */
struct nic_hd_addr {
	wire_u16 states; /* block of the states + 1 */
	wire_u16 first;  /* block of row 0, to which the other addresses are relative */
};

_Static_assert(sizeof(struct nic_hd_addr) == 4, "Table 7: HD Bitmap Addr is 4 bytes");

/* Written by the NIC. */
struct nic_eunomia_receiver {
	struct nic_hd_addr bitmap;
	wire_u8 begun;        /* a packet has come */
	wire_u8 held;         /* a last WRITE packet lies at config.hold_at (appendix A.1): it is the one below */
	wire_u16 held_length;
	wire_u32 held_psn;
	wire_u32 held_rkey;
	wire_u64 held_va;
};

/* Written by the agent. */
struct nic_eunomia_emitter {
	wire_u32 nxt;       /* PSN to send next: snd_nxt, or before it in recovery */
	wire_u32 una_seen;  /* of struct nic_sender, as the agent saw them last */
	wire_u32 acks_seen;
	wire_u32 naks_seen;
	wire_u32 rnr_seen;
	wire_u32 padding;
	wire_u64 back_time; /* when recovery last began; 0: never */
	wire_u64 heard;     /* what the retransmission timeout counts from */
	wire_u8 backoff;    /* doublings of the timeout */
	wire_u8 begun;      /* 0: nxt and una_seen do not stand yet */
	wire_u8 reserved[6];
};

#endif
