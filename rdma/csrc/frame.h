/* Building RoCEv2 frames, and their ICRC.  See icrc.h of the NIC core for what the ICRC covers. */
#ifndef RDMA_FRAME_H
#define RDMA_FRAME_H

#include <stddef.h>
#include <stdint.h>

#include "reply.h"
#include "api.h"

/* Ethernet to RETH, the largest path MTU, pad and ICRC, rounded up. */
#define RDMA_FRAME_ROOM 4224

/* The headers that all data packets of a queue pair share. */
struct rdma_frame_template {
	uint8_t bytes[NIC_EXT_AT];
};

struct rdma_packet {
	uint32_t psn;
	uint8_t opcode, ack_req, dscp;
	uint64_t va;           /* va, rkey and dma_length: in packets that carry a RETH */
	uint32_t rkey, dma_length;
	const uint8_t *payload;
	uint32_t payload_length;
};

void rdma_frame_template_init(struct rdma_frame_template *t, const struct rdma_qp_path *path, const uint8_t *local_mac,
			      uint32_t local_ip);
uint32_t rdma_frame_build(const struct rdma_frame_template *t, const struct rdma_packet *p, uint8_t *frame);

uint32_t rdma_icrc(const uint8_t *ip_header, size_t length);

#endif
