/*
 * The messages of a stream, in order: work requests, or the answers to a peer's READs and atomics.  A ring of jobs whose
 * packets follow each other, so that a packet's job is found from its sequence number.
 */
#ifndef RDMA_JOBS_H
#define RDMA_JOBS_H

#include <stdint.h>

struct rdma_job {
	uint64_t first;    /* sequence number of its first packet */
	uint32_t packets;  /* sequence numbers that it takes, at least 1 */
	uint32_t length;   /* bytes */
	uint64_t va, remote_va, wr_id;
	uint64_t swap_add, compare; /* of an atomic; swap_add: of its answer, the original value */
	uint32_t lkey, rkey;
	uint32_t immediate;
	uint32_t opcode;   /* enum rdma_wr_opcode; the answer's: of the request, enum wire_bth_opcode */
	uint32_t flags;    /* RDMA_SEND_... */
	uint32_t msn;      /* number of the message; of an answer with go-back-N, its first PSN */
	uint32_t number;   /* recv_WQE_SN or read_WQE_SN, where it has one */
};

struct rdma_jobs {
	struct rdma_job *ring;
	uint32_t capacity, head, count;
	uint32_t hint; /* index of the job that was found last */
};

int rdma_jobs_init(struct rdma_jobs *jobs, uint32_t capacity);
void rdma_jobs_free(struct rdma_jobs *jobs);
struct rdma_job *rdma_jobs_at(const struct rdma_jobs *jobs, uint32_t index);
/* The place behind the last job, or NULL when there is none; it counts from rdma_jobs_push() on. */
struct rdma_job *rdma_jobs_room(struct rdma_jobs *jobs);
void rdma_jobs_push(struct rdma_jobs *jobs);
void rdma_jobs_pop(struct rdma_jobs *jobs);
/* Twice the capacity; 0 or -ENOMEM. */
int rdma_jobs_grow(struct rdma_jobs *jobs);
/* The job that holds packet `sequence`, or NULL. */
struct rdma_job *rdma_jobs_find(struct rdma_jobs *jobs, uint64_t sequence);

#endif
