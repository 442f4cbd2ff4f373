/*
 * IRN's receiver ("Supporting Out-of-order Packet Delivery"): places each packet as it comes, keeps its place in the
 * 2-bitmap, and lets messages count only once all before them have come.  The same for requests at the responder and
 * for READ responses at the requester, which IRN acknowledges likewise ("Supporting RDMA Reads and Atomics").
 *
 * Section 3.1: every packet is acknowledged; one out of order by a NACK that carries the expected PSN and its own.
 * In the authors' synthesised receiver a packet that comes twice gets the same answer as the first time, as here.
 */
#ifndef NIC_IRN_RECEIVER_H
#define NIC_IRN_RECEIVER_H

#include "bitmap.h"
#include "place.h"

/* Of the same meaning for the two streams. */
WIRE_FN wire_u8 nic_irn_event(int stream, wire_u8 request, wire_u8 response)
{
	return stream == NIC_STREAM_REQUEST ? request : response;
}

/* `nack`: 0 for a receiver that takes any order as it comes (ideal.h). */
WIRE_FN void nic_irn_answer(struct nic_qp *qp, int stream, const struct nic_packet *p, int early, int nack,
			    struct nic_verdict *out)
{
	if (!early || !nack) {
		nic_x_reply_ack(qp, stream, p, out);
		return;
	}
	qp->receiver[stream].gaps++;
	nic_x_reply_nack(qp, stream, p, 1, out);
}

/* How far the head moves over the packet that it waited for.  Most often nothing is behind, and the bitmap stays. */
WIRE_FN struct nic_advance nic_irn_advance_head(struct nic_qp *qp, int stream, enum nic_slot slot)
{
	struct nic_receiver *r = &qp->receiver[stream];

	if (nic_bitmap2_get(&r->transport.bitmap, qp->config.slots, r->epsn + 1) == NIC_SLOT_EMPTY)
		return (struct nic_advance){ 1, slot >= NIC_SLOT_TAIL, slot == NIC_SLOT_TAIL_COMPLETION };
	nic_bitmap2_set(&r->transport.bitmap, qp->config.slots, r->epsn, slot);
	return nic_bitmap2_advance(&r->transport.bitmap, qp->config.slots, r->epsn);
}

/* The packet is in its place: marks it, or lets the head move. */
WIRE_FN void nic_irn_took(struct nic_qp *qp, int stream, const struct nic_packet *p, int early, struct nic_verdict *out)
{
	struct nic_receiver *r = &qp->receiver[stream];
	enum nic_slot slot = (enum nic_slot)nic_x_slot(p);
	struct nic_advance moved;

	if (early) {
		nic_bitmap2_set(&r->transport.bitmap, qp->config.slots, p->psn, slot);
		r->out_of_order++;
		out->event = nic_irn_event(stream, WIRE_NIC_EVENT_REQUEST_OUT_OF_ORDER,
					   WIRE_NIC_EVENT_RESPONSE_OUT_OF_ORDER);
		return;
	}
	out->event = nic_irn_event(stream, WIRE_NIC_EVENT_REQUEST_PLACED, WIRE_NIC_EVENT_RESPONSE_PLACED);
	moved = nic_irn_advance_head(qp, stream, slot);
	nic_x_delivered(qp, stream, moved.packets, moved.tails, moved.completions, out);
}

WIRE_FN void nic_irn_receive(struct nic_qp *qp, int stream, const struct nic_packet *p, const struct nic_refs *refs,
			     int nack, struct nic_verdict *out)
{
	struct nic_receiver *r = &qp->receiver[stream];
	int ahead = nic_psn_distance(p->psn, r->epsn);
	int event;

	if (!(p->flags & NIC_FLAGS_DATA)) {
		out->event = WIRE_NIC_EVENT_DROP_BAD_HEADER;
		return;
	}
	/* BDP-FC keeps a proper sender from this. */
	if (ahead >= (int)qp->config.slots) {
		out->event = nic_irn_event(stream, WIRE_NIC_EVENT_REQUEST_BEYOND, WIRE_NIC_EVENT_RESPONSE_SEQ_ERROR);
		nic_x_reply_nack(qp, stream, p, 0, out);
		return;
	}
	if (ahead < 0 ||
	    nic_bitmap2_get(&r->transport.bitmap, qp->config.slots, p->psn) != NIC_SLOT_EMPTY) {
		out->event = nic_irn_event(stream, WIRE_NIC_EVENT_REQUEST_DUPLICATE, WIRE_NIC_EVENT_RESPONSE_DUPLICATE);
		nic_irn_answer(qp, stream, p, ahead > 0, nack, out);
		return;
	}
	event = nic_x_place(qp, stream, p, refs, out);
	if (event != NIC_STEP_OK) {
		nic_x_refuse(qp, stream, p, event, out);
		return;
	}
	nic_irn_took(qp, stream, p, ahead > 0, out);
	nic_irn_answer(qp, stream, p, ahead > 0, nack, out);
}

#endif
