/* The request stream: work requests become packets, and completions when their time has come. */
#include <errno.h>
#include <string.h>

#include "private.h"

static int is_fetch(const struct rdma_job *job)
{
	return job->opcode == RDMA_WR_RDMA_READ || job->opcode == RDMA_WR_ATOMIC_CMP_AND_SWP ||
	       job->opcode == RDMA_WR_ATOMIC_FETCH_AND_ADD;
}

static int is_atomic(const struct rdma_job *job)
{
	return is_fetch(job) && job->opcode != RDMA_WR_RDMA_READ;
}

static int is_write(const struct rdma_job *job)
{
	return job->opcode == RDMA_WR_RDMA_WRITE || job->opcode == RDMA_WR_RDMA_WRITE_WITH_IMM;
}

static int needs_receive(const struct rdma_job *job)
{
	return !is_fetch(job) && job->opcode != RDMA_WR_RDMA_WRITE;
}

static uint32_t wc_opcode(const struct rdma_job *job)
{
	switch (job->opcode) {
	case RDMA_WR_RDMA_WRITE:
	case RDMA_WR_RDMA_WRITE_WITH_IMM:
		return RDMA_WC_RDMA_WRITE;
	case RDMA_WR_RDMA_READ:
		return RDMA_WC_RDMA_READ;
	case RDMA_WR_ATOMIC_CMP_AND_SWP:
		return RDMA_WC_COMP_SWAP;
	case RDMA_WR_ATOMIC_FETCH_AND_ADD:
		return RDMA_WC_FETCH_ADD;
	default:
		return RDMA_WC_SEND;
	}
}

/* ---- completion ---- */

static void complete_oldest(struct rdma_qp *qp, uint32_t status)
{
	struct rdma_jobs *jobs = &qp->streams[NIC_STREAM_REQUEST].jobs;
	struct rdma_job *job = rdma_jobs_at(jobs, 0);
	struct rdma_completion completion = {
		.wr_id = job->wr_id, .qpn = qp->qpn, .status = status, .opcode = wc_opcode(job),
		.byte_len = status == RDMA_SUCCESS ? job->length : 0,
	};

	qp->send_cq->reserved--;
	/* Errors are always reported, signaled or not (IBTA vol. 1, section 10.8.1). */
	if (job->flags & RDMA_SEND_SIGNALED || status != RDMA_SUCCESS)
		rdma_cq_push(qp->send_cq, &completion);
	qp->fetches_completed += (uint32_t)is_fetch(job);
	rdma_jobs_pop(jobs);
	if (qp->unreleased)
		qp->unreleased--;
}

static struct nic_outgoing *outgoing(const struct rdma_qp *qp, uint32_t number)
{
	return &qp->nic->outgoing[number & (NIC_FETCH_MAX - 1)];
}

/* Answered READs and atomics leave their places; an atomic's value goes where the request wants it. */
static int take_answer(struct rdma_engine *e, struct rdma_qp *qp, const struct rdma_job *job)
{
	uint64_t original = outgoing(qp, job->number)->original;
	uint8_t *place;

	if (!is_atomic(job))
		return 0;
	place = rdma_memory(e, qp, job->lkey, job->va, sizeof(original), NIC_ACCESS_LOCAL_WRITE);
	if (!place)
		return -EACCES;
	memcpy(place, &original, sizeof(original));
	return 0;
}

static int finished(const struct rdma_qp *qp, const struct rdma_job *job)
{
	const struct nic_receiver *r = &qp->nic->receiver[NIC_STREAM_RESPONSE];

	if (job->first + job->packets > qp->streams[NIC_STREAM_REQUEST].una)
		return 0;
	if (!is_fetch(job))
		return 1;
	if (nic_psn_distance(__atomic_load_n(&r->msn, __ATOMIC_ACQUIRE), job->number) <= 0)
		return 0;
	nic_settle(qp->nic);
	return 1;
}

