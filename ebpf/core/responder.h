/*
 * What every transport's responder does with a packet once it may be executed: checks as one function a step, each of
 * which returns NIC_STEP_OK or the event the packet ends with, then the WRITE itself (IBTA vol. 1, section 9.7.4).
 */
#ifndef NIC_RESPONDER_H
#define NIC_RESPONDER_H

#include "packet.h"
#include "psn.h"
#include "qp.h"

#define NIC_STEP_OK (-1)

/* The largest message (IBTA vol. 1, section 9.7.4.1.7 on the DMA length). */
#define NIC_MESSAGE_MAX (1u << 31)

WIRE_FN void nic_reply(const struct nic_qp *qp, wire_u8 syndrome, wire_u32 psn, struct nic_verdict *out)
{
	out->reply = 1;
	out->syndrome = syndrome;
	out->reply_psn = psn;
	out->reply_msn = qp->responder.msn;
}

/* Acknowledges everything up to the expected PSN (cumulative). */
WIRE_FN void nic_reply_ack(struct nic_qp *qp, struct nic_verdict *out)
{
	qp->responder.unacknowledged = 0;
	nic_reply(qp, WIRE_AETH_KIND_ACK | WIRE_AETH_CREDITS_INVALID, nic_psn_add(qp->responder.epsn, WIRE_PSN_MASK),
		  out);
}

WIRE_FN void nic_reply_nak(const struct nic_qp *qp, wire_u8 code, struct nic_verdict *out)
{
	nic_reply(qp, (wire_u8)(WIRE_AETH_KIND_NAK | code), qp->responder.epsn, out);
}

/* A fault that ends the connection: NAK, and the queue pair takes nothing more (IBTA vol. 1, table 59, class C). */
WIRE_FN void nic_responder_fail(struct nic_qp *qp, wire_u8 event, struct nic_verdict *out)
{
	wire_u8 code = event == WIRE_NIC_EVENT_NAK_RKEY || event == WIRE_NIC_EVENT_NAK_BOUNDS
			       ? WIRE_NAK_CODE_REMOTE_ACCESS_ERROR
			       : WIRE_NAK_CODE_INVALID_REQUEST;

	out->event = event;
	out->doorbell = 1;
	nic_reply_nak(qp, code, out);
	qp->config.state = WIRE_QP_STATE_ERROR;
}

/* A message starts only between messages, and goes on only inside one (IBTA vol. 1, section 9.7.4.1.2). */
WIRE_FN int nic_check_opcode(const struct nic_qp *qp, const struct nic_packet *p)
{
	int starts = nic_opcode_in(NIC_OPS_WRITE_START, p->opcode);

	if (!nic_opcode_in(NIC_OPS_WRITE, p->opcode))
		return WIRE_NIC_EVENT_DROP_BAD_OPCODE;
	if (starts == (qp->responder.remaining != 0))
		return WIRE_NIC_EVENT_NAK_OPCODE_SEQ;
	return NIC_STEP_OK;
}

/* IBTA vol. 1, section 9.7.4.1.6: all but the last packet are full, the last one holds exactly the rest. */
WIRE_FN int nic_check_length(const struct nic_qp *qp, const struct nic_packet *p)
{
	wire_u32 expected = nic_opcode_in(NIC_OPS_WRITE_START, p->opcode) ? p->dma_length : qp->responder.remaining;
	int fits;

	if (nic_opcode_in(NIC_OPS_WRITE_END, p->opcode))
		fits = p->payload_length == expected && p->payload_length <= qp->config.path_mtu;
	else
		fits = p->payload_length == qp->config.path_mtu && p->payload_length < expected;
	if (!fits || expected > NIC_MESSAGE_MAX)
		return WIRE_NIC_EVENT_NAK_LENGTH;
	return NIC_STEP_OK;
}

/* The region must be this queue pair's to write; it is looked at again with every packet, since it may go away. */
WIRE_FN int nic_check_region(const struct nic_qp *qp, const struct nic_region *region)
{
	if (!region || !(region->access & NIC_ACCESS_REMOTE_WRITE) || region->pd != qp->config.pd ||
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

WIRE_FN void nic_write_place(struct nic_qp *qp, const struct nic_packet *p, const struct nic_region *region,
			     struct nic_verdict *out)
{
	struct nic_responder *r = &qp->responder;

	if (nic_opcode_in(NIC_OPS_WRITE_START, p->opcode)) {
		r->next_va = p->va;
		r->remaining = p->dma_length;
		r->rkey = p->rkey;
	}
	/* Bytes imply a region; the eBPF verifier cannot follow that and wants to see it tested. */
	if (region && p->payload_length) {
		out->place_at = region->arena_offset + (r->next_va - region->va);
		out->place_length = p->payload_length;
	}
	r->next_va += p->payload_length;
	r->remaining -= p->payload_length;
	out->event = WIRE_NIC_EVENT_REQUEST_PLACED;
}

/* The packet with the expected PSN: check, place, move on, acknowledge. */
WIRE_FN void nic_responder_execute(struct nic_qp *qp, const struct nic_packet *p, const struct nic_region *region,
				   struct nic_verdict *out)
{
	struct nic_responder *r = &qp->responder;
	int starts = nic_opcode_in(NIC_OPS_WRITE_START, p->opcode);
	int ends = nic_opcode_in(NIC_OPS_WRITE_END, p->opcode);
	wire_u32 length = starts ? p->dma_length : r->remaining;
	int event = nic_check_opcode(qp, p);

	if (event == NIC_STEP_OK)
		event = nic_check_length(qp, p);
	/* A message without bytes touches no memory, so its key is not looked at (IBTA vol. 1, section 9.7.4.1.5). */
	if (event == NIC_STEP_OK && length) {
		event = nic_check_region(qp, region);
		if (event == NIC_STEP_OK)
			event = nic_check_bounds(region, starts ? p->va : r->next_va, length);
	}
	if (event != NIC_STEP_OK) {
		nic_responder_fail(qp, (wire_u8)event, out);
		return;
	}
	nic_write_place(qp, p, region, out);
	r->epsn = nic_psn_add(r->epsn, 1);
	r->nak_outstanding = 0;
	r->unacknowledged++;
	if (ends)
		r->msn = nic_psn_add(r->msn, 1);
	if (ends || p->ack_req || (qp->config.ack_every && r->unacknowledged >= qp->config.ack_every))
		nic_reply_ack(qp, out);
}

#endif
