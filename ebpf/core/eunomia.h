/*
 * Eunomia: an ordering layer under RoCEv2's loss recovery.  The receiver is below, its bitmap in hd_bitmap.h and that
 * one's memory in memory_controller.h; the sender's half on the NIC is that of IRN (irn_sender.h): it moves snd_una,
 * marks what is SACKed and counts NACKs.  What a NACK or a timeout means is the agent's affair (eunomia_agent.h).
 *
 * Section 3.5.1: a packet in order gets an ACK; one out of order that the bitmap tracks gets a SACK, which is an ACK
 * that says how far all has come and names the packet; one that it cannot track is dropped and gets a NACK.  A packet
 * that comes again gets the answer of one that was taken.
 *
 * Section 3.5.2: payload goes to its place at once, completions wait for the head.  The last packet of a WRITE, after
 * which an application looks, is delayed at its sender (by the agent, see `delays_last`), or, with NIC_QP_HOLD_LAST,
 * held at the receiver when it comes early (appendix A.1).
 */
#ifndef NIC_EUNOMIA_H
#define NIC_EUNOMIA_H

#include "eunomia_agent.h"
#include "hd_bitmap.h"
#include "irn_receiver.h"
#include "irn_sender.h"
#include "place.h"

/* Dropped: what it was for comes again. */
WIRE_FN void nic_eunomia_nack(struct nic_qp *qp, int stream, const struct nic_packet *p, wire_u8 event,
			      struct nic_verdict *out)
{
	out->place_length = 0;
	out->event = nic_irn_event(stream, event, WIRE_NIC_EVENT_RESPONSE_SEQ_ERROR);
	qp->receiver[stream].gaps++;
	nic_x_reply_nack(qp, stream, p, 0, out);
}

/* Whether the packet is one to be held back as long as it is early: a WRITE that nothing is posted behind. */
WIRE_FN int nic_eunomia_holds(const struct nic_qp *qp, int stream, const struct nic_packet *p,
			      const struct nic_verdict *out)
{
	return stream == NIC_STREAM_REQUEST && qp->config.flags & NIC_QP_HOLD_LAST && p->flags & NIC_LAST &&
	       nic_opcode_in(NIC_OPS_WRITE_END & ~NIC_OPS_WRITE_IMM, p->opcode) && out->place_length;
}

/* The packet stays in host memory, in the queue pair's one place for it. */
WIRE_FN void nic_eunomia_hold(struct nic_qp *qp, const struct nic_packet *p, struct nic_verdict *out)
{
	struct nic_eunomia_receiver *m = &qp->receiver[NIC_STREAM_REQUEST].transport.eunomia;

	m->held = 1;
	m->held_psn = p->psn;
	m->held_length = p->payload_length;
	m->held_rkey = p->rkey;
	m->held_va = p->va + (wire_u64)p->ipsn * qp->config.path_mtu;
	out->place_at = qp->config.hold_at;
}

/* All before the held packet has come: now it goes to its place, after the payload of the packet at hand. */
WIRE_FN void nic_eunomia_unhold(struct nic_qp *qp, struct nic_verdict *out)
{
	struct nic_receiver *r = &qp->receiver[NIC_STREAM_REQUEST];
	struct nic_eunomia_receiver *m = &r->transport.eunomia;

	if (!m->held || nic_psn_distance(m->held_psn, r->epsn) >= 0)
		return;
	m->held = 0;
	out->release_length = m->held_length;
	out->release_rkey = m->held_rkey;
	out->release_va = m->held_va;
}

/*
 * Where in the arena a held packet goes.  `region` is what its key names now.  0: the region has gone or changed since
 * the packet came, and the packet goes nowhere.
 */
WIRE_FN int nic_release(const struct nic_qp *qp, const struct nic_region *region, const struct nic_verdict *v,
			wire_u64 *to)
{
	if (!region || nic_check_region(qp, region, NIC_ACCESS_REMOTE_WRITE) != NIC_STEP_OK ||
	    nic_check_bounds(region, v->release_va, v->release_length) != NIC_STEP_OK)
		return 0;
	*to = region->arena_offset + (v->release_va - region->va);
	return 1;
}

/* The packet may be executed, and its payload has a place; `ahead` is below the cap. */
WIRE_FN void nic_eunomia_track(struct nic_qp *qp, int stream, const struct nic_packet *p, struct nic_mc *mc, int ahead,
			       struct nic_verdict *out)
{
	struct nic_receiver *r = &qp->receiver[stream];
	int hold = ahead && nic_eunomia_holds(qp, stream, p, out);
	struct nic_advance moved = { 0, 0, 0 };
	enum nic_hd_outcome outcome;

