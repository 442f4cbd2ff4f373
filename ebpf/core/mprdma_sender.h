/*
 * MP-RDMA's sender on the NIC: what an acknowledgement does (sections 3.2, 3.3 and 3.5).
 *
 * The paper's accounting takes for granted that every packet is acknowledged once.  Lost and doubled acknowledgements
 * would make `inflate` drift for ever, so it is brought back where the truth is known:
 *  - no more can have been sacked than is outstanding: inflate <= snd_nxt - snd_una;
 *  - when nothing is outstanding, and at the end of recovery mode, inflate is 0, and acknowledgements of packets before
 *    that point, which are those of needless retransmissions, no longer count;
 *  - where inflate has been negative through a whole round trip, that many acknowledgements were lost, not late.
 */
#ifndef NIC_MPRDMA_SENDER_H
#define NIC_MPRDMA_SENDER_H

#include "mprdma_window.h"
#include "packet.h"

/* A sender while it takes one acknowledgement. */
struct nic_mprdma_take {
	struct nic_mprdma_sender *m;
	struct nic_mprdma_view view;
	wire_u32 una;
	wire_u32 agent_granted;
};

WIRE_FN int nic_mprdma_open(const struct nic_mprdma_take *t)
{
	return nic_psn_distance(nic_psn_add(t->view.granted, t->agent_granted), t->una);
}

WIRE_FN int nic_mprdma_awnd(const struct nic_mprdma_take *t)
{
	return nic_mprdma_whole(t->m->cwnd) + t->m->inflate - nic_mprdma_open(t);
}

WIRE_FN void nic_mprdma_set_inflate(struct nic_mprdma_take *t, int inflate)
{
	int most = nic_mprdma_open(t);

	if (most > NIC_MPRDMA_INFLATE_MAX)
		most = NIC_MPRDMA_INFLATE_MAX;
	if (inflate < -NIC_MPRDMA_INFLATE_MAX)
		inflate = -NIC_MPRDMA_INFLATE_MAX;
	t->m->inflate = (short)(inflate < most ? inflate : most);
}

/* From here on, what is outstanding counts as in flight, and nothing else. */
WIRE_FN void nic_mprdma_settle(struct nic_mprdma_take *t)
{
	t->m->inflate = 0;
	t->m->inflate_max = 0;
	t->m->counted_from = t->una;
}

WIRE_FN void nic_mprdma_start(struct nic_mprdma_sender *m, const struct nic_qp_config *config, int stream)
{
	struct nic_mprdma_view view = nic_mprdma_initial(config, stream);
	wire_u32 first = config->first_psn[stream];

	m->cwnd = nic_mprdma_iw(config) * NIC_MPRDMA_PACKET;
	m->snd_ooh = nic_psn_add(first, WIRE_PSN_MASK);
	m->counted_from = m->snd_retx = m->recovery = m->epoch_end = first;
	m->random = nic_mprdma_seed(config->random_seed, 1 + (wire_u32)stream);
	m->published = nic_mprdma_pack(&view);
}

WIRE_FN struct nic_mprdma_take nic_mprdma_begin(struct nic_qp *qp, int stream)
{
	struct nic_mprdma_sender *m = &qp->sender[stream].transport.mprdma;

	if (!m->cwnd)
		nic_mprdma_start(m, &qp->config, stream);
	return (struct nic_mprdma_take){
		.m = m, .view = nic_mprdma_unpack(m->published), .una = qp->sender[stream].snd_una,
		.agent_granted = *(const volatile wire_u32 *)&qp->emitter[stream].transport.mprdma.granted,
	};
}

WIRE_FN void nic_mprdma_end(struct nic_qp *qp, int stream, struct nic_mprdma_take *t)
{
	t->view.limit = nic_psn_add(t->una, (wire_u32)(t->m->inflate + nic_mprdma_whole(t->m->cwnd)));
	*(volatile wire_u64 *)&t->m->published = nic_mprdma_pack(&t->view);
	*(volatile wire_u32 *)&qp->sender[stream].snd_una = t->una;
}

/* Recovery mode (section 3.5): until all that has been sent so far is acknowledged. */
WIRE_FN void nic_mprdma_recover(struct nic_mprdma_take *t, wire_u32 snd_retx, wire_u32 sent)
{
	t->view.recovering = 1;
	t->m->recovery = sent;
	t->m->snd_retx = snd_retx;
}

