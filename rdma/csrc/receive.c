/* Receive queues, of one queue pair or shared, and the completions of what came into them. */
#include <errno.h>
#include <stdlib.h>

#include "private.h"

struct rdma_rq *rdma_rq_find(struct rdma_engine *e, uint32_t rq)
{
	return rq < e->maps.max_rqs ? e->rqs[rq] : NULL;
}

void rdma_rq_free(struct rdma_engine *e, struct rdma_rq *rq)
{
	if (!rq)
		return;
	__atomic_store_n(&rq->nic->in_use, 0, __ATOMIC_RELEASE);
	e->rqs[rq->number] = NULL;
	free(rq->wr_ids);
	free(rq->done);
	free(rq);
}

static int rq_build(struct rdma_engine *e, uint32_t number, uint32_t base, uint32_t capacity, int shared)
{
	struct rdma_rq *rq;

	if (number >= e->maps.max_rqs || !capacity || capacity & (capacity - 1) || base > e->maps.max_recvs ||
	    capacity > e->maps.max_recvs - base)
		return -EINVAL;
	if (e->rqs[number])
		return -EEXIST;
	rq = calloc(1, sizeof(*rq));
	if (!rq)
		return -ENOMEM;
	rq->nic = &e->nic_rqs[number];
	rq->number = number;
	rq->base = base;
	rq->mask = capacity - 1;
	rq->shared = shared;
	rq->wr_ids = calloc(capacity, sizeof(*rq->wr_ids));
	rq->done = calloc(capacity, sizeof(*rq->done));
	e->rqs[number] = rq;
	if (!rq->wr_ids || !rq->done) {
		rdma_rq_free(e, rq);
		return -ENOMEM;
	}
	*rq->nic = (struct nic_rq){ .base = base, .mask = rq->mask };
	__atomic_store_n(&rq->nic->in_use, 1, __ATOMIC_RELEASE);
	return 0;
}

int rdma_rq_create(struct rdma_engine *e, uint32_t rq, uint32_t base, uint32_t capacity, int shared)
{
	int error;

	rdma_lock(e);
	error = rq_build(e, rq, base, capacity, shared);
	rdma_unlock(e);
	return error;
}

int rdma_rq_destroy(struct rdma_engine *e, uint32_t number)
{
	struct rdma_rq *rq;
	int error = 0;

	rdma_lock(e);
	rq = rdma_rq_find(e, number);
	if (!rq)
		error = -ENOENT;
	else if (rq->users)
		error = -EBUSY;
	else
		rdma_rq_free(e, rq);
	rdma_unlock(e);
	return error;
}

static void push(struct rdma_qp *qp, uint64_t wr_id, uint32_t status, const struct nic_recv *recv)
{
	struct rdma_completion c = { .wr_id = wr_id, .qpn = qp->qpn, .status = status, .opcode = RDMA_WC_RECV };

	if (status == RDMA_SUCCESS) {
		c.byte_len = recv->byte_len;
		c.immediate = recv->immediate;
		if (recv->flags & NIC_RECV_WRITE)
			c.opcode = RDMA_WC_RECV_RDMA_WITH_IMM;
		if (recv->flags & NIC_RECV_IMMEDIATE)
			c.flags = RDMA_WC_WITH_IMM;
		if (recv->flags & NIC_RECV_INVALIDATE)
			c.flags = RDMA_WC_WITH_INV;
	}
	rdma_cq_push(qp->recv_cq, &c);
}

/* Frees the places of receives that are done, as far as they follow each other. */
static void free_done(struct rdma_rq *rq)
{
	while (rq->freed != rq->posted && rq->done[rq->freed & rq->mask]) {
		rq->done[rq->freed & rq->mask] = 0;
		rq->freed = nic_psn_add(rq->freed, 1);
	}
}

/* Which of its queue's receives the queue pair's receive `reaped` is. */
static uint32_t next_number(const struct rdma_qp *qp)
{
	return qp->rq->shared ? qp->nic->allotted[qp->reaped & (NIC_ALLOTTED - 1)] : qp->reaped;
}

/* The receives before this are the queue pair's: those that it has taken or, of a queue of its own, all that are posted. */
static uint32_t receives_end(const struct rdma_qp *qp)
{
	const uint32_t *allotted = &qp->nic->receiver[NIC_STREAM_REQUEST].allotted;

	return qp->rq->shared ? __atomic_load_n(allotted, __ATOMIC_ACQUIRE) : qp->rq->posted;
}

