/*
 * Packet sequence numbers: 24-bit serial arithmetic (IBTA vol. 1, section 9.7.2).
 *
 * A PSN is a wire_u32 below 2^24.  Two PSNs compare by their signed distance in [-2^23, 2^23), so the order is right
 * across the wrap as long as fewer than 2^23 packets are outstanding, which IBTA demands of a requester.
 */
#ifndef NIC_PSN_H
#define NIC_PSN_H

#include "wire.h"

#define NIC_PSN_HALF (1u << (WIRE_PSN_BITS - 1))

WIRE_FN wire_u32 nic_psn_add(wire_u32 psn, wire_u32 count)
{
	return (psn + count) & WIRE_PSN_MASK;
}

/* How far `psn` lies after `base`; negative when it lies before. */
WIRE_FN int nic_psn_distance(wire_u32 psn, wire_u32 base)
{
	wire_u32 forward = (psn - base) & WIRE_PSN_MASK;

	return forward < NIC_PSN_HALF ? (int)forward : (int)forward - (int)(2 * NIC_PSN_HALF);
}

#endif