/*
 * What the agent has decided since the last acknowledgement.  After a timeout nothing is in flight any more, and ACK
 * clocking is restored as after an idle time, from no more than IW.
 */
WIRE_FN void nic_mprdma_obey(struct nic_qp *qp, int stream, struct nic_mprdma_take *t, wire_u32 sent)
{
	const struct nic_mprdma_emitter *a = &qp->emitter[stream].transport.mprdma;
	struct nic_mprdma_command c = nic_mprdma_unpack_command(*(const volatile wire_u32 *)&a->command);
	wire_u32 initial = nic_mprdma_iw(&qp->config) * NIC_MPRDMA_PACKET;

	if (c.restarts != t->view.restarts) {
		t->view.restarts = c.restarts;
		t->m->cwnd = initial;
		nic_mprdma_settle(t);
	}
	if (c.timeouts != t->view.timeouts) {
		t->view.timeouts = c.timeouts;
		if (t->m->cwnd > initial)
			t->m->cwnd = initial;
		nic_mprdma_recover(t, c.snd_retx, sent);
		nic_mprdma_set_inflate(t, nic_mprdma_open(t));
	}
}

/* Moves snd_una up to `upto`, if that is ahead (section 3.2: inflate is decreased by as much). */
WIRE_FN void nic_mprdma_advance(struct nic_mprdma_take *t, wire_u32 upto)
{
	int moved = nic_psn_distance(upto, t->una);

	if (moved > 0) {
		t->una = upto;
		nic_mprdma_set_inflate(t, t->m->inflate - moved);
	}
	if (nic_psn_distance(t->m->snd_retx, t->una) < 0)
		t->m->snd_retx = t->una;
	if (t->view.recovering && nic_psn_distance(t->una, t->m->recovery) >= 0) {
		t->view.recovering = 0;
		nic_mprdma_settle(t);
	}
	if (!nic_mprdma_open(t))
		nic_mprdma_settle(t);
}

/* The end of a round trip: finds acknowledgements that were lost. */
WIRE_FN void nic_mprdma_epoch(struct nic_mprdma_take *t)
{
	struct nic_mprdma_sender *m = t->m;

	if (m->inflate > m->inflate_max)
		m->inflate_max = m->inflate;
	if (nic_psn_distance(t->una, m->epoch_end) <= 0)
		return;
	if (m->inflate_max < 0)
		nic_mprdma_set_inflate(t, m->inflate - m->inflate_max);
	m->inflate_max = m->inflate;
	m->epoch_end = nic_psn_add(t->view.granted, t->agent_granted);
	/* Serial numbers compare within 2^23. */
	if (nic_psn_distance(t->una, m->counted_from) > (int)(NIC_PSN_HALF / 2))
		m->counted_from = t->una;
}

/* 0: the ring is full.  Then nothing is let go, the window stays open, and a later ACK or the burst timer uses it. */
WIRE_FN int nic_mprdma_push(struct nic_qp *qp, int stream, struct nic_mprdma_sender *m, struct nic_credit credit)
{
	wire_u32 tail = *(const volatile wire_u32 *)&qp->emitter[stream].transport.mprdma.tail;

	if (m->head - tail >= NIC_CREDIT_RING)
		return 0;
	qp->credits[stream][m->head & (NIC_CREDIT_RING - 1)] = credit;
	*(volatile wire_u32 *)&m->head = m->head + 1;
	return 1;
}

/* The next retransmission.  When all up to `recovery` have been sent again, it starts over with the oldest. */
WIRE_FN void nic_mprdma_clock_again(struct nic_qp *qp, int stream, struct nic_mprdma_take *t, wire_u16 path)
{
	wire_u32 psn = t->m->snd_retx;
	struct nic_credit credit = { .path = path, .count = 1, .kind = NIC_MPRDMA_AGAIN };

	if (t->view.recovering && nic_psn_distance(psn, t->m->recovery) >= 0)
		psn = t->una;
	credit.psn = psn;
	if (nic_mprdma_push(qp, stream, t->m, credit))
		t->m->snd_retx = nic_psn_add(psn, 1);
}

/*
 * New path probing (section 3.5): with probability p every round trip, that is p/cwnd every packet.  Drawn for each packet,
 * it may replace any path; drawn at the end of a round trip it would replace the same one each time.
 */