static void free_answered(struct rdma_qp *qp)
{
	uint32_t answered = __atomic_load_n(&qp->nic->receiver[NIC_STREAM_RESPONSE].msn, __ATOMIC_ACQUIRE);

	for (uint32_t number = qp->fetches_completed; nic_psn_distance(answered, number & WIRE_PSN_MASK) > 0; number++)
		outgoing(qp, number)->kind = NIC_OUTGOING_NONE;
}

void rdma_requests_advance(struct rdma_engine *e, struct rdma_qp *qp, int64_t now)
{
	struct rdma_stream *s = &qp->streams[NIC_STREAM_REQUEST];
	uint32_t una = __atomic_load_n(&qp->nic->sender[NIC_STREAM_REQUEST].snd_una, __ATOMIC_ACQUIRE);
	int forward = nic_psn_distance(una, rdma_psn_of(s, s->una));

	if (forward > 0 && (uint64_t)forward <= s->released - s->una) {
		s->una += (uint64_t)forward;
		s->retries = qp->rnr_retries = 0;
		qp->responses_time = now;
	}
	free_answered(qp);
	while (s->jobs.count && finished(qp, rdma_jobs_at(&s->jobs, 0))) {
		if (take_answer(e, qp, rdma_jobs_at(&s->jobs, 0))) {
			rdma_qp_fail(e, qp, RDMA_LOC_PROT_ERR, rdma_jobs_at(&s->jobs, 0)->first);
			return;
		}
		complete_oldest(qp, RDMA_SUCCESS);
	}
}

void rdma_requests_fail(struct rdma_engine *e, struct rdma_qp *qp, uint32_t status, uint64_t sequence)
{
	struct rdma_stream *s = &qp->streams[NIC_STREAM_REQUEST];

	while (s->jobs.count) {
		const struct rdma_job *job = rdma_jobs_at(&s->jobs, 0);
		int guilty = sequence >= job->first && sequence - job->first < job->packets;

		complete_oldest(qp, guilty ? status : RDMA_WR_FLUSH_ERR);
	}
	s->released = s->tail = s->una;
	qp->unreleased = 0;
}

/* ---- release: how far the transport may go ---- */

static int local_access(const struct rdma_job *job)
{
	return is_fetch(job) ? NIC_ACCESS_LOCAL_WRITE : 0;
}

static int memory_is_right(const struct rdma_engine *e, const struct rdma_qp *qp, const struct rdma_job *job)
{
	return !job->length || rdma_memory(e, qp, job->lkey, job->va, job->length, (uint32_t)local_access(job));
}

static int all_before_is_done(const struct rdma_qp *qp, const struct rdma_job *job)
{
	return qp->streams[NIC_STREAM_REQUEST].una == job->first && rdma_jobs_at(&qp->streams[NIC_STREAM_REQUEST].jobs, 0) == job;
}

/* MP-RDMA, section 3.4, for a transport that delays by itself: one such message at a time is announced to it. */
static int announce_synchronise(struct rdma_qp *qp, const struct rdma_job *job)
{
	const struct rdma_stream *s = &qp->streams[NIC_STREAM_REQUEST];
	struct nic_emitter *e = &qp->nic->emitter[NIC_STREAM_REQUEST];

	if (e->synchronise != e->posted && nic_psn_distance(e->snd_nxt, e->synchronise) <= 0)
		return e->synchronise == rdma_psn_of(s, job->first);
	e->synchronise = rdma_psn_of(s, job->first);
	return 1;
}

static int credit_is_there(const struct rdma_qp *qp, const struct rdma_job *job)
{
	uint32_t limit = __atomic_load_n(&qp->nic->sender[NIC_STREAM_REQUEST].credit_limit, __ATOMIC_ACQUIRE);

	if (!(qp->nic->config.flags & NIC_QP_CREDITS) || !needs_receive(job))
		return 1;
	return nic_psn_distance(limit, nic_psn_add(job->msn, 1)) >= 0 || all_before_is_done(qp, job);
}

