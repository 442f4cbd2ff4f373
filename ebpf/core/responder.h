/*
 * What go-back-N's responder does with a request in its turn (IBTA vol. 1, section 9.7.4): checks, one function a step,
 * each of which returns NIC_STEP_OK or the event that the packet ends with, then execution.  They stand in the
 * order of section 9.7.4.1: opcode sequence, receives, length and key.
 *
 * The NIC itself answers WRITEs and SENDs, the agent READs and atomics, and answers have to leave in the order of
 * requests (section 9.7.5.1).  So while a READ or atomic waits for the agent, the NIC holds its own replies back; what
 * would have been said is found from the receiver's state when the agent's turn has come (gbn_agent.h).
 */
#ifndef NIC_RESPONDER_H
#define NIC_RESPONDER_H

#include "access.h"
#include "packet.h"
#include "psn.h"
#include "qp.h"
#include "refs.h"

WIRE_FN wire_u32 nic_fetches_served(const struct nic_qp *qp)
{
	return *(const volatile wire_u32 *)&qp->emitter[NIC_STREAM_RESPONSE].served;
}

/* Replies at once, or not: then the agent will when it has answered what came before. */
WIRE_FN int nic_reply(struct nic_qp *qp, wire_u8 syndrome, wire_u32 psn, struct nic_verdict *out)
{
	struct nic_receiver *r = &qp->receiver[NIC_STREAM_REQUEST];

	if (nic_fetches_served(qp) != r->fetches) {
		*(volatile wire_u32 *)&r->transport.gbn.held = r->transport.gbn.held + 1;
		out->doorbell = 1;
		return 0;
	}
	out->reply = NIC_REPLY_ACK;
	out->reply_opcode = WIRE_BTH_OPCODE_RC_ACKNOWLEDGE;
	out->syndrome = syndrome;
	out->reply_psn = psn;
	out->reply_msn = r->msn;
	return 1;
}

/* Acknowledges everything before the expected PSN. */
WIRE_FN void nic_reply_ack(struct nic_qp *qp, struct nic_verdict *out)
{
	struct nic_receiver *r = &qp->receiver[NIC_STREAM_REQUEST];

	r->unacknowledged = 0;
	nic_reply(qp, WIRE_AETH_KIND_ACK | WIRE_AETH_CREDITS_INVALID, nic_psn_add(r->epsn, WIRE_PSN_MASK), out);
}

/* What comes behind the expected PSN gets no answer until that has come. */
WIRE_FN int nic_reply_nak(struct nic_qp *qp, wire_u8 syndrome, struct nic_verdict *out)
{
	struct nic_receiver *r = &qp->receiver[NIC_STREAM_REQUEST];

	r->nak_outstanding = syndrome;
	return nic_reply(qp, syndrome, r->epsn, out);
}

/* A request that cannot be executed now (RNR NAK), or never: that ends the connection (table 59, class C). */
WIRE_FN void nic_responder_refuse(struct nic_qp *qp, const struct nic_packet *p, wire_u8 event, struct nic_verdict *out)
{
	out->event = event;
	if (event == WIRE_NIC_EVENT_RNR_NAK_SENT) {
		nic_reply_nak(qp, (wire_u8)(WIRE_AETH_KIND_RNR_NAK | (qp->config.rnr_timer & 0x1f)), out);
		return;
	}
	out->doorbell = 1;
	if (nic_reply_nak(qp, (wire_u8)(WIRE_AETH_KIND_NAK | nic_nak_code(event, p->opcode)), out))
		qp->config.state = WIRE_QP_STATE_ERROR;
}

