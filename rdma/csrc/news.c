/* What the NIC has learnt about a queue pair, what its clocks say, and what follows from both. */
#include "private.h"

#define TIMER_MIN_NS  1000 /* a timer that asks for less would stop everything else */
#define FETCH_PATIENCE 4   /* a responder's last retries are waited for so many times as long as they can take */
#define DOUBLINGS_MAX 6    /* of a retransmission timeout */

uint32_t rdma_psn_of(const struct rdma_stream *stream, uint64_t sequence)
{
	return nic_psn_add(stream->first_psn, (uint32_t)(sequence & WIRE_PSN_MASK));
}

void rdma_qp_fail(struct rdma_engine *e, struct rdma_qp *qp, uint32_t status, uint64_t sequence)
{
	struct rdma_jobs *answers = &qp->streams[NIC_STREAM_RESPONSE].jobs;

	__atomic_store_n(&qp->nic->config.state, WIRE_QP_STATE_ERROR, __ATOMIC_RELEASE);
	qp->failed = 1;
	rdma_requests_fail(e, qp, status, sequence);
	while (answers->count)
		rdma_jobs_pop(answers);
	qp->answering = 0;
	rdma_receives_flush(e, qp);
	rdma_ready_remove(qp);
	rdma_timer_cancel(e, qp);
}

/* AETH syndrome of a fatal NAK to a completion's status (IBTA vol. 1, section 11.6.2). */
static uint32_t status_of(uint32_t syndrome)
{
	switch (syndrome & NIC_SYNDROME_VALUE) {
	case WIRE_NAK_CODE_REMOTE_ACCESS_ERROR:
		return RDMA_REM_ACCESS_ERR;
	case WIRE_NAK_CODE_REMOTE_OPERATIONAL_ERROR:
		return RDMA_REM_OP_ERR;
	default:
		return RDMA_REM_INV_REQ_ERR;
	}
}

/* The request that the NAK names; a NAK acknowledges what lies before. */
static uint64_t guilty(const struct rdma_qp *qp)
{
	const struct rdma_stream *s = &qp->streams[NIC_STREAM_REQUEST];
	uint32_t psn = __atomic_load_n(&qp->nic->sender[NIC_STREAM_REQUEST].error_psn, __ATOMIC_ACQUIRE);
	int ahead = nic_psn_distance(psn, rdma_psn_of(s, s->una));

	return ahead > 0 ? s->una + (uint64_t)ahead : s->una;
}

static void advance_responses(struct rdma_qp *qp)
{
	struct rdma_stream *s = &qp->streams[NIC_STREAM_RESPONSE];
	uint32_t una = __atomic_load_n(&qp->nic->sender[NIC_STREAM_RESPONSE].snd_una, __ATOMIC_ACQUIRE);
	int forward = nic_psn_distance(una, rdma_psn_of(s, s->una));

	if (qp->transport->ibta || forward <= 0 || (uint64_t)forward > s->tail - s->una)
		return;
	s->una += (uint64_t)forward;
	s->retries = 0;
	while (s->jobs.count && rdma_jobs_at(&s->jobs, 0)->first + rdma_jobs_at(&s->jobs, 0)->packets <= s->una)
		rdma_jobs_pop(&s->jobs);
}

static void take_notifications(struct rdma_qp *qp, int64_t now)
{
	uint32_t cnps = __atomic_load_n(&qp->nic->sender[NIC_STREAM_REQUEST].cnps, __ATOMIC_ACQUIRE);
	wire_u64 next;

	if (!qp->sending.dcqcn_rate_bps) {
		qp->cnps_seen = cnps;
		return;
	}
	do
		next = nic_dcqcn_advance(&qp->dcqcn, &qp->dcqcn_params, (wire_u64)now);
	while (next && next <= (wire_u64)now);
	for (; qp->cnps_seen != cnps; qp->cnps_seen++)
		nic_dcqcn_cnp(&qp->dcqcn, &qp->dcqcn_params, (wire_u64)now);
}

static void take_rnr(struct rdma_engine *e, struct rdma_qp *qp, uint32_t rnr_naks, int64_t now)
{
	if (rnr_naks == qp->rnr_seen)
		return;
	qp->rnr_seen = rnr_naks;
	/* Several packets in flight may have met the same lack of a receive. */
	if (qp->wait_until)
		return;
	qp->wait_until = now + (int64_t)nic_rnr_ns(qp->nic->sender[NIC_STREAM_REQUEST].rnr_timer);
	/* 7 stands for "for ever" (IBTA vol. 1, section 9.7.5.2.8). */
	if (qp->sending.rnr_retry_count != 7 && qp->rnr_retries++ >= qp->sending.rnr_retry_count)
		rdma_qp_fail(e, qp, RDMA_RNR_RETRY_EXC_ERR, qp->streams[NIC_STREAM_REQUEST].una);
}

