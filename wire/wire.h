/* Do not edit; generated from p4src/include/headers.p4 and p4src/include/codes.p4 by wire/generate.py. */
#ifndef PLAIT_WIRE_H
#define PLAIT_WIRE_H

/*
 * Values that functions take and return are in host order; what lies in a struct's `bytes` is in network order.
 * A set function keeps the low bits of its value that fit the field and leaves the neighbouring fields alone.
 * Structs have alignment 1: a pointer into a packet may be cast to them once its length is checked.
 *
 * No libc, no libbpf: gcc, clang and BCC take this file as it is.
 */
typedef unsigned char wire_u8;
typedef unsigned short wire_u16;
typedef unsigned int wire_u32;
typedef unsigned long long wire_u64;

_Static_assert(sizeof(wire_u8) == 1 && sizeof(wire_u16) == 2 && sizeof(wire_u32) == 4 && sizeof(wire_u64) == 8,
               "fixed-width types");

/* Inlined always: an eBPF program cannot afford a call for a shift. */
#define WIRE_FN static inline __attribute__((always_inline))

/*
 * Big-endian integers at any address.  WIRE_WORDS: the machine is little-endian and reads and writes words at any
 * address, but the compiler does not know (eBPF on x86-64 and arm64).
 */
#ifdef WIRE_WORDS
typedef wire_u16 __attribute__((may_alias)) wire_word16;
typedef wire_u32 __attribute__((may_alias)) wire_word32;
typedef wire_u64 __attribute__((may_alias)) wire_word64;
#define WIRE_INTEGER(bits) \
	WIRE_FN wire_u##bits wire_load##bits(const wire_u8 *at)                                                        \
	{                                                                                                              \
		return __builtin_bswap##bits(*(const wire_word##bits *)at);                                            \
	}                                                                                                              \
	WIRE_FN void wire_store##bits(wire_u8 *at, wire_u##bits v)                                                     \
	{                                                                                                              \
		*(wire_word##bits *)at = __builtin_bswap##bits(v);                                                     \
	}
WIRE_INTEGER(16)
WIRE_INTEGER(32)
WIRE_INTEGER(64)
#undef WIRE_INTEGER
#else
WIRE_FN wire_u16 wire_load16(const wire_u8 *at)
{
	return (wire_u16)((wire_u32)at[0] << 8 | at[1]);
}

WIRE_FN wire_u32 wire_load32(const wire_u8 *at)
{
	return (wire_u32)wire_load16(at) << 16 | wire_load16(at + 2);
}

WIRE_FN wire_u64 wire_load64(const wire_u8 *at)
{
	return (wire_u64)wire_load32(at) << 32 | wire_load32(at + 4);
}

WIRE_FN void wire_store16(wire_u8 *at, wire_u16 v)
{
	at[0] = (wire_u8)(v >> 8);
	at[1] = (wire_u8)v;
}

WIRE_FN void wire_store32(wire_u8 *at, wire_u32 v)
{
	wire_store16(at, (wire_u16)(v >> 16));
	wire_store16(at + 2, (wire_u16)v);
}

WIRE_FN void wire_store64(wire_u8 *at, wire_u64 v)
{
	wire_store32(at, (wire_u32)(v >> 32));
	wire_store32(at + 4, (wire_u32)v);
}
#endif

/* ---- p4src/include/headers.p4 ---- */

#define WIRE_MAC_ADDR_BITS 48
#define WIRE_MAC_ADDR_MASK 0xffffffffffffull

#define WIRE_IPV4_ADDR_BITS 32
#define WIRE_IPV4_ADDR_MASK 0xffffffffu

#define WIRE_L4_PORT_BITS 16
#define WIRE_L4_PORT_MASK 0xffff

#define WIRE_PSN_BITS 24
#define WIRE_PSN_MASK 0xffffff

#define WIRE_QPN_BITS 24
#define WIRE_QPN_MASK 0xffffff

enum wire_ether_type {
	WIRE_ETHER_TYPE_IPV4 = 0x0800,
	WIRE_ETHER_TYPE_ARP = 0x0806,
	WIRE_ETHER_TYPE_MAC_CTRL = 0x8808,
	WIRE_ETHER_TYPE_LLDP = 0x88cc,
};

enum wire_ip_proto {
	WIRE_IP_PROTO_ICMP = 1,
	WIRE_IP_PROTO_TCP = 6,
	WIRE_IP_PROTO_UDP = 17,
};

enum wire_ecn {
	WIRE_ECN_NOT_ECT = 0,
	WIRE_ECN_ECT_1 = 1,
	WIRE_ECN_ECT_0 = 2,
	WIRE_ECN_CE = 3,
};

#define WIRE_ROCEV2_UDP_PORT 4791

enum wire_bth_opcode {
	WIRE_BTH_OPCODE_RC_SEND_FIRST = 0x00,
	WIRE_BTH_OPCODE_RC_SEND_MIDDLE = 0x01,
	WIRE_BTH_OPCODE_RC_SEND_LAST = 0x02,
	WIRE_BTH_OPCODE_RC_SEND_LAST_IMM = 0x03,
	WIRE_BTH_OPCODE_RC_SEND_ONLY = 0x04,
	WIRE_BTH_OPCODE_RC_SEND_ONLY_IMM = 0x05,
	WIRE_BTH_OPCODE_RC_WRITE_FIRST = 0x06,
	WIRE_BTH_OPCODE_RC_WRITE_MIDDLE = 0x07,
	WIRE_BTH_OPCODE_RC_WRITE_LAST = 0x08,
	WIRE_BTH_OPCODE_RC_WRITE_LAST_IMM = 0x09,
	WIRE_BTH_OPCODE_RC_WRITE_ONLY = 0x0a,
	WIRE_BTH_OPCODE_RC_WRITE_ONLY_IMM = 0x0b,
	WIRE_BTH_OPCODE_RC_READ_REQUEST = 0x0c,
	WIRE_BTH_OPCODE_RC_READ_RESPONSE_FIRST = 0x0d,
	WIRE_BTH_OPCODE_RC_READ_RESPONSE_MIDDLE = 0x0e,
	WIRE_BTH_OPCODE_RC_READ_RESPONSE_LAST = 0x0f,
	WIRE_BTH_OPCODE_RC_READ_RESPONSE_ONLY = 0x10,
	WIRE_BTH_OPCODE_RC_ACKNOWLEDGE = 0x11,
	WIRE_BTH_OPCODE_RC_ATOMIC_ACKNOWLEDGE = 0x12,
	WIRE_BTH_OPCODE_RC_COMPARE_SWAP = 0x13,
	WIRE_BTH_OPCODE_RC_FETCH_ADD = 0x14,
	WIRE_BTH_OPCODE_RC_SEND_LAST_INVALIDATE = 0x16,
	WIRE_BTH_OPCODE_RC_SEND_ONLY_INVALIDATE = 0x17,
	WIRE_BTH_OPCODE_RC_READ_ACKNOWLEDGE = 0x18,
	WIRE_BTH_OPCODE_CNP = 0x81,
};

enum wire_bth_extension {
	WIRE_BTH_EXTENSION_NONE = 0,
	WIRE_BTH_EXTENSION_DATA = 1,
	WIRE_BTH_EXTENSION_ACK = 2,
};

enum wire_aeth_kind {
	WIRE_AETH_KIND_ACK = 0x00,
	WIRE_AETH_KIND_RNR_NAK = 0x20,
	WIRE_AETH_KIND_NAK = 0x60,
};

enum wire_nak_code {
	WIRE_NAK_CODE_PSN_SEQUENCE_ERROR = 0,
	WIRE_NAK_CODE_INVALID_REQUEST = 1,
	WIRE_NAK_CODE_REMOTE_ACCESS_ERROR = 2,
	WIRE_NAK_CODE_REMOTE_OPERATIONAL_ERROR = 3,
	WIRE_NAK_CODE_INVALID_RD_REQUEST = 4,
};

#define WIRE_ETHERNET_LEN 14
struct wire_ethernet {
	wire_u8 bytes[WIRE_ETHERNET_LEN];
};
_Static_assert(sizeof(struct wire_ethernet) == WIRE_ETHERNET_LEN, "ethernet has no padding");

/* dst_addr: byte 0, 48 bits, mac_addr */
WIRE_FN wire_u64 wire_ethernet_get_dst_addr(const struct wire_ethernet *h)
{
	return (wire_u64)((wire_u64)wire_load16(h->bytes + 0) << 32 |
		(wire_u64)wire_load32(h->bytes + 2));
}

WIRE_FN void wire_ethernet_set_dst_addr(struct wire_ethernet *h, wire_u64 v)
{
	wire_store16(h->bytes + 0, (wire_u16)(v >> 32));
	wire_store32(h->bytes + 2, (wire_u32)v);
}

/* src_addr: byte 6, 48 bits, mac_addr */
WIRE_FN wire_u64 wire_ethernet_get_src_addr(const struct wire_ethernet *h)
{
	return (wire_u64)((wire_u64)wire_load16(h->bytes + 6) << 32 |
		(wire_u64)wire_load32(h->bytes + 8));
}

WIRE_FN void wire_ethernet_set_src_addr(struct wire_ethernet *h, wire_u64 v)
{
	wire_store16(h->bytes + 6, (wire_u16)(v >> 32));
	wire_store32(h->bytes + 8, (wire_u32)v);
}

/* ether_type: byte 12, 16 bits, ether_type */
WIRE_FN wire_u16 wire_ethernet_get_ether_type(const struct wire_ethernet *h)
{
	return (wire_u16)wire_load16(h->bytes + 12);
}

WIRE_FN void wire_ethernet_set_ether_type(struct wire_ethernet *h, wire_u16 v)
{
	wire_store16(h->bytes + 12, (wire_u16)v);
}

#define WIRE_IPV4_LEN 20
struct wire_ipv4 {
	wire_u8 bytes[WIRE_IPV4_LEN];
};
_Static_assert(sizeof(struct wire_ipv4) == WIRE_IPV4_LEN, "ipv4 has no padding");

/* version: byte 0 bit 7, 4 bits */
WIRE_FN wire_u8 wire_ipv4_get_version(const struct wire_ipv4 *h)
{
	return (wire_u8)(h->bytes[0] >> 4);
}

WIRE_FN void wire_ipv4_set_version(struct wire_ipv4 *h, wire_u8 v)
{
	h->bytes[0] = (wire_u8)((h->bytes[0] & 0x0f) | ((v << 4) & 0xf0));
}

/* ihl: byte 0 bit 3, 4 bits */
WIRE_FN wire_u8 wire_ipv4_get_ihl(const struct wire_ipv4 *h)
{
	return (wire_u8)(h->bytes[0] & 0x0f);
}

WIRE_FN void wire_ipv4_set_ihl(struct wire_ipv4 *h, wire_u8 v)
{
	h->bytes[0] = (wire_u8)((h->bytes[0] & 0xf0) | (v & 0x0f));
}

/* dscp: byte 1 bit 7, 6 bits */
WIRE_FN wire_u8 wire_ipv4_get_dscp(const struct wire_ipv4 *h)
{
	return (wire_u8)(h->bytes[1] >> 2);
}

WIRE_FN void wire_ipv4_set_dscp(struct wire_ipv4 *h, wire_u8 v)
{
	h->bytes[1] = (wire_u8)((h->bytes[1] & 0x03) | ((v << 2) & 0xfc));
}

/* ecn: byte 1 bit 1, 2 bits, ecn */
WIRE_FN wire_u8 wire_ipv4_get_ecn(const struct wire_ipv4 *h)
{
	return (wire_u8)(h->bytes[1] & 0x03);
}

WIRE_FN void wire_ipv4_set_ecn(struct wire_ipv4 *h, wire_u8 v)
{
	h->bytes[1] = (wire_u8)((h->bytes[1] & 0xfc) | (v & 0x03));
}

/* total_len: byte 2, 16 bits */
WIRE_FN wire_u16 wire_ipv4_get_total_len(const struct wire_ipv4 *h)
{
	return (wire_u16)wire_load16(h->bytes + 2);
}

WIRE_FN void wire_ipv4_set_total_len(struct wire_ipv4 *h, wire_u16 v)
{
	wire_store16(h->bytes + 2, (wire_u16)v);
}

/* identification: byte 4, 16 bits */
WIRE_FN wire_u16 wire_ipv4_get_identification(const struct wire_ipv4 *h)
{
	return (wire_u16)wire_load16(h->bytes + 4);
}

WIRE_FN void wire_ipv4_set_identification(struct wire_ipv4 *h, wire_u16 v)
{
	wire_store16(h->bytes + 4, (wire_u16)v);
}

/* reserved: byte 6 bit 7, 1 bit */
WIRE_FN wire_u8 wire_ipv4_get_reserved(const struct wire_ipv4 *h)
{
	return (wire_u8)(h->bytes[6] >> 7);
}

WIRE_FN void wire_ipv4_set_reserved(struct wire_ipv4 *h, wire_u8 v)
{
	h->bytes[6] = (wire_u8)((h->bytes[6] & 0x7f) | ((v << 7) & 0x80));
}

/* do_not_fragment: byte 6 bit 6, 1 bit */
WIRE_FN wire_u8 wire_ipv4_get_do_not_fragment(const struct wire_ipv4 *h)
{
	return (wire_u8)((h->bytes[6] >> 6) & 0x01);
}

WIRE_FN void wire_ipv4_set_do_not_fragment(struct wire_ipv4 *h, wire_u8 v)
{
	h->bytes[6] = (wire_u8)((h->bytes[6] & 0xbf) | ((v << 6) & 0x40));
}

/* more_fragments: byte 6 bit 5, 1 bit */
WIRE_FN wire_u8 wire_ipv4_get_more_fragments(const struct wire_ipv4 *h)
{
	return (wire_u8)((h->bytes[6] >> 5) & 0x01);
}

WIRE_FN void wire_ipv4_set_more_fragments(struct wire_ipv4 *h, wire_u8 v)
{
	h->bytes[6] = (wire_u8)((h->bytes[6] & 0xdf) | ((v << 5) & 0x20));
}

/* frag_offset: byte 6 bit 4, 13 bits */
WIRE_FN wire_u16 wire_ipv4_get_frag_offset(const struct wire_ipv4 *h)
{
	return (wire_u16)(wire_load16(h->bytes + 6) & 0x1fff);
}

WIRE_FN void wire_ipv4_set_frag_offset(struct wire_ipv4 *h, wire_u16 v)
{
	h->bytes[6] = (wire_u8)((h->bytes[6] & 0xe0) | ((v >> 8) & 0x1f));
	h->bytes[7] = (wire_u8)v;
}

/* ttl: byte 8, 8 bits */
WIRE_FN wire_u8 wire_ipv4_get_ttl(const struct wire_ipv4 *h)
{
	return (wire_u8)h->bytes[8];
}

WIRE_FN void wire_ipv4_set_ttl(struct wire_ipv4 *h, wire_u8 v)
{
	h->bytes[8] = (wire_u8)v;
}

/* protocol: byte 9, 8 bits, ip_proto */
WIRE_FN wire_u8 wire_ipv4_get_protocol(const struct wire_ipv4 *h)
{
	return (wire_u8)h->bytes[9];
}

WIRE_FN void wire_ipv4_set_protocol(struct wire_ipv4 *h, wire_u8 v)
{
	h->bytes[9] = (wire_u8)v;
}

/* hdr_checksum: byte 10, 16 bits */
WIRE_FN wire_u16 wire_ipv4_get_hdr_checksum(const struct wire_ipv4 *h)
{
	return (wire_u16)wire_load16(h->bytes + 10);
}

WIRE_FN void wire_ipv4_set_hdr_checksum(struct wire_ipv4 *h, wire_u16 v)
{
	wire_store16(h->bytes + 10, (wire_u16)v);
}

/* src_addr: byte 12, 32 bits, ipv4_addr */
WIRE_FN wire_u32 wire_ipv4_get_src_addr(const struct wire_ipv4 *h)
{
	return (wire_u32)wire_load32(h->bytes + 12);
}

WIRE_FN void wire_ipv4_set_src_addr(struct wire_ipv4 *h, wire_u32 v)
{
	wire_store32(h->bytes + 12, (wire_u32)v);
}

/* dst_addr: byte 16, 32 bits, ipv4_addr */
WIRE_FN wire_u32 wire_ipv4_get_dst_addr(const struct wire_ipv4 *h)
{
	return (wire_u32)wire_load32(h->bytes + 16);
}

WIRE_FN void wire_ipv4_set_dst_addr(struct wire_ipv4 *h, wire_u32 v)
{
	wire_store32(h->bytes + 16, (wire_u32)v);
}

#define WIRE_UDP_LEN 8
struct wire_udp {
	wire_u8 bytes[WIRE_UDP_LEN];
};
_Static_assert(sizeof(struct wire_udp) == WIRE_UDP_LEN, "udp has no padding");

/* src_port: byte 0, 16 bits, l4_port */
WIRE_FN wire_u16 wire_udp_get_src_port(const struct wire_udp *h)
{
	return (wire_u16)wire_load16(h->bytes + 0);
}

WIRE_FN void wire_udp_set_src_port(struct wire_udp *h, wire_u16 v)
{
	wire_store16(h->bytes + 0, (wire_u16)v);
}

/* dst_port: byte 2, 16 bits, l4_port */
WIRE_FN wire_u16 wire_udp_get_dst_port(const struct wire_udp *h)
{
	return (wire_u16)wire_load16(h->bytes + 2);
}

WIRE_FN void wire_udp_set_dst_port(struct wire_udp *h, wire_u16 v)
{
	wire_store16(h->bytes + 2, (wire_u16)v);
}

/* len: byte 4, 16 bits */
WIRE_FN wire_u16 wire_udp_get_len(const struct wire_udp *h)
{
	return (wire_u16)wire_load16(h->bytes + 4);
}

WIRE_FN void wire_udp_set_len(struct wire_udp *h, wire_u16 v)
{
	wire_store16(h->bytes + 4, (wire_u16)v);
}

/* checksum: byte 6, 16 bits */
WIRE_FN wire_u16 wire_udp_get_checksum(const struct wire_udp *h)
{
	return (wire_u16)wire_load16(h->bytes + 6);
}

WIRE_FN void wire_udp_set_checksum(struct wire_udp *h, wire_u16 v)
{
	wire_store16(h->bytes + 6, (wire_u16)v);
}

#define WIRE_BTH_LEN 12
struct wire_bth {
	wire_u8 bytes[WIRE_BTH_LEN];
};
_Static_assert(sizeof(struct wire_bth) == WIRE_BTH_LEN, "bth has no padding");

/* opcode: byte 0, 8 bits, bth_opcode */
WIRE_FN wire_u8 wire_bth_get_opcode(const struct wire_bth *h)
{
	return (wire_u8)h->bytes[0];
}

WIRE_FN void wire_bth_set_opcode(struct wire_bth *h, wire_u8 v)
{
	h->bytes[0] = (wire_u8)v;
}

/* solicited: byte 1 bit 7, 1 bit */
WIRE_FN wire_u8 wire_bth_get_solicited(const struct wire_bth *h)
{
	return (wire_u8)(h->bytes[1] >> 7);
}

WIRE_FN void wire_bth_set_solicited(struct wire_bth *h, wire_u8 v)
{
	h->bytes[1] = (wire_u8)((h->bytes[1] & 0x7f) | ((v << 7) & 0x80));
}

/* mig_req: byte 1 bit 6, 1 bit */
WIRE_FN wire_u8 wire_bth_get_mig_req(const struct wire_bth *h)
{
	return (wire_u8)((h->bytes[1] >> 6) & 0x01);
}

WIRE_FN void wire_bth_set_mig_req(struct wire_bth *h, wire_u8 v)
{
	h->bytes[1] = (wire_u8)((h->bytes[1] & 0xbf) | ((v << 6) & 0x40));
}

/* pad_count: byte 1 bit 5, 2 bits */
WIRE_FN wire_u8 wire_bth_get_pad_count(const struct wire_bth *h)
{
	return (wire_u8)((h->bytes[1] >> 4) & 0x03);
}

WIRE_FN void wire_bth_set_pad_count(struct wire_bth *h, wire_u8 v)
{
	h->bytes[1] = (wire_u8)((h->bytes[1] & 0xcf) | ((v << 4) & 0x30));
}

/* version: byte 1 bit 3, 4 bits */
WIRE_FN wire_u8 wire_bth_get_version(const struct wire_bth *h)
{
	return (wire_u8)(h->bytes[1] & 0x0f);
}

WIRE_FN void wire_bth_set_version(struct wire_bth *h, wire_u8 v)
{
	h->bytes[1] = (wire_u8)((h->bytes[1] & 0xf0) | (v & 0x0f));
}

/* pkey: byte 2, 16 bits */
WIRE_FN wire_u16 wire_bth_get_pkey(const struct wire_bth *h)
{
	return (wire_u16)wire_load16(h->bytes + 2);
}

WIRE_FN void wire_bth_set_pkey(struct wire_bth *h, wire_u16 v)
{
	wire_store16(h->bytes + 2, (wire_u16)v);
}

/* fecn: byte 4 bit 7, 1 bit */
WIRE_FN wire_u8 wire_bth_get_fecn(const struct wire_bth *h)
{
	return (wire_u8)(h->bytes[4] >> 7);
}

WIRE_FN void wire_bth_set_fecn(struct wire_bth *h, wire_u8 v)
{
	h->bytes[4] = (wire_u8)((h->bytes[4] & 0x7f) | ((v << 7) & 0x80));
}

/* becn: byte 4 bit 6, 1 bit */
WIRE_FN wire_u8 wire_bth_get_becn(const struct wire_bth *h)
{
	return (wire_u8)((h->bytes[4] >> 6) & 0x01);
}

WIRE_FN void wire_bth_set_becn(struct wire_bth *h, wire_u8 v)
{
	h->bytes[4] = (wire_u8)((h->bytes[4] & 0xbf) | ((v << 6) & 0x40));
}

/* reserved6: byte 4 bit 5, 6 bits */
WIRE_FN wire_u8 wire_bth_get_reserved6(const struct wire_bth *h)
{
	return (wire_u8)(h->bytes[4] & 0x3f);
}

WIRE_FN void wire_bth_set_reserved6(struct wire_bth *h, wire_u8 v)
{
	h->bytes[4] = (wire_u8)((h->bytes[4] & 0xc0) | (v & 0x3f));
}

/* dest_qpn: byte 5, 24 bits, qpn */
WIRE_FN wire_u32 wire_bth_get_dest_qpn(const struct wire_bth *h)
{
	return (wire_u32)((wire_u32)h->bytes[5] << 16 |
		(wire_u32)wire_load16(h->bytes + 6));
}

WIRE_FN void wire_bth_set_dest_qpn(struct wire_bth *h, wire_u32 v)
{
	h->bytes[5] = (wire_u8)(v >> 16);
	wire_store16(h->bytes + 6, (wire_u16)v);
}

/* ack_req: byte 8 bit 7, 1 bit */
WIRE_FN wire_u8 wire_bth_get_ack_req(const struct wire_bth *h)
{
	return (wire_u8)(h->bytes[8] >> 7);
}

WIRE_FN void wire_bth_set_ack_req(struct wire_bth *h, wire_u8 v)
{
	h->bytes[8] = (wire_u8)((h->bytes[8] & 0x7f) | ((v << 7) & 0x80));
}

/* extension: byte 8 bit 6, 7 bits, bth_extension */
WIRE_FN wire_u8 wire_bth_get_extension(const struct wire_bth *h)
{
	return (wire_u8)(h->bytes[8] & 0x7f);
}

WIRE_FN void wire_bth_set_extension(struct wire_bth *h, wire_u8 v)
{
	h->bytes[8] = (wire_u8)((h->bytes[8] & 0x80) | (v & 0x7f));
}

/* psn: byte 9, 24 bits, psn */
WIRE_FN wire_u32 wire_bth_get_psn(const struct wire_bth *h)
{
	return (wire_u32)((wire_u32)h->bytes[9] << 16 |
		(wire_u32)wire_load16(h->bytes + 10));
}

WIRE_FN void wire_bth_set_psn(struct wire_bth *h, wire_u32 v)
{
	h->bytes[9] = (wire_u8)(v >> 16);
	wire_store16(h->bytes + 10, (wire_u16)v);
}

#define WIRE_RETH_LEN 16
struct wire_reth {
	wire_u8 bytes[WIRE_RETH_LEN];
};
_Static_assert(sizeof(struct wire_reth) == WIRE_RETH_LEN, "reth has no padding");

/* virtual_address: byte 0, 64 bits */
WIRE_FN wire_u64 wire_reth_get_virtual_address(const struct wire_reth *h)
{
	return (wire_u64)wire_load64(h->bytes + 0);
}

WIRE_FN void wire_reth_set_virtual_address(struct wire_reth *h, wire_u64 v)
{
	wire_store64(h->bytes + 0, (wire_u64)v);
}

/* rkey: byte 8, 32 bits */
WIRE_FN wire_u32 wire_reth_get_rkey(const struct wire_reth *h)
{
	return (wire_u32)wire_load32(h->bytes + 8);
}

WIRE_FN void wire_reth_set_rkey(struct wire_reth *h, wire_u32 v)
{
	wire_store32(h->bytes + 8, (wire_u32)v);
}

/* dma_length: byte 12, 32 bits */
WIRE_FN wire_u32 wire_reth_get_dma_length(const struct wire_reth *h)
{
	return (wire_u32)wire_load32(h->bytes + 12);
}

WIRE_FN void wire_reth_set_dma_length(struct wire_reth *h, wire_u32 v)
{
	wire_store32(h->bytes + 12, (wire_u32)v);
}

#define WIRE_AETH_LEN 4
struct wire_aeth {
	wire_u8 bytes[WIRE_AETH_LEN];
};
_Static_assert(sizeof(struct wire_aeth) == WIRE_AETH_LEN, "aeth has no padding");

/* syndrome: byte 0, 8 bits */
WIRE_FN wire_u8 wire_aeth_get_syndrome(const struct wire_aeth *h)
{
	return (wire_u8)h->bytes[0];
}

WIRE_FN void wire_aeth_set_syndrome(struct wire_aeth *h, wire_u8 v)
{
	h->bytes[0] = (wire_u8)v;
}

/* msn: byte 1, 24 bits */
WIRE_FN wire_u32 wire_aeth_get_msn(const struct wire_aeth *h)
{
	return (wire_u32)((wire_u32)h->bytes[1] << 16 |
		(wire_u32)wire_load16(h->bytes + 2));
}

WIRE_FN void wire_aeth_set_msn(struct wire_aeth *h, wire_u32 v)
{
	h->bytes[1] = (wire_u8)(v >> 16);
	wire_store16(h->bytes + 2, (wire_u16)v);
}

#define WIRE_IMMDT_LEN 4
struct wire_immdt {
	wire_u8 bytes[WIRE_IMMDT_LEN];
};
_Static_assert(sizeof(struct wire_immdt) == WIRE_IMMDT_LEN, "immdt has no padding");

/* immediate: byte 0, 32 bits */
WIRE_FN wire_u32 wire_immdt_get_immediate(const struct wire_immdt *h)
{
	return (wire_u32)wire_load32(h->bytes + 0);
}

WIRE_FN void wire_immdt_set_immediate(struct wire_immdt *h, wire_u32 v)
{
	wire_store32(h->bytes + 0, (wire_u32)v);
}

#define WIRE_ATOMIC_ETH_LEN 28
struct wire_atomic_eth {
	wire_u8 bytes[WIRE_ATOMIC_ETH_LEN];
};
_Static_assert(sizeof(struct wire_atomic_eth) == WIRE_ATOMIC_ETH_LEN, "atomic_eth has no padding");

/* virtual_address: byte 0, 64 bits */
WIRE_FN wire_u64 wire_atomic_eth_get_virtual_address(const struct wire_atomic_eth *h)
{
	return (wire_u64)wire_load64(h->bytes + 0);
}

WIRE_FN void wire_atomic_eth_set_virtual_address(struct wire_atomic_eth *h, wire_u64 v)
{
	wire_store64(h->bytes + 0, (wire_u64)v);
}

/* rkey: byte 8, 32 bits */
WIRE_FN wire_u32 wire_atomic_eth_get_rkey(const struct wire_atomic_eth *h)
{
	return (wire_u32)wire_load32(h->bytes + 8);
}

WIRE_FN void wire_atomic_eth_set_rkey(struct wire_atomic_eth *h, wire_u32 v)
{
	wire_store32(h->bytes + 8, (wire_u32)v);
}

/* swap_add: byte 12, 64 bits */
WIRE_FN wire_u64 wire_atomic_eth_get_swap_add(const struct wire_atomic_eth *h)
{
	return (wire_u64)wire_load64(h->bytes + 12);
}

WIRE_FN void wire_atomic_eth_set_swap_add(struct wire_atomic_eth *h, wire_u64 v)
{
	wire_store64(h->bytes + 12, (wire_u64)v);
}

/* compare: byte 20, 64 bits */
WIRE_FN wire_u64 wire_atomic_eth_get_compare(const struct wire_atomic_eth *h)
{
	return (wire_u64)wire_load64(h->bytes + 20);
}

WIRE_FN void wire_atomic_eth_set_compare(struct wire_atomic_eth *h, wire_u64 v)
{
	wire_store64(h->bytes + 20, (wire_u64)v);
}

#define WIRE_ATOMIC_ACK_ETH_LEN 8
struct wire_atomic_ack_eth {
	wire_u8 bytes[WIRE_ATOMIC_ACK_ETH_LEN];
};
_Static_assert(sizeof(struct wire_atomic_ack_eth) == WIRE_ATOMIC_ACK_ETH_LEN, "atomic_ack_eth has no padding");

/* original_value: byte 0, 64 bits */
WIRE_FN wire_u64 wire_atomic_ack_eth_get_original_value(const struct wire_atomic_ack_eth *h)
{
	return (wire_u64)wire_load64(h->bytes + 0);
}

WIRE_FN void wire_atomic_ack_eth_set_original_value(struct wire_atomic_ack_eth *h, wire_u64 v)
{
	wire_store64(h->bytes + 0, (wire_u64)v);
}

#define WIRE_IETH_LEN 4
struct wire_ieth {
	wire_u8 bytes[WIRE_IETH_LEN];
};
_Static_assert(sizeof(struct wire_ieth) == WIRE_IETH_LEN, "ieth has no padding");

/* rkey: byte 0, 32 bits */
WIRE_FN wire_u32 wire_ieth_get_rkey(const struct wire_ieth *h)
{
	return (wire_u32)wire_load32(h->bytes + 0);
}

WIRE_FN void wire_ieth_set_rkey(struct wire_ieth *h, wire_u32 v)
{
	wire_store32(h->bytes + 0, (wire_u32)v);
}

#define WIRE_XDATA_LEN 16
struct wire_xdata {
	wire_u8 bytes[WIRE_XDATA_LEN];
};
_Static_assert(sizeof(struct wire_xdata) == WIRE_XDATA_LEN, "xdata has no padding");

/* retransmission: byte 0 bit 7, 1 bit */
WIRE_FN wire_u8 wire_xdata_get_retransmission(const struct wire_xdata *h)
{
	return (wire_u8)(h->bytes[0] >> 7);
}

WIRE_FN void wire_xdata_set_retransmission(struct wire_xdata *h, wire_u8 v)
{
	h->bytes[0] = (wire_u8)((h->bytes[0] & 0x7f) | ((v << 7) & 0x80));
}

/* synchronise: byte 0 bit 6, 1 bit */
WIRE_FN wire_u8 wire_xdata_get_synchronise(const struct wire_xdata *h)
{
	return (wire_u8)((h->bytes[0] >> 6) & 0x01);
}

WIRE_FN void wire_xdata_set_synchronise(struct wire_xdata *h, wire_u8 v)
{
	h->bytes[0] = (wire_u8)((h->bytes[0] & 0xbf) | ((v << 6) & 0x40));
}

/* last: byte 0 bit 5, 1 bit */
WIRE_FN wire_u8 wire_xdata_get_last(const struct wire_xdata *h)
{
	return (wire_u8)((h->bytes[0] >> 5) & 0x01);
}

WIRE_FN void wire_xdata_set_last(struct wire_xdata *h, wire_u8 v)
{
	h->bytes[0] = (wire_u8)((h->bytes[0] & 0xdf) | ((v << 5) & 0x20));
}

/* reserved_flags: byte 0 bit 4, 5 bits */
WIRE_FN wire_u8 wire_xdata_get_reserved_flags(const struct wire_xdata *h)
{
	return (wire_u8)(h->bytes[0] & 0x1f);
}

WIRE_FN void wire_xdata_set_reserved_flags(struct wire_xdata *h, wire_u8 v)
{
	h->bytes[0] = (wire_u8)((h->bytes[0] & 0xe0) | (v & 0x1f));
}

/* msn: byte 1, 24 bits */
WIRE_FN wire_u32 wire_xdata_get_msn(const struct wire_xdata *h)
{
	return (wire_u32)((wire_u32)h->bytes[1] << 16 |
		(wire_u32)wire_load16(h->bytes + 2));
}

WIRE_FN void wire_xdata_set_msn(struct wire_xdata *h, wire_u32 v)
{
	h->bytes[1] = (wire_u8)(v >> 16);
	wire_store16(h->bytes + 2, (wire_u16)v);
}

/* reserved_ipsn: byte 4, 8 bits */
WIRE_FN wire_u8 wire_xdata_get_reserved_ipsn(const struct wire_xdata *h)
{
	return (wire_u8)h->bytes[4];
}

WIRE_FN void wire_xdata_set_reserved_ipsn(struct wire_xdata *h, wire_u8 v)
{
	h->bytes[4] = (wire_u8)v;
}

/* ipsn: byte 5, 24 bits */
WIRE_FN wire_u32 wire_xdata_get_ipsn(const struct wire_xdata *h)
{
	return (wire_u32)((wire_u32)h->bytes[5] << 16 |
		(wire_u32)wire_load16(h->bytes + 6));
}

WIRE_FN void wire_xdata_set_ipsn(struct wire_xdata *h, wire_u32 v)
{
	h->bytes[5] = (wire_u8)(v >> 16);
	wire_store16(h->bytes + 6, (wire_u16)v);
}

/* reserved_wqe: byte 8, 8 bits */
WIRE_FN wire_u8 wire_xdata_get_reserved_wqe(const struct wire_xdata *h)
{
	return (wire_u8)h->bytes[8];
}

WIRE_FN void wire_xdata_set_reserved_wqe(struct wire_xdata *h, wire_u8 v)
{
	h->bytes[8] = (wire_u8)v;
}

/* wqe_sn: byte 9, 24 bits */
WIRE_FN wire_u32 wire_xdata_get_wqe_sn(const struct wire_xdata *h)
{
	return (wire_u32)((wire_u32)h->bytes[9] << 16 |
		(wire_u32)wire_load16(h->bytes + 10));
}

WIRE_FN void wire_xdata_set_wqe_sn(struct wire_xdata *h, wire_u32 v)
{
	h->bytes[9] = (wire_u8)(v >> 16);
	wire_store16(h->bytes + 10, (wire_u16)v);
}

/* head: byte 12, 32 bits */
WIRE_FN wire_u32 wire_xdata_get_head(const struct wire_xdata *h)
{
	return (wire_u32)wire_load32(h->bytes + 12);
}

WIRE_FN void wire_xdata_set_head(struct wire_xdata *h, wire_u32 v)
{
	wire_store32(h->bytes + 12, (wire_u32)v);
}

#define WIRE_XACK_LEN 8
struct wire_xack {
	wire_u8 bytes[WIRE_XACK_LEN];
};
_Static_assert(sizeof(struct wire_xack) == WIRE_XACK_LEN, "xack has no padding");

/* sack_valid: byte 0 bit 7, 1 bit */
WIRE_FN wire_u8 wire_xack_get_sack_valid(const struct wire_xack *h)
{
	return (wire_u8)(h->bytes[0] >> 7);
}

WIRE_FN void wire_xack_set_sack_valid(struct wire_xack *h, wire_u8 v)
{
	h->bytes[0] = (wire_u8)((h->bytes[0] & 0x7f) | ((v << 7) & 0x80));
}

/* ece: byte 0 bit 6, 1 bit */
WIRE_FN wire_u8 wire_xack_get_ece(const struct wire_xack *h)
{
	return (wire_u8)((h->bytes[0] >> 6) & 0x01);
}

WIRE_FN void wire_xack_set_ece(struct wire_xack *h, wire_u8 v)
{
	h->bytes[0] = (wire_u8)((h->bytes[0] & 0xbf) | ((v << 6) & 0x40));
}

/* retransmission: byte 0 bit 5, 1 bit */
WIRE_FN wire_u8 wire_xack_get_retransmission(const struct wire_xack *h)
{
	return (wire_u8)((h->bytes[0] >> 5) & 0x01);
}

WIRE_FN void wire_xack_set_retransmission(struct wire_xack *h, wire_u8 v)
{
	h->bytes[0] = (wire_u8)((h->bytes[0] & 0xdf) | ((v << 5) & 0x20));
}

/* reserved_flags: byte 0 bit 4, 5 bits */
WIRE_FN wire_u8 wire_xack_get_reserved_flags(const struct wire_xack *h)
{
	return (wire_u8)(h->bytes[0] & 0x1f);
}

WIRE_FN void wire_xack_set_reserved_flags(struct wire_xack *h, wire_u8 v)
{
	h->bytes[0] = (wire_u8)((h->bytes[0] & 0xe0) | (v & 0x1f));
}

/* sack_psn: byte 1, 24 bits */
WIRE_FN wire_u32 wire_xack_get_sack_psn(const struct wire_xack *h)
{
	return (wire_u32)((wire_u32)h->bytes[1] << 16 |
		(wire_u32)wire_load16(h->bytes + 2));
}

WIRE_FN void wire_xack_set_sack_psn(struct wire_xack *h, wire_u32 v)
{
	h->bytes[1] = (wire_u8)(v >> 16);
	wire_store16(h->bytes + 2, (wire_u16)v);
}

/* path: byte 4, 16 bits */
WIRE_FN wire_u16 wire_xack_get_path(const struct wire_xack *h)
{
	return (wire_u16)wire_load16(h->bytes + 4);
}

WIRE_FN void wire_xack_set_path(struct wire_xack *h, wire_u16 v)
{
	wire_store16(h->bytes + 4, (wire_u16)v);
}

/* reserved16: byte 6, 16 bits */
WIRE_FN wire_u16 wire_xack_get_reserved16(const struct wire_xack *h)
{
	return (wire_u16)wire_load16(h->bytes + 6);
}

WIRE_FN void wire_xack_set_reserved16(struct wire_xack *h, wire_u16 v)
{
	wire_store16(h->bytes + 6, (wire_u16)v);
}

/* ---- p4src/include/codes.p4 ---- */

#define WIRE_ROCEV2_DEFAULT_PKEY 0xffff
#define WIRE_ICRC_BYTES 4
#define WIRE_AETH_CREDITS_INVALID 0x1f
#define WIRE_CNP_RESERVED_BYTES 16

enum wire_nic_event {
	WIRE_NIC_EVENT_PASSED_TO_KERNEL = 0,
	WIRE_NIC_EVENT_REQUEST_PLACED = 1,
	WIRE_NIC_EVENT_REQUEST_DUPLICATE = 2,
	WIRE_NIC_EVENT_REQUEST_SEQ_ERROR = 3,
	WIRE_NIC_EVENT_ACK_RECEIVED = 4,
	WIRE_NIC_EVENT_NAK_RECEIVED = 5,
	WIRE_NIC_EVENT_ACK_STALE = 6,
	WIRE_NIC_EVENT_DROP_TRUNCATED = 7,
	WIRE_NIC_EVENT_DROP_BAD_HEADER = 8,
	WIRE_NIC_EVENT_DROP_UNKNOWN_QP = 9,
	WIRE_NIC_EVENT_DROP_WRONG_PEER = 10,
	WIRE_NIC_EVENT_DROP_QP_STATE = 11,
	WIRE_NIC_EVENT_DROP_BAD_OPCODE = 12,
	WIRE_NIC_EVENT_NAK_OPCODE_SEQ = 13,
	WIRE_NIC_EVENT_NAK_LENGTH = 14,
	WIRE_NIC_EVENT_NAK_RKEY = 15,
	WIRE_NIC_EVENT_NAK_BOUNDS = 16,
	WIRE_NIC_EVENT_CNP_RECEIVED = 17,
	WIRE_NIC_EVENT_REQUEST_OUT_OF_ORDER = 18,
	WIRE_NIC_EVENT_REQUEST_BEYOND = 19,
	WIRE_NIC_EVENT_REQUEST_NO_BITMAP = 20,
	WIRE_NIC_EVENT_REQUEST_EARLY_FAULT = 21,
	WIRE_NIC_EVENT_SYNCHRONISE_REFUSED = 22,
	WIRE_NIC_EVENT_RNR_NAK_SENT = 23,
	WIRE_NIC_EVENT_RESPONSE_PLACED = 24,
	WIRE_NIC_EVENT_RESPONSE_OUT_OF_ORDER = 25,
	WIRE_NIC_EVENT_RESPONSE_DUPLICATE = 26,
	WIRE_NIC_EVENT_RESPONSE_SEQ_ERROR = 27,
	WIRE_NIC_EVENT_SACK_RECEIVED = 28,
	WIRE_NIC_EVENT_DROP_BAD_ICRC = 29,
	WIRE_NIC_EVENT_PAUSE_RECEIVED = 30,
};

enum wire_qp_state {
	WIRE_QP_STATE_RESET = 0,
	WIRE_QP_STATE_INIT = 1,
	WIRE_QP_STATE_RTR = 2,
	WIRE_QP_STATE_RTS = 3,
	WIRE_QP_STATE_SQE = 4,
	WIRE_QP_STATE_ERROR = 5,
};

#define WIRE_REMAINING_UNIT_BYTES 256
#define WIRE_REMAINING_CLASSES 64

#endif
