/*
 * From a frame to struct nic_packet.
 *
 * Each step checks its bounds, advances the cursor and returns NIC_PARSED, or the event (enum wire_nic_event) that the
 * frame ends with.  Nothing behind `end` is read, whatever the length fields say.
 * The ICRC is another matter: see icrc_check.h.
 */
#ifndef NIC_PARSE_H
#define NIC_PARSE_H

#include "packet.h"

#define NIC_PARSED (-1)

struct nic_cursor {
	const wire_u8 *pos;
	const wire_u8 *end;
};

/* One's complement sum of the IPv4 header without options; 0xffff when the checksum is right (RFC 791). */
WIRE_FN wire_u32 nic_ipv4_sum(const struct wire_ipv4 *ip)
{
	wire_u64 sum = 0;

#pragma GCC unroll 5
	for (int i = 0; i < WIRE_IPV4_LEN; i += 4)
		sum += wire_load32(ip->bytes + i);
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (wire_u32)((sum & 0xffff) + (sum >> 16));
}

WIRE_FN int nic_parse_ethernet(struct nic_cursor *c, struct nic_packet *p)
{
	const struct wire_ethernet *eth = (const void *)c->pos;

	if (c->pos + WIRE_ETHERNET_LEN > c->end)
		return WIRE_NIC_EVENT_PASSED_TO_KERNEL;
	p->dst_mac = wire_ethernet_get_dst_addr(eth);
	if (wire_ethernet_get_ether_type(eth) != WIRE_ETHER_TYPE_IPV4)
		return WIRE_NIC_EVENT_PASSED_TO_KERNEL;
	c->pos += WIRE_ETHERNET_LEN;
	return NIC_PARSED;
}

/*
 * Gives the number of bytes that UDP may use in `room`.  IPv4 options and fragments are left to the kernel: RoCEv2
 * uses neither (IBTA Annex A17.4.5.1 forbids fragments by "don't fragment").
 */
WIRE_FN int nic_parse_ipv4(struct nic_cursor *c, struct nic_packet *p, wire_u32 *room)
{
	const struct wire_ipv4 *ip = (const void *)c->pos;
	wire_u32 total;

	if (c->pos + WIRE_IPV4_LEN > c->end)
		return WIRE_NIC_EVENT_PASSED_TO_KERNEL;
	if (wire_ipv4_get_version(ip) != 4 || wire_ipv4_get_ihl(ip) != WIRE_IPV4_LEN / 4 ||
	    wire_ipv4_get_protocol(ip) != WIRE_IP_PROTO_UDP || wire_ipv4_get_more_fragments(ip) ||
	    wire_ipv4_get_frag_offset(ip))
		return WIRE_NIC_EVENT_PASSED_TO_KERNEL;
	total = wire_ipv4_get_total_len(ip);
	*room = total - WIRE_IPV4_LEN;
	p->ecn = wire_ipv4_get_ecn(ip);
	p->src_ip = wire_ipv4_get_src_addr(ip);
	p->dst_ip = wire_ipv4_get_dst_addr(ip);
	c->pos += WIRE_IPV4_LEN;
	return NIC_PARSED;
}

/* Decides whether this is RoCEv2 at all; from here on a frame that does not fit is a drop, no longer the kernel's. */
WIRE_FN int nic_parse_udp(struct nic_cursor *c, struct nic_packet *p, wire_u32 room)
{
	const struct wire_udp *udp = (const void *)c->pos;
	const struct wire_ipv4 *ip = (const void *)(c->pos - WIRE_IPV4_LEN);

	if (c->pos + WIRE_UDP_LEN > c->end)
		return WIRE_NIC_EVENT_PASSED_TO_KERNEL;
	if (wire_udp_get_dst_port(udp) != WIRE_ROCEV2_UDP_PORT)
		return WIRE_NIC_EVENT_PASSED_TO_KERNEL;
	if (nic_ipv4_sum(ip) != 0xffff)
		return WIRE_NIC_EVENT_DROP_BAD_HEADER;
	if (wire_udp_get_len(udp) != room)
		return WIRE_NIC_EVENT_DROP_TRUNCATED;
	p->src_port = wire_udp_get_src_port(udp);
	c->pos += WIRE_UDP_LEN;
	return NIC_PARSED;
}

