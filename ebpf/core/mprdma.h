/*
 * MP-RDMA: multi-path transport for RDMA (NSDI 2018).  The receiver is below, the sender's half on the NIC in
 * mprdma_sender.h, the agent's half in mprdma_agent.h, their state in mprdma_state.h.
 *
 * The receiver (section 3.3) has L slots of two bits from rcv_nxt on (struct nic_receiver's epsn).  Each packet that has
 * a slot is placed at once and acknowledged at once: SACK, AACK, ECN, virtual path and ReTx are echoed.  A packet beyond
 * the slots is dropped and answered by a NACK, as is a synchronise packet ahead of its turn (section 3.4).
 *
 * The paper moves the head by whole messages.  A message may be longer than L, so here it moves packet by packet; MSN and
 * completions move at the message ends that it passes, so they come in order and not before the whole message.
 */
#ifndef NIC_MPRDMA_H
#define NIC_MPRDMA_H

#include "mprdma_agent.h"
#include "mprdma_sender.h"
#include "place.h"

/*
 * A synchronise operation must not touch memory before all earlier ones are complete.  They are once rcv_nxt has reached
 * its own first packet; from there on its packets may overtake each other.
 */
WIRE_FN int nic_mprdma_too_early(const struct nic_packet *p, int ahead)
{
	return p->flags & NIC_SYNCHRONISE && ahead > (int)p->ipsn;
}

/* A packet with a slot of its own that is still empty. */
WIRE_FN void nic_mprdma_receive(struct nic_qp *qp, int stream, const struct nic_packet *p, const struct nic_refs *refs,
				int ahead, struct nic_verdict *out)
{
	struct nic_receiver *r = &qp->receiver[stream];
	int event = nic_x_place(qp, stream, p, refs, out);

	if (event != NIC_STEP_OK) {
		nic_x_refuse(qp, stream, p, event, out);
		return;
	}
	nic_bitmap2_set(&r->transport.bitmap, qp->config.slots, p->psn, nic_x_slot(p));
	if (ahead) {
		r->out_of_order++;
		out->event = stream == NIC_STREAM_REQUEST ? WIRE_NIC_EVENT_REQUEST_OUT_OF_ORDER
							  : WIRE_NIC_EVENT_RESPONSE_OUT_OF_ORDER;
	} else {
		struct nic_advance moved = nic_bitmap2_advance(&r->transport.bitmap, qp->config.slots, r->epsn);

		out->event = stream == NIC_STREAM_REQUEST ? WIRE_NIC_EVENT_REQUEST_PLACED : WIRE_NIC_EVENT_RESPONSE_PLACED;
		nic_x_delivered(qp, stream, moved.packets, moved.tails, moved.completions, out);
	}
	nic_x_reply_ack(qp, stream, p, out);
}

WIRE_FN void nic_mprdma_data(struct nic_qp *qp, int stream, const struct nic_packet *p, const struct nic_refs *refs,
			     wire_u64 now, struct nic_verdict *out)
{
	struct nic_receiver *r = &qp->receiver[stream];
	int ahead = nic_psn_distance(p->psn, r->epsn);

	if (!(p->flags & NIC_FLAGS_DATA)) {
		out->event = WIRE_NIC_EVENT_DROP_BAD_HEADER;
	} else if (ahead >= (int)qp->config.slots || nic_mprdma_too_early(p, ahead)) {
		r->gaps++;
		out->event = ahead < (int)qp->config.slots      ? WIRE_NIC_EVENT_SYNCHRONISE_REFUSED
			     : stream == NIC_STREAM_REQUEST ? WIRE_NIC_EVENT_REQUEST_BEYOND
							    : WIRE_NIC_EVENT_RESPONSE_SEQ_ERROR;
		nic_x_reply_nack(qp, stream, p, 0, out);
	} else if (ahead < 0 || nic_bitmap2_get(&r->transport.bitmap, qp->config.slots, p->psn) != NIC_SLOT_EMPTY) {
		out->event = stream == NIC_STREAM_REQUEST ? WIRE_NIC_EVENT_REQUEST_DUPLICATE
							  : WIRE_NIC_EVENT_RESPONSE_DUPLICATE;
		nic_x_reply_ack(qp, stream, p, out);
	} else {
		nic_mprdma_receive(qp, stream, p, refs, ahead, out);
	}
}

static const struct nic_transport nic_transport_mprdma = {
	.data = nic_mprdma_data,
	.ack = nic_mprdma_ack,
	.next = nic_mprdma_next,
	.timer = nic_mprdma_timer,
	.synchronises = 1,
};

#endif
