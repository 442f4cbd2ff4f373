/* The NIC's maps in this process, and memory regions. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "private.h"

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

/* The arrays: where each is kept, its file descriptor and its size. */
struct array {
	void **place;
	int fd;
	size_t bytes;
};

#define ARRAYS 8

static void list_arrays(struct rdma_engine *e, struct array *arrays)
{
	const struct rdma_maps *m = &e->maps;
	const struct array all[ARRAYS] = {
		{ (void **)&e->arena, m->arena_fd, m->arena_bytes },
		{ (void **)&e->nic_qps, m->qps_fd, m->max_qps * sizeof(struct nic_qp) },
		{ (void **)&e->regions, m->regions_fd, m->max_regions * sizeof(struct nic_region) },
		{ (void **)&e->nic_rqs, m->rqs_fd, m->max_rqs * sizeof(struct nic_rq) },
		{ (void **)&e->recvs, m->recvs_fd, m->max_recvs * sizeof(struct nic_recv) },
		{ (void **)&e->counters, m->counters_fd, m->max_hosts * sizeof(struct nic_counters) },
		{ (void **)&e->host_states, m->host_states_fd, m->max_hosts * sizeof(struct nic_host_state) },
		{ (void **)&e->icrc, m->icrc_fd, sizeof(struct nic_icrc_tables) },
	};

	memcpy(arrays, all, sizeof(all));
}

int rdma_map_all(struct rdma_engine *e)
{
	const struct rdma_maps *m = &e->maps;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const int rw = PROT_READ | PROT_WRITE;
	struct array arrays[ARRAYS];
	void *ring = NULL;
	int error = 0;

	list_arrays(e, arrays);
	for (int i = 0; i < ARRAYS && !error; i++)
		error = map_fd(arrays[i].fd, page_rounded(arrays[i].bytes), 0, rw, arrays[i].place);
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

void rdma_unmap_all(struct rdma_engine *e)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct array arrays[ARRAYS];

	list_arrays(e, arrays);
	unmap(e->bell_producer, page + 2 * e->maps.doorbell_bytes);
	unmap(e->bell_consumer, page);
	for (int i = ARRAYS; i-- > 0;)
		unmap(*arrays[i].place, page_rounded(arrays[i].bytes));
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

static const struct nic_region *find(const struct rdma_engine *e, const struct rdma_qp *qp, uint32_t key)
{
	const struct nic_region *region = &e->regions[key & (e->maps.max_regions - 1)];

	if (!nic_region_valid(region, key) || region->pd != qp->nic->config.pd ||
	    region->owner_ip != qp->nic->config.local_ip)
		return NULL;
	return region;
}

uint8_t *rdma_memory(const struct rdma_engine *e, const struct rdma_qp *qp, uint32_t key, uint64_t va, uint32_t length,
		     uint32_t access)
{
	const struct nic_region *region = find(e, qp, key);

	if (!region || (region->access & access) != access || nic_check_bounds(region, va, length) != NIC_STEP_OK)
		return NULL;
	return e->arena + region->arena_offset + (va - region->va);
}

int rdma_region_invalidate(struct rdma_engine *e, const struct rdma_qp *qp, uint32_t rkey)
{
	if (!find(e, qp, rkey))
		return -EACCES;
	return rdma_region_remove(e, rkey);
}
