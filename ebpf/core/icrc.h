/*
 * The invariant CRC of RoCEv2 (IBTA Annex A17.3.3): CRC-32 as Ethernet has it, over eight bytes of ones in place of an
 * InfiniBand LRH, then the packet from the IPv4 header on, with the fields that switches change taken as ones.  The
 * result is stored least significant byte first.
 *
 * CRC is linear: crc(a ^ b) = crc(a) ^ L(b), where L depends on the bits and their distance from the end alone.  The
 * replies of a queue pair differ from their siblings in few bytes, so their CRC is the CRC with those bytes zero, which
 * the agent computes once, and one table look-up for each of them.  What varies in an ACK also varies in a longer XACK,
 * at the same distances from the end (AETH), or at others (BTH): each layout has its own tables.
 */
#ifndef NIC_ICRC_H
#define NIC_ICRC_H

#include "packet.h"

/* The bytes of a reply that vary within a queue pair, in the order of struct nic_reply_bytes' fields. */
#define NIC_ACK_BYTES  9  /* source port 2, PSN 3, AETH 4 */
#define NIC_XACK_BYTES 16 /* source port 2, opcode 1, PSN 3, xack_t but its reserved bytes 6, AETH 4 */
#define NIC_CNP_BYTES  2  /* source port */

struct nic_icrc_tables {
	wire_u32 ack[NIC_ACK_BYTES][256];
	wire_u32 xack[NIC_XACK_BYTES][256];
	wire_u32 cnp[NIC_CNP_BYTES][256];
	/* For icrc_check.h: crc[n][b] is byte b with n bytes behind it; the register after the eight bytes of ones. */
	wire_u32 crc[4][256];
	wire_u32 after_ones;
	wire_u32 padding;
};

/* The change that the low `bytes` bytes of `value`, most significant first, make to a CRC. */
WIRE_FN wire_u32 nic_icrc_delta(const wire_u32 (*tables)[256], wire_u32 value, int bytes)
{
	wire_u32 delta = 0;

#pragma GCC unroll 4
	for (int i = 0; i < bytes; i++)
		delta ^= tables[i][(value >> (8 * (bytes - 1 - i))) & 0xff];
	return delta;
}

#endif