/* A message starts only between messages, and goes on as what it is (section 9.7.4.1.2). */
WIRE_FN int nic_check_opcode(const struct nic_qp *qp, const struct nic_packet *p)
{
	const struct nic_receiver *r = &qp->receiver[NIC_STREAM_REQUEST];
	int starts = nic_opcode_in(NIC_OPS_START | NIC_OPS_FETCH, p->opcode);
	int inside = r->remaining != 0 || r->in_send;

	if (starts == inside || (inside && nic_opcode_in(NIC_OPS_SEND, p->opcode) != (r->in_send != 0)))
		return WIRE_NIC_EVENT_NAK_OPCODE_SEQ;
	return NIC_STEP_OK;
}

/* Section 9.7.4.1.6: all but the last packet are full, the last one holds exactly the rest. */
WIRE_FN int nic_check_length(const struct nic_qp *qp, const struct nic_packet *p, wire_u32 left, int ends)
{
	wire_u32 mtu = qp->config.path_mtu;

	if (ends ? p->payload_length != left || p->payload_length > mtu
		 : p->payload_length != mtu || p->payload_length >= left)
		return WIRE_NIC_EVENT_NAK_LENGTH;
	return left > NIC_MESSAGE_MAX ? WIRE_NIC_EVENT_NAK_LENGTH : NIC_STEP_OK;
}

/* A range without bytes touches no memory, so its key is not looked at (section 9.7.4.1.5). */
WIRE_FN int nic_check_range(const struct nic_qp *qp, const struct nic_region *region, wire_u32 right, wire_u64 va,
			    wire_u32 length)
{
	int event;

	if (!length)
		return NIC_STEP_OK;
	event = nic_check_region(qp, region, right);
	/* A region that passed is one; the eBPF verifier cannot follow that and wants to see it tested. */
	if (event == NIC_STEP_OK && region)
		event = nic_check_bounds(region, va, length);
	return event;
}

/* The payload goes to `va`, in a range that was checked. */
WIRE_FN void nic_place_payload(const struct nic_packet *p, const struct nic_region *region, wire_u64 va,
			       struct nic_verdict *out)
{
	if (!region || !p->payload_length)
		return;
	out->place_at = region->arena_offset + (va - region->va);
	out->place_length = p->payload_length;
}

WIRE_FN void nic_complete_recv(struct nic_qp *qp, const struct nic_packet *p, struct nic_recv *recv, wire_u32 byte_len,
			       struct nic_verdict *out)
{
	struct nic_receiver *r = &qp->receiver[NIC_STREAM_REQUEST];

	recv->byte_len = byte_len;
	recv->immediate = p->immediate;
	recv->flags = (nic_opcode_in(NIC_OPS_IMMDT, p->opcode) ? NIC_RECV_IMMEDIATE : 0) |
		      (nic_opcode_in(NIC_OPS_IETH, p->opcode) ? NIC_RECV_INVALIDATE : 0) |
		      (nic_opcode_in(NIC_OPS_WRITE, p->opcode) ? NIC_RECV_WRITE : 0);
	*(volatile wire_u32 *)&r->completed = nic_psn_add(r->completed, 1);
	out->doorbell = 1;
}

WIRE_FN int nic_execute_write(struct nic_qp *qp, const struct nic_packet *p, const struct nic_refs *refs,
			      struct nic_verdict *out)
{
	struct nic_receiver *r = &qp->receiver[NIC_STREAM_REQUEST];
	int starts = nic_opcode_in(NIC_OPS_WRITE_START, p->opcode);
	int immediate = nic_opcode_in(NIC_OPS_WRITE_IMM, p->opcode);
	wire_u64 va = starts ? p->va : r->next_va;
	wire_u32 left = starts ? p->dma_length : r->remaining;
	wire_u32 length = starts ? p->dma_length : r->length;
	int event;

	if (immediate && !refs->recv)
		return WIRE_NIC_EVENT_RNR_NAK_SENT;
	event = nic_check_length(qp, p, left, nic_opcode_in(NIC_OPS_WRITE_END, p->opcode));
	if (event == NIC_STEP_OK)
		event = nic_check_range(qp, refs->region, NIC_ACCESS_REMOTE_WRITE, va, left);
	if (event != NIC_STEP_OK)
		return event;
	if (starts) {
		r->rkey = p->rkey;
		r->length = length;
	}
	r->next_va = va + p->payload_length;
	r->remaining = left - p->payload_length;
	nic_place_payload(p, refs->region, va, out);
	if (immediate && refs->recv)
		nic_complete_recv(qp, p, refs->recv, length, out);
	return NIC_STEP_OK;
}

