/* The engine: maps, the doorbell ring, and the loop that sends, takes news and watches timers. */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "icrc_init.h"
#include "private.h"

#define SWEEP_NS     1000000 /* timers and missed doorbells are looked at this often while anything is outstanding */
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

static int map_fd(int fd, size_t length, off_t offset, int protection, void **out)
{
	void *address = mmap(NULL, length, protection, MAP_SHARED, fd, offset);

	if (address == MAP_FAILED)
		return -errno;
	*out = address;
	return 0;
}

static size_t page_rounded(size_t length)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (length + page - 1) / page * page;
}

static void unmap(const void *address, size_t length)
{
	if (address)
		munmap((void *)(uintptr_t)address, length);
}

static int map_all(struct rdma_engine *e)
{
	const struct rdma_maps *m = &e->maps;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const int rw = PROT_READ | PROT_WRITE;
	void *ring = NULL;
	int error;

	error = map_fd(m->arena_fd, m->arena_bytes, 0, rw, (void **)&e->arena);
	if (!error)
		error = map_fd(m->qps_fd, page_rounded(m->max_qps * sizeof(struct nic_qp)), 0, rw, (void **)&e->nic_qps);
	if (!error)
		error = map_fd(m->regions_fd, page_rounded(m->max_regions * sizeof(struct nic_region)), 0, rw,
			       (void **)&e->regions);
	if (!error)
		error = map_fd(m->counters_fd, page_rounded(m->max_hosts * sizeof(struct nic_counters)), 0, rw,
			       (void **)&e->counters);
	if (!error)
		error = map_fd(m->icrc_fd, page_rounded(sizeof(struct nic_icrc_tables)), 0, rw, (void **)&e->icrc);
	if (!error)
		error = map_fd(m->doorbells_fd, page, 0, rw, (void **)&e->bell_consumer);
	/* The producer's page, then the data twice in a row, so that no record is split. */
	if (!error)
		error = map_fd(m->doorbells_fd, page + 2 * m->doorbell_bytes, (off_t)page, PROT_READ, &ring);
	if (!error) {
		e->bell_producer = ring;
		e->bell_data = (const uint8_t *)ring + page;
	}
	return error;
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
	if (!e->hosts || !e->qps)
		return -ENOMEM;
	for (uint32_t i = 0; i < e->maps.max_hosts; i++)
		e->hosts[i].socket = -1;
	error = map_all(e);
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
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (!e)
		return;
	for (uint32_t i = 0; e->qps && i < e->maps.max_qps; i++)
		rdma_qp_free(e, e->qps[i]);
	for (int i = 0; i < RDMA_MAX_CQS; i++)
		rdma_cq_free(e->cqs[i]);
	for (uint32_t i = 0; e->hosts && i < e->maps.max_hosts; i++)
		rdma_host_close(&e->hosts[i]);
	unmap(e->bell_producer, page + 2 * e->maps.doorbell_bytes);
	unmap(e->bell_consumer, page);
	unmap(e->icrc, page_rounded(sizeof(struct nic_icrc_tables)));
	unmap(e->counters, page_rounded(e->maps.max_hosts * sizeof(struct nic_counters)));
	unmap(e->regions, page_rounded(e->maps.max_regions * sizeof(struct nic_region)));
	unmap(e->nic_qps, page_rounded(e->maps.max_qps * sizeof(struct nic_qp)));
	unmap(e->arena, e->maps.arena_bytes);
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

int rdma_region_add(struct rdma_engine *e, uint32_t rkey, uint64_t arena_offset, uint64_t length, uint64_t va,
		    uint32_t access, uint32_t pd, uint32_t owner_ip)
{
	struct nic_region *region = &e->regions[rkey & (e->maps.max_regions - 1)];

	if (!rkey || arena_offset > e->maps.arena_bytes || length > e->maps.arena_bytes - arena_offset ||
	    va + length < va)
		return -EINVAL;
	if (region->rkey)
		return -EEXIST;
	memset(e->arena + arena_offset, 0, length);
	*region = (struct nic_region){
		.va = va, .length = length, .arena_offset = arena_offset, .access = access, .pd = pd, .owner_ip = owner_ip,
	};
	__atomic_store_n(&region->rkey, rkey, __ATOMIC_RELEASE);
	return 0;
}

int rdma_region_remove(struct rdma_engine *e, uint32_t rkey)
{
	struct nic_region *region = &e->regions[rkey & (e->maps.max_regions - 1)];

	if (!rkey || region->rkey != rkey)
		return -ENOENT;
	__atomic_store_n(&region->rkey, 0, __ATOMIC_RELEASE);
	return 0;
}

static void take_doorbells(struct rdma_engine *e, int64_t now)
{
	unsigned long mask = e->maps.doorbell_bytes - 1;
	unsigned long at = *e->bell_consumer;
	unsigned long end = __atomic_load_n(e->bell_producer, __ATOMIC_ACQUIRE);

	while (at < end) {
		const uint32_t *header = (const void *)(e->bell_data + (at & mask));
		uint32_t length = __atomic_load_n(header, __ATOMIC_ACQUIRE);

		if (length & RING_BUSY)
			break;
		if (!(length & RING_DISCARD)) {
			const struct nic_doorbell *bell = (const void *)((const uint8_t *)header + RING_HEADER);
			struct rdma_qp *qp = rdma_qp_find(e, bell->qpn);

			if (qp)
				rdma_qp_take_news(qp, now);
		}
		at += ((length & ~(RING_BUSY | RING_DISCARD)) + RING_HEADER + 7) / 8 * 8;
		__atomic_store_n(e->bell_consumer, at, __ATOMIC_RELEASE);
	}
}

/* All busy queue pairs of a host.  Each may leave the ring while it is looked at, so the successor is kept. */
static void sweep_host(struct rdma_host *host, int64_t now)
{
	struct rdma_qp *last = host->busy ? host->busy->busy_previous : NULL;
	struct rdma_qp *qp = host->busy;

	while (qp) {
		struct rdma_qp *next = qp == last ? NULL : qp->busy_next;

		rdma_qp_take_news(qp, now);
		rdma_qp_check_timer(qp, now);
		qp = next;
	}
}

/* One pass over everything; returns when the next one is due. */
static int64_t pass(struct rdma_engine *e, int64_t now)
{
	int64_t due = RDMA_NEVER;
	int sweep = now >= e->next_sweep;

	take_doorbells(e, now);
	for (uint32_t i = 1; i < e->maps.max_hosts; i++) {
		struct rdma_host *host = &e->hosts[i];
		int64_t at;

		if (!host->busy)
			continue;
		if (sweep)
			sweep_host(host, now);
		at = rdma_host_send(e, host, now);
		if (at < due)
			due = at;
		if (host->busy && e->next_sweep < due)
			due = sweep ? (now + SWEEP_NS < due ? now + SWEEP_NS : due) : e->next_sweep;
	}
	if (sweep)
		e->next_sweep = now + SWEEP_NS;
	return due;
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
