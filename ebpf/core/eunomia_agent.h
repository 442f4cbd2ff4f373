/*
 * Eunomia's sender, the half that sends (sections 3.2 and 3.2.3).
 *
 * Packets out of order are no loss: a SACK starts nothing, whatever it names.  Recovery begins with a NACK, which says
 * that the receiver has dropped a packet, or when nothing has been heard from the receiver for the timeout.  It is the
 * underlying one: over go-back-N everything from snd_una on is sent again, over selective repeat (NIC_QP_SELECTIVE)
 * only what no SACK has named.
 *
 * What a NACK is about was sent a round trip ago or earlier.  So those that come sooner after recovery began are about
 * packets that are sent again anyway, and start nothing.
 *
 * At most config.window packets are in flight, and no more than the receiver's bitmap can tell apart.
 */
#ifndef NIC_EUNOMIA_AGENT_H
#define NIC_EUNOMIA_AGENT_H

#include "bitmap.h"
#include "credits.h"
#include "psn.h"
#include "transport.h"

#define NIC_EUNOMIA_BACKOFF_MAX 6

WIRE_FN void nic_eunomia_begin(struct nic_qp *qp, int stream)
{
	struct nic_eunomia_emitter *m = &qp->emitter[stream].transport.eunomia;

	if (m->begun)
		return;
	m->begun = 1;
	m->nxt = m->una_seen = qp->config.first_psn[stream];
}

/* When the retransmission timeout ends, as IRN's does (section 3.2.3); 0: nothing is in flight. */
WIRE_FN wire_u64 nic_eunomia_due(const struct nic_qp *qp, int stream)
{
	const struct nic_emitter *e = &qp->emitter[stream];
	const struct nic_eunomia_emitter *m = &e->transport.eunomia;
	wire_u32 in_flight = (wire_u32)nic_psn_distance(e->snd_nxt, m->una_seen);
	int few = in_flight <= qp->config.timeout_low_packets;
	wire_u64 timeout = few ? qp->config.timeout_low_ns : qp->config.timeout_ns;

	return in_flight ? m->heard + (timeout << m->backoff) : 0;
}

WIRE_FN void nic_eunomia_go_back(struct nic_eunomia_emitter *m, wire_u64 now)
{
	m->nxt = m->una_seen;
	m->back_time = now;
}

/* What the NIC has learnt.  It writes snd_una before the reasons, so what is read after them is at least as new. */
WIRE_FN void nic_eunomia_look(struct nic_qp *qp, int stream, wire_u64 now)
{
	const struct nic_sender *s = &qp->sender[stream];
	struct nic_eunomia_emitter *m = &qp->emitter[stream].transport.eunomia;
	wire_u32 rnr = *(const volatile wire_u32 *)&s->rnr_naks;
	wire_u32 naks = *(const volatile wire_u32 *)&s->naks;
	wire_u32 acks = *(const volatile wire_u32 *)&s->acks;
	wire_u32 una = *(const volatile wire_u32 *)&s->snd_una;

	nic_eunomia_begin(qp, stream);
	/* It may lie ahead, at the end of an RNR wait. */
	if (acks != m->acks_seen && m->heard < now)
		m->heard = now;
	if (una != m->una_seen)
		m->backoff = 0;
	m->acks_seen = acks;
	m->una_seen = una;
	if (naks != m->naks_seen && (!m->back_time || now - m->back_time >= qp->config.rtt_ns))
		nic_eunomia_go_back(m, now);
	m->naks_seen = naks;
	/* What was behind the refused message may have been refused with it. */
	if (rnr != m->rnr_seen) {
		nic_eunomia_go_back(m, now);
		m->heard = now + nic_rnr_ns(s->rnr_timer);
	}
	m->rnr_seen = rnr;
}

/* Steps over what has come; the bitmap of SACKs may be cleared meanwhile, but only up to snd_una. */
WIRE_FN void nic_eunomia_skip(struct nic_qp *qp, int stream)
{
	const struct nic_sender *s = &qp->sender[stream];
	const struct nic_emitter *e = &qp->emitter[stream];
	struct nic_eunomia_emitter *m = &qp->emitter[stream].transport.eunomia;
	int left = nic_psn_distance(e->snd_nxt, m->nxt);
	wire_u32 una;

	if (left > 0 && qp->config.flags & NIC_QP_SELECTIVE)
		m->nxt = nic_psn_add(m->nxt, nic_bitmap1_hole(&s->transport.sacked, m->nxt, (wire_u32)left));
	una = *(const volatile wire_u32 *)&s->snd_una;
	if (nic_psn_distance(m->nxt, una) < 0)
		m->nxt = una;
}

WIRE_FN int nic_eunomia_next(struct nic_qp *qp, int stream, wire_u64 now, struct nic_send *out)
{
	struct nic_emitter *e = &qp->emitter[stream];
	struct nic_eunomia_emitter *m = &e->transport.eunomia;
	int window = qp->config.window < NIC_BITMAP_SLOTS ? qp->config.window : NIC_BITMAP_SLOTS;
	int in_flight, again;

	nic_eunomia_look(qp, stream, now);
	nic_eunomia_skip(qp, stream);
	in_flight = nic_psn_distance(e->snd_nxt, m->una_seen);
	again = nic_psn_distance(m->nxt, e->snd_nxt) < 0;
	if (!again && (e->snd_nxt == e->posted || in_flight >= window)) {
		e->deadline = nic_eunomia_due(qp, stream);
		return 0;
	}
	if (!in_flight)
		m->heard = now;
	*out = (struct nic_send){
		.psn = m->nxt, .path = qp->config.source_port, .flags = again ? NIC_RETRANSMISSION : 0, .ack_req = 1,
	};
	m->nxt = nic_psn_add(m->nxt, 1);
	if (!again)
		*(volatile wire_u32 *)&e->snd_nxt = m->nxt;
	e->retransmissions += (wire_u32)again;
	e->active = now;
	e->deadline = nic_eunomia_due(qp, stream);
	return 1;
}

WIRE_FN int nic_eunomia_timer(struct nic_qp *qp, int stream, wire_u64 now)
{
	struct nic_emitter *e = &qp->emitter[stream];
	struct nic_eunomia_emitter *m = &e->transport.eunomia;
	wire_u64 due;
	int fired;

	nic_eunomia_look(qp, stream, now);
	due = nic_eunomia_due(qp, stream);
	fired = due && now >= due;
	if (fired) {
		nic_eunomia_go_back(m, now);
		m->heard = now;
		m->backoff += m->backoff < NIC_EUNOMIA_BACKOFF_MAX;
		e->timeouts++;
	}
	e->deadline = nic_eunomia_due(qp, stream);
	return fired;
}

#endif