/* Of the current message, the receiver's `remaining` is the room that is left in the receive. */
WIRE_FN int nic_execute_send(struct nic_qp *qp, const struct nic_packet *p, const struct nic_refs *refs,
			     struct nic_verdict *out)
{
	struct nic_receiver *r = &qp->receiver[NIC_STREAM_REQUEST];
	int starts = nic_opcode_in(NIC_OPS_SEND_START, p->opcode);
	int ends = nic_opcode_in(NIC_OPS_SEND_END, p->opcode);
	struct nic_recv *recv = refs->recv;
	wire_u64 va;
	wire_u32 room;
	int event;

	if (!recv)
		return WIRE_NIC_EVENT_RNR_NAK_SENT;
	va = starts ? recv->va : r->next_va;
	room = starts ? recv->length : r->remaining;
	/* Only a message's only packet may be empty. */
	if (ends ? p->payload_length > qp->config.path_mtu || (!starts && !p->payload_length)
		 : p->payload_length != qp->config.path_mtu)
		return WIRE_NIC_EVENT_NAK_LENGTH;
	if (p->payload_length > room) {
		recv->flags = NIC_RECV_ERROR;
		return WIRE_NIC_EVENT_NAK_LENGTH;
	}
	event = nic_check_range(qp, refs->region, NIC_ACCESS_LOCAL_WRITE, va, p->payload_length);
	if (event != NIC_STEP_OK) {
		recv->flags = NIC_RECV_PROTECTION;
		return event;
	}
	room -= p->payload_length;
	nic_place_payload(p, refs->region, va, out);
	r->next_va = va + p->payload_length;
	r->remaining = ends ? 0 : room;
	r->in_send = !ends;
	if (ends)
		nic_complete_recv(qp, p, recv, recv->length - room, out);
	return NIC_STEP_OK;
}

/* How many PSNs a READ or atomic takes: as many as its response has packets (section 9.7.3). */
WIRE_FN wire_u32 nic_fetch_packets(const struct nic_qp_config *c, wire_u32 length)
{
	wire_u32 mtu = c->path_mtu;

	return length > mtu && mtu ? (length + mtu - 1) / mtu : 1;
}

WIRE_FN int nic_check_fetch(const struct nic_qp *qp, const struct nic_packet *p, const struct nic_refs *refs,
			    wire_u32 length)
{
	if (p->payload_length || length > NIC_MESSAGE_MAX || nic_fetch_packets(&qp->config, length) >= NIC_PSN_HALF)
		return WIRE_NIC_EVENT_NAK_LENGTH;
	/* Atomics work on aligned words (section 9.4.5). */
	if (nic_opcode_in(NIC_OPS_ATOMIC, p->opcode) && p->va % 8)
		return WIRE_NIC_EVENT_NAK_LENGTH;
	return nic_check_range(qp, refs->region, nic_fetch_right(p->opcode), p->va, length);
}

/* Hands a READ or atomic to the agent; 0: there is no room. */
WIRE_FN int nic_hand_over(struct nic_qp *qp, const struct nic_packet *p, wire_u32 length, int repeated,
			  struct nic_verdict *out)
{
	struct nic_receiver *r = &qp->receiver[NIC_STREAM_REQUEST];
	struct nic_incoming *in = &qp->incoming[r->fetches & (NIC_FETCH_MAX - 1)];