/*
 * A timeout is to say something about the network.  So a queue pair's clock stands still while it waits for its turn among
 * the host's, for the end of a pause or for its pace; and what comes due while a receiver is not ready does not count.
 */
static void check_timers(struct rdma_engine *e, struct rdma_qp *qp, int64_t now)
{
	int waiting = qp->wait_until != 0;

	if (!qp->ready && qp->pace_at <= now)
		qp->clock = now;
	if (qp->wait_until && now >= qp->wait_until)
		qp->wait_until = 0;
	for (int stream = 0; stream < NIC_STREAMS && !qp->failed; stream++) {
		struct rdma_stream *s = &qp->streams[stream];

		if (!qp->transport->timer(qp->nic, stream, (wire_u64)qp->clock))
			continue;
		s->timeouts++;
		if (!waiting && s->retries++ >= qp->sending.retry_count)
			rdma_qp_fail(e, qp, RDMA_RETRY_EXC_ERR, qp->streams[NIC_STREAM_REQUEST].una);
	}
}

/*
 * All requests are acknowledged, but a READ or atomic is not answered: the responder repeats by its own timer (IRN), so
 * ours runs only for the case that it has died.
 */
static int64_t fetch_deadline(const struct rdma_qp *qp)
{
	const struct rdma_stream *s = &qp->streams[NIC_STREAM_REQUEST];
	uint32_t doublings = qp->sending.retry_count < DOUBLINGS_MAX ? qp->sending.retry_count : DOUBLINGS_MAX;

	if (!s->jobs.count || rdma_jobs_at(&s->jobs, 0)->first + rdma_jobs_at(&s->jobs, 0)->packets > s->una)
		return RDMA_NEVER;
	return qp->responses_time + (int64_t)(qp->sending.timeout_ns << doublings) * FETCH_PATIENCE;
}

static void check_responder(struct rdma_engine *e, struct rdma_qp *qp, int64_t now)
{
	uint32_t epsn = __atomic_load_n(&qp->nic->receiver[NIC_STREAM_RESPONSE].epsn, __ATOMIC_ACQUIRE);

	if (epsn != qp->responses_seen) {
		qp->responses_seen = epsn;
		qp->responses_time = now;
	}
	if (now >= fetch_deadline(qp))
		rdma_qp_fail(e, qp, RDMA_RETRY_EXC_ERR, rdma_jobs_at(&qp->streams[NIC_STREAM_REQUEST].jobs, 0)->first);
}

void rdma_qp_schedule(struct rdma_engine *e, struct rdma_qp *qp, int64_t now)
{
	int64_t due = fetch_deadline(qp);

	/* Its turn comes without a timer, and ends with a call of this. */
	if (qp->ready)
		return;
	for (int stream = 0; stream < NIC_STREAMS; stream++) {
		wire_u64 deadline = qp->nic->emitter[stream].deadline;

		if (deadline && (int64_t)deadline < due)
			due = (int64_t)deadline;
	}
	if (qp->wait_until && qp->wait_until < due)
		due = qp->wait_until;
	if (qp->pace_at > now)
		due = qp->pace_at;
	if (due != RDMA_NEVER)
		rdma_timer_at(e, qp, due < now + TIMER_MIN_NS ? now + TIMER_MIN_NS : due);
}

void rdma_qp_attend(struct rdma_engine *e, struct rdma_qp *qp, int64_t now)
{
	const struct nic_sender *sender = &qp->nic->sender[NIC_STREAM_REQUEST];
	/* Reasons first: the NIC writes snd_una before them, so what is read after them is at least as new. */
	uint32_t error = __atomic_load_n(&sender->error, __ATOMIC_ACQUIRE);
	uint32_t rnr_naks = __atomic_load_n(&sender->rnr_naks, __ATOMIC_ACQUIRE);
	uint32_t state = __atomic_load_n(&qp->nic->config.state, __ATOMIC_ACQUIRE);

	if (!qp->transport)
		return;
	if (rdma_receives_reap(e, qp)) {
		rdma_qp_fail(e, qp, RDMA_WR_FLUSH_ERR, 0);
		return;
	}
	rdma_requests_advance(e, qp, now);
	if (error || state == WIRE_QP_STATE_ERROR || qp->failed) {
		rdma_qp_fail(e, qp, error && !qp->failed ? status_of(error) : RDMA_WR_FLUSH_ERR, guilty(qp));
		return;
	}
	if (state != WIRE_QP_STATE_RTS)
		return;
	advance_responses(qp);
	rdma_responses_accept(e, qp);
	if (!qp->failed)
		take_rnr(e, qp, rnr_naks, now);
	if (!qp->failed)
		check_responder(e, qp, now);
	if (!qp->failed)
		rdma_requests_release(e, qp);
	if (!qp->failed)
		check_timers(e, qp, now);
	if (qp->failed)
		return;
	take_notifications(qp, now);
	rdma_ready_add(qp);
	rdma_qp_schedule(e, qp, now);
}
