/*
 * Turning a received request, in place, into the acknowledge packet that answers it (IBTA vol. 1, section 9.7.5.1).
 *
 * The frame must have NIC_ACK_FRAME bytes.  Ethernet addresses are swapped: the way back starts where the request came
 * from.  All that depends on the queue pair alone goes into the agent's base CRC by the same writer, so the two agree.
 */
#ifndef NIC_ACK_H
#define NIC_ACK_H

#include "icrc.h"
#include "parse.h"
#include "qp.h"

#define NIC_ACK_UDP_LEN   (WIRE_UDP_LEN + WIRE_BTH_LEN + WIRE_AETH_LEN + WIRE_ICRC_BYTES)
#define NIC_ACK_TOTAL_LEN (WIRE_IPV4_LEN + NIC_ACK_UDP_LEN)
#define NIC_ACK_FRAME     (WIRE_ETHERNET_LEN + NIC_ACK_TOTAL_LEN)
#define NIC_ACK_ICRC_AT   (NIC_ACK_FRAME - WIRE_ICRC_BYTES)
#define NIC_TTL           64

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

/* What lies between the Ethernet header and the ICRC.  Not ECN-capable, as RFC 3168 wants of pure acknowledgements. */
WIRE_FN void nic_ack_body(wire_u8 *ip_header, const struct nic_qp_config *qp, wire_u16 src_port, wire_u32 psn,
			  wire_u8 syndrome, wire_u32 msn)
{
	struct wire_bth *bth = (void *)(ip_header + WIRE_IPV4_LEN + WIRE_UDP_LEN);
	struct wire_aeth *aeth = (void *)(ip_header + WIRE_IPV4_LEN + WIRE_UDP_LEN + WIRE_BTH_LEN);

	nic_write_ipv4((void *)ip_header, qp->local_ip, qp->remote_ip, NIC_ACK_TOTAL_LEN, WIRE_ECN_NOT_ECT);
	nic_write_udp((void *)(ip_header + WIRE_IPV4_LEN), src_port, NIC_ACK_UDP_LEN);
	wire_bth_set_opcode(bth, WIRE_BTH_OPCODE_RC_ACKNOWLEDGE);
	wire_bth_set_solicited(bth, 0);
	wire_bth_set_mig_req(bth, 1);
	wire_bth_set_pad_count(bth, 0);
	wire_bth_set_version(bth, 0);
	wire_bth_set_pkey(bth, qp->pkey);
	wire_bth_set_fecn(bth, 0);
	wire_bth_set_becn(bth, 0);
	wire_bth_set_reserved6(bth, 0);
	wire_bth_set_dest_qpn(bth, qp->remote_qpn);
	wire_bth_set_ack_req(bth, 0);
	wire_bth_set_reserved7(bth, 0);
	wire_bth_set_psn(bth, psn);
	wire_aeth_set_syndrome(aeth, syndrome);
	wire_aeth_set_msn(aeth, msn);
}

WIRE_FN void nic_ack_write(wire_u8 *frame, const struct nic_qp *qp, const struct nic_packet *p,
			   const struct nic_verdict *v, const struct nic_icrc_tables *tables)
{
	struct wire_ethernet *eth = (void *)frame;
	wire_u64 back = wire_ethernet_get_src_addr(eth);
	wire_u32 icrc = nic_icrc_ack(tables, qp->config.ack_icrc_base, p->src_port, v->reply_psn, v->syndrome,
				     v->reply_msn);

	wire_ethernet_set_src_addr(eth, wire_ethernet_get_dst_addr(eth));
	wire_ethernet_set_dst_addr(eth, back);
	nic_ack_body(frame + NIC_IPV4_AT, &qp->config, p->src_port, v->reply_psn, v->syndrome, v->reply_msn);
	frame[NIC_ACK_ICRC_AT] = (wire_u8)icrc;
	frame[NIC_ACK_ICRC_AT + 1] = (wire_u8)(icrc >> 8);
	frame[NIC_ACK_ICRC_AT + 2] = (wire_u8)(icrc >> 16);
	frame[NIC_ACK_ICRC_AT + 3] = (wire_u8)(icrc >> 24);
}

#endif
