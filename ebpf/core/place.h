/*
 * Placing a packet of a transport that takes packets out of order (IRN, section "Supporting Out-of-order Packet
 * Delivery"; MP-RDMA, section 3.1).  All that is needed stands in the packet's xdata_t and RETH, so this looks at no
 * earlier packet, and doing it twice does no harm.
 *
 * A transport calls nic_x_place() for a packet that it has room for and does not know yet, marks it in its bitmap only if that
 * gave NIC_STEP_OK, and else calls nic_x_refuse().  When its head moves it calls nic_x_delivered(), and at the end
 * one of the reply functions.
 */
#ifndef NIC_PLACE_H
#define NIC_PLACE_H

#include "access.h"
#include "bitmap.h"
#include "packet.h"
#include "psn.h"
#include "qp.h"
#include "refs.h"

/* What a packet is to the two-bit bitmap (MP-RDMA, section 3.3; IRN, "Last packet issues"). */
WIRE_FN wire_u32 nic_x_slot(const struct nic_packet *p)
{
	if (nic_opcode_in(NIC_OPS_COMPLETION, p->opcode))
		return NIC_SLOT_TAIL_COMPLETION;
	if (nic_opcode_in(NIC_OPS_WRITE_END | NIC_OPS_FETCH | NIC_OPS_RESPONSE_END, p->opcode))
		return NIC_SLOT_TAIL;
	return NIC_SLOT_RECEIVED;
}

/* All but the last packet of a message are full (IBTA vol. 1, section 9.7.4.1.6); `length`: of the message, if known. */
WIRE_FN int nic_x_check_length(const struct nic_qp *qp, const struct nic_packet *p, wire_u64 offset, wire_u32 length,
			       int ends)
{
	wire_u32 mtu = qp->config.path_mtu;

	if (ends ? p->payload_length > mtu || offset + p->payload_length != length
		 : p->payload_length != mtu || offset + p->payload_length >= length)
		return WIRE_NIC_EVENT_NAK_LENGTH;
	return length > NIC_MESSAGE_MAX ? WIRE_NIC_EVENT_NAK_LENGTH : NIC_STEP_OK;
}

WIRE_FN void nic_x_payload(const struct nic_region *region, const struct nic_packet *p, wire_u64 va,
			   struct nic_verdict *out)
{
	/* Bytes imply a region; the eBPF verifier cannot follow that and wants to see it tested. */
	if (!region || !p->payload_length)
		return;
	out->place_at = region->arena_offset + (va - region->va);
	out->place_length = p->payload_length;
}

/* IRN's premature CQE: it waits in the receive until all before it has come. */
WIRE_FN void nic_x_complete(struct nic_recv *recv, const struct nic_packet *p, wire_u32 byte_len)
{
	recv->byte_len = byte_len;
	recv->immediate = p->immediate;
	recv->flags = (nic_opcode_in(NIC_OPS_IMMDT, p->opcode) ? NIC_RECV_IMMEDIATE : 0) |
		      (nic_opcode_in(NIC_OPS_IETH, p->opcode) ? NIC_RECV_INVALIDATE : 0) |
		      (nic_opcode_in(NIC_OPS_WRITE, p->opcode) ? NIC_RECV_WRITE : 0);
}

WIRE_FN int nic_x_write(struct nic_qp *qp, const struct nic_packet *p, const struct nic_refs *refs,
			struct nic_verdict *out)
{
	wire_u64 offset = (wire_u64)p->ipsn * qp->config.path_mtu;
	int event;

	if (nic_opcode_in(NIC_OPS_WRITE_START, p->opcode) != (p->ipsn == 0))
		return WIRE_NIC_EVENT_NAK_OPCODE_SEQ;
	event = nic_x_check_length(qp, p, offset, p->dma_length, nic_opcode_in(NIC_OPS_WRITE_END, p->opcode));
	/* A message without bytes touches no memory, so its key is not looked at (IBTA vol. 1, section 9.7.4.1.5). */
	if (event == NIC_STEP_OK && p->dma_length) {
		event = nic_check_region(qp, refs->region, NIC_ACCESS_REMOTE_WRITE);
		if (event == NIC_STEP_OK && refs->region)
			event = nic_check_bounds(refs->region, p->va, p->dma_length);
	}
	if (event != NIC_STEP_OK)
		return event;
	if (nic_opcode_in(NIC_OPS_WRITE_IMM, p->opcode)) {
		if (!refs->recv)
			return WIRE_NIC_EVENT_RNR_NAK_SENT;
		nic_x_complete(refs->recv, p, p->dma_length);
	}
	nic_x_payload(refs->region, p, p->va + offset, out);
	return NIC_STEP_OK;
}

WIRE_FN int nic_x_send(struct nic_qp *qp, const struct nic_packet *p, const struct nic_refs *refs,
		       struct nic_verdict *out)
{
	wire_u64 offset = (wire_u64)p->ipsn * qp->config.path_mtu;
	int ends = nic_opcode_in(NIC_OPS_SEND_END, p->opcode);
	int event;

