/* Rings of jobs. */
#include "jobs.h"

#include <errno.h>
#include <stdlib.h>

int rdma_jobs_init(struct rdma_jobs *jobs, uint32_t capacity)
{
	*jobs = (struct rdma_jobs){ .ring = calloc(capacity, sizeof(*jobs->ring)), .capacity = capacity };
	return jobs->ring ? 0 : -ENOMEM;
}

void rdma_jobs_free(struct rdma_jobs *jobs)
{
	free(jobs->ring);
	*jobs = (struct rdma_jobs){ 0 };
}

struct rdma_job *rdma_jobs_at(const struct rdma_jobs *jobs, uint32_t index)
{
	return &jobs->ring[(jobs->head + index) % jobs->capacity];
}

struct rdma_job *rdma_jobs_room(struct rdma_jobs *jobs)
{
	return jobs->count < jobs->capacity ? rdma_jobs_at(jobs, jobs->count) : NULL;
}

void rdma_jobs_push(struct rdma_jobs *jobs)
{
	jobs->count++;
}

void rdma_jobs_pop(struct rdma_jobs *jobs)
{
	jobs->head = (jobs->head + 1) % jobs->capacity;
	jobs->count--;
	if (jobs->hint)
		jobs->hint--;
}

int rdma_jobs_grow(struct rdma_jobs *jobs)
{
	struct rdma_jobs wider;
	int error = rdma_jobs_init(&wider, 2 * jobs->capacity);

	if (error)
		return error;
	for (; wider.count < jobs->count; wider.count++)
		wider.ring[wider.count] = *rdma_jobs_at(jobs, wider.count);
	wider.hint = jobs->hint;
	rdma_jobs_free(jobs);
	*jobs = wider;
	return 0;
}

static int holds(const struct rdma_job *job, uint64_t sequence)
{
	return sequence >= job->first && sequence - job->first < job->packets;
}

/* Nearly always the job found last or the one behind it; after a loss, by halving. */
struct rdma_job *rdma_jobs_find(struct rdma_jobs *jobs, uint64_t sequence)
{
	uint32_t low = 0, high = jobs->count;

	for (uint32_t index = jobs->hint; index < jobs->count && index < jobs->hint + 2; index++) {
		if (holds(rdma_jobs_at(jobs, index), sequence)) {
			jobs->hint = index;
			return rdma_jobs_at(jobs, index);
		}
	}
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (rdma_jobs_at(jobs, middle)->first <= sequence)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || !holds(rdma_jobs_at(jobs, low - 1), sequence))
		return NULL;
	jobs->hint = low - 1;
	return rdma_jobs_at(jobs, low - 1);
}
