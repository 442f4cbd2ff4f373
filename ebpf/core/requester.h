/*
 * Go-back-N's requester: acknowledgements (IBTA vol. 1, section 9.7.7), and READ and atomic responses (9.7.5.2).
 *
 * The agent sends and owns snd_nxt; this side moves snd_una and leaves word of NAKs.  An answer counts only for packets
 * that are outstanding, so an old or invented one changes nothing.  Responses have the PSNs of their request; snd_una never
 * passes one that has not come.
 */
#ifndef NIC_REQUESTER_H
#define NIC_REQUESTER_H

#include "responder.h"

/* Names a PSN between snd_una and snd_nxt. */
WIRE_FN int nic_outstanding(const struct nic_qp *qp, wire_u32 psn)
{
	const struct nic_sender *s = &qp->sender[NIC_STREAM_REQUEST];
	wire_u32 snd_nxt = *(const volatile wire_u32 *)&qp->emitter[NIC_STREAM_REQUEST].snd_nxt;
	int ahead = nic_psn_distance(psn, s->snd_una);

	return ahead >= 0 && ahead < nic_psn_distance(snd_nxt, s->snd_una);
}

WIRE_FN void nic_set_una(struct nic_qp *qp, wire_u32 psn)
{
	*(volatile wire_u32 *)&qp->sender[NIC_STREAM_REQUEST].snd_una = psn;
}

/*
 * The oldest response that has not come, in `psn`; 0: none is outstanding.  What lies before snd_una is one that was
 * answered long ago and that the agent has not taken out yet.
 */
WIRE_FN int nic_awaits(const struct nic_qp *qp, wire_u32 *psn)
{
	const struct nic_receiver *r = &qp->receiver[NIC_STREAM_RESPONSE];
	const struct nic_outgoing *o = &qp->outgoing[r->msn & (NIC_FETCH_MAX - 1)];

	*psn = r->remaining ? r->epsn : o->psn;
	return o->kind != NIC_OUTGOING_NONE && nic_psn_distance(*psn, qp->sender[NIC_STREAM_REQUEST].snd_una) >= 0;
}

/*
 * Something later was answered: that acknowledges all before response `psn`, which is lost (section 9.7.5.2, implied
 * NAK).  The agent goes back to it, once: until it comes the others get no word.
 */
WIRE_FN void nic_response_lost(struct nic_qp *qp, wire_u32 psn, struct nic_verdict *out)
{
	struct nic_receiver *r = &qp->receiver[NIC_STREAM_RESPONSE];
	struct nic_sender *s = &qp->sender[NIC_STREAM_REQUEST];

	nic_set_una(qp, psn);
	if (!r->nak_outstanding) {
		r->nak_outstanding = WIRE_AETH_KIND_NAK;
		r->gaps++;
		*(volatile wire_u32 *)&s->naks = s->naks + 1;
	}
	out->doorbell = 1;
}

/* It names the first PSN that was not executed, so it acknowledges all before.  The agent reads the reason first. */
WIRE_FN void nic_take_nak(struct nic_qp *qp, const struct nic_packet *p, struct nic_verdict *out)
{
	struct nic_sender *s = &qp->sender[NIC_STREAM_REQUEST];
	wire_u8 code = p->syndrome & NIC_SYNDROME_VALUE;
	wire_u32 awaited;
	int lost = nic_awaits(qp, &awaited) && nic_psn_distance(p->psn, awaited) > 0;

	if (lost)
		nic_response_lost(qp, awaited, out);
	else
		nic_set_una(qp, p->psn);
	if ((p->syndrome & NIC_SYNDROME_KIND) == WIRE_AETH_KIND_RNR_NAK) {
		*(volatile wire_u32 *)&s->rnr_timer = code;
		*(volatile wire_u32 *)&s->rnr_naks = s->rnr_naks + 1;
	} else if (code != WIRE_NAK_CODE_PSN_SEQUENCE_ERROR) {
		*(volatile wire_u32 *)&s->error_psn = p->psn;
		*(volatile wire_u32 *)&s->error = p->syndrome;
		qp->config.state = WIRE_QP_STATE_ERROR;
	} else if (!lost) {
		*(volatile wire_u32 *)&s->naks = s->naks + 1;
	}
	out->event = WIRE_NIC_EVENT_NAK_RECEIVED;
	out->doorbell = 1;
}

WIRE_FN void nic_take_ack(struct nic_qp *qp, const struct nic_packet *p, struct nic_verdict *out)
{
	wire_u32 awaited;

	if (nic_awaits(qp, &awaited) && nic_psn_distance(p->psn, awaited) >= 0)
		nic_response_lost(qp, awaited, out);
	else
		nic_set_una(qp, nic_psn_add(p->psn, 1));
	qp->sender[NIC_STREAM_REQUEST].acks++;
	out->event = WIRE_NIC_EVENT_ACK_RECEIVED;
	out->doorbell = 1;
}

