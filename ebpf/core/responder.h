/*
 * What every transport's responder does with a packet once it may be executed: checks as one function a step, each of
 * which returns NIC_STEP_OK or the event the packet ends with, then the WRITE itself (IBTA vol. 1, section 9.7.4).
 */
#ifndef NIC_RESPONDER_H
#define NIC_RESPONDER_H

#include "access.h"
#include "packet.h"
#include "psn.h"
#include "qp.h"

WIRE_FN void nic_reply(const struct nic_qp *qp, wire_u8 syndrome, wire_u32 psn, struct nic_verdict *out)
{
	out->reply = NIC_REPLY_ACK;
	out->reply_opcode = WIRE_BTH_OPCODE_RC_ACKNOWLEDGE;
	out->syndrome = syndrome;
	out->reply_psn = psn;
	out->reply_msn = qp->receiver[NIC_STREAM_REQUEST].msn;
}

/* Acknowledges everything up to the expected PSN (cumulative). */
WIRE_FN void nic_reply_ack(struct nic_qp *qp, struct nic_verdict *out)
{
	qp->receiver[NIC_STREAM_REQUEST].unacknowledged = 0;
	nic_reply(qp, WIRE_AETH_KIND_ACK | WIRE_AETH_CREDITS_INVALID, nic_psn_add(qp->receiver[NIC_STREAM_REQUEST].epsn, WIRE_PSN_MASK),
		  out);
}

WIRE_FN void nic_reply_nak(const struct nic_qp *qp, wire_u8 code, struct nic_verdict *out)
{
	nic_reply(qp, (wire_u8)(WIRE_AETH_KIND_NAK | code), qp->receiver[NIC_STREAM_REQUEST].epsn, out);
}

/* A fault that ends the connection: NAK, and the queue pair takes nothing more (IBTA vol. 1, table 59, class C). */
WIRE_FN void nic_responder_fail(struct nic_qp *qp, wire_u8 event, struct nic_verdict *out)
{
	out->event = event;
	out->doorbell = 1;
	nic_reply_nak(qp, nic_nak_code(event), out);
	qp->config.state = WIRE_QP_STATE_ERROR;
}

/* A message starts only between messages, and goes on only inside one (IBTA vol. 1, section 9.7.4.1.2). */
WIRE_FN int nic_check_opcode(const struct nic_qp *qp, const struct nic_packet *p)
{
	int starts = nic_opcode_in(NIC_OPS_WRITE_START, p->opcode);

	if (!nic_opcode_in(NIC_OPS_WRITE, p->opcode))
		return WIRE_NIC_EVENT_DROP_BAD_OPCODE;
	if (starts == (qp->receiver[NIC_STREAM_REQUEST].remaining != 0))
		return WIRE_NIC_EVENT_NAK_OPCODE_SEQ;
	return NIC_STEP_OK;
}

/* IBTA vol. 1, section 9.7.4.1.6: all but the last packet are full, the last one holds exactly the rest. */
WIRE_FN int nic_check_length(const struct nic_qp *qp, const struct nic_packet *p)
{
	wire_u32 expected = nic_opcode_in(NIC_OPS_WRITE_START, p->opcode) ? p->dma_length : qp->receiver[NIC_STREAM_REQUEST].remaining;
	int fits;

	if (nic_opcode_in(NIC_OPS_WRITE_END, p->opcode))
		fits = p->payload_length == expected && p->payload_length <= qp->config.path_mtu;
	else
		fits = p->payload_length == qp->config.path_mtu && p->payload_length < expected;
	if (!fits || expected > NIC_MESSAGE_MAX)
		return WIRE_NIC_EVENT_NAK_LENGTH;
	return NIC_STEP_OK;
}

WIRE_FN void nic_write_place(struct nic_qp *qp, const struct nic_packet *p, const struct nic_region *region,
			     struct nic_verdict *out)
{
	struct nic_receiver *r = &qp->receiver[NIC_STREAM_REQUEST];

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
	struct nic_receiver *r = &qp->receiver[NIC_STREAM_REQUEST];
	int starts = nic_opcode_in(NIC_OPS_WRITE_START, p->opcode);
	int ends = nic_opcode_in(NIC_OPS_WRITE_END, p->opcode);
	wire_u32 length = starts ? p->dma_length : r->remaining;
	int event = nic_check_opcode(qp, p);

	if (event == NIC_STEP_OK)
		event = nic_check_length(qp, p);
	/* A message without bytes touches no memory, so its key is not looked at (IBTA vol. 1, section 9.7.4.1.5). */
	if (event == NIC_STEP_OK && length) {
		event = nic_check_region(qp, region, NIC_ACCESS_REMOTE_WRITE);
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
