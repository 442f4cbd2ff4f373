/*
 * MP-RDMA's sender in the agent: sends what the NIC lets go, and does what needs a clock (sections 3.2, 3.4 and 3.5).
 *
 * By itself the agent lets packets go on random paths:
 *  - the initial window, and the window after a restart: while no acknowledgement has come since;
 *  - what the window has left when no acknowledgement has come for half a round trip (burst timer);
 *  - then also, without new data, an unacknowledged packet early (FUSO), one each half round trip, each once;
 *  - after a retransmission timeout the oldest unacknowledged packets, IW at most; ACK clocking does the rest.
 */
#ifndef NIC_MPRDMA_AGENT_H
#define NIC_MPRDMA_AGENT_H

#include "credits.h"
#include "mprdma_window.h"
#include "transport.h"

#define NIC_MPRDMA_BACKOFF_MAX  6 /* doublings of the retransmission timeout */
#define NIC_MPRDMA_IDLE_RTTS    3 /* section 3.5 */

/* The agent's view of its queue pair while it looks for something to send. */
struct nic_mprdma_agent {
	const struct nic_qp_config *config;
	struct nic_emitter *e;
	struct nic_mprdma_emitter *m;
	struct nic_mprdma_view view;  /* as if the NIC had taken all of ours into account */
	wire_u32 una;
	wire_u32 cwnd;
	wire_u64 now;
};

/* Packets that are let go and not acknowledged. */
WIRE_FN int nic_mprdma_agent_open(const struct nic_mprdma_agent *a)
{
	return nic_psn_distance(nic_psn_add(a->view.granted, a->m->granted), a->una);
}

WIRE_FN int nic_mprdma_agent_awnd(const struct nic_mprdma_agent *a)
{
	return nic_psn_distance(a->view.limit, nic_psn_add(a->view.granted, a->m->granted));
}

WIRE_FN void nic_mprdma_agent_start(struct nic_qp *qp, int stream)
{
	struct nic_mprdma_emitter *m = &qp->emitter[stream].transport.mprdma;

	m->random = nic_mprdma_seed(qp->config.random_seed, 1 + NIC_STREAMS + (wire_u32)stream);
	m->una_seen = m->again_next = m->again_end = m->early = qp->config.first_psn[stream];
}

WIRE_FN struct nic_mprdma_agent nic_mprdma_agent_begin(struct nic_qp *qp, int stream, wire_u64 now)
{
	struct nic_emitter *e = &qp->emitter[stream];
	const struct nic_sender *s = &qp->sender[stream];
	struct nic_mprdma_agent a = { .config = &qp->config, .e = e, .m = &e->transport.mprdma, .now = now };
	wire_u32 initial = nic_mprdma_iw(&qp->config) * NIC_MPRDMA_PACKET;
	struct nic_mprdma_command c;
	wire_u64 published;

	if (!a.m->random)
		nic_mprdma_agent_start(qp, stream);
	c = nic_mprdma_unpack_command(a.m->command);
	/* The window first: what is read after it is at least as new, so the window cannot look larger than it is. */
	published = *(const volatile wire_u64 *)&s->transport.mprdma.published;
	a.view = published ? nic_mprdma_unpack(published) : nic_mprdma_initial(&qp->config, stream);
	a.una = *(const volatile wire_u32 *)&s->snd_una;
	a.cwnd = *(const volatile wire_u32 *)&s->transport.mprdma.cwnd;
	if (!published || c.restarts != a.view.restarts || (c.timeouts != a.view.timeouts && a.cwnd > initial))
		a.cwnd = initial;
	if (c.restarts != a.view.restarts)
		a.view.limit = nic_psn_add(a.m->restart_at, nic_mprdma_iw(&qp->config));
	if (c.timeouts != a.view.timeouts)
		a.view.recovering = 1;
	return a;
}

WIRE_FN void nic_mprdma_set_deadline(struct nic_emitter *e)
{
	const struct nic_mprdma_emitter *m = &e->transport.mprdma;

	e->deadline = m->timeout_at;
	if (m->wake_at && (!e->deadline || m->wake_at < e->deadline))
		e->deadline = m->wake_at;
}

/* A packet leaves. */
WIRE_FN int nic_mprdma_send(struct nic_mprdma_agent *a, wire_u32 psn, wire_u16 path, int again, struct nic_send *out)
{
	*out = (struct nic_send){ .psn = psn, .path = path, .flags = again ? NIC_RETRANSMISSION : 0, .ack_req = 1 };
	a->e->active = a->now;
	a->m->wake_at = 0;
	if (again)
		a->e->retransmissions++;
	if (!a->m->timeout_at)
		a->m->timeout_at = a->now + (a->config->timeout_ns << a->m->backoff);
	nic_mprdma_set_deadline(a->e);
	return 1;
}

