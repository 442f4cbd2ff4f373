/* Building RoCEv2 frames (IBTA vol. 1, chapter 9, and Annex A17). */
#include "frame.h"

#include <errno.h>
#include <string.h>
#include <zlib.h>

/* Headers from IPv4 to BTH: the only ones with fields that the ICRC takes as ones. */
#define MASKED_LEN (WIRE_IPV4_LEN + WIRE_UDP_LEN + WIRE_BTH_LEN)

uint32_t rdma_icrc(const uint8_t *ip_header, size_t length)
{
	uint8_t masked[8 + MASKED_LEN];
	struct wire_ipv4 *ip = (void *)(masked + 8);
	struct wire_udp *udp = (void *)(masked + 8 + WIRE_IPV4_LEN);
	struct wire_bth *bth = (void *)(masked + 8 + WIRE_IPV4_LEN + WIRE_UDP_LEN);

	memset(masked, 0xff, 8);
	memcpy(masked + 8, ip_header, MASKED_LEN);
	wire_ipv4_set_dscp(ip, 0xff);
	wire_ipv4_set_ecn(ip, 0xff);
	wire_ipv4_set_ttl(ip, 0xff);
	wire_ipv4_set_hdr_checksum(ip, 0xffff);
	wire_udp_set_checksum(udp, 0xffff);
	wire_bth_set_fecn(bth, 1);
	wire_bth_set_becn(bth, 1);
	wire_bth_set_reserved6(bth, 0xff);
	return (uint32_t)crc32(crc32(0, masked, sizeof(masked)), ip_header + MASKED_LEN, (uInt)(length - MASKED_LEN));
}

static void put_icrc(uint8_t *at, uint32_t icrc)
{
	for (int i = 0; i < WIRE_ICRC_BYTES; i++)
		at[i] = (uint8_t)(icrc >> (8 * i));
}

void rdma_frame_template_init(struct rdma_frame_template *t, const struct rdma_qp_path *path, const uint8_t *local_mac,
			      uint32_t local_ip)
{
	struct wire_bth *bth = (void *)(t->bytes + NIC_BTH_AT);

	memset(t, 0, sizeof(*t));
	memcpy(t->bytes, path->remote_mac, 6);
	memcpy(t->bytes + 6, local_mac, 6);
	wire_ethernet_set_ether_type((void *)t->bytes, WIRE_ETHER_TYPE_IPV4);
	nic_write_ipv4((void *)(t->bytes + NIC_IPV4_AT), local_ip, path->remote_ip, 0, WIRE_ECN_ECT_0);
	nic_write_udp((void *)(t->bytes + NIC_UDP_AT), path->udp_source_port, 0);
	wire_bth_set_mig_req(bth, 1);
	wire_bth_set_pkey(bth, path->pkey);
	wire_bth_set_dest_qpn(bth, path->remote_qpn);
}

static uint32_t put_xdata(uint8_t *at, const struct rdma_packet *p)
{
	struct wire_xdata *x = (void *)at;

	wire_xdata_set_retransmission(x, p->retransmission);
	wire_xdata_set_synchronise(x, p->synchronise);
	wire_xdata_set_last(x, p->last);
	wire_xdata_set_reserved_flags(x, 0);
	wire_xdata_set_msn(x, p->msn);
	wire_xdata_set_reserved_ipsn(x, 0);
	wire_xdata_set_ipsn(x, p->ipsn);
	wire_xdata_set_reserved_wqe(x, 0);
	wire_xdata_set_wqe_sn(x, p->wqe_sn);
	wire_xdata_set_head(x, p->head);
	return WIRE_XDATA_LEN;
}

static uint32_t put_reth(uint8_t *at, const struct rdma_packet *p)
{
	struct wire_reth *reth = (void *)at;

	wire_reth_set_virtual_address(reth, p->va);
	wire_reth_set_rkey(reth, p->rkey);
	wire_reth_set_dma_length(reth, p->dma_length);
	return WIRE_RETH_LEN;
}

static uint32_t put_atomic(uint8_t *at, const struct rdma_packet *p)
{
	struct wire_atomic_eth *atomic = (void *)at;

	wire_atomic_eth_set_virtual_address(atomic, p->va);
	wire_atomic_eth_set_rkey(atomic, p->rkey);
	wire_atomic_eth_set_swap_add(atomic, p->swap_add);
	wire_atomic_eth_set_compare(atomic, p->compare);
	return WIRE_ATOMIC_ETH_LEN;
}

