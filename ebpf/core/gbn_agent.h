/*
 * Go-back-N in the agent: what may be sent next, and the retransmission timer (IBTA vol. 1, sections 9.7.5 and 9.7.6).
 *
 * Requests: at most config.window PSNs are outstanding, counted from snd_una; a READ may start within the window
 * whatever its length.  Responses: what the agent puts between snd_nxt and posted, in order, once.
 */
#ifndef NIC_GBN_AGENT_H
#define NIC_GBN_AGENT_H

#include "credits.h"
#include "responder.h"
#include "transport.h"

#define NIC_GBN_BACKOFF_MAX 6 /* doublings of the retransmission timeout */
#define NIC_GBN_ASKS        4 /* acknowledgements asked for in a window, beside those where sending might pause */

WIRE_FN void nic_gbn_begin(struct nic_qp *qp, int stream)
{
	struct nic_gbn_emitter *g = &qp->emitter[stream].transport.gbn;

	if (g->begun)
		return;
	g->begun = 1;
	g->nxt = g->una_seen = qp->config.first_psn[stream];
}

/* PSN after a request that starts at `psn`, or goes on there: those of the rest of a READ belong to it. */
WIRE_FN wire_u32 nic_gbn_end(const struct nic_qp *qp, wire_u32 psn)
{
	wire_u32 answered = *(const volatile wire_u32 *)&qp->receiver[NIC_STREAM_RESPONSE].msn;

	for (wire_u32 i = 0; i < NIC_FETCH_MAX; i++) {
		const struct nic_outgoing *o = &qp->outgoing[(answered + i) & (NIC_FETCH_MAX - 1)];
		wire_u32 end = nic_psn_add(o->psn, nic_fetch_packets(&qp->config, o->length));

		if (o->kind == NIC_OUTGOING_NONE)
			break;
		if (nic_psn_distance(psn, o->psn) >= 0 && nic_psn_distance(psn, end) < 0)
			return end;
	}
	return nic_psn_add(psn, 1);
}

WIRE_FN int nic_gbn_next_request(struct nic_qp *qp, wire_u64 now, struct nic_send *out)
{
	struct nic_emitter *e = &qp->emitter[NIC_STREAM_REQUEST];
	struct nic_gbn_emitter *g = &e->transport.gbn;
	int window = qp->config.window ? qp->config.window : 1;
	wire_u32 end;
	int again;

	if (nic_psn_distance(g->nxt, e->posted) >= 0 || nic_psn_distance(g->nxt, g->una_seen) >= window)
		return 0;
	end = nic_gbn_end(qp, g->nxt);
	again = nic_psn_distance(g->nxt, e->snd_nxt) < 0;
	*out = (struct nic_send){ .psn = g->nxt, .path = qp->config.source_port, .flags = again ? NIC_RETRANSMISSION : 0 };
	g->unasked++;
	if (end == e->posted || nic_psn_distance(end, g->una_seen) >= window ||
	    g->unasked * NIC_GBN_ASKS >= (wire_u32)window) {
		out->ack_req = 1;
		g->unasked = 0;
	}
	g->nxt = end;
	if (nic_psn_distance(end, e->snd_nxt) > 0)
		*(volatile wire_u32 *)&e->snd_nxt = end;
	e->retransmissions += (wire_u32)again;
	e->active = now;
	/* From the last packet that left: a thousand queue pairs may have had their turns since the first one of the window. */
	e->deadline = now + (qp->config.timeout_ns << g->backoff);
	return 1;
}

/* The NIC's own replies that waited for the answers to READs and atomics (responder.h) are one now, of what is true now. */
WIRE_FN int nic_gbn_next_held(struct nic_qp *qp, struct nic_send *out)
{
	const struct nic_receiver *r = &qp->receiver[NIC_STREAM_REQUEST];
	struct nic_emitter *e = &qp->emitter[NIC_STREAM_RESPONSE];
	wire_u32 held = *(const volatile wire_u32 *)&r->transport.gbn.held;
	wire_u8 nak = *(const volatile wire_u8 *)&r->nak_outstanding;
	wire_u32 epsn = *(const volatile wire_u32 *)&r->epsn;

	if (held == e->transport.gbn.held_seen || e->served != *(const volatile wire_u32 *)&r->fetches)
		return 0;
	e->transport.gbn.held_seen = held;
	*out = (struct nic_send){
		.psn = nak ? epsn : nic_psn_add(epsn, WIRE_PSN_MASK), .path = qp->config.source_port, .acknowledge = 1,
		.syndrome = nak ? nak : (wire_u8)(WIRE_AETH_KIND_ACK | WIRE_AETH_CREDITS_INVALID),
	};
	if (nak > (WIRE_AETH_KIND_NAK | WIRE_NAK_CODE_PSN_SEQUENCE_ERROR))
		qp->config.state = WIRE_QP_STATE_ERROR;
	return 1;
}

WIRE_FN int nic_gbn_next(struct nic_qp *qp, int stream, wire_u64 now, struct nic_send *out)
{
	struct nic_emitter *e = &qp->emitter[stream];

	if (stream == NIC_STREAM_REQUEST) {
		nic_gbn_begin(qp, stream);
		return nic_gbn_next_request(qp, now, out);
	}
	if (e->snd_nxt == e->posted)
		return nic_gbn_next_held(qp, out);
	*out = (struct nic_send){ .psn = e->snd_nxt, .path = qp->config.source_port };
	e->snd_nxt = nic_psn_add(e->snd_nxt, 1);
	e->active = now;
	return 1;
}

WIRE_FN int nic_gbn_timer(struct nic_qp *qp, int stream, wire_u64 now)
{
	struct nic_emitter *e = &qp->emitter[stream];
	struct nic_gbn_emitter *g = &e->transport.gbn;
	const struct nic_sender *s = &qp->sender[stream];
	/* Reasons first: the snd_una that is read after them is at least as new. */
	wire_u32 naks = *(const volatile wire_u32 *)&s->naks;
	wire_u32 rnr = *(const volatile wire_u32 *)&s->rnr_naks;
	wire_u32 una = *(const volatile wire_u32 *)&s->snd_una;
	int fired = 0;

	if (stream != NIC_STREAM_REQUEST)
		return 0;
	nic_gbn_begin(qp, stream);
	if (una != g->una_seen) {
		g->una_seen = una;
		g->backoff = 0;
		e->deadline = 0;
	}
	if (una != e->snd_nxt && e->deadline && now >= e->deadline) {
		fired = 1;
		e->timeouts++;
		g->backoff += g->backoff < NIC_GBN_BACKOFF_MAX;
		e->deadline = 0;
	}
	if (fired || naks != g->naks_seen || rnr != g->rnr_seen || nic_psn_distance(g->nxt, una) < 0)
		g->nxt = una;
	/* The agent sends nothing before the RNR timer has run out; only then does a timeout begin. */
	if (rnr != g->rnr_seen)
		e->deadline = now + nic_rnr_ns(s->rnr_timer) + qp->config.timeout_ns;
	g->naks_seen = naks;
	g->rnr_seen = rnr;
	if (una == e->snd_nxt)
		e->deadline = 0;
	else if (!e->deadline)
		e->deadline = now + (qp->config.timeout_ns << g->backoff);
	return fired;
}

#endif