WIRE_FN int nic_mprdma_send_new(struct nic_mprdma_agent *a, wire_u16 path, struct nic_send *out)
{
	wire_u32 psn = a->e->snd_nxt;

	/* Before the packet leaves, or the NIC would not believe its acknowledgement. */
	*(volatile wire_u32 *)&a->e->snd_nxt = nic_psn_add(psn, 1);
	a->m->fresh_at = a->now;
	return nic_mprdma_send(a, psn, path, 0, out);
}

WIRE_FN int nic_mprdma_nothing(struct nic_mprdma_agent *a, wire_u64 wake_at)
{
	a->m->wake_at = wake_at;
	nic_mprdma_set_deadline(a->e);
	return 0;
}

/*
 * Section 3.4: until when the next new packet has to wait because it starts a synchronise message; 0: it need not.
 * delta packets at the rate cwnd / RTT is how far the paths lie apart.  There is nothing to wait for when all before it
 * is acknowledged.
 */
WIRE_FN wire_u64 nic_mprdma_synchronise(const struct nic_mprdma_agent *a)
{
	wire_u64 until;

	if (a->e->synchronise == a->e->posted || a->e->synchronise != a->e->snd_nxt || a->una == a->e->snd_nxt)
		return 0;
	until = a->m->fresh_at + a->config->rtt_ns * a->config->delta * a->config->alpha_per_mille / 1000 *
					 NIC_MPRDMA_PACKET / a->cwnd;
	return a->now < until ? until : 0;
}

/* The next credit into the hand; 0: the ring is empty. */
WIRE_FN int nic_mprdma_pop(const struct nic_qp *qp, int stream, struct nic_mprdma_emitter *m, struct nic_credit *credit)
{
	wire_u32 head = *(const volatile wire_u32 *)&qp->sender[stream].transport.mprdma.head;

	if (head == m->tail)
		return 0;
	*credit = *(const volatile struct nic_credit *)&qp->credits[stream][m->tail & (NIC_CREDIT_RING - 1)];
	*(volatile wire_u32 *)&m->tail = m->tail + 1;
	return 1;
}

/*
 * What the NIC has let go: 1 a packet, 0 none is left, -1 one is left but must wait.  A credit for new data that has none
 * (both sides let the last packet go at once) is given back; one for a packet that was acknowledged since is void.
 */
WIRE_FN int nic_mprdma_next_credit(struct nic_qp *qp, int stream, struct nic_mprdma_agent *a, struct nic_send *out)
{
	struct nic_mprdma_emitter *m = a->m;
	struct nic_credit credit;

	for (;;) {
		if (m->hand_count && a->e->snd_nxt == a->e->posted) {
			*(volatile wire_u32 *)&m->granted = nic_psn_add(m->granted, WIRE_PSN_MASK + 1 - m->hand_count);
			m->hand_count = 0;
		}
		if (m->hand_count) {
			wire_u64 until = nic_mprdma_synchronise(a);

			if (until) {
				nic_mprdma_nothing(a, until);
				return -1;
			}
			m->hand_count--;
			return nic_mprdma_send_new(a, m->hand_path, out);
		}
		if (!nic_mprdma_pop(qp, stream, m, &credit))
			return 0;
		if (credit.kind == NIC_MPRDMA_NEW) {
			m->hand_count = credit.count;
			m->hand_path = credit.path;
		} else if (nic_psn_distance(credit.psn, a->una) >= 0) {
			return nic_mprdma_send(a, credit.psn, credit.path, 1, out);
		}
	}
}

/* After an idle time the window starts from IW again (section 3.5). */
WIRE_FN void nic_mprdma_restart(struct nic_mprdma_agent *a)
{
	struct nic_mprdma_command c = nic_mprdma_unpack_command(a->m->command);

	c.restarts++;
	a->m->restart_at = a->una;
	a->view.limit = nic_psn_add(a->una, nic_mprdma_iw(a->config));
	*(volatile wire_u32 *)&a->m->command = nic_mprdma_pack_command(&c);
}

