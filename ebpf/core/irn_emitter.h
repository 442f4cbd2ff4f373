/*
 * IRN's sender, the half that sends (sections 3.1 and 3.2).
 *
 * BDP-FC: a new packet goes only while fewer than the BDP cap (config.window) are in flight, that is, sent and not
 * cumulatively acknowledged.
 *
 * Loss recovery: begins with a NACK or a timeout, by sending the oldest packet that is outstanding again.  Any other
 * packet is lost if one behind it was selectively acknowledged.  Lost packets go before new ones, each once.  Recovery
 * ends when all that was sent before the last retransmission has been acknowledged.  Two things are not in the paper's
 * text: an acknowledgement in recovery that stops short of its end names the next lost packet, as in the authors' own
 * synthesised logic (their module receiveAck), since otherwise losses at the end cost a timeout each; and a NACK counts
 * only as long as something behind the gap is known to have come, since the agent sees many acknowledgements at once.
 *
 * Timeouts: RTO_low while at most N packets are in flight, else RTO_high; doubled each time without progress, so that a
 * path that is down is not given up within microseconds.
 *
 * After an RNR NAK everything is sent again that was not selectively acknowledged: what was behind the refused message
 * has been refused silently.  No timeout ends before the wait that it asks for, which the agent keeps.
 */
#ifndef NIC_IRN_EMITTER_H
#define NIC_IRN_EMITTER_H

#include "bitmap.h"
#include "credits.h"
#include "psn.h"
#include "transport.h"

#define NIC_IRN_BACKOFF_MAX 6

/* A stream as its agent sees it at one moment. */
struct nic_irn_view {
	struct nic_emitter *e;
	struct nic_irn_emitter *m;
	const struct nic_sender *s;
	wire_u32 una;
	wire_u32 in_flight;
};

/* Goes back to the oldest packet.  `lost_to`: how far all is lost that is not known to have come. */
WIRE_FN void nic_irn_recover(struct nic_irn_view *v, wire_u32 lost_to)
{
	v->m->in_recovery = 1;
	v->m->pending = 1;
	v->m->cursor = v->una;
	v->m->recover = nic_psn_add(v->e->snd_nxt, WIRE_PSN_MASK);
	v->m->lost_to = lost_to;
}

/* An acknowledgement has moved snd_una. */
WIRE_FN void nic_irn_progress(struct nic_irn_view *v, wire_u64 now)
{
	struct nic_irn_emitter *m = v->m;

	m->una_seen = v->una;
	m->backoff = 0;
	m->armed = now;
	if (!m->in_recovery)
		return;
	if (nic_psn_distance(v->una, m->recover) > 0) {
		m->in_recovery = 0;
	} else if (nic_psn_distance(m->cursor, v->una) < 0) {
		m->cursor = v->una;
		m->pending = 1;
	}
}

/* What the NIC has learnt.  It writes snd_una before the reasons, so what is read after them is at least as new. */
WIRE_FN struct nic_irn_view nic_irn_look(struct nic_qp *qp, int stream, wire_u64 now)
{
	const struct nic_sender *s = &qp->sender[stream];
	wire_u32 rnr_naks = *(const volatile wire_u32 *)&s->rnr_naks;
	wire_u32 naks = *(const volatile wire_u32 *)&s->naks;
	wire_u32 una = *(const volatile wire_u32 *)&s->snd_una;
	struct nic_emitter *e = &qp->emitter[stream];
	struct nic_irn_view v = {
		.e = e, .m = &e->transport.irn, .s = s, .una = una,
		.in_flight = (wire_u32)nic_psn_distance(e->snd_nxt, una),
	};

	if (una != v.m->una_seen)
		nic_irn_progress(&v, now);
	if (naks != v.m->naks_seen) {
		v.m->naks_seen = naks;
		if (!v.m->in_recovery && nic_bitmap1_extent(&s->transport.sacked, una, v.in_flight))
			nic_irn_recover(&v, una);
	}
	if (rnr_naks != v.m->rnr_seen) {
		v.m->rnr_seen = rnr_naks;
		v.m->armed = now + nic_rnr_ns(s->rnr_timer);
		if (v.in_flight)
			nic_irn_recover(&v, e->snd_nxt);
	}
	return v;
}

