/*
 * Turning a received packet, in place, into the reply that answers it: acknowledge packets (IBTA vol. 1, section
 * 9.7.5.1), the same with Plait's xack_t, and CNPs (Annex A17.9.3).
 *
 * The frame must have as many bytes as the reply; senders pad their frames to NIC_FRAME_MIN, so that no reply has to
 * grow.  Ethernet addresses are swapped: the way back starts where the packet came from.  All that depends on the queue
 * pair alone goes into the agent's base CRCs by the same writers, so the two agree.
 */
#ifndef NIC_REPLY_H
#define NIC_REPLY_H

#include "icrc.h"
#include "parse.h"
#include "qp.h"

#define NIC_TTL 64

#define NIC_HEADERS_LEN (WIRE_IPV4_LEN + WIRE_UDP_LEN + WIRE_BTH_LEN)

/* From the IPv4 header to the ICRC, inclusive. */
#define NIC_ACK_TOTAL_LEN  (NIC_HEADERS_LEN + WIRE_AETH_LEN + WIRE_ICRC_BYTES)
#define NIC_XACK_TOTAL_LEN (NIC_HEADERS_LEN + WIRE_XACK_LEN + WIRE_AETH_LEN + WIRE_ICRC_BYTES)
#define NIC_CNP_TOTAL_LEN  (NIC_HEADERS_LEN + WIRE_CNP_RESERVED_BYTES + WIRE_ICRC_BYTES)

/* The longest reply. */
#define NIC_FRAME_MIN (WIRE_ETHERNET_LEN + NIC_CNP_TOTAL_LEN)

_Static_assert(NIC_CNP_TOTAL_LEN >= NIC_XACK_TOTAL_LEN && NIC_XACK_TOTAL_LEN >= NIC_ACK_TOTAL_LEN, "the longest reply");

/* What varies between the replies of a queue pair. */
struct nic_reply_fields {
	wire_u32 psn;
	wire_u32 msn;
	wire_u32 sack_psn;
	wire_u16 src_port;
	wire_u8 opcode;
	wire_u8 flags;
	wire_u8 syndrome;
	wire_u8 becn; /* the ICRC takes it as ones */
};

WIRE_FN wire_u32 nic_reply_total_len(wire_u8 reply)
{
	return reply == NIC_REPLY_ACK ? NIC_ACK_TOTAL_LEN : reply == NIC_REPLY_XACK ? NIC_XACK_TOTAL_LEN : NIC_CNP_TOTAL_LEN;
}

/* An atomic datagram (RFC 6864): never fragmented, so the identification may be 0. */
WIRE_FN void nic_write_ipv4(struct wire_ipv4 *ip, wire_u32 src, wire_u32 dst, wire_u16 total_len, wire_u8 ecn)
{
	wire_ipv4_set_version(ip, 4);
	wire_ipv4_set_ihl(ip, WIRE_IPV4_LEN / 4);
	wire_ipv4_set_dscp(ip, 0);
	wire_ipv4_set_ecn(ip, ecn);
	wire_ipv4_set_total_len(ip, total_len);
	wire_ipv4_set_identification(ip, 0);
	wire_ipv4_set_reserved(ip, 0);
	wire_ipv4_set_do_not_fragment(ip, 1);
	wire_ipv4_set_more_fragments(ip, 0);
	wire_ipv4_set_frag_offset(ip, 0);
	wire_ipv4_set_ttl(ip, NIC_TTL);
	wire_ipv4_set_protocol(ip, WIRE_IP_PROTO_UDP);
	wire_ipv4_set_hdr_checksum(ip, 0);
	wire_ipv4_set_src_addr(ip, src);
	wire_ipv4_set_dst_addr(ip, dst);
	wire_ipv4_set_hdr_checksum(ip, (wire_u16)~nic_ipv4_sum(ip));
}

/* The UDP checksum is 0: the ICRC protects what it would protect (IBTA Annex A17.4.5.2). */
WIRE_FN void nic_write_udp(struct wire_udp *udp, wire_u16 src_port, wire_u16 len)
{
	wire_udp_set_src_port(udp, src_port);
	wire_udp_set_dst_port(udp, WIRE_ROCEV2_UDP_PORT);
	wire_udp_set_len(udp, len);
	wire_udp_set_checksum(udp, 0);
}

WIRE_FN void nic_write_bth(struct wire_bth *bth, const struct nic_qp_config *qp, wire_u8 opcode, wire_u8 extension,
			   wire_u32 psn, wire_u8 becn)
{
	wire_bth_set_opcode(bth, opcode);
	wire_bth_set_solicited(bth, 0);
	wire_bth_set_mig_req(bth, 1);
	wire_bth_set_pad_count(bth, 0);
	wire_bth_set_version(bth, 0);
	wire_bth_set_pkey(bth, qp->pkey);
	wire_bth_set_fecn(bth, 0);
	wire_bth_set_becn(bth, becn);
	wire_bth_set_reserved6(bth, 0);
	wire_bth_set_dest_qpn(bth, qp->remote_qpn);
	wire_bth_set_ack_req(bth, 0);
	wire_bth_set_extension(bth, extension);
	wire_bth_set_psn(bth, psn);
}

WIRE_FN void nic_write_aeth(struct wire_aeth *aeth, const struct nic_reply_fields *f)
{
	wire_aeth_set_syndrome(aeth, f->syndrome);
	wire_aeth_set_msn(aeth, f->msn);
}