WIRE_FN int nic_mprdma_probes(const struct nic_qp_config *config, struct nic_mprdma_sender *m)
{
	return nic_mprdma_random(&m->random) % (1000 * (wire_u32)nic_mprdma_whole(m->cwnd)) < config->probe_per_mille;
}

WIRE_FN void nic_mprdma_clock_new(struct nic_qp *qp, int stream, struct nic_mprdma_take *t, wire_u16 path, int count)
{
	struct nic_credit credit = { .path = path, .count = (wire_u8)count, .kind = NIC_MPRDMA_NEW };

	if (nic_mprdma_probes(&qp->config, t->m)) {
		credit.path = nic_mprdma_path(qp->config.source_port, &t->m->random);
		credit.count = 1;
	}
	if (nic_mprdma_push(qp, stream, t->m, credit))
		t->view.granted = nic_psn_add(t->view.granted, credit.count);
}

/*
 * Multi-path ACK clocking: the path that brought the packet gets what the window allows, two packets at most (sections
 * 3.2 and 3.5).  Without new data a packet that others have overtaken is sent early once more (FUSO), and if there is
 * none the window is not used and shrinks.
 */
WIRE_FN void nic_mprdma_clock(struct nic_qp *qp, int stream, struct nic_mprdma_take *t, wire_u16 path)
{
	wire_u32 posted = *(const volatile wire_u32 *)&qp->emitter[stream].posted;
	int fresh = nic_psn_distance(posted, nic_psn_add(t->view.granted, t->agent_granted));
	int awnd = nic_mprdma_awnd(t);

	if (awnd < 1)
		return;
	if (t->view.recovering)
		nic_mprdma_clock_again(qp, stream, t, path);
	else if (fresh > 0)
		nic_mprdma_clock_new(qp, stream, t, path, awnd > 1 && fresh > 1 ? 2 : 1);
	else if (nic_psn_distance(t->m->snd_ooh, t->m->snd_retx) > 0)
		nic_mprdma_clock_again(qp, stream, t, path);
	else
		t->m->cwnd = nic_mprdma_reduce(t->m->cwnd);
}

/* An ACK.  Every one counts, adjusts the window and clocks out packets, whether it moves snd_una or not. */
WIRE_FN void nic_mprdma_take_ack(struct nic_qp *qp, int stream, const struct nic_packet *p, struct nic_mprdma_take *t,
				 wire_u32 upto)
{
	struct nic_mprdma_sender *m = t->m;
	int pruned;

	if (!(p->flags & NIC_SACK_VALID)) {
		nic_mprdma_advance(t, upto);
		return;
	}
	if (nic_psn_distance(p->sack_psn, m->counted_from) >= 0)
		m->inflate += m->inflate < NIC_MPRDMA_INFLATE_MAX;
	nic_mprdma_advance(t, upto);
	nic_mprdma_set_inflate(t, m->inflate);
	m->cwnd = nic_mprdma_react(m->cwnd, p->flags & NIC_ECE, qp->config.window);
	if (nic_psn_distance(p->sack_psn, m->snd_ooh) > 0)
		m->snd_ooh = p->sack_psn;
	if (nic_psn_distance(t->una, m->snd_ooh) > 0)
		m->snd_ooh = nic_psn_add(t->una, WIRE_PSN_MASK);
	/* Below snd_ool = snd_ooh - delta: the packet took a slow path (section 3.3). */
	pruned = !(p->flags & NIC_RETRANSMISSION) &&
		 nic_psn_distance(m->snd_ooh, p->sack_psn) > (int)qp->config.delta;
	if (pruned)
		m->cwnd = nic_mprdma_reduce(m->cwnd);
	nic_mprdma_epoch(t);
	if (!pruned)
		nic_mprdma_clock(qp, stream, t, p->path);
}

/*
 * A NACK: the receiver had no slot for a packet, so one before it is missing.  The packet that was dropped has left the
 * network, so one retransmission may follow it; it does not count in inflate, since it will be acknowledged yet.
 */
WIRE_FN void nic_mprdma_take_nack(struct nic_qp *qp, int stream, const struct nic_packet *p, struct nic_mprdma_take *t,
				  wire_u32 sent)
{
	nic_mprdma_advance(t, p->psn);
	if (!t->view.recovering && p->psn == t->una && nic_psn_distance(sent, t->una) > 0)
		nic_mprdma_recover(t, p->psn, sent);
	if (t->view.recovering)
		nic_mprdma_clock_again(qp, stream, t, p->path);
}

