/*
 * The invariant CRC of RoCEv2 (IBTA Annex A17.3.3): CRC-32 as Ethernet has it, over eight bytes of ones in place of an
 * InfiniBand LRH, then the packet from the IPv4 header on, with the fields that switches change taken as ones.  The
 * result is stored least significant byte first.
 *
 * CRC is linear: crc(a ^ b) = crc(a) ^ L(b), where L depends on the bits and their distance from the end alone.  An
 * acknowledge packet of a queue pair differs from its siblings in nine bytes only, so its CRC is the CRC with those
 * bytes zero, which the agent computes once, and one table look-up for each of the nine.
 */
#ifndef NIC_ICRC_H
#define NIC_ICRC_H

#include "packet.h"

/* The bytes of an acknowledge packet that vary within a queue pair. */
enum nic_ack_byte {
	NIC_ACK_SRC_PORT = 0, /* two bytes: the path that the acknowledged packet took is echoed */
	NIC_ACK_PSN = 2,      /* three */
	NIC_ACK_SYNDROME = 5, /* one */
	NIC_ACK_MSN = 6,      /* three */
	NIC_ACK_BYTES = 9
};

struct nic_icrc_tables {
	wire_u32 delta[NIC_ACK_BYTES][256];
};

WIRE_FN wire_u32 nic_icrc_ack(const struct nic_icrc_tables *t, wire_u32 base, wire_u32 src_port, wire_u32 psn,
			      wire_u32 syndrome, wire_u32 msn)
{
	return base ^ t->delta[NIC_ACK_SRC_PORT][(src_port >> 8) & 0xff] ^
	       t->delta[NIC_ACK_SRC_PORT + 1][src_port & 0xff] ^ t->delta[NIC_ACK_PSN][(psn >> 16) & 0xff] ^
	       t->delta[NIC_ACK_PSN + 1][(psn >> 8) & 0xff] ^ t->delta[NIC_ACK_PSN + 2][psn & 0xff] ^
	       t->delta[NIC_ACK_SYNDROME][syndrome & 0xff] ^ t->delta[NIC_ACK_MSN][(msn >> 16) & 0xff] ^
	       t->delta[NIC_ACK_MSN + 1][(msn >> 8) & 0xff] ^ t->delta[NIC_ACK_MSN + 2][msn & 0xff];
}

#endif
