/*
 * The engine's own structures.  All of them, and all functions below, are used under the engine's lock.
 *
 * Sequence numbers inside the engine are 64 bits wide and start at 0 with a stream's first packet, so that they never
 * wrap; only rdma_psn_of() makes them PSNs.  Invariant of a stream: una <= released <= tail.
 */
#ifndef RDMA_PRIVATE_H
#define RDMA_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "api.h"
#include "dcqcn.h"
#include "frame.h"
#include "jobs.h"
#include "transport.h"

#define RDMA_BATCH    32
#define RDMA_MAX_CQS  4096
#define RDMA_NEVER    INT64_MAX

struct rdma_cq {
	int event_fd;
	uint32_t capacity, head, count;
	uint32_t reserved; /* work requests that may still complete here: count + reserved <= capacity */
	struct rdma_completion *ring;
};

struct rdma_host;
struct rdma_qp;

/* A receive queue.  Numbers run from 0, modulo 2^24, as in struct nic_rq. */
struct rdma_rq {
	struct nic_rq *nic;
	struct rdma_qp *owner; /* of a queue that is not shared */
	uint32_t number, mask, base;
	uint32_t posted, freed; /* receives before `freed` have completed: their places may be used again */
	uint32_t users;         /* queue pairs */
	int shared;
	uint64_t *wr_ids;       /* by place */
	uint8_t *done;          /* by place; a shared queue's complete in any order */
};

struct rdma_stream {
	struct rdma_jobs jobs;
	uint64_t una;      /* oldest packet not acknowledged */
	uint64_t released; /* what the transport may send ends before this: emitter.posted */
	uint64_t tail;     /* after the last packet of the last job */
	uint32_t first_psn;
	uint32_t retries;  /* timeouts since the last progress */
	uint64_t timeouts;
};

/* The result of an atomic, for a repeated request of go-back-N. */
struct rdma_atomic_result {
	uint64_t original;
	uint32_t psn;
	int valid;
};

struct rdma_qp {
	struct nic_qp *nic; /* shared with the NIC */
	const struct nic_transport *transport; /* NULL before RTR */
	struct rdma_host *host;
	struct rdma_cq *send_cq, *recv_cq;
	struct rdma_rq *rq;
	uint32_t qpn;
	int failed;

	struct rdma_stream streams[NIC_STREAMS];
	int turn; /* the stream that is asked first */

	/* Requests. */
	uint32_t unreleased;      /* index of the first job that is not wholly released */
	uint32_t next_msn, next_recv, next_fetch; /* numbers of the next message, of those that need a receive, and fetches */
	uint32_t fetches_completed;
	uint32_t rnr_seen, rnr_retries;
	int64_t wait_until;       /* after an RNR NAK */

	/* Responses. */
	int answering;            /* go-back-N: the stream's one job is being sent */
	struct rdma_atomic_result results[NIC_FETCH_MAX];
	uint32_t result_next;
	uint32_t responses_seen;  /* the requester's view: expected rPSN when it last moved, and when that was */
	int64_t responses_time;

	/* Receives. */
	uint32_t reaped;

	struct rdma_qp_sending sending;
	uint16_t path_mtu;
	struct rdma_frame_template template;

	struct nic_dcqcn dcqcn;
	struct nic_dcqcn_params dcqcn_params;
	uint32_t cnps_seen;
	int64_t pace_at;          /* DCQCN: the next packet may leave then */
	int64_t clock;            /* what its transport's timers go by; it may stand still, see news.c */

	uint64_t packets, bytes, retransmissions;

	struct rdma_qp *ready_next, *ready_previous; /* ring of the host's queue pairs that may have something to send */
	int ready;
	int64_t due;              /* timers.c */
	uint32_t heap_index;      /* 1-based; 0: no timer runs */
};

struct rdma_host {
	int socket; /* -1: no such host */
	uint32_t ip;
	uint8_t mac[6];
	uint64_t rate_bps;
	int64_t credit_bits;   /* what the pacer lets go now; may be negative by one packet */
	int64_t credit_ceiling;
	int64_t credit_time;
	int64_t blocked_until; /* the socket was full */
	struct rdma_qp *ready[NIC_PFC_PRIORITIES]; /* by priority: whose turn it is */
	int priority;          /* whose turn it is among those */
	const struct nic_counters *counters;
	uint8_t (*kept)[RDMA_FRAME_ROOM]; /* RDMA_BATCH frames that the socket did not take, to be tried again first */
	uint32_t kept_length[RDMA_BATCH];
	int kept_first, kept_end;
	struct rdma_host_stats stats;
};

struct rdma_engine {
	pthread_mutex_t lock;
	atomic_int waiters; /* threads that want the lock: the loop lets them go first */
	atomic_bool stopping;
	int epoll_fd, wake_fd;
	struct rdma_maps maps;