/* Completes the queue pair's receive `reaped`. */
static void complete(struct rdma_engine *e, struct rdma_qp *qp, uint32_t status)
{
	struct rdma_rq *rq = qp->rq;
	uint32_t place = next_number(qp) & rq->mask;

	push(qp, rq->wr_ids[place], status, &e->recvs[rq->base + place]);
	if (!rq->shared)
		qp->recv_cq->reserved--;
	rq->done[place] = 1;
	free_done(rq);
	qp->reaped = nic_psn_add(qp->reaped, 1);
	/* Of the request stream: receives reaped, so that their places in `allotted` are free. */
	__atomic_store_n(&qp->nic->emitter[NIC_STREAM_REQUEST].served, qp->reaped, __ATOMIC_RELEASE);
}

int rdma_receives_reap(struct rdma_engine *e, struct rdma_qp *qp)
{
	uint32_t completed = __atomic_load_n(&qp->nic->receiver[NIC_STREAM_REQUEST].completed, __ATOMIC_ACQUIRE);

	nic_settle(qp->nic);
	while (!qp->failed && nic_psn_distance(completed, qp->reaped) > 0) {
		const struct nic_recv *recv;

		/* More messages than receives: the peer has named one for several.  Those behind may be another queue pair's. */
		if (qp->reaped == receives_end(qp))
			return -EPROTO;
		recv = &e->recvs[qp->rq->base + (next_number(qp) & qp->rq->mask)];
		/* Send with invalidate: the region is out of reach before the application learns of it. */
		if (recv->flags & NIC_RECV_INVALIDATE && rdma_region_invalidate(e, qp, recv->immediate)) {
			complete(e, qp, RDMA_LOC_PROT_ERR);
			return -EACCES;
		}
		complete(e, qp, RDMA_SUCCESS);
	}
	return 0;
}

static uint32_t fault(const struct nic_recv *recv)
{
	if (recv->flags & NIC_RECV_ERROR)
		return RDMA_LOC_LEN_ERR;
	return recv->flags & NIC_RECV_PROTECTION ? RDMA_LOC_PROT_ERR : RDMA_WR_FLUSH_ERR;
}

/* What the queue pair had taken or, of a queue of its own, could have taken. */
void rdma_receives_flush(struct rdma_engine *e, struct rdma_qp *qp)
{
	uint32_t end = receives_end(qp);
	uint32_t completed = qp->nic->receiver[NIC_STREAM_REQUEST].completed;

	while (nic_psn_distance(end, qp->reaped) > 0) {
		const struct nic_recv *recv = &e->recvs[qp->rq->base + (next_number(qp) & qp->rq->mask)];

		complete(e, qp, qp->reaped == completed ? fault(recv) : RDMA_WR_FLUSH_ERR);
	}
}

void rdma_receives_drop(struct rdma_qp *qp)
{
	while (nic_psn_distance(receives_end(qp), qp->reaped) > 0) {
		qp->rq->done[next_number(qp) & qp->rq->mask] = 1;
		qp->reaped = nic_psn_add(qp->reaped, 1);
	}
	free_done(qp->rq);
}

static int post(struct rdma_engine *e, struct rdma_rq *rq, const struct rdma_recv_wr *wr)
{
	struct nic_recv *recv;
	uint32_t place;

	if (!rq)
		return -ENOENT;
	if (wr->length > NIC_MESSAGE_MAX - 1)
		return -EINVAL;
	if (nic_psn_distance(rq->posted, rq->freed) > (int)rq->mask)
		return -ENOMEM;
	if (!rq->shared && (!rq->owner || !rdma_cq_has_room(rq->owner->recv_cq)))
		return -ENOMEM;
	place = rq->posted & rq->mask;
	recv = &e->recvs[rq->base + place];
	*recv = (struct nic_recv){ .va = wr->va, .length = wr->length, .lkey = wr->lkey };
	rq->wr_ids[place] = wr->wr_id;
	rq->posted = nic_psn_add(rq->posted, 1);
	if (!rq->shared)
		rq->owner->recv_cq->reserved++;
	__atomic_store_n(&rq->nic->posted, rq->posted, __ATOMIC_RELEASE);
	/* In ERROR it completes at once. */
	if (!rq->shared && rq->owner->nic->config.state == WIRE_QP_STATE_ERROR)
		rdma_qp_attend(e, rq->owner, rdma_now());
	return 0;
}

int rdma_post_recv(struct rdma_engine *e, uint32_t rq, const struct rdma_recv_wr *wr)
{
	int error;

	rdma_lock(e);
	error = post(e, rdma_rq_find(e, rq), wr);
	rdma_unlock(e);
	return error;
}
