/*
 * Filling in what icrc.h looks up: for user space, once a queue pair and once a process.  The only file of the core with
 * loops over bytes; not for eBPF.
 */
#ifndef NIC_ICRC_INIT_H
#define NIC_ICRC_INIT_H

#include "reply.h"

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

/* `offsets`: from the IPv4 header; `covered`: bytes that the ICRC covers, from there on. */
static inline void nic_icrc_tables_fill(wire_u32 (*tables)[256], const wire_u8 *offsets, int count, int covered)
{
	for (int i = 0; i < count; i++) {
		for (int value = 0; value < 256; value++) {
			wire_u32 crc = nic_crc_byte(0, (wire_u8)value);

			for (int after = offsets[i] + 1; after < covered; after++)
				crc = nic_crc_byte(crc, 0);
			tables[i][value] = crc;
		}
	}
}

static inline void nic_icrc_tables_init(struct nic_icrc_tables *tables)
{
	/* UDP source port; BTH opcode and PSN; xack_t; AETH. */
	static const wire_u8 ack[NIC_ACK_BYTES] = { 20, 21, 37, 38, 39, 40, 41, 42, 43 };
	static const wire_u8 xack[NIC_XACK_BYTES] = { 20, 21, 28, 37, 38, 39, 40, 41, 42, 43, 44, 45, 48, 49, 50, 51 };
	static const wire_u8 cnp[NIC_CNP_BYTES] = { 20, 21 };
	static const wire_u8 word[4] = { 3, 2, 1, 0 };

	nic_icrc_tables_fill(tables->ack, ack, NIC_ACK_BYTES, NIC_ACK_TOTAL_LEN - WIRE_ICRC_BYTES);
	nic_icrc_tables_fill(tables->xack, xack, NIC_XACK_BYTES, NIC_XACK_TOTAL_LEN - WIRE_ICRC_BYTES);
	nic_icrc_tables_fill(tables->cnp, cnp, NIC_CNP_BYTES, NIC_CNP_TOTAL_LEN - WIRE_ICRC_BYTES);
	nic_icrc_tables_fill(tables->crc, word, 4, 4);
	tables->after_ones = 0xffffffff;
	for (int i = 0; i < NIC_ICRC_ONES; i++)
		tables->after_ones = nic_crc_byte(tables->after_ones, 0xff);
}

/* The ICRC of a reply of this queue pair whose varying bytes are all 0. */
static inline wire_u32 nic_icrc_base(const struct nic_qp_config *qp, wire_u8 reply)
{
	const struct nic_reply_fields zero = { 0 };
	wire_u8 bytes[NIC_CNP_TOTAL_LEN] = { 0 };
	struct wire_ipv4 *ip = (void *)bytes;
	struct wire_bth *bth = (void *)(bytes + WIRE_IPV4_LEN + WIRE_UDP_LEN);
	wire_u32 crc = 0xffffffff;

	nic_reply_body(bytes, qp, reply, &zero);
	wire_ipv4_set_dscp(ip, 0xff);
	wire_ipv4_set_ecn(ip, 0xff);
	wire_ipv4_set_ttl(ip, 0xff);
	wire_ipv4_set_hdr_checksum(ip, 0xffff);
	wire_udp_set_checksum((void *)(bytes + WIRE_IPV4_LEN), 0xffff);
	wire_bth_set_fecn(bth, 1);
	wire_bth_set_becn(bth, 1);
	wire_bth_set_reserved6(bth, 0xff);
	for (int i = 0; i < NIC_ICRC_ONES; i++)
		crc = nic_crc_byte(crc, 0xff);
	for (wire_u32 i = 0; i < nic_reply_total_len(reply) - WIRE_ICRC_BYTES; i++)
		crc = nic_crc_byte(crc, bytes[i]);
	return ~crc;
}

/* What the agent does once for a queue pair, when all else in its configuration stands. */
static inline void nic_icrc_bases(struct nic_qp_config *qp)
{
	qp->ack_icrc_base = nic_icrc_base(qp, NIC_REPLY_ACK);
	qp->xack_icrc_base = nic_icrc_base(qp, NIC_REPLY_XACK);
	qp->cnp_icrc_base = nic_icrc_base(qp, NIC_REPLY_CNP);
}

#endif