/* What the agent lets go by itself; all credits are used up. */
WIRE_FN int nic_mprdma_next_own(struct nic_qp *qp, int stream, struct nic_mprdma_agent *a, struct nic_send *out)
{
	struct nic_mprdma_emitter *m = a->m;
	int fresh = nic_psn_distance(a->e->posted, a->e->snd_nxt) > 0;
	wire_u64 until;

	if (a->view.recovering)
		return nic_mprdma_nothing(a, 0);
	if (!nic_mprdma_agent_open(a)) {
		/* No acknowledgement can come, so there is nothing to wait for. */
		m->burst_at = 0;
		if (fresh && a->una != a->config->first_psn[stream] &&
		    a->now - a->e->active >= NIC_MPRDMA_IDLE_RTTS * a->config->rtt_ns)
			nic_mprdma_restart(a);
	}
	if (nic_psn_distance(m->early, a->una) < 0)
		m->early = a->una;
	if (nic_mprdma_agent_awnd(a) < 1 || (!fresh && nic_psn_distance(a->e->snd_nxt, m->early) <= 0))
		return nic_mprdma_nothing(a, 0);
	if (a->now < m->burst_at)
		return nic_mprdma_nothing(a, m->burst_at);
	if (!fresh) {
		if (!m->burst_at)
			return nic_mprdma_nothing(a, 0);
		m->burst_at = a->now + a->config->rtt_ns / 2;
		m->early = nic_psn_add(m->early, 1);
		return nic_mprdma_send(a, nic_psn_add(m->early, WIRE_PSN_MASK),
				       nic_mprdma_path(a->config->source_port, &m->random), 1, out);
	}
	until = nic_mprdma_synchronise(a);
	if (until)
		return nic_mprdma_nothing(a, until);
	*(volatile wire_u32 *)&m->granted = nic_psn_add(m->granted, 1);
	return nic_mprdma_send_new(a, nic_mprdma_path(a->config->source_port, &m->random), out);
}

WIRE_FN int nic_mprdma_next(struct nic_qp *qp, int stream, wire_u64 now, struct nic_send *out)
{
	struct nic_mprdma_agent a = nic_mprdma_agent_begin(qp, stream, now);
	struct nic_mprdma_emitter *m = a.m;
	int found;

	if (nic_psn_distance(m->again_next, a.una) < 0)
		m->again_next = a.una;
	if (nic_psn_distance(m->again_end, m->again_next) > 0) {
		wire_u32 psn = m->again_next;

		m->again_next = nic_psn_add(psn, 1);
		return nic_mprdma_send(&a, psn, nic_mprdma_path(qp->config.source_port, &m->random), 1, out);
	}
	found = nic_mprdma_next_credit(qp, stream, &a, out);
	if (found)
		return found > 0;
	return nic_mprdma_next_own(qp, stream, &a, out);
}

/* Sends the oldest packets again, and tells the NIC to go on behind them as acknowledgements come. */
WIRE_FN void nic_mprdma_go_back(struct nic_mprdma_agent *a)
{
	struct nic_mprdma_command c = nic_mprdma_unpack_command(a->m->command);
	wire_u32 count = (wire_u32)nic_psn_distance(a->e->snd_nxt, a->una);

	if (count > nic_mprdma_iw(a->config))
		count = nic_mprdma_iw(a->config);
	a->m->again_next = a->una;
	a->m->again_end = c.snd_retx = nic_psn_add(a->una, count);
	/* Not again while the NIC has not seen the last one, or eight of them would look like none. */
	if (c.timeouts == a->view.timeouts)
		c.timeouts++;
	*(volatile wire_u32 *)&a->m->command = nic_mprdma_pack_command(&c);
}

WIRE_FN int nic_mprdma_timer(struct nic_qp *qp, int stream, wire_u64 now)
{
	const struct nic_sender *s = &qp->sender[stream];
	/* Reasons first: the snd_una that is read after them is at least as new. */
	wire_u32 rnr = *(const volatile wire_u32 *)&s->rnr_naks;
	wire_u32 acks = *(const volatile wire_u32 *)&s->acks;
	struct nic_mprdma_agent a = nic_mprdma_agent_begin(qp, stream, now);
	struct nic_mprdma_emitter *m = a.m;
	int outstanding = nic_psn_distance(a.e->snd_nxt, a.una) > 0;
	int fired = 0;

	if (acks != m->acks_seen) {
		m->acks_seen = acks;
		m->burst_at = now + qp->config.rtt_ns / 2;
	}
	if (a.una != m->una_seen) {
		m->una_seen = a.una;
		m->backoff = 0;
		m->timeout_at = outstanding ? now + qp->config.timeout_ns : 0;
	}
	if (rnr != m->rnr_seen && outstanding) {
		/* The agent sends nothing before the RNR timer has run out; only then does a timeout begin. */
		m->timeout_at = now + nic_rnr_ns(s->rnr_timer) + qp->config.timeout_ns;
		nic_mprdma_go_back(&a);
	} else if (m->timeout_at && now >= m->timeout_at && outstanding) {
		nic_mprdma_go_back(&a);
		m->backoff += m->backoff < NIC_MPRDMA_BACKOFF_MAX;
		m->timeout_at = now + (qp->config.timeout_ns << m->backoff);
		a.e->timeouts++;
		fired = 1;
	}
	m->rnr_seen = rnr;
	/* next() will be called, and says anew what it waits for. */
	m->wake_at = 0;
	nic_mprdma_set_deadline(a.e);
	return fired;
}

#endif