static int may_start(struct rdma_qp *qp, const struct rdma_job *job)
{
	if (job->flags & RDMA_SEND_FENCE && qp->fetches_completed != qp->next_fetch) {
		/* Fetches behind this one are not counted: none of them is released before it. */
		for (uint32_t i = 0; i < qp->unreleased; i++)
			if (is_fetch(rdma_jobs_at(&qp->streams[NIC_STREAM_REQUEST].jobs, i)))
				return 0;
	}
	if (is_fetch(job) &&
	    nic_psn_distance(job->number, qp->fetches_completed & WIRE_PSN_MASK) >= (int)qp->sending.max_rd_atomic)
		return 0;
	if (!credit_is_there(qp, job))
		return 0;
	if (job->flags & RDMA_SEND_SYNCHRONISE && !qp->transport->ibta)
		return qp->transport->synchronises ? announce_synchronise(qp, job) : all_before_is_done(qp, job);
	return 1;
}

static void expect_answer(struct rdma_qp *qp, const struct rdma_job *job)
{
	struct nic_outgoing *o = outgoing(qp, job->number);

	o->va = job->va;
	o->lkey = job->lkey;
	o->length = job->length;
	o->psn = rdma_psn_of(&qp->streams[NIC_STREAM_REQUEST], job->first);
	__atomic_store_n(&o->kind, is_atomic(job) ? NIC_OUTGOING_ATOMIC : NIC_OUTGOING_READ, __ATOMIC_RELEASE);
}

/* Eunomia, section 3.5.2: the last packet of a WRITE, behind which nothing is posted, follows when all else has come. */
static int last_packet_waits(const struct rdma_qp *qp, const struct rdma_job *job)
{
	const struct rdma_stream *s = &qp->streams[NIC_STREAM_REQUEST];
	uint64_t last = job->first + job->packets - 1;

	return qp->transport->delays_last && !(qp->nic->config.flags & NIC_QP_HOLD_LAST) && is_write(job) &&
	       last + 1 == s->tail && s->una < last;
}

void rdma_requests_release(struct rdma_engine *e, struct rdma_qp *qp)
{
	struct rdma_stream *s = &qp->streams[NIC_STREAM_REQUEST];
	struct nic_emitter *emitter = &qp->nic->emitter[NIC_STREAM_REQUEST];
	int announced = emitter->synchronise != emitter->posted;

	while (qp->unreleased < s->jobs.count) {
		struct rdma_job *job = rdma_jobs_at(&s->jobs, qp->unreleased);

		if (s->released == job->first) {
			if (!memory_is_right(e, qp, job)) {
				if (!qp->unreleased)
					rdma_qp_fail(e, qp, RDMA_LOC_PROT_ERR, job->first);
				break;
			}
			if (!may_start(qp, job))
				break;
			if (is_fetch(job))
				expect_answer(qp, job);
			announced |= job->flags & RDMA_SEND_SYNCHRONISE && qp->transport->synchronises;
		}
		s->released = job->first + job->packets;
		if (last_packet_waits(qp, job)) {
			s->released--;
			break;
		}
		qp->unreleased++;
	}
	emitter->posted = rdma_psn_of(s, s->released);
	if (!announced || nic_psn_distance(emitter->snd_nxt, emitter->synchronise) > 0)
		emitter->synchronise = emitter->posted;
}

/* ---- packets ---- */

/* Opcodes of a message: first, middle, last, only. */
static const uint8_t write_opcodes[4] = { WIRE_BTH_OPCODE_RC_WRITE_FIRST, WIRE_BTH_OPCODE_RC_WRITE_MIDDLE,
					  WIRE_BTH_OPCODE_RC_WRITE_LAST, WIRE_BTH_OPCODE_RC_WRITE_ONLY };
static const uint8_t write_imm_opcodes[4] = { WIRE_BTH_OPCODE_RC_WRITE_FIRST, WIRE_BTH_OPCODE_RC_WRITE_MIDDLE,
					      WIRE_BTH_OPCODE_RC_WRITE_LAST_IMM, WIRE_BTH_OPCODE_RC_WRITE_ONLY_IMM };
