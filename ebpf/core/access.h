/*
 * Whether a packet may touch memory: one function a check, each of which gives NIC_STEP_OK or the event (enum
 * wire_nic_event) that the packet ends with.
 */
#ifndef NIC_ACCESS_H
#define NIC_ACCESS_H

#include "packet.h"
#include "qp.h"

#define NIC_STEP_OK (-1)

/* The largest message (IBTA vol. 1, section 9.7.4.1.7 on the DMA length). */
#define NIC_MESSAGE_MAX (1u << 31)

/* The region must be this queue pair's with that right; it is looked at again with every packet, since it may go away. */
WIRE_FN int nic_check_region(const struct nic_qp *qp, const struct nic_region *region, wire_u32 right)
{
	if (!region || !(region->access & right) || region->pd != qp->config.pd ||
	    region->owner_ip != qp->config.local_ip)
		return WIRE_NIC_EVENT_NAK_RKEY;
	return NIC_STEP_OK;
}

/* Written so that no sum can wrap. */
WIRE_FN int nic_check_bounds(const struct nic_region *region, wire_u64 va, wire_u32 length)
{
	if (va < region->va || va - region->va > region->length || length > region->length - (va - region->va))
		return WIRE_NIC_EVENT_NAK_BOUNDS;
	return NIC_STEP_OK;
}

/* The right that a READ or atomic needs at the responder. */
WIRE_FN wire_u32 nic_fetch_right(wire_u8 opcode)
{
	return opcode == WIRE_BTH_OPCODE_RC_READ_REQUEST ? NIC_ACCESS_REMOTE_READ : NIC_ACCESS_REMOTE_ATOMIC;
}

/* AETH's NAK code for a fault (IBTA vol. 1, table 59); memory that a SEND cannot write is the responder's own fault. */
WIRE_FN wire_u8 nic_nak_code(wire_u8 event, wire_u8 opcode)
{
	if (event != WIRE_NIC_EVENT_NAK_RKEY && event != WIRE_NIC_EVENT_NAK_BOUNDS)
		return WIRE_NAK_CODE_INVALID_REQUEST;
	return nic_opcode_in(NIC_OPS_SEND, opcode) ? WIRE_NAK_CODE_REMOTE_OPERATIONAL_ERROR
						   : WIRE_NAK_CODE_REMOTE_ACCESS_ERROR;
}

#endif