/*
 * One header: checks that it is there, and steps behind it.  A macro, since the eBPF verifier wants to see the bound
 * beside the access.
 */
#define NIC_TAKE(c, header, length)                                                                                    \
	const struct wire_##header *header = (const void *)(c)->pos;                                                   \
	if ((c)->pos + (length) > (c)->end)                                                                            \
		return WIRE_NIC_EVENT_DROP_TRUNCATED;                                                                  \
	(c)->pos += (length)

WIRE_FN int nic_parse_xdata(struct nic_cursor *c, struct nic_packet *p)
{
	NIC_TAKE(c, xdata, WIRE_XDATA_LEN);
	p->flags = (wire_u8)(NIC_FLAGS_DATA | (wire_xdata_get_retransmission(xdata) ? NIC_RETRANSMISSION : 0) |
			     (wire_xdata_get_synchronise(xdata) ? NIC_SYNCHRONISE : 0) |
			     (wire_xdata_get_last(xdata) ? NIC_LAST : 0));
	p->msn = wire_xdata_get_msn(xdata);
	p->ipsn = wire_xdata_get_ipsn(xdata);
	p->wqe_sn = wire_xdata_get_wqe_sn(xdata);
	p->head = wire_xdata_get_head(xdata);
	return NIC_PARSED;
}

WIRE_FN int nic_parse_xack(struct nic_cursor *c, struct nic_packet *p)
{
	NIC_TAKE(c, xack, WIRE_XACK_LEN);
	p->flags = (wire_u8)(NIC_FLAGS_ACK | (wire_xack_get_sack_valid(xack) ? NIC_SACK_VALID : 0) |
			     (wire_xack_get_ece(xack) ? NIC_ECE : 0) |
			     (wire_xack_get_retransmission(xack) ? NIC_RETRANSMISSION : 0));
	p->sack_psn = wire_xack_get_sack_psn(xack);
	p->path = wire_xack_get_path(xack);
	return NIC_PARSED;
}

WIRE_FN int nic_parse_reth(struct nic_cursor *c, struct nic_packet *p)
{
	NIC_TAKE(c, reth, WIRE_RETH_LEN);
	p->va = wire_reth_get_virtual_address(reth);
	p->rkey = wire_reth_get_rkey(reth);
	p->dma_length = wire_reth_get_dma_length(reth);
	return NIC_PARSED;
}

WIRE_FN int nic_parse_atomic(struct nic_cursor *c, struct nic_packet *p)
{
	NIC_TAKE(c, atomic_eth, WIRE_ATOMIC_ETH_LEN);
	p->va = wire_atomic_eth_get_virtual_address(atomic_eth);
	p->rkey = wire_atomic_eth_get_rkey(atomic_eth);
	p->swap_add = wire_atomic_eth_get_swap_add(atomic_eth);
	p->compare = wire_atomic_eth_get_compare(atomic_eth);
	return NIC_PARSED;
}

WIRE_FN int nic_parse_aeth(struct nic_cursor *c, struct nic_packet *p)
{
	NIC_TAKE(c, aeth, WIRE_AETH_LEN);
	p->syndrome = wire_aeth_get_syndrome(aeth);
	if (!(p->flags & NIC_FLAGS_DATA))
		p->msn = wire_aeth_get_msn(aeth);
	if (p->opcode == WIRE_BTH_OPCODE_RC_ATOMIC_ACKNOWLEDGE) {
		NIC_TAKE(c, atomic_ack_eth, WIRE_ATOMIC_ACK_ETH_LEN);
		p->swap_add = wire_atomic_ack_eth_get_original_value(atomic_ack_eth);
	}
	return NIC_PARSED;
}

/* Immediate data and a key to invalidate stand at the same place and never together. */
WIRE_FN int nic_parse_immediate(struct nic_cursor *c, struct nic_packet *p)
{
	NIC_TAKE(c, immdt, WIRE_IMMDT_LEN);
	p->immediate = wire_immdt_get_immediate(immdt);
	return NIC_PARSED;
}

