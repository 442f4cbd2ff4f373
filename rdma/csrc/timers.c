/* One timer a queue pair, in a binary heap: heap[1] is the first due. */
#include "private.h"

static void put(struct rdma_engine *e, uint32_t index, struct rdma_qp *qp)
{
	e->heap[index] = qp;
	qp->heap_index = index;
}

static void up(struct rdma_engine *e, struct rdma_qp *qp)
{
	uint32_t index = qp->heap_index;

	for (; index > 1 && e->heap[index / 2]->due > qp->due; index /= 2)
		put(e, index, e->heap[index / 2]);
	put(e, index, qp);
}

static void down(struct rdma_engine *e, struct rdma_qp *qp)
{
	uint32_t index = qp->heap_index;

	for (uint32_t child; (child = 2 * index) <= e->heap_count; index = child) {
		if (child < e->heap_count && e->heap[child + 1]->due < e->heap[child]->due)
			child++;
		if (e->heap[child]->due >= qp->due)
			break;
		put(e, index, e->heap[child]);
	}
	put(e, index, qp);
}

void rdma_timer_at(struct rdma_engine *e, struct rdma_qp *qp, int64_t due)
{
	if (qp->heap_index && qp->due <= due)
		return;
	qp->due = due;
	if (!qp->heap_index)
		qp->heap_index = ++e->heap_count;
	up(e, qp);
}

void rdma_timer_cancel(struct rdma_engine *e, struct rdma_qp *qp)
{
	struct rdma_qp *last = e->heap[e->heap_count];
	uint32_t index = qp->heap_index;

	if (!index)
		return;
	qp->heap_index = 0;
	e->heap_count--;
	if (last == qp)
		return;
	last->heap_index = index;
	up(e, last);
	down(e, last);
}

struct rdma_qp *rdma_timer_take(struct rdma_engine *e, int64_t now)
{
	struct rdma_qp *qp = e->heap_count ? e->heap[1] : NULL;

	if (!qp || qp->due > now)
		return NULL;
	rdma_timer_cancel(e, qp);
	return qp;
}

int64_t rdma_timer_next(const struct rdma_engine *e)
{
	return e->heap_count ? e->heap[1]->due : RDMA_NEVER;
}