	uint8_t *arena;
	struct nic_qp *nic_qps;
	struct nic_region *regions;
	struct nic_rq *nic_rqs;
	struct nic_recv *recvs;
	struct nic_counters *counters;
	struct nic_host_state *host_states;
	struct nic_icrc_tables *icrc;

	/* Ring of doorbells: the kernel's layout of BPF_MAP_TYPE_RINGBUF. */
	unsigned long *bell_consumer;
	const unsigned long *bell_producer;
	const uint8_t *bell_data;

	struct rdma_host *hosts;
	struct rdma_qp **qps; /* by slot */
	struct rdma_rq **rqs; /* by number */
	struct rdma_cq *cqs[RDMA_MAX_CQS];
	struct rdma_qp **heap; /* timers.c */
	uint32_t heap_count;
	uint8_t frames[RDMA_BATCH][RDMA_FRAME_ROOM];
};

/* engine.c */
int64_t rdma_now(void);
void rdma_lock(struct rdma_engine *e);
void rdma_unlock(struct rdma_engine *e);
void rdma_wake(struct rdma_engine *e);

/* memory.c */
int rdma_map_all(struct rdma_engine *e);
void rdma_unmap_all(struct rdma_engine *e);
/* Where `length` bytes at `va` of a region lie, if the queue pair may touch them so; else NULL. */
uint8_t *rdma_memory(const struct rdma_engine *e, const struct rdma_qp *qp, uint32_t key, uint64_t va, uint32_t length,
		     uint32_t access);
/* Send with invalidate: 0, or a negative errno when the key is not the queue pair's. */
int rdma_region_invalidate(struct rdma_engine *e, const struct rdma_qp *qp, uint32_t rkey);

/* timers.c */
void rdma_timer_at(struct rdma_engine *e, struct rdma_qp *qp, int64_t due); /* no later than that */
void rdma_timer_cancel(struct rdma_engine *e, struct rdma_qp *qp);
struct rdma_qp *rdma_timer_take(struct rdma_engine *e, int64_t now); /* one that is due, or NULL */
int64_t rdma_timer_next(const struct rdma_engine *e);

/* cq.c */
struct rdma_cq *rdma_cq_find(struct rdma_engine *e, int cq);
int rdma_cq_has_room(const struct rdma_cq *cq);
void rdma_cq_push(struct rdma_cq *cq, const struct rdma_completion *completion);
void rdma_cq_free(struct rdma_cq *cq);

/* receive.c */
struct rdma_rq *rdma_rq_find(struct rdma_engine *e, uint32_t rq);
void rdma_rq_free(struct rdma_engine *e, struct rdma_rq *rq);
int rdma_receives_reap(struct rdma_engine *e, struct rdma_qp *qp); /* 0, or the queue pair must end */
void rdma_receives_flush(struct rdma_engine *e, struct rdma_qp *qp);
void rdma_receives_drop(struct rdma_qp *qp); /* of a shared queue, what is taken: its places are free, nobody is told */

/* request.c */
void rdma_requests_advance(struct rdma_engine *e, struct rdma_qp *qp, int64_t now);
void rdma_requests_release(struct rdma_engine *e, struct rdma_qp *qp);
void rdma_requests_fail(struct rdma_engine *e, struct rdma_qp *qp, uint32_t status, uint64_t sequence);
int rdma_request_packet(struct rdma_engine *e, struct rdma_qp *qp, const struct nic_send *send, struct rdma_packet *out);

/* response.c */
void rdma_responses_accept(struct rdma_engine *e, struct rdma_qp *qp);
int rdma_response_packet(struct rdma_engine *e, struct rdma_qp *qp, const struct nic_send *send, struct rdma_packet *out);
void rdma_response_sent(struct rdma_engine *e, struct rdma_qp *qp);

/* news.c */
uint32_t rdma_psn_of(const struct rdma_stream *stream, uint64_t sequence);
void rdma_qp_attend(struct rdma_engine *e, struct rdma_qp *qp, int64_t now);
void rdma_qp_schedule(struct rdma_engine *e, struct rdma_qp *qp, int64_t now);
/* The request at `sequence` gets `status`, the others are flushed, and the queue pair is of no more use. */
void rdma_qp_fail(struct rdma_engine *e, struct rdma_qp *qp, uint32_t status, uint64_t sequence);

/* qp.c */
struct rdma_qp *rdma_qp_find(struct rdma_engine *e, uint32_t qpn);
void rdma_qp_free(struct rdma_engine *e, struct rdma_qp *qp);

/* packet.c */
/* Its length; 0: there is nothing to send, and the queue pair has left the ring of those that may. */
uint32_t rdma_qp_packet(struct rdma_engine *e, struct rdma_qp *qp, int64_t now, uint8_t *frame);

/* host.c */
void rdma_ready_add(struct rdma_qp *qp);
void rdma_ready_remove(struct rdma_qp *qp);
int64_t rdma_host_send(struct rdma_engine *e, struct rdma_host *host, int64_t now);
void rdma_host_close(struct rdma_host *host);

#endif