WIRE_FN void nic_requester_take(struct nic_qp *qp, const struct nic_packet *p, struct nic_verdict *out)
{
	wire_u8 kind = p->syndrome & NIC_SYNDROME_KIND;

	if (!nic_outstanding(qp, p->psn))
		out->event = WIRE_NIC_EVENT_ACK_STALE;
	else if (kind == WIRE_AETH_KIND_ACK)
		nic_take_ack(qp, p, out);
	else if (kind == WIRE_AETH_KIND_RNR_NAK ||
		 (kind == WIRE_AETH_KIND_NAK &&
		  (p->syndrome & NIC_SYNDROME_VALUE) <= WIRE_NAK_CODE_REMOTE_OPERATIONAL_ERROR))
		nic_take_nak(qp, p, out);
	else
		out->event = WIRE_NIC_EVENT_DROP_BAD_HEADER;
}

/* Where the awaited response goes, if it is what was asked for. */
WIRE_FN int nic_check_response(const struct nic_qp *qp, const struct nic_packet *p, const struct nic_refs *refs,
			       const struct nic_outgoing *o, wire_u64 va, wire_u32 left)
{
	int atomic = p->opcode == WIRE_BTH_OPCODE_RC_ATOMIC_ACKNOWLEDGE;
	int event;

	if (atomic != (o->kind == NIC_OUTGOING_ATOMIC))
		return WIRE_NIC_EVENT_NAK_OPCODE_SEQ;
	if (atomic)
		return p->payload_length ? WIRE_NIC_EVENT_NAK_LENGTH : NIC_STEP_OK;
	event = nic_check_length(qp, p, left, nic_opcode_in(NIC_OPS_RESPONSE_END, p->opcode));
	if (event == NIC_STEP_OK)
		event = nic_check_range(qp, refs->region, NIC_ACCESS_LOCAL_WRITE, va, left);
	return event;
}

/*
 * The awaited response.  A READ that was asked for anew from its middle on starts with a First packet there, so what
 * counts is the packet's place in the READ, not whether it starts one.
 */
WIRE_FN void nic_take_response(struct nic_qp *qp, const struct nic_packet *p, const struct nic_refs *refs,
			       struct nic_verdict *out)
{
	struct nic_receiver *r = &qp->receiver[NIC_STREAM_RESPONSE];
	struct nic_outgoing *o = &qp->outgoing[r->msn & (NIC_FETCH_MAX - 1)];
	wire_u64 va = r->remaining ? r->next_va : o->va;
	wire_u32 left = r->remaining ? r->remaining : o->length;
	int event = nic_check_response(qp, p, refs, o, va, left);

	/* Nobody is told but the agent: the fault is in the answer (section 9.7.5.2, bad response). */
	if (event != NIC_STEP_OK) {
		out->event = (wire_u8)event;
		out->doorbell = 1;
		qp->config.state = WIRE_QP_STATE_ERROR;
		return;
	}
	if (o->kind == NIC_OUTGOING_ATOMIC) {
		o->original = p->swap_add;
		left = 0;
	} else {
		nic_place_payload(p, refs->region, va, out);
		left -= p->payload_length;
	}
	r->next_va = va + p->payload_length;
	r->remaining = left;
	r->epsn = nic_psn_add(p->psn, 1);
	r->nak_outstanding = 0;
	if (!left) {
		*(volatile wire_u32 *)&r->msn = nic_psn_add(r->msn, 1);
		out->doorbell = 1;
	}
	nic_set_una(qp, r->epsn);
	out->event = WIRE_NIC_EVENT_RESPONSE_PLACED;
}

WIRE_FN void nic_requester_response(struct nic_qp *qp, const struct nic_packet *p, const struct nic_refs *refs,
				    struct nic_verdict *out)
{
	wire_u32 awaited;
	int ahead;

	if (!nic_outstanding(qp, p->psn) || !nic_awaits(qp, &awaited)) {
		out->event = WIRE_NIC_EVENT_RESPONSE_DUPLICATE;
		return;
	}
	ahead = nic_psn_distance(p->psn, awaited);
	if (ahead < 0) {
		out->event = WIRE_NIC_EVENT_RESPONSE_DUPLICATE;
		return;
	}
	if (ahead == 0) {
		nic_take_response(qp, p, refs, out);
	} else {
		out->event = WIRE_NIC_EVENT_RESPONSE_SEQ_ERROR;
		nic_response_lost(qp, awaited, out);
	}
}

#endif
