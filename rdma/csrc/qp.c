/* Queue pairs: their lives, their states, and what is told about them. */
#include <errno.h>
#include <linux/membarrier.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hd_bitmap.h"
#include "icrc_init.h"
#include "private.h"

#define ANSWERS_MIN 4 /* jobs of the response stream; it grows */

static const struct nic_transport *const transports[] = {
#define TABLE(name) &nic_transport_##name,
	NIC_TRANSPORTS(TABLE)
#undef TABLE
};

const char *rdma_transport_names(void)
{
#define NAME(transport) #transport " "
	return NIC_TRANSPORTS(NAME);
#undef NAME
}

int rdma_transport_tracks(uint8_t transport)
{
	return transport < NIC_TRANSPORT_COUNT && !transports[transport]->ibta;
}

struct rdma_qp *rdma_qp_find(struct rdma_engine *e, uint32_t qpn)
{
	struct rdma_qp *qp = e->qps[qpn & (e->maps.max_qps - 1)];

	return qp && qp->qpn == qpn ? qp : NULL;
}

/*
 * What a queue pair that is over holds of its host's bitmap memory.  A packet for it may still be on its way through the
 * NIC; the kernel's grace period, which membarrier() waits for, is over only when that is not so any more.
 */
static void abandon_bitmaps(struct rdma_engine *e, struct rdma_qp *qp)
{
	int waited = 0;

	if (!qp->transport || !qp->transport->host_state)
		return;
	for (int stream = 0; stream < NIC_STREAMS; stream++) {
		const struct nic_hd_addr *bitmap = &qp->nic->receiver[stream].transport.eunomia.bitmap;

		if (!*(const volatile wire_u16 *)&bitmap->states)
			continue;
		if (!waited)
			syscall(__NR_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
		waited = 1;
		nic_hd_abandon(&e->host_states[qp->nic->config.host].memory, bitmap);
	}
}

void rdma_qp_free(struct rdma_engine *e, struct rdma_qp *qp)
{
	if (!qp)
		return;
	__atomic_store_n(&qp->nic->config.qpn, 0, __ATOMIC_RELEASE);
	qp->nic->config.state = WIRE_QP_STATE_RESET;
	abandon_bitmaps(e, qp);
	rdma_ready_remove(qp);
	rdma_timer_cancel(e, qp);
	qp->send_cq->reserved -= qp->streams[NIC_STREAM_REQUEST].jobs.count;
	if (qp->rq->shared) {
		rdma_receives_drop(qp);
	} else {
		qp->recv_cq->reserved -= (uint32_t)nic_psn_distance(qp->rq->posted, qp->reaped);
		qp->rq->owner = NULL;
	}
	qp->rq->users--;
	e->qps[qp->qpn & (e->maps.max_qps - 1)] = NULL;
	for (int stream = 0; stream < NIC_STREAMS; stream++)
		rdma_jobs_free(&qp->streams[stream].jobs);
	free(qp);
}

static int qp_build(struct rdma_engine *e, uint32_t qpn, const struct rdma_qp_init *init)
{
	uint32_t slot = qpn & (e->maps.max_qps - 1);
	struct rdma_rq *rq = rdma_rq_find(e, init->rq);
	struct rdma_qp *qp;

	if (!qpn || qpn > WIRE_QPN_MASK || !init->max_send_wr || !rdma_cq_find(e, init->send_cq) ||
	    !rdma_cq_find(e, init->recv_cq) || !rq || (!rq->shared && rq->users))
		return -EINVAL;
	if (init->host == NIC_HOST_NONE || init->host >= e->maps.max_hosts || e->hosts[init->host].socket < 0)
		return -ENODEV;
	if (e->qps[slot])
		return -EEXIST;
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return -ENOMEM;
	if (rdma_jobs_init(&qp->streams[NIC_STREAM_REQUEST].jobs, init->max_send_wr) ||
	    rdma_jobs_init(&qp->streams[NIC_STREAM_RESPONSE].jobs, ANSWERS_MIN)) {
		rdma_jobs_free(&qp->streams[NIC_STREAM_REQUEST].jobs);
		free(qp);
		return -ENOMEM;
	}
	qp->nic = &e->nic_qps[slot];
	qp->host = &e->hosts[init->host];
	qp->send_cq = e->cqs[init->send_cq];
	qp->recv_cq = e->cqs[init->recv_cq];
	qp->qpn = qpn;
	qp->rq = rq;
	rq->users++;
	if (!rq->shared)
		rq->owner = qp;
	memset(qp->nic, 0, sizeof(*qp->nic));
	qp->nic->config.host = init->host;
	qp->nic->config.pd = init->pd;
	qp->nic->config.rq = init->rq;
	qp->nic->config.local_ip = qp->host->ip;
	qp->nic->config.state = WIRE_QP_STATE_INIT;
	if (rq->shared)
		qp->nic->config.flags = NIC_QP_SRQ;
	e->qps[slot] = qp;
	__atomic_store_n(&qp->nic->config.qpn, qpn, __ATOMIC_RELEASE);
	return 0;
}

int rdma_qp_create(struct rdma_engine *e, uint32_t qpn, const struct rdma_qp_init *init)
{
	int error;

	rdma_lock(e);
	error = qp_build(e, qpn, init);
	rdma_unlock(e);
	return error;
}

int rdma_qp_destroy(struct rdma_engine *e, uint32_t qpn)
{
	struct rdma_qp *qp;

	rdma_lock(e);
	qp = rdma_qp_find(e, qpn);
	rdma_qp_free(e, qp);
	rdma_unlock(e);
	return qp ? 0 : -ENOENT;
}

static int path_is_right(const struct rdma_qp_path *path)
{
	return path->path_mtu >= 256 && path->path_mtu <= 4096 && path->path_mtu % 4 == 0 &&
	       path->transport < NIC_TRANSPORT_COUNT && path->receive_psn <= WIRE_PSN_MASK &&
	       path->priority < NIC_PFC_PRIORITIES && path->rnr_timer < 32 && path->slots &&
	       path->slots <= NIC_BITMAP_SLOTS && !(path->slots & (path->slots - 1)) && path->rtt_ns;
}

static void set_path(struct rdma_qp *qp, const struct rdma_qp_path *path)
{
	struct nic_qp_config *c = &qp->nic->config;

	c->remote_qpn = path->remote_qpn;
	c->remote_ip = path->remote_ip;
	c->path_mtu = path->path_mtu;
	c->pkey = path->pkey;
	c->transport = path->transport;
	c->ack_every = path->ack_every;
	c->flags |= path->flags & (wire_u8)~NIC_QP_SRQ;
	c->priority = path->priority;
	c->rnr_timer = path->rnr_timer;
	c->slots = path->slots;
	c->delta = path->delta;
	c->rtt_ns = path->rtt_ns;
	if (path->cnp_rate_bps) {
		nic_dcqcn_derive(&qp->dcqcn_params, path->cnp_rate_bps, path->rtt_ns, path->path_mtu);
		c->cnp_interval_ns = qp->dcqcn_params.cnp_interval_ns;
	}
	c->source_port = path->udp_source_port;
	c->hold_at = path->hold_at;
	c->random_seed = (wire_u32)rdma_now() ^ qp->qpn * 2654435761u;
	nic_icrc_bases(c);
	qp->path_mtu = path->path_mtu;
	qp->transport = transports[path->transport];
	qp->nic->receiver[NIC_STREAM_REQUEST].epsn = path->receive_psn;
	/* The peer's responses start with the same number as its requests, which both sides know. */
	qp->nic->receiver[NIC_STREAM_RESPONSE].epsn = path->receive_psn;
	rdma_frame_template_init(&qp->template, path, qp->host->mac, qp->host->ip);
}

int rdma_qp_to_rtr(struct rdma_engine *e, uint32_t qpn, const struct rdma_qp_path *path)
{
	struct rdma_qp *qp;
	int error = 0;

	if (!path_is_right(path))
		return -EINVAL;
	rdma_lock(e);
	qp = rdma_qp_find(e, qpn);
	if (!qp) {
		error = -ENOENT;
	} else if (qp->nic->config.state != WIRE_QP_STATE_INIT) {
		error = -EISCONN;
	} else {
		set_path(qp, path);
		__atomic_store_n(&qp->nic->config.state, WIRE_QP_STATE_RTR, __ATOMIC_RELEASE);
	}
	rdma_unlock(e);
	return error;
}

static int sending_is_right(const struct rdma_qp_sending *s)
{
	/* Timeout: up to a minute, so that its doublings stay in range. */
	return s->send_psn <= WIRE_PSN_MASK && s->window_packets && s->initial_window && s->ack_interval && s->timeout_ns &&
	       s->timeout_ns <= 60000000000ull && s->timeout_low_ns && s->timeout_low_ns <= s->timeout_ns &&
	       s->max_rd_atomic && s->max_rd_atomic <= NIC_FETCH_MAX && s->probe_per_mille <= 1000;
}

static void set_sending(struct rdma_qp *qp, const struct rdma_qp_sending *sending)
{
	struct nic_qp_config *c = &qp->nic->config;

	qp->sending = *sending;
	c->window = sending->window_packets;
	c->initial_window = sending->initial_window;
	c->probe_per_mille = sending->probe_per_mille;
	c->alpha_per_mille = sending->alpha_per_mille;
	c->timeout_ns = sending->timeout_ns;
	c->timeout_low_ns = sending->timeout_low_ns;
	c->timeout_low_packets = sending->timeout_low_packets;
	for (int stream = 0; stream < NIC_STREAMS; stream++) {
		qp->streams[stream].first_psn = c->first_psn[stream] = sending->send_psn;
		qp->nic->sender[stream].snd_una = sending->send_psn;
		qp->nic->emitter[stream].snd_nxt = qp->nic->emitter[stream].posted = sending->send_psn;
		qp->nic->emitter[stream].synchronise = sending->send_psn;
	}
	/* Responses to go-back-N's READs are numbered like the requests. */
	if (qp->transport->ibta)
		qp->nic->receiver[NIC_STREAM_RESPONSE].epsn = sending->send_psn;
	qp->responses_seen = qp->nic->receiver[NIC_STREAM_RESPONSE].epsn;
	if (sending->dcqcn_rate_bps) {
		nic_dcqcn_derive(&qp->dcqcn_params, sending->dcqcn_rate_bps, c->rtt_ns, qp->path_mtu);
		nic_dcqcn_init(&qp->dcqcn, &qp->dcqcn_params);
	}
}

int rdma_qp_to_rts(struct rdma_engine *e, uint32_t qpn, const struct rdma_qp_sending *sending)
{
	struct rdma_qp *qp;
	int error = 0;

	if (!sending_is_right(sending))
		return -EINVAL;
	rdma_lock(e);
	qp = rdma_qp_find(e, qpn);
	if (!qp) {
		error = -ENOENT;
	} else if (qp->nic->config.state != WIRE_QP_STATE_RTR) {
		error = -EISCONN;
	} else {
		set_sending(qp, sending);
		__atomic_store_n(&qp->nic->config.state, WIRE_QP_STATE_RTS, __ATOMIC_RELEASE);
		/* READs may have come already. */
		rdma_qp_attend(e, qp, rdma_now());
	}
	rdma_unlock(e);
	if (!error)
		rdma_wake(e);
	return error;
}

int rdma_qp_to_error(struct rdma_engine *e, uint32_t qpn)
{
	struct rdma_qp *qp;

	rdma_lock(e);
	qp = rdma_qp_find(e, qpn);
	if (qp) {
		rdma_qp_attend(e, qp, rdma_now());
		rdma_qp_fail(e, qp, RDMA_WR_FLUSH_ERR, 0);
	}
	rdma_unlock(e);
	return qp ? 0 : -ENOENT;
}

int rdma_qp_state(struct rdma_engine *e, uint32_t qpn, uint32_t *state)
{
	struct rdma_qp *qp;

	rdma_lock(e);
	qp = rdma_qp_find(e, qpn);
	if (qp)
		*state = qp->nic->config.state;
	rdma_unlock(e);
	return qp ? 0 : -ENOENT;
}

static void fill_stats(const struct rdma_qp *qp, struct rdma_qp_stats *out)
{
	*out = (struct rdma_qp_stats){
		.packets = qp->packets, .bytes = qp->bytes, .retransmissions = qp->retransmissions,
		.messages_received = qp->nic->receiver[NIC_STREAM_REQUEST].msn,
		.cnps_received = qp->nic->sender[NIC_STREAM_REQUEST].cnps,
		.rate_bps = qp->sending.dcqcn_rate_bps ? qp->dcqcn.rate : 0,
	};
	for (int stream = 0; stream < NIC_STREAMS; stream++) {
		const struct nic_sender *s = &qp->nic->sender[stream];
		const struct nic_receiver *r = &qp->nic->receiver[stream];
		int ahead = nic_psn_distance(qp->nic->emitter[stream].snd_nxt, s->snd_una);

		out->timeouts += qp->streams[stream].timeouts;
		out->naks += s->naks;
		out->rnr_naks += s->rnr_naks;
		out->acks += s->acks;
		out->sacks += s->sacks;
		out->gaps += r->gaps;
		out->out_of_order += r->out_of_order;
		out->cnps_sent += r->cnps;
		/* Nothing acknowledges go-back-N's responses. */
		if (ahead > 0 && !(stream == NIC_STREAM_RESPONSE && qp->transport && qp->transport->ibta))
			out->outstanding += (uint64_t)ahead;
	}
}

int rdma_qp_stats(struct rdma_engine *e, uint32_t qpn, struct rdma_qp_stats *out)
{
	struct rdma_qp *qp;

	rdma_lock(e);
	qp = rdma_qp_find(e, qpn);
	if (qp)
		fill_stats(qp, out);
	rdma_unlock(e);
	return qp ? 0 : -ENOENT;
}
