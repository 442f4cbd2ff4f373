/*
 * Checking the ICRC of a received packet, where that is switched on (-DNIC_CHECK_ICRC, the loader's check_icrc).  It
 * costs more than everything else that the NIC does with a packet, and links here lose frames but do not damage them.
 *
 * Everything from the IPv4 header to the ICRC is whole words, so the CRC goes by words (slicing by 4).
 */
#ifndef NIC_ICRC_CHECK_H
#define NIC_ICRC_CHECK_H

#include "icrc.h"

#define NIC_ICRC_WORDS_MAX 1100 /* IPv4 header, UDP, BTH, the longest extended headers and the largest path MTU */

WIRE_FN wire_u32 nic_icrc_word(const struct nic_icrc_tables *t, wire_u32 crc, const wire_u8 *at, wire_u32 ones)
{
	crc ^= __builtin_bswap32(wire_load32(at)) | ones;
	return t->crc[3][crc & 0xff] ^ t->crc[2][(crc >> 8) & 0xff] ^ t->crc[1][(crc >> 16) & 0xff] ^
	       t->crc[0][(crc >> 24) & 0xff];
}

/* `p`: what nic_parse() found in the frame; it ends with the four bytes of its ICRC, then maybe the link's padding. */
WIRE_FN int nic_icrc_is_right(const struct nic_icrc_tables *t, const wire_u8 *frame, const wire_u8 *end,
			      const struct nic_packet *p)
{
	/* The fields that switches change, as ones: little-endian words of the frame (IBTA Annex A17.3.3). */
	const wire_u32 ones[] = { 0x0000ff00, 0, 0xffff00ff, 0, 0, 0, 0xffff0000, 0, 0x000000ff };
	wire_u32 bytes = p->icrc_at - NIC_IPV4_AT;
	wire_u32 crc = t->after_ones;
	const wire_u8 *at = frame + NIC_IPV4_AT;

	if (frame + NIC_EXT_AT > end)
		return 0;
#pragma GCC unroll 9
	for (int i = 0; i < 9; i++, at += 4)
		crc = nic_icrc_word(t, crc, at, ones[i]);
	for (wire_u32 i = 9; i < NIC_ICRC_WORDS_MAX && 4 * i < bytes; i++, at += 4) {
		if (at + 4 > end)
			return 0;
		crc = nic_icrc_word(t, crc, at, 0);
	}
	if (at + WIRE_ICRC_BYTES > end)
		return 0;
	return wire_load32(at) == __builtin_bswap32(~crc);
}

#endif
