/* Completion queues.  Room is reserved when work is posted, so that a completion always finds some. */
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "private.h"

struct rdma_cq *rdma_cq_find(struct rdma_engine *e, int cq)
{
	return cq >= 0 && cq < RDMA_MAX_CQS ? e->cqs[cq] : NULL;
}

void rdma_cq_free(struct rdma_cq *cq)
{
	if (!cq)
		return;
	if (cq->event_fd >= 0)
		close(cq->event_fd);
	free(cq->ring);
	free(cq);
}

static int cq_build(uint32_t capacity, struct rdma_cq **out)
{
	struct rdma_cq *cq = calloc(1, sizeof(*cq));

	if (!cq)
		return -ENOMEM;
	cq->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	cq->capacity = capacity;
	cq->ring = calloc(capacity, sizeof(*cq->ring));
	if (cq->event_fd < 0 || !cq->ring) {
		rdma_cq_free(cq);
		return -ENOMEM;
	}
	*out = cq;
	return 0;
}

int rdma_cq_create(struct rdma_engine *e, uint32_t capacity, int *number, int *event_fd)
{
	int error = -ENOSPC;

	if (!capacity)
		return -EINVAL;
	rdma_lock(e);
	for (int i = 0; i < RDMA_MAX_CQS; i++) {
		if (e->cqs[i])
			continue;
		error = cq_build(capacity, &e->cqs[i]);
		if (!error) {
			*number = i;
			*event_fd = e->cqs[i]->event_fd;
		}
		break;
	}
	rdma_unlock(e);
	return error;
}

int rdma_cq_destroy(struct rdma_engine *e, int number)
{
	struct rdma_cq *cq;
	int error = 0;

	rdma_lock(e);
	cq = rdma_cq_find(e, number);
	if (!cq)
		error = -ENOENT;
	for (uint32_t i = 0; !error && i < e->maps.max_qps; i++)
		if (e->qps[i] && (e->qps[i]->send_cq == cq || e->qps[i]->recv_cq == cq))
			error = -EBUSY;
	if (!error) {
		e->cqs[number] = NULL;
		rdma_cq_free(cq);
	}
	rdma_unlock(e);
	return error;
}

int rdma_cq_has_room(const struct rdma_cq *cq)
{
	return cq->count + cq->reserved < cq->capacity;
}

/* Twice the capacity: a shared queue's receives have no room reserved, since nobody knows yet where they will complete. */
static int cq_grow(struct rdma_cq *cq)
{
	struct rdma_completion *wider = calloc(2ul * cq->capacity, sizeof(*wider));

	if (!wider)
		return -ENOMEM;
	for (uint32_t i = 0; i < cq->count; i++)
		wider[i] = cq->ring[(cq->head + i) % cq->capacity];
	free(cq->ring);
	cq->ring = wider;
	cq->head = 0;
	cq->capacity *= 2;
	return 0;
}

void rdma_cq_push(struct rdma_cq *cq, const struct rdma_completion *completion)
{
	static const uint64_t one = 1;

	if (cq->count == cq->capacity && cq_grow(cq))
		return;
	cq->ring[(cq->head + cq->count) % cq->capacity] = *completion;
	cq->count++;
	/* The counter cannot overflow in a run's life; a failed write could only mean that. */
	if (write(cq->event_fd, &one, sizeof(one)) < 0)
		return;
}

int rdma_cq_poll(struct rdma_engine *e, int number, struct rdma_completion *out, int max)
{
	struct rdma_cq *cq;
	int taken = 0;

	rdma_lock(e);
	cq = rdma_cq_find(e, number);
	while (cq && taken < max && cq->count) {
		out[taken++] = cq->ring[cq->head];
		cq->head = (cq->head + 1) % cq->capacity;
		cq->count--;
	}
	rdma_unlock(e);
	return cq ? taken : -ENOENT;
}