static uint32_t put_aeth(uint8_t *at, const struct rdma_packet *p)
{
	struct wire_aeth *aeth = (void *)at;

	wire_aeth_set_syndrome(aeth, p->syndrome);
	wire_aeth_set_msn(aeth, p->aeth_msn);
	if (p->opcode != WIRE_BTH_OPCODE_RC_ATOMIC_ACKNOWLEDGE)
		return WIRE_AETH_LEN;
	wire_atomic_ack_eth_set_original_value((void *)(at + WIRE_AETH_LEN), p->swap_add);
	return WIRE_AETH_LEN + WIRE_ATOMIC_ACK_ETH_LEN;
}

/* What the opcode calls for between the BTH and the payload; returns its length.  The parser's order, see parse.h. */
static uint32_t put_extensions(uint8_t *start, const struct rdma_packet *p)
{
	uint8_t *at = start;

	if (p->extension == WIRE_BTH_EXTENSION_DATA)
		at += put_xdata(at, p);
	if (nic_has_reth(p->opcode, p->extension))
		at += put_reth(at, p);
	else if (nic_opcode_in(NIC_OPS_AETH, p->opcode))
		at += put_aeth(at, p);
	else if (nic_opcode_in(NIC_OPS_ATOMIC, p->opcode))
		at += put_atomic(at, p);
	if (nic_opcode_in(NIC_OPS_IMMDT | NIC_OPS_IETH, p->opcode)) {
		wire_immdt_set_immediate((void *)at, p->immediate);
		at += WIRE_IMMDT_LEN;
	}
	return (uint32_t)(at - start);
}

uint32_t rdma_frame_build(const struct rdma_frame_template *t, const struct rdma_packet *p, uint8_t *frame)
{
	struct wire_ipv4 *ip = (void *)(frame + NIC_IPV4_AT);
	struct wire_udp *udp = (void *)(frame + NIC_UDP_AT);
	struct wire_bth *bth = (void *)(frame + NIC_BTH_AT);
	uint32_t pad = -p->payload_length & 3;
	uint32_t at = NIC_EXT_AT;
	uint16_t ip_length;

	memcpy(frame, t->bytes, sizeof(t->bytes));
	wire_bth_set_opcode(bth, p->opcode);
	wire_bth_set_solicited(bth, p->solicited);
	wire_bth_set_pad_count(bth, (uint8_t)pad);
	wire_bth_set_ack_req(bth, p->ack_req);
	wire_bth_set_extension(bth, p->extension);
	wire_bth_set_psn(bth, p->psn);
	at += put_extensions(frame + at, p);
	if (p->payload_length)
		memcpy(frame + at, p->payload, p->payload_length);
	at += p->payload_length;
	memset(frame + at, 0, pad);
	at += pad;
	ip_length = (uint16_t)(at + WIRE_ICRC_BYTES - NIC_IPV4_AT);
	wire_ipv4_set_dscp(ip, p->dscp);
	/* RFC 3168 wants pure acknowledgements to be not ECN-capable. */
	if (nic_opcode_in(NIC_OPS_ACKNOWLEDGE, p->opcode))
		wire_ipv4_set_ecn(ip, WIRE_ECN_NOT_ECT);
	wire_ipv4_set_total_len(ip, ip_length);
	wire_ipv4_set_hdr_checksum(ip, 0);
	wire_ipv4_set_hdr_checksum(ip, (uint16_t)~nic_ipv4_sum(ip));
	wire_udp_set_src_port(udp, p->source_port);
	wire_udp_set_len(udp, (uint16_t)(ip_length - WIRE_IPV4_LEN));
	put_icrc(frame + at, rdma_icrc(frame + NIC_IPV4_AT, at - NIC_IPV4_AT));
	at += WIRE_ICRC_BYTES;
	if (at < NIC_FRAME_MIN) {
		memset(frame + at, 0, NIC_FRAME_MIN - at);
		at = NIC_FRAME_MIN;
	}
	return at;
}

uint8_t rdma_remaining_class(uint32_t bytes)
{
	/* At most 2^24 units, whose class is 49. */
	uint32_t units = bytes / WIRE_REMAINING_UNIT_BYTES + (bytes % WIRE_REMAINING_UNIT_BYTES || !bytes);
	uint32_t octave = 31 - (uint32_t)__builtin_clz(units);

	return (uint8_t)(1 + 2 * octave + (octave ? units >> (octave - 1) & 1 : 0));
}

int rdma_frame_example(const struct rdma_qp_path *path, const uint8_t *local_mac, uint32_t local_ip,
		       const struct rdma_packet *packet, uint8_t *frame, uint32_t room)
{
	struct rdma_frame_template t;

	if (packet->payload_length > 4096 || room < RDMA_FRAME_ROOM)
		return -EINVAL;
	rdma_frame_template_init(&t, path, local_mac, local_ip);
	return (int)rdma_frame_build(&t, packet, frame);
}