	if (nic_opcode_in(NIC_OPS_SEND_START, p->opcode) != (p->ipsn == 0))
		return WIRE_NIC_EVENT_NAK_OPCODE_SEQ;
	if (ends ? p->payload_length > qp->config.path_mtu : p->payload_length != qp->config.path_mtu)
		return WIRE_NIC_EVENT_NAK_LENGTH;
	if (!refs->recv)
		return WIRE_NIC_EVENT_RNR_NAK_SENT;
	if (offset + p->payload_length > refs->recv->length) {
		refs->recv->flags = NIC_RECV_ERROR;
		return WIRE_NIC_EVENT_NAK_LENGTH;
	}
	if (p->payload_length) {
		event = nic_check_region(qp, refs->region, NIC_ACCESS_LOCAL_WRITE);
		if (event == NIC_STEP_OK && refs->region)
			event = nic_check_bounds(refs->region, refs->recv->va, refs->recv->length);
		if (event != NIC_STEP_OK) {
			refs->recv->flags = NIC_RECV_PROTECTION;
			return event;
		}
	}
	if (ends)
		nic_x_complete(refs->recv, p, (wire_u32)offset + p->payload_length);
	nic_x_payload(refs->region, p, refs->recv->va + offset, out);
	return NIC_STEP_OK;
}

/* Into the read WQE buffer, at its read_WQE_SN; it is executed once all before it has come (IRN, "WQE matching issues"). */
WIRE_FN int nic_x_fetch(struct nic_qp *qp, const struct nic_packet *p, const struct nic_refs *refs,
			struct nic_verdict *out)
{
	wire_u32 served = *(const volatile wire_u32 *)&qp->emitter[NIC_STREAM_RESPONSE].served;
	wire_u32 length = p->opcode == WIRE_BTH_OPCODE_RC_READ_REQUEST ? p->dma_length : 8;
	struct nic_incoming *in = &qp->incoming[p->wqe_sn & (NIC_FETCH_MAX - 1)];
	int ahead = nic_psn_distance(p->wqe_sn, served);
	int event;

	if (p->payload_length || length > NIC_MESSAGE_MAX || ahead >= NIC_FETCH_MAX)
		return WIRE_NIC_EVENT_NAK_LENGTH;
	/* The response's PSNs have to compare. */
	if (length > (wire_u64)qp->config.path_mtu * (NIC_PSN_HALF - 1))
		return WIRE_NIC_EVENT_NAK_LENGTH;
	/* Those before `fetches` may be in the agent's hands. */
	if (nic_psn_distance(p->wqe_sn, qp->receiver[NIC_STREAM_REQUEST].fetches) < 0)
		return WIRE_NIC_EVENT_NAK_LENGTH;
	if (length) {
		event = nic_check_region(qp, refs->region, nic_fetch_right(p->opcode));
		if (event == NIC_STEP_OK && refs->region)
			event = nic_check_bounds(refs->region, p->va, length);
		if (event != NIC_STEP_OK)
			return event;
	}
	/* Atomics work on aligned words (IBTA vol. 1, section 9.4.5). */
	if (p->opcode != WIRE_BTH_OPCODE_RC_READ_REQUEST && p->va % 8)
		return WIRE_NIC_EVENT_NAK_LENGTH;
	in->va = p->va;
	in->swap_add = p->swap_add;
	in->compare = p->compare;
	in->rkey = p->rkey;
	in->length = length;
	in->psn = p->psn;
	in->opcode = p->opcode;
	in->valid = 1;
	return NIC_STEP_OK;
}

WIRE_FN int nic_x_response(struct nic_qp *qp, const struct nic_packet *p, const struct nic_refs *refs,
			   struct nic_verdict *out)
{
	struct nic_outgoing *o = &qp->outgoing[nic_outgoing_slot(qp, p)];
	int atomic = p->opcode == WIRE_BTH_OPCODE_RC_ATOMIC_ACKNOWLEDGE;
	wire_u64 offset = (wire_u64)p->ipsn * qp->config.path_mtu;
	int event;

	if (o->kind != (atomic ? NIC_OUTGOING_ATOMIC : NIC_OUTGOING_READ))
		return WIRE_NIC_EVENT_NAK_OPCODE_SEQ;
	if (atomic) {
		o->original = p->swap_add;
		return NIC_STEP_OK;
	}
	event = nic_x_check_length(qp, p, offset, o->length, nic_opcode_in(NIC_OPS_RESPONSE_END, p->opcode));
	if (event == NIC_STEP_OK && p->payload_length) {
		event = nic_check_region(qp, refs->region, NIC_ACCESS_LOCAL_WRITE);
		if (event == NIC_STEP_OK && refs->region)
			event = nic_check_bounds(refs->region, o->va, o->length);
	}
	if (event == NIC_STEP_OK)
		nic_x_payload(refs->region, p, o->va + offset, out);
	return event;
}