static const uint8_t send_opcodes[4] = { WIRE_BTH_OPCODE_RC_SEND_FIRST, WIRE_BTH_OPCODE_RC_SEND_MIDDLE,
					 WIRE_BTH_OPCODE_RC_SEND_LAST, WIRE_BTH_OPCODE_RC_SEND_ONLY };
static const uint8_t send_imm_opcodes[4] = { WIRE_BTH_OPCODE_RC_SEND_FIRST, WIRE_BTH_OPCODE_RC_SEND_MIDDLE,
					     WIRE_BTH_OPCODE_RC_SEND_LAST_IMM, WIRE_BTH_OPCODE_RC_SEND_ONLY_IMM };
static const uint8_t send_inv_opcodes[4] = { WIRE_BTH_OPCODE_RC_SEND_FIRST, WIRE_BTH_OPCODE_RC_SEND_MIDDLE,
					     WIRE_BTH_OPCODE_RC_SEND_LAST_INVALIDATE,
					     WIRE_BTH_OPCODE_RC_SEND_ONLY_INVALIDATE };

static uint8_t opcode_of(const struct rdma_job *job, uint32_t index)
{
	uint32_t place = job->packets == 1 ? 3 : index == 0 ? 0 : index + 1 == job->packets ? 2 : 1;

	switch (job->opcode) {
	case RDMA_WR_RDMA_WRITE:
		return write_opcodes[place];
	case RDMA_WR_RDMA_WRITE_WITH_IMM:
		return write_imm_opcodes[place];
	case RDMA_WR_SEND_WITH_IMM:
		return send_imm_opcodes[place];
	case RDMA_WR_SEND_WITH_INV:
		return send_inv_opcodes[place];
	case RDMA_WR_RDMA_READ:
		return WIRE_BTH_OPCODE_RC_READ_REQUEST;
	case RDMA_WR_ATOMIC_CMP_AND_SWP:
		return WIRE_BTH_OPCODE_RC_COMPARE_SWAP;
	case RDMA_WR_ATOMIC_FETCH_AND_ADD:
		return WIRE_BTH_OPCODE_RC_FETCH_ADD;
	default:
		return send_opcodes[place];
	}
}

/* 1, with what depends on the message alone; 0: the packet is acknowledged meanwhile; -EACCES: no such local memory. */
int rdma_request_packet(struct rdma_engine *e, struct rdma_qp *qp, const struct nic_send *send, struct rdma_packet *out)
{
	struct rdma_stream *s = &qp->streams[NIC_STREAM_REQUEST];
	int ahead = nic_psn_distance(send->psn, rdma_psn_of(s, s->una));
	uint64_t sequence = s->una + (uint64_t)ahead;
	struct rdma_job *job = ahead >= 0 && sequence < s->released ? rdma_jobs_find(&s->jobs, sequence) : NULL;
	uint32_t index, offset, left;

	if (!job)
		return 0;
	index = (uint32_t)(sequence - job->first);
	offset = index * qp->path_mtu;
	left = job->length - offset;
	out->opcode = opcode_of(job, index);
	out->va = job->remote_va;
	out->rkey = job->rkey;
	out->dma_length = job->length;
	out->immediate = job->immediate;
	out->msn = job->msn;
	out->wqe_sn = job->number;
	out->synchronise = (job->flags & RDMA_SEND_SYNCHRONISE) != 0;
	out->last = sequence + 1 == s->tail;
	out->ack_req = index + 1 == job->packets || sequence + 1 == s->released || sequence % qp->sending.ack_interval == 0;
	if (is_atomic(job)) {
		out->swap_add = job->swap_add;
		out->compare = job->compare;
	} else if (is_fetch(job)) {
		/* Go-back-N: what is left of a READ. */
		out->va += offset;
		out->dma_length = left;
	} else {
		out->ipsn = index;
		out->payload_length = left < qp->path_mtu ? left : qp->path_mtu;
		out->solicited = job->flags & RDMA_SEND_SOLICITED && index + 1 == job->packets;
		out->dscp = qp->sending.mark_remaining ? rdma_remaining_class(left) : out->dscp;
		/* Again with each packet: the application may have given the memory back. */
		out->payload = rdma_memory(e, qp, job->lkey, job->va + offset, out->payload_length, 0);
		if (out->payload_length && !out->payload) {
			rdma_qp_fail(e, qp, RDMA_LOC_PROT_ERR, job->first);
			return -EACCES;
		}
	}
	return 1;
}

