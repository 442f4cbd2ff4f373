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

uint32_t rdma_frame_build(const struct rdma_frame_template *t, const struct rdma_packet *p, uint8_t *frame)
{
	struct wire_ipv4 *ip = (void *)(frame + NIC_IPV4_AT);
	struct wire_bth *bth = (void *)(frame + NIC_BTH_AT);
	uint32_t pad = -p->payload_length & 3;
	uint32_t at = NIC_EXT_AT;
	uint16_t ip_length;

	memcpy(frame, t->bytes, sizeof(t->bytes));
	wire_bth_set_opcode(bth, p->opcode);
	wire_bth_set_pad_count(bth, (uint8_t)pad);
	wire_bth_set_ack_req(bth, p->ack_req);
	wire_bth_set_psn(bth, p->psn);
	if (nic_opcode_in(NIC_OPS_RETH, p->opcode)) {
		struct wire_reth *reth = (void *)(frame + at);

		wire_reth_set_virtual_address(reth, p->va);
		wire_reth_set_rkey(reth, p->rkey);
		wire_reth_set_dma_length(reth, p->dma_length);
		at += WIRE_RETH_LEN;
	}
	memcpy(frame + at, p->payload, p->payload_length);
	at += p->payload_length;
	memset(frame + at, 0, pad);
	at += pad;
	ip_length = (uint16_t)(at + WIRE_ICRC_BYTES - NIC_IPV4_AT);
	wire_ipv4_set_dscp(ip, p->dscp);
	wire_ipv4_set_total_len(ip, ip_length);
	wire_ipv4_set_hdr_checksum(ip, 0);
	wire_ipv4_set_hdr_checksum(ip, (uint16_t)~nic_ipv4_sum(ip));
	wire_udp_set_len((void *)(frame + NIC_UDP_AT), (uint16_t)(ip_length - WIRE_IPV4_LEN));
	put_icrc(frame + at, rdma_icrc(frame + NIC_IPV4_AT, at - NIC_IPV4_AT));
	return at + WIRE_ICRC_BYTES;
}

uint8_t rdma_remaining_class(uint32_t bytes)
{
	/* At most 2^24 units, whose class is 49. */
	uint32_t units = bytes / WIRE_REMAINING_UNIT_BYTES + (bytes % WIRE_REMAINING_UNIT_BYTES || !bytes);
	uint32_t octave = 31 - (uint32_t)__builtin_clz(units);

	return (uint8_t)(1 + 2 * octave + (octave ? units >> (octave - 1) & 1 : 0));
}

int rdma_frame_example(const struct rdma_qp_path *path, const uint8_t *local_mac, uint32_t local_ip, uint32_t psn,
		       uint8_t opcode, int ack_req, uint8_t dscp, uint64_t va, uint32_t rkey, uint32_t dma_length,
		       const uint8_t *payload, uint32_t payload_length, uint8_t *frame, uint32_t room)
{
	struct rdma_frame_template t;
	struct rdma_packet p = {
		.psn = psn, .opcode = opcode, .ack_req = ack_req != 0, .dscp = dscp, .va = va, .rkey = rkey, .dma_length = dma_length,
		.payload = payload, .payload_length = payload_length,
	};

	if (payload_length > 4096 || room < RDMA_FRAME_ROOM)
		return -EINVAL;
	rdma_frame_template_init(&t, path, local_mac, local_ip);
	return (int)rdma_frame_build(&t, &p, frame);
}