/* NIC_STEP_OK: the packet's payload is on its way to its place.  Otherwise nothing has changed. */
WIRE_FN int nic_x_place(struct nic_qp *qp, int stream, const struct nic_packet *p, const struct nic_refs *refs,
			struct nic_verdict *out)
{
	if (!(p->flags & NIC_FLAGS_DATA))
		return WIRE_NIC_EVENT_DROP_BAD_HEADER;
	if (stream == NIC_STREAM_RESPONSE)
		return nic_x_response(qp, p, refs, out);
	if (nic_opcode_in(NIC_OPS_WRITE, p->opcode))
		return nic_x_write(qp, p, refs, out);
	if (nic_opcode_in(NIC_OPS_SEND, p->opcode))
		return nic_x_send(qp, p, refs, out);
	return nic_x_fetch(qp, p, refs, out);
}

/* An acknowledge packet with an xack_t.  `syndrome`: AETH's; `psn`: what the BTH says. */
WIRE_FN void nic_x_reply(const struct nic_qp *qp, int stream, const struct nic_packet *p, wire_u8 syndrome,
			 wire_u32 psn, int sacked, struct nic_verdict *out)
{
	out->reply = NIC_REPLY_XACK;
	out->reply_opcode = stream == NIC_STREAM_REQUEST ? WIRE_BTH_OPCODE_RC_ACKNOWLEDGE
							 : WIRE_BTH_OPCODE_RC_READ_ACKNOWLEDGE;
	out->syndrome = syndrome;
	out->reply_psn = psn;
	out->reply_msn = qp->receiver[stream].msn;
	out->sack_psn = p->psn;
	out->reply_flags = (wire_u8)((sacked ? NIC_SACK_VALID : 0) | (p->ecn == WIRE_ECN_CE ? NIC_ECE : 0) |
				     (p->flags & NIC_RETRANSMISSION));
}

/* ACK: AACK is the last PSN in order; the packet itself is named when it was received (`sacked`). */
WIRE_FN void nic_x_reply_ack(const struct nic_qp *qp, int stream, const struct nic_packet *p, struct nic_verdict *out)
{
	nic_x_reply(qp, stream, p, WIRE_AETH_KIND_ACK | WIRE_AETH_CREDITS_INVALID,
		    nic_psn_add(qp->receiver[stream].epsn, WIRE_PSN_MASK), 1, out);
}

/* NACK: what is missing from the expected PSN on. */
WIRE_FN void nic_x_reply_nack(const struct nic_qp *qp, int stream, const struct nic_packet *p, int sacked,
			      struct nic_verdict *out)
{
	nic_x_reply(qp, stream, p, WIRE_AETH_KIND_NAK | WIRE_NAK_CODE_PSN_SEQUENCE_ERROR, qp->receiver[stream].epsn, sacked,
		    out);
}

/*
 * A packet that nic_x_place() did not take.  Only in its turn does it get its NAK: a NAK acknowledges all before it.
 * Ahead of its turn it is dropped and comes again.
 */
WIRE_FN void nic_x_refuse(struct nic_qp *qp, int stream, const struct nic_packet *p, int event, struct nic_verdict *out)
{
	out->event = (wire_u8)event;
	if (event == WIRE_NIC_EVENT_DROP_BAD_HEADER)
		return;
	if (p->psn != qp->receiver[stream].epsn) {
		out->event = WIRE_NIC_EVENT_REQUEST_EARLY_FAULT;
		return;
	}
	if (event == WIRE_NIC_EVENT_RNR_NAK_SENT) {
		nic_x_reply(qp, stream, p, (wire_u8)(WIRE_AETH_KIND_RNR_NAK | (qp->config.rnr_timer & 0x1f)), p->psn, 0,
			    out);
		return;
	}
	out->doorbell = 1;
	qp->config.state = WIRE_QP_STATE_ERROR;
	if (stream == NIC_STREAM_REQUEST)
		nic_x_reply(qp, stream, p, (wire_u8)(WIRE_AETH_KIND_NAK | nic_nak_code((wire_u8)event, p->opcode)), p->psn, 0, out);
}

/*
 * The head has moved over `packets` slots, of which `tails` ended messages, `completions` of those with a receive: MSN
 * update, and premature CQEs that come due.
 */
WIRE_FN void nic_x_delivered(struct nic_qp *qp, int stream, wire_u32 packets, wire_u32 tails, wire_u32 completions,
			     struct nic_verdict *out)
{
	struct nic_receiver *r = &qp->receiver[stream];
	wire_u32 ready = r->fetches;

	r->epsn = nic_psn_add(r->epsn, packets);
	r->msn = nic_psn_add(r->msn, tails);
	*(volatile wire_u32 *)&r->completed = nic_psn_add(r->completed, completions);
	if (stream == NIC_STREAM_REQUEST && tails) {
#pragma GCC unroll 16
		for (int i = 0; i < NIC_FETCH_MAX; i++) {
			struct nic_incoming *in = &qp->incoming[ready & (NIC_FETCH_MAX - 1)];

			if (!in->valid || nic_psn_distance(in->psn, r->epsn) >= 0)
				break;
			in->valid = 0;
			ready = nic_psn_add(ready, 1);
		}
	}
	if (completions || ready != r->fetches || (stream == NIC_STREAM_RESPONSE && tails))
		out->doorbell = 1;
	*(volatile wire_u32 *)&r->fetches = ready;
}

#endif
