/*
 * Filling in what icrc.h looks up: for user space, once a queue pair and once a process.  The only file of the core with
 * loops over bytes; not for eBPF.
 */
#ifndef NIC_ICRC_INIT_H
#define NIC_ICRC_INIT_H

#include "ack.h"

#define NIC_CRC_POLYNOMIAL 0xedb88320u /* CRC-32 of IEEE 802.3, bit-reversed */
#define NIC_ICRC_ONES      8           /* bytes of ones that stand for the LRH */

/* One more byte into a CRC register (no inversion at either end). */
static inline wire_u32 nic_crc_byte(wire_u32 crc, wire_u8 byte)
{
	crc ^= byte;
	for (int bit = 0; bit < 8; bit++)
		crc = (crc >> 1) ^ (crc & 1 ? NIC_CRC_POLYNOMIAL : 0);
	return crc;
}

static inline void nic_icrc_tables_init(struct nic_icrc_tables *tables)
{
	/* Offsets from the IPv4 header of the bytes that vary, in the order of enum nic_ack_byte. */
	const wire_u8 offsets[NIC_ACK_BYTES] = { 20, 21, 37, 38, 39, 40, 41, 42, 43 };

	for (int i = 0; i < NIC_ACK_BYTES; i++) {
		for (int value = 0; value < 256; value++) {
			wire_u32 crc = nic_crc_byte(0, (wire_u8)value);

			for (int after = offsets[i] + 1; after < NIC_ACK_TOTAL_LEN - WIRE_ICRC_BYTES; after++)
				crc = nic_crc_byte(crc, 0);
			tables->delta[i][value] = crc;
		}
	}
}

/* The ICRC of an acknowledge packet of this queue pair whose varying bytes are all 0. */
static inline wire_u32 nic_icrc_ack_base(const struct nic_qp_config *qp)
{
	wire_u8 ack[NIC_ACK_TOTAL_LEN] = { 0 };
	struct wire_ipv4 *ip = (void *)ack;
	struct wire_bth *bth = (void *)(ack + WIRE_IPV4_LEN + WIRE_UDP_LEN);
	wire_u32 crc = 0xffffffff;

	nic_ack_body(ack, qp, 0, 0, 0, 0);
	wire_ipv4_set_dscp(ip, 0xff);
	wire_ipv4_set_ecn(ip, 0xff);
	wire_ipv4_set_ttl(ip, 0xff);
	wire_ipv4_set_hdr_checksum(ip, 0xffff);
	wire_udp_set_checksum((void *)(ack + WIRE_IPV4_LEN), 0xffff);
	wire_bth_set_fecn(bth, 1);
	wire_bth_set_becn(bth, 1);
	wire_bth_set_reserved6(bth, 0xff);
	for (int i = 0; i < NIC_ICRC_ONES; i++)
		crc = nic_crc_byte(crc, 0xff);
	for (int i = 0; i < NIC_ACK_TOTAL_LEN - WIRE_ICRC_BYTES; i++)
		crc = nic_crc_byte(crc, ack[i]);
	return ~crc;
}

#endif