/* What stands between the BTH and the payload. */
WIRE_FN int nic_parse_extensions(struct nic_cursor *c, struct nic_packet *p, wire_u8 extension)
{
	int event = NIC_PARSED;

	if (extension == WIRE_BTH_EXTENSION_DATA)
		event = nic_parse_xdata(c, p);
	else if (extension == WIRE_BTH_EXTENSION_ACK)
		event = nic_parse_xack(c, p);
	else if (extension != WIRE_BTH_EXTENSION_NONE)
		event = WIRE_NIC_EVENT_DROP_BAD_HEADER;
	if (event != NIC_PARSED)
		return event;
	if (nic_has_reth(p->opcode, extension))
		event = nic_parse_reth(c, p);
	else if (nic_opcode_in(NIC_OPS_AETH, p->opcode))
		event = nic_parse_aeth(c, p);
	else if (nic_opcode_in(NIC_OPS_ATOMIC, p->opcode))
		event = nic_parse_atomic(c, p);
	if (event == NIC_PARSED && nic_opcode_in(NIC_OPS_IMMDT | NIC_OPS_IETH, p->opcode))
		event = nic_parse_immediate(c, p);
	return event;
}

/* BTH and the extended headers that the opcode calls for; `left` is what UDP holds from the BTH on. */
WIRE_FN int nic_parse_transport(struct nic_cursor *c, struct nic_packet *p, wire_u32 left)
{
	const wire_u8 *start = c->pos;
	wire_u32 used, pad;
	int event;
	NIC_TAKE(c, bth, WIRE_BTH_LEN);

	if (left > 0xffff)
		return WIRE_NIC_EVENT_DROP_TRUNCATED;
	p->opcode = wire_bth_get_opcode(bth);
	p->pkey = wire_bth_get_pkey(bth);
	p->dest_qpn = wire_bth_get_dest_qpn(bth);
	p->psn = wire_bth_get_psn(bth);
	p->ack_req = wire_bth_get_ack_req(bth);
	p->becn = wire_bth_get_becn(bth);
	pad = wire_bth_get_pad_count(bth);
	if (wire_bth_get_version(bth) != 0)
		return WIRE_NIC_EVENT_DROP_BAD_HEADER;
	event = nic_parse_extensions(c, p, wire_bth_get_extension(bth));
	if (event != NIC_PARSED)
		return event;
	used = (wire_u32)(c->pos - start) + WIRE_ICRC_BYTES;
	if (left < used)
		return WIRE_NIC_EVENT_DROP_TRUNCATED;
	/* Payload and pad bytes fill whole words (IBTA vol. 1, section 9.2.3). */
	if ((left - used) % 4 != 0 || left - used < pad)
		return WIRE_NIC_EVENT_DROP_BAD_HEADER;
	p->payload_length = (wire_u16)(left - used - pad);
	p->payload_at = (wire_u16)(NIC_BTH_AT + used - WIRE_ICRC_BYTES);
	p->icrc_at = (wire_u16)(NIC_BTH_AT + left - WIRE_ICRC_BYTES);
	return NIC_PARSED;
}

/* The whole way; `data` is the first byte of the Ethernet header.  Fields that the packet lacks are 0. */
WIRE_FN int nic_parse(const wire_u8 *data, const wire_u8 *end, struct nic_packet *p)
{
	struct nic_cursor c = { .pos = data, .end = end };
	wire_u32 room = 0;
	int event;

	*p = (struct nic_packet){ 0 };
	event = nic_parse_ethernet(&c, p);
	if (event != NIC_PARSED)
		return event;
	event = nic_parse_ipv4(&c, p, &room);
	if (event != NIC_PARSED)
		return event;
	event = nic_parse_udp(&c, p, room);
	if (event != NIC_PARSED)
		return event;
	/* A link may have padded a short frame, so longer is fine; a total length below 20 wrapped and ends here. */
	if (room < WIRE_UDP_LEN || room > (wire_u64)(end - data) - NIC_UDP_AT)
		return WIRE_NIC_EVENT_DROP_TRUNCATED;
	return nic_parse_transport(&c, p, room - WIRE_UDP_LEN);
}

#endif