/* What an acknowledge packet says, if it speaks of packets that have been sent; the other NAKs name one outstanding. */
WIRE_FN int nic_mprdma_believable(const struct nic_packet *p, wire_u32 upto, wire_u32 una, wire_u32 sent)
{
	wire_u8 kind = p->syndrome & NIC_SYNDROME_KIND;

	if (nic_psn_distance(upto, sent) > 0 ||
	    (p->flags & NIC_SACK_VALID && nic_psn_distance(p->sack_psn, sent) >= 0))
		return 0;
	if (kind == WIRE_AETH_KIND_ACK || p->syndrome == (WIRE_AETH_KIND_NAK | WIRE_NAK_CODE_PSN_SEQUENCE_ERROR))
		return 1;
	return nic_psn_distance(upto, una) >= 0 && nic_psn_distance(upto, sent) < 0;
}

WIRE_FN void nic_mprdma_ack(struct nic_qp *qp, int stream, const struct nic_packet *p, wire_u64 now,
			    struct nic_verdict *out)
{
	struct nic_sender *s = &qp->sender[stream];
	wire_u32 sent = *(const volatile wire_u32 *)&qp->emitter[stream].snd_nxt;
	wire_u8 kind = p->syndrome & NIC_SYNDROME_KIND;
	wire_u8 code = p->syndrome & NIC_SYNDROME_VALUE;
	wire_u32 upto = kind == WIRE_AETH_KIND_ACK ? nic_psn_add(p->psn, 1) : p->psn;
	struct nic_mprdma_take t;

	if (!(p->flags & NIC_FLAGS_ACK) || (kind == WIRE_AETH_KIND_NAK && code > WIRE_NAK_CODE_REMOTE_OPERATIONAL_ERROR) ||
	    (kind != WIRE_AETH_KIND_ACK && kind != WIRE_AETH_KIND_NAK && kind != WIRE_AETH_KIND_RNR_NAK)) {
		out->event = WIRE_NIC_EVENT_DROP_BAD_HEADER;
		return;
	}
	if (!nic_mprdma_believable(p, upto, s->snd_una, sent)) {
		out->event = WIRE_NIC_EVENT_ACK_STALE;
		return;
	}
	t = nic_mprdma_begin(qp, stream);
	nic_mprdma_obey(qp, stream, &t, sent);
	out->doorbell = 1;
	out->event = kind != WIRE_AETH_KIND_ACK             ? WIRE_NIC_EVENT_NAK_RECEIVED
		     : nic_psn_distance(upto, t.una) > 0 ? WIRE_NIC_EVENT_ACK_RECEIVED
							   : WIRE_NIC_EVENT_SACK_RECEIVED;
	if (kind == WIRE_AETH_KIND_ACK) {
		s->marks += (p->flags & NIC_ECE) != 0;
		s->sacks += out->event == WIRE_NIC_EVENT_SACK_RECEIVED;
		s->msn = p->msn;
		nic_mprdma_take_ack(qp, stream, p, &t, upto);
	} else if (kind == WIRE_AETH_KIND_NAK && code == WIRE_NAK_CODE_PSN_SEQUENCE_ERROR) {
		nic_mprdma_take_nack(qp, stream, p, &t, sent);
	} else {
		nic_mprdma_advance(&t, upto);
	}
	nic_mprdma_end(qp, stream, &t);
	/* The agent reads the reasons first, then snd_una. */
	if (kind == WIRE_AETH_KIND_RNR_NAK) {
		*(volatile wire_u32 *)&s->rnr_timer = code;
		*(volatile wire_u32 *)&s->rnr_naks = s->rnr_naks + 1;
	} else if (kind == WIRE_AETH_KIND_NAK && code == WIRE_NAK_CODE_PSN_SEQUENCE_ERROR) {
		*(volatile wire_u32 *)&s->naks = s->naks + 1;
	} else if (kind == WIRE_AETH_KIND_NAK) {
		*(volatile wire_u32 *)&s->error_psn = p->psn;
		*(volatile wire_u32 *)&s->error = p->syndrome;
		qp->config.state = WIRE_QP_STATE_ERROR;
	}
	*(volatile wire_u32 *)&s->acks = s->acks + 1;
}

#endif