	if (nic_psn_distance(r->fetches, nic_fetches_served(qp)) >= NIC_FETCH_MAX)
		return 0;
	in->va = p->va;
	in->swap_add = p->swap_add;
	in->compare = p->compare;
	in->rkey = p->rkey;
	in->length = length;
	in->psn = p->psn;
	in->opcode = p->opcode;
	in->repeated = (wire_u8)repeated;
	in->valid = 1;
	*(volatile wire_u32 *)&r->fetches = nic_psn_add(r->fetches, 1);
	out->doorbell = 1;
	return 1;
}

WIRE_FN wire_u32 nic_fetch_length(const struct nic_packet *p)
{
	return p->opcode == WIRE_BTH_OPCODE_RC_READ_REQUEST ? p->dma_length : 8;
}

WIRE_FN int nic_execute_fetch(struct nic_qp *qp, const struct nic_packet *p, const struct nic_refs *refs,
			      struct nic_verdict *out)
{
	struct nic_receiver *r = &qp->receiver[NIC_STREAM_REQUEST];
	wire_u32 length = nic_fetch_length(p);
	int event = nic_check_fetch(qp, p, refs, length);

	if (event != NIC_STEP_OK)
		return event;
	if (!nic_hand_over(qp, p, length, 0, out))
		return WIRE_NIC_EVENT_RNR_NAK_SENT;
	r->epsn = nic_psn_add(r->epsn, nic_fetch_packets(&qp->config, length) - 1);
	return NIC_STEP_OK;
}

/* The packet with the expected PSN: check, execute, move on, acknowledge. */
WIRE_FN void nic_responder_execute(struct nic_qp *qp, const struct nic_packet *p, const struct nic_refs *refs,
				   struct nic_verdict *out)
{
	struct nic_receiver *r = &qp->receiver[NIC_STREAM_REQUEST];
	int fetch = nic_opcode_in(NIC_OPS_FETCH, p->opcode);
	int ends = fetch || nic_opcode_in(NIC_OPS_END, p->opcode);
	int event = nic_check_opcode(qp, p);

	if (event == NIC_STEP_OK) {
		if (nic_opcode_in(NIC_OPS_WRITE, p->opcode))
			event = nic_execute_write(qp, p, refs, out);
		else if (fetch)
			event = nic_execute_fetch(qp, p, refs, out);
		else
			event = nic_execute_send(qp, p, refs, out);
	}
	if (event != NIC_STEP_OK) {
		nic_responder_refuse(qp, p, (wire_u8)event, out);
		return;
	}
	out->event = WIRE_NIC_EVENT_REQUEST_PLACED;
	r->epsn = nic_psn_add(r->epsn, 1);
	r->nak_outstanding = 0;
	r->unacknowledged++;
	if (ends)
		r->msn = nic_psn_add(r->msn, 1);
	/* The answer to a READ or atomic is its acknowledgement. */
	if (fetch)
		r->unacknowledged = 0;
	else if (ends || p->ack_req || (qp->config.ack_every && r->unacknowledged >= qp->config.ack_every))
		nic_reply_ack(qp, out);
}

/*
 * A PSN that has passed (section 9.7.5.1): READs and atomics are answered again, if they are still acceptable and
 * there is room; of everything else the requester has missed the acknowledgement.
 */
WIRE_FN void nic_responder_repeat(struct nic_qp *qp, const struct nic_packet *p, const struct nic_refs *refs,
				  struct nic_verdict *out)
{
	struct nic_receiver *r = &qp->receiver[NIC_STREAM_REQUEST];
	wire_u32 length = nic_fetch_length(p);
	wire_u32 end = nic_psn_add(p->psn, nic_fetch_packets(&qp->config, length));

	out->event = WIRE_NIC_EVENT_REQUEST_DUPLICATE;
	if (!nic_opcode_in(NIC_OPS_FETCH, p->opcode))
		nic_reply_ack(qp, out);
	else if (nic_check_fetch(qp, p, refs, length) == NIC_STEP_OK && nic_psn_distance(end, r->epsn) <= 0)
		nic_hand_over(qp, p, length, 1, out);
}

#endif
