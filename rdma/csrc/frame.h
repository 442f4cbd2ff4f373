/* Building RoCEv2 frames, and their ICRC.  See icrc.h of the NIC core for what the ICRC covers. */
#ifndef RDMA_FRAME_H
#define RDMA_FRAME_H

#include <stddef.h>
#include <stdint.h>

#include "reply.h"
#include "api.h"

/* Ethernet to the longest headers (xdata, RETH, ImmDt: 94 bytes), the largest path MTU, pad and ICRC, rounded up. */
#define RDMA_FRAME_ROOM 4224

/* The headers that all data packets of a queue pair share. */
struct rdma_frame_template {
	uint8_t bytes[NIC_EXT_AT];
};

void rdma_frame_template_init(struct rdma_frame_template *t, const struct rdma_qp_path *path, const uint8_t *local_mac,
			      uint32_t local_ip);

/*
 * Returns the frame's length, which is at least NIC_FRAME_MIN: what lies behind the ICRC then is a link's padding, and
 * gives a receiver the room for its reply.
 */
uint32_t rdma_frame_build(const struct rdma_frame_template *t, const struct rdma_packet *p, uint8_t *frame);

uint32_t rdma_icrc(const uint8_t *ip_header, size_t length);

#endif