/* When the retransmission timeout ends; 0: nothing is in flight. */
WIRE_FN wire_u64 nic_irn_due(const struct nic_qp *qp, const struct nic_irn_view *v)
{
	wire_u64 timeout = v->in_flight <= qp->config.timeout_low_packets ? qp->config.timeout_low_ns
									   : qp->config.timeout_ns;

	return v->in_flight ? v->m->armed + (timeout << v->m->backoff) : 0;
}

/* A packet that recovery wants sent; 0: there is none.  In recovery the cursor is never behind snd_una. */
WIRE_FN int nic_irn_lost(const struct nic_irn_view *v, wire_u32 *psn)
{
	const struct nic_bitmap1 *sacked = &v->s->transport.sacked;
	wire_u32 from = v->m->pending ? v->m->cursor : nic_psn_add(v->m->cursor, 1);
	wire_u32 end = v->e->snd_nxt;
	int span, extent, known, hole;

	if (!v->m->in_recovery)
		return 0;
	span = nic_psn_distance(end, from);
	if (span <= 0)
		return 0;
	extent = (int)nic_bitmap1_extent(sacked, from, (wire_u32)span);
	known = nic_psn_distance(v->m->lost_to, from);
	if (v->m->pending && known < 1)
		known = 1;
	if (known > extent)
		extent = known;
	hole = (int)nic_bitmap1_hole(sacked, from, (wire_u32)extent);
	*psn = nic_psn_add(from, (wire_u32)hole);
	return hole < extent;
}

/* snd_una as it is now: the bitmap may have been cleared while it was looked at. */
WIRE_FN int nic_irn_still_out(const struct nic_irn_view *v, wire_u32 psn)
{
	NIC_KEEP_ORDER();
	return nic_psn_distance(psn, *(const volatile wire_u32 *)&v->s->snd_una) >= 0;
}

WIRE_FN int nic_irn_choose(struct nic_qp *qp, struct nic_irn_view *v, wire_u64 now, struct nic_send *out)
{
	wire_u32 psn;

	if (nic_irn_lost(v, &psn) && nic_irn_still_out(v, psn)) {
		v->m->cursor = psn;
		v->m->pending = 0;
		v->m->recover = nic_psn_add(v->e->snd_nxt, WIRE_PSN_MASK);
		v->m->armed = now;
		v->e->retransmissions++;
		out->flags = NIC_RETRANSMISSION;
	} else if (nic_psn_distance(v->e->posted, v->e->snd_nxt) > 0 && v->in_flight < qp->config.window &&
		   v->in_flight < NIC_BITMAP_SLOTS) {
		if (!v->in_flight)
			v->m->armed = now;
		psn = v->e->snd_nxt;
		v->in_flight++;
		*(volatile wire_u32 *)&v->e->snd_nxt = nic_psn_add(psn, 1);
		out->flags = 0;
	} else {
		return 0;
	}
	out->psn = psn;
	out->path = qp->config.source_port;
	out->ack_req = 1;
	return 1;
}

WIRE_FN int nic_irn_next(struct nic_qp *qp, int stream, wire_u64 now, struct nic_send *out)
{
	struct nic_irn_view v = nic_irn_look(qp, stream, now);
	int found = nic_irn_choose(qp, &v, now, out);

	v.e->deadline = nic_irn_due(qp, &v);
	if (found)
		v.e->active = now;
	return found;
}

/* `all_lost`: whether a timeout means that all is lost that is not known to have come (ideal.h), or just the oldest. */
WIRE_FN int nic_irn_tick(struct nic_qp *qp, int stream, wire_u64 now, int all_lost)
{
	struct nic_irn_view v = nic_irn_look(qp, stream, now);
	int fired = v.in_flight && now >= nic_irn_due(qp, &v);

	if (fired) {
		nic_irn_recover(&v, all_lost ? v.e->snd_nxt : v.una);
		v.m->armed = now;
		v.m->backoff += v.m->backoff < NIC_IRN_BACKOFF_MAX;
		v.e->timeouts++;
	}
	v.e->deadline = nic_irn_due(qp, &v);
	return fired;
}

#endif
