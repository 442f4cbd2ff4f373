/*
 * The engine's own structures.  All of them, and all functions below, are used under the engine's lock.
 *
 * Sequence numbers inside the engine are 64 bits wide and start at 0 with a queue pair's first packet, so that they
 * never wrap; only psn_of() makes them PSNs.  Invariant: una <= next <= max, and max - una <= window.
 */
#ifndef RDMA_PRIVATE_H
#define RDMA_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "api.h"
#include "frame.h"
#include "qp.h"

#define RDMA_BATCH    32
#define RDMA_MAX_CQS  4096
#define RDMA_NEVER    INT64_MAX

struct rdma_wr {
	struct rdma_write write;
	uint64_t first;   /* sequence number of its first packet */
	uint32_t packets;
};

struct rdma_cq {
	int event_fd;
	uint32_t capacity, head, count;
	uint32_t reserved; /* work requests that may still complete here: count + reserved <= capacity */
	struct rdma_completion *ring;
};

struct rdma_host;

struct rdma_qp {
	struct nic_qp *nic; /* shared with the NIC */
	struct rdma_host *host;
	struct rdma_cq *cq;
	uint32_t qpn;
	int cq_number;

	struct rdma_wr *wrs; /* ring of work requests not yet completed */
	uint32_t wr_capacity, wr_head, wr_count;
	uint32_t wr_current;   /* index from wr_head of the request that `next` lies in */

	uint64_t una, next, max, posted; /* posted: sequence number after the last posted packet */
	uint32_t first_psn;
	struct rdma_qp_sending sending;
	uint16_t path_mtu;
	struct rdma_frame_template template;

	uint32_t naks_seen, rnr_seen;
	uint32_t retries, rnr_retries, backoff;
	int64_t deadline;   /* of the retransmission timer; RDMA_NEVER: nothing outstanding */
	int64_t wait_until; /* after an RNR NAK */

	uint64_t packets, bytes, retransmissions, timeouts;

	struct rdma_qp *busy_next, *busy_previous; /* ring of the host's queue pairs with work */
	int busy;
};

struct rdma_sent {
	struct rdma_qp *qp;
	uint64_t sequence, max_before;
	uint32_t length, payload;
	int repeat;
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
	struct rdma_qp *busy;  /* whose turn it is */
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
	struct nic_counters *counters;
	struct nic_icrc_tables *icrc;

	/* Ring of doorbells: the kernel's layout of BPF_MAP_TYPE_RINGBUF. */
	unsigned long *bell_consumer;
	const unsigned long *bell_producer;
	const uint8_t *bell_data;

	struct rdma_host *hosts;
	struct rdma_qp **qps; /* by slot */
	struct rdma_cq *cqs[RDMA_MAX_CQS];
	int64_t next_sweep;
	uint8_t frames[RDMA_BATCH][RDMA_FRAME_ROOM];
};

/* engine.c */
int64_t rdma_now(void);
void rdma_lock(struct rdma_engine *e);
void rdma_unlock(struct rdma_engine *e);
void rdma_wake(struct rdma_engine *e);

/* cq.c */
struct rdma_cq *rdma_cq_find(struct rdma_engine *e, int cq);
void rdma_cq_push(struct rdma_cq *cq, const struct rdma_completion *completion);
void rdma_cq_free(struct rdma_cq *cq);

/* qp.c */
struct rdma_qp *rdma_qp_find(struct rdma_engine *e, uint32_t qpn);
void rdma_qp_free(struct rdma_engine *e, struct rdma_qp *qp);
void rdma_qp_take_news(struct rdma_qp *qp, int64_t now);
void rdma_qp_check_timer(struct rdma_qp *qp, int64_t now);
void rdma_qp_fail(struct rdma_qp *qp, uint32_t status);
int rdma_qp_can_send(const struct rdma_qp *qp, int64_t now);
void rdma_qp_next_packet(struct rdma_engine *e, struct rdma_qp *qp, int64_t now, uint8_t *frame, struct rdma_sent *sent);
void rdma_qp_unsend(const struct rdma_sent *sent);
void rdma_qp_set_busy(struct rdma_qp *qp);

/* host.c */
int64_t rdma_host_send(struct rdma_engine *e, struct rdma_host *host, int64_t now);
void rdma_host_close(struct rdma_host *host);

#endif
