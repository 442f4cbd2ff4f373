/* The engine: the doorbell ring, and the loop that takes news, watches timers and sends. */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "icrc_init.h"
#include "private.h"

#define RING_BUSY    (1u << 31) /* BPF_RINGBUF_BUSY_BIT */
#define RING_DISCARD (1u << 30) /* BPF_RINGBUF_DISCARD_BIT */
#define RING_HEADER  8          /* BPF_RINGBUF_HDR_SZ */

int64_t rdma_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void rdma_lock(struct rdma_engine *e)
{
	atomic_fetch_add(&e->waiters, 1);
	pthread_mutex_lock(&e->lock);
	atomic_fetch_sub(&e->waiters, 1);
}

void rdma_unlock(struct rdma_engine *e)
{
	pthread_mutex_unlock(&e->lock);
}

void rdma_wake(struct rdma_engine *e)
{
	static const uint64_t one = 1;

	/* It fails only when the counter is full, and then the loop is awake anyway. */
	if (write(e->wake_fd, &one, sizeof(one)) < 0)
		return;
}

int rdma_die_with_parent(void)
{
	return prctl(PR_SET_PDEATHSIG, SIGTERM) ? -errno : 0;
}

static int watch(struct rdma_engine *e, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	return epoll_ctl(e->epoll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

static int engine_build(struct rdma_engine *e)
{
	int error;

	e->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	e->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (e->epoll_fd < 0 || e->wake_fd < 0)
		return -errno;
	e->hosts = calloc(e->maps.max_hosts, sizeof(*e->hosts));
	e->qps = calloc(e->maps.max_qps, sizeof(struct rdma_qp *));
	e->rqs = calloc(e->maps.max_rqs, sizeof(struct rdma_rq *));
	e->heap = calloc(e->maps.max_qps + 1ul, sizeof(struct rdma_qp *));
	if (!e->hosts || !e->qps || !e->rqs || !e->heap)
		return -ENOMEM;
	for (uint32_t i = 0; i < e->maps.max_hosts; i++)
		e->hosts[i].socket = -1;
	error = rdma_map_all(e);
	if (!error)
		error = watch(e, e->wake_fd);
	if (!error)
		error = watch(e, e->maps.doorbells_fd);
	if (!error)
		nic_icrc_tables_init(e->icrc);
	return error;
}

int rdma_engine_open(const struct rdma_maps *maps, struct rdma_engine **out)
{
	struct rdma_engine *e = calloc(1, sizeof(*e));
	int error;

	if (!e)
		return -ENOMEM;
	pthread_mutex_init(&e->lock, NULL);
	e->maps = *maps;
	e->epoll_fd = e->wake_fd = -1;
	error = engine_build(e);
	if (error) {
		rdma_engine_close(e);
		return error;
	}
	*out = e;
	return 0;
}

void rdma_engine_close(struct rdma_engine *e)
{
	if (!e)
		return;
	for (uint32_t i = 0; e->qps && i < e->maps.max_qps; i++)
		rdma_qp_free(e, e->qps[i]);
	for (uint32_t i = 0; e->rqs && i < e->maps.max_rqs; i++)
		rdma_rq_free(e, e->rqs[i]);
	for (int i = 0; i < RDMA_MAX_CQS; i++)
		rdma_cq_free(e->cqs[i]);
	for (uint32_t i = 0; e->hosts && i < e->maps.max_hosts; i++)
		rdma_host_close(&e->hosts[i]);
	rdma_unmap_all(e);
	free(e->heap);
	free(e->rqs);
	free(e->qps);
	free(e->hosts);
	if (e->wake_fd >= 0)
		close(e->wake_fd);
	if (e->epoll_fd >= 0)
		close(e->epoll_fd);
	pthread_mutex_destroy(&e->lock);
	free(e);
}

void rdma_engine_stop(struct rdma_engine *e)
{
	atomic_store(&e->stopping, 1);
	rdma_wake(e);
}

/* A queue pair that NIC and agent know: all news of it, since its bell may not have rung. */
static void sweep(struct rdma_engine *e, int64_t now)
{
	for (uint32_t i = 0; i < e->maps.max_qps; i++)
		if (e->qps[i])
			rdma_qp_attend(e, e->qps[i], now);
}

/* A ring without room for one more record may have lost some, so all queue pairs are looked at then. */
static void take_doorbells(struct rdma_engine *e, int64_t now)
{
	unsigned long mask = e->maps.doorbell_bytes - 1;
	unsigned long at = *e->bell_consumer;
	unsigned long end = __atomic_load_n(e->bell_producer, __ATOMIC_ACQUIRE);
	int full = end - at + RING_HEADER + sizeof(struct nic_doorbell) > mask;

	while (at < end) {
		const uint32_t *header = (const void *)(e->bell_data + (at & mask));
		uint32_t length = __atomic_load_n(header, __ATOMIC_ACQUIRE);

		if (length & RING_BUSY)
			break;
		if (!(length & RING_DISCARD)) {
			const struct nic_doorbell *bell = (const void *)((const uint8_t *)header + RING_HEADER);
			struct rdma_qp *qp = rdma_qp_find(e, bell->qpn);

			if (qp)
				rdma_qp_attend(e, qp, now);
		}
		at += ((length & ~(RING_BUSY | RING_DISCARD)) + RING_HEADER + 7) / 8 * 8;
		__atomic_store_n(e->bell_consumer, at, __ATOMIC_RELEASE);
	}
	if (full)
		sweep(e, now);
}

/* One pass over everything; returns when the next one is due. */
static int64_t pass(struct rdma_engine *e, int64_t now)
{
	int64_t due;
	struct rdma_qp *qp;

	take_doorbells(e, now);
	while ((qp = rdma_timer_take(e, now)))
		rdma_qp_attend(e, qp, now);
	due = RDMA_NEVER;
	for (uint32_t i = 1; i < e->maps.max_hosts; i++) {
		int64_t at = rdma_host_send(e, &e->hosts[i], now);

		if (at < due)
			due = at;
	}
	return rdma_timer_next(e) < due ? rdma_timer_next(e) : due;
}

static int wait_until(struct rdma_engine *e, int64_t due)
{
	struct epoll_event events[2];
	int64_t left = due == RDMA_NEVER ? 0 : due - rdma_now();
	struct timespec timeout;
	uint64_t wakes;
	int n;

	if (left < 0)
		left = 0;
	timeout = (struct timespec){ .tv_sec = left / 1000000000, .tv_nsec = left % 1000000000 };
	n = epoll_pwait2(e->epoll_fd, events, 2, due == RDMA_NEVER ? NULL : &timeout, NULL);
	if (n < 0 && errno != EINTR)
		return -errno;
	for (int i = 0; i < n; i++)
		if (events[i].data.fd == e->wake_fd && read(e->wake_fd, &wakes, sizeof(wakes)) < 0 && errno != EAGAIN)
			return -errno;
	return 0;
}

int rdma_engine_run(struct rdma_engine *e)
{
	int error = 0;

	while (!error && !atomic_load(&e->stopping)) {
		int64_t due;

		while (atomic_load(&e->waiters))
			sched_yield();
		pthread_mutex_lock(&e->lock);
		due = pass(e, rdma_now());
		pthread_mutex_unlock(&e->lock);
		error = wait_until(e, due);
	}
	return error;
}