/* ---- posting ---- */

static int describe(const struct rdma_qp *qp, const struct rdma_send_wr *wr, struct rdma_job *job)
{
	*job = (struct rdma_job){
		.wr_id = wr->wr_id, .va = wr->va, .remote_va = wr->remote_va, .lkey = wr->lkey, .rkey = wr->rkey,
		.length = wr->length, .immediate = wr->immediate, .opcode = wr->opcode, .flags = wr->flags, .packets = 1,
	};
	switch (wr->opcode) {
	case RDMA_WR_ATOMIC_CMP_AND_SWP:
		job->compare = wr->compare_add;
		job->swap_add = wr->swap;
		return wr->length == 8 ? 0 : -EINVAL;
	case RDMA_WR_ATOMIC_FETCH_AND_ADD:
		job->swap_add = wr->compare_add;
		return wr->length == 8 ? 0 : -EINVAL;
	case RDMA_WR_RDMA_READ:
		if (!qp->transport->ibta)
			return 0;
		break;
	case RDMA_WR_RDMA_WRITE:
	case RDMA_WR_RDMA_WRITE_WITH_IMM:
	case RDMA_WR_SEND:
	case RDMA_WR_SEND_WITH_IMM:
	case RDMA_WR_SEND_WITH_INV:
		break;
	default:
		return -EINVAL;
	}
	if (wr->length)
		job->packets = (wr->length + qp->path_mtu - 1u) / qp->path_mtu;
	return 0;
}

static int post(struct rdma_engine *e, struct rdma_qp *qp, const struct rdma_send_wr *wr)
{
	struct rdma_stream *s;
	struct rdma_job *job;

	if (!qp)
		return -ENOENT;
	s = &qp->streams[NIC_STREAM_REQUEST];
	if (!qp->transport || (qp->nic->config.state != WIRE_QP_STATE_ERROR && qp->nic->config.state != WIRE_QP_STATE_RTS))
		return -ENOTCONN;
	if (wr->length > NIC_MESSAGE_MAX - 1)
		return -EINVAL;
	job = rdma_jobs_room(&s->jobs);
	if (!job || !rdma_cq_has_room(qp->send_cq))
		return -ENOMEM;
	if (describe(qp, wr, job))
		return -EINVAL;
	/* PSNs compare over half their range only. */
	if (s->tail + job->packets - s->una >= NIC_PSN_HALF)
		return -ENOMEM;
	job->first = s->tail;
	job->msn = qp->next_msn;
	qp->next_msn = nic_psn_add(qp->next_msn, 1);
	if (needs_receive(job)) {
		job->number = qp->next_recv;
		qp->next_recv = nic_psn_add(qp->next_recv, 1);
	} else if (is_fetch(job)) {
		job->number = qp->next_fetch & WIRE_PSN_MASK;
		qp->next_fetch++;
	}
	rdma_jobs_push(&s->jobs);
	s->tail += job->packets;
	qp->send_cq->reserved++;
	/* What is posted in ERROR completes at once (IBTA vol. 1, section 10.3.1). */
	rdma_qp_attend(e, qp, rdma_now());
	return 0;
}

int rdma_qp_post_send(struct rdma_engine *e, uint32_t qpn, const struct rdma_send_wr *wr)
{
	int error;

	rdma_lock(e);
	error = post(e, rdma_qp_find(e, qpn), wr);
	rdma_unlock(e);
	if (!error)
		rdma_wake(e);
	return error;
}