WIRE_FN void nic_write_xack(struct wire_xack *xack, const struct nic_reply_fields *f)
{
	wire_xack_set_sack_valid(xack, (f->flags & NIC_SACK_VALID) != 0);
	wire_xack_set_ece(xack, (f->flags & NIC_ECE) != 0);
	wire_xack_set_retransmission(xack, (f->flags & NIC_RETRANSMISSION) != 0);
	wire_xack_set_reserved_flags(xack, 0);
	wire_xack_set_sack_psn(xack, f->sack_psn);
	wire_xack_set_path(xack, f->src_port);
	wire_xack_set_reserved16(xack, 0);
}

/*
 * What lies between the Ethernet header and the ICRC.  Not ECN-capable, as RFC 3168 wants of pure acknowledgements.
 * The packet goes back by the source port that it came with: the path that it acknowledges is also echoed in the UDP
 * header.
 */
WIRE_FN void nic_reply_body(wire_u8 *ip, const struct nic_qp_config *qp, wire_u8 reply, const struct nic_reply_fields *f)
{
	wire_u8 *after = ip + NIC_HEADERS_LEN;
	wire_u32 total = nic_reply_total_len(reply);

	nic_write_ipv4((void *)ip, qp->local_ip, qp->remote_ip, (wire_u16)total, WIRE_ECN_NOT_ECT);
	nic_write_udp((void *)(ip + WIRE_IPV4_LEN), f->src_port, (wire_u16)(total - WIRE_IPV4_LEN));
	if (reply == NIC_REPLY_ACK) {
		nic_write_bth((void *)(ip + WIRE_IPV4_LEN + WIRE_UDP_LEN), qp, WIRE_BTH_OPCODE_RC_ACKNOWLEDGE,
			      WIRE_BTH_EXTENSION_NONE, f->psn, f->becn);
		nic_write_aeth((void *)after, f);
	} else if (reply == NIC_REPLY_XACK) {
		nic_write_bth((void *)(ip + WIRE_IPV4_LEN + WIRE_UDP_LEN), qp, f->opcode, WIRE_BTH_EXTENSION_ACK, f->psn,
			      f->becn);
		nic_write_xack((void *)after, f);
		nic_write_aeth((void *)(after + WIRE_XACK_LEN), f);
	} else {
		nic_write_bth((void *)(ip + WIRE_IPV4_LEN + WIRE_UDP_LEN), qp, WIRE_BTH_OPCODE_CNP, WIRE_BTH_EXTENSION_NONE,
			      0, 1);
#pragma GCC unroll 4
		for (int i = 0; i < WIRE_CNP_RESERVED_BYTES; i += 4)
			wire_store32(after + i, 0);
	}
}

WIRE_FN wire_u32 nic_reply_icrc(const struct nic_icrc_tables *t, const struct nic_qp_config *qp, wire_u8 reply,
				const struct nic_reply_fields *f)
{
	wire_u32 aeth = (wire_u32)f->syndrome << 24 | (f->msn & 0xffffff);
	wire_u32 xack = ((f->flags & NIC_SACK_VALID) ? 0x80000000u : 0) | ((f->flags & NIC_ECE) ? 0x40000000u : 0) |
			((f->flags & NIC_RETRANSMISSION) ? 0x20000000u : 0) | (f->sack_psn & 0xffffff);

	if (reply == NIC_REPLY_ACK)
		return qp->ack_icrc_base ^ nic_icrc_delta(t->ack, f->src_port, 2) ^ nic_icrc_delta(t->ack + 2, f->psn, 3) ^
		       nic_icrc_delta(t->ack + 5, aeth, 4);
	if (reply == NIC_REPLY_XACK)
		return qp->xack_icrc_base ^ nic_icrc_delta(t->xack, f->src_port, 2) ^
		       nic_icrc_delta(t->xack + 2, f->opcode, 1) ^ nic_icrc_delta(t->xack + 3, f->psn, 3) ^
		       nic_icrc_delta(t->xack + 6, xack, 4) ^ nic_icrc_delta(t->xack + 10, f->src_port, 2) ^
		       nic_icrc_delta(t->xack + 12, aeth, 4);
	return qp->cnp_icrc_base ^ nic_icrc_delta(t->cnp, f->src_port, 2);
}

/* The caller has made the frame as long as nic_reply_total_len() says, with the Ethernet header before it. */
WIRE_FN void nic_reply_write(wire_u8 *frame, const struct nic_qp *qp, const struct nic_packet *p,
			     const struct nic_verdict *v, wire_u8 reply, const struct nic_icrc_tables *tables)
{
	struct wire_ethernet *eth = (void *)frame;
	wire_u64 back = wire_ethernet_get_src_addr(eth);
	struct nic_reply_fields f = {
		.psn = v->reply_psn, .msn = v->reply_msn, .sack_psn = v->sack_psn, .src_port = p->src_port,
		.opcode = v->reply_opcode, .flags = v->reply_flags, .syndrome = v->syndrome, .becn = v->becn,
	};
	wire_u32 icrc = nic_reply_icrc(tables, &qp->config, reply, &f);
	wire_u8 *at = frame + WIRE_ETHERNET_LEN + nic_reply_total_len(reply) - WIRE_ICRC_BYTES;

	wire_ethernet_set_src_addr(eth, wire_ethernet_get_dst_addr(eth));
	wire_ethernet_set_dst_addr(eth, back);
	nic_reply_body(frame + NIC_IPV4_AT, &qp->config, reply, &f);
	wire_store32(at, __builtin_bswap32(icrc));
}

#endif