	if (hold && r->transport.eunomia.held && r->transport.eunomia.held_psn != p->psn) {
		nic_eunomia_nack(qp, stream, p, WIRE_NIC_EVENT_REQUEST_NO_BITMAP, out);
		return;
	}
	outcome = nic_hd_receive(mc, &r->transport.eunomia.bitmap, r->epsn, p->psn, (enum nic_slot)nic_x_slot(p),
				 p->flags & NIC_LAST, &moved);
	if (outcome == NIC_HD_CAPPED || outcome == NIC_HD_NO_MEMORY) {
		nic_eunomia_nack(qp, stream, p, outcome == NIC_HD_CAPPED ? WIRE_NIC_EVENT_REQUEST_BEYOND
								      : WIRE_NIC_EVENT_REQUEST_NO_BITMAP, out);
		return;
	}
	if (outcome == NIC_HD_ADVANCED) {
		out->event = nic_irn_event(stream, WIRE_NIC_EVENT_REQUEST_PLACED, WIRE_NIC_EVENT_RESPONSE_PLACED);
		nic_x_delivered(qp, stream, moved.packets, moved.tails, moved.completions, out);
		if (stream == NIC_STREAM_REQUEST)
			nic_eunomia_unhold(qp, out);
	} else if (outcome == NIC_HD_TRACKED) {
		out->event = nic_irn_event(stream, WIRE_NIC_EVENT_REQUEST_OUT_OF_ORDER,
					   WIRE_NIC_EVENT_RESPONSE_OUT_OF_ORDER);
		r->out_of_order++;
		if (hold)
			nic_eunomia_hold(qp, p, out);
	} else {
		out->event = nic_irn_event(stream, WIRE_NIC_EVENT_REQUEST_DUPLICATE, WIRE_NIC_EVENT_RESPONSE_DUPLICATE);
		out->place_length = 0;
	}
	nic_x_reply_ack(qp, stream, p, out);
}

/*
 * Section 3.3.4: until a packet has come, Head is what the packets carry.  A queue pair of Plait knows its peer's first
 * PSN from the connection's set-up, so a packet with another Head belongs to an earlier life of it.
 */
WIRE_FN int nic_eunomia_starts(struct nic_receiver *r, const struct nic_packet *p)
{
	if (!r->transport.eunomia.begun && (p->head & WIRE_PSN_MASK) != r->epsn)
		return 0;
	r->transport.eunomia.begun = 1;
	return 1;
}

WIRE_FN void nic_eunomia_data(struct nic_qp *qp, int stream, const struct nic_packet *p, const struct nic_refs *refs,
			      wire_u64 now, struct nic_verdict *out)
{
	struct nic_receiver *r = &qp->receiver[stream];
	int ahead = nic_psn_distance(p->psn, r->epsn);
	int event;

	if (!(p->flags & NIC_FLAGS_DATA) || !refs->host || !nic_eunomia_starts(r, p)) {
		out->event = WIRE_NIC_EVENT_DROP_BAD_HEADER;
		return;
	}
	if (ahead < 0) {
		out->event = nic_irn_event(stream, WIRE_NIC_EVENT_REQUEST_DUPLICATE, WIRE_NIC_EVENT_RESPONSE_DUPLICATE);
		nic_x_reply_ack(qp, stream, p, out);
		return;
	}
	if (ahead >= NIC_HD_CAP) {
		nic_eunomia_nack(qp, stream, p, WIRE_NIC_EVENT_REQUEST_BEYOND, out);
		return;
	}
	/* Through memory, where the eBPF verifier forgets the way that led here; else it follows each of them on. */
	*(volatile wire_u8 *)&out->event = (wire_u8)nic_x_place(qp, stream, p, refs, out);
	event = *(const volatile wire_u8 *)&out->event;
	if (event == (wire_u8)NIC_STEP_OK) {
		nic_eunomia_track(qp, stream, p, &refs->host->memory, ahead, out);
		return;
	}
	nic_x_refuse(qp, stream, p, event, out);
	/* Nothing else would tell the sender that it was dropped. */
	if (out->event == WIRE_NIC_EVENT_REQUEST_EARLY_FAULT)
		nic_eunomia_nack(qp, stream, p, WIRE_NIC_EVENT_REQUEST_EARLY_FAULT, out);
}

WIRE_FN void nic_eunomia_ack(struct nic_qp *qp, int stream, const struct nic_packet *p, wire_u64 now,
			     struct nic_verdict *out)
{
	nic_irn_take(qp, stream, p, out);
}

static const struct nic_transport nic_transport_eunomia = {
	.data = nic_eunomia_data,
	.ack = nic_eunomia_ack,
	.next = nic_eunomia_next,
	.timer = nic_eunomia_timer,
	.host_state = 1,
	.delays_last = 1,
};

#endif
