/*
 * The transmit engine's interface: what the agent calls through cffi.  Only declarations stand here, so that cffi reads
 * the same text as the compiler.
 *
 * One engine drives all hosts of a lab.  rdma_engine_run() is its loop, for one thread; every other function may be
 * called from any thread at any time.  Functions return 0 or a negative errno.  Addresses and ports are in host order,
 * times in nanoseconds, rates in bits per second.
 */
#ifndef RDMA_API_H
#define RDMA_API_H

#include <stdint.h>

struct rdma_engine;

/* The NIC's maps, by file descriptor (the caller keeps them open while the engine lives), and their sizes. */
struct rdma_maps {
	int arena_fd, qps_fd, regions_fd, counters_fd, icrc_fd, doorbells_fd;
	uint32_t max_hosts, max_qps, max_regions;
	uint64_t arena_bytes, doorbell_bytes;
};

int rdma_engine_open(const struct rdma_maps *maps, struct rdma_engine **out);
void rdma_engine_close(struct rdma_engine *e);
int rdma_engine_run(struct rdma_engine *e); /* until rdma_engine_stop(), or an error */
void rdma_engine_stop(struct rdma_engine *e);
int rdma_die_with_parent(void);
const char *rdma_transport_names(void); /* by number, separated by spaces */

/* Opens a sending socket on `interface` inside the network namespace `netns_fd`; rate 0: as fast as it goes. */
int rdma_host_add(struct rdma_engine *e, uint32_t slot, int netns_fd, const char *interface, const uint8_t *mac,
		  uint32_t ip, uint64_t rate_bps);

struct rdma_host_stats {
	uint64_t packets, bytes;
	uint64_t socket_full; /* times that the socket or interface took no more; the packets went out later */
	uint64_t socket_errors;
};

int rdma_host_stats(struct rdma_engine *e, uint32_t slot, struct rdma_host_stats *out);
int rdma_host_event(struct rdma_engine *e, uint32_t slot, unsigned event, uint64_t *out);

struct rdma_nic_totals {
	uint64_t ce_marked, bytes_placed, replies_sent, replies_lost;
};

int rdma_host_totals(struct rdma_engine *e, uint32_t slot, struct rdma_nic_totals *out);

/* Completion queues: `event_fd` becomes readable when a completion arrives; the engine owns it. */
int rdma_cq_create(struct rdma_engine *e, uint32_t capacity, int *cq, int *event_fd);
int rdma_cq_destroy(struct rdma_engine *e, int cq);

/* Values as in libibverbs' enum ibv_wc_status. */
enum rdma_status {
	RDMA_SUCCESS = 0,
	RDMA_LOC_PROT_ERR = 4,
	RDMA_WR_FLUSH_ERR = 5,
	RDMA_REM_INV_REQ_ERR = 9,
	RDMA_REM_ACCESS_ERR = 10,
	RDMA_REM_OP_ERR = 11,
	RDMA_RETRY_EXC_ERR = 12,
	RDMA_RNR_RETRY_EXC_ERR = 13
};

struct rdma_completion {
	uint64_t wr_id;
	uint32_t qpn, status, byte_len;
};

/* Takes up to `max` completions; returns how many. */
int rdma_cq_poll(struct rdma_engine *e, int cq, struct rdma_completion *out, int max);

/* The range must be the caller's: the engine checks only that it lies in the arena.  It is zeroed. */
int rdma_region_add(struct rdma_engine *e, uint32_t rkey, uint64_t arena_offset, uint64_t length, uint64_t va,
		    uint32_t access, uint32_t pd, uint32_t owner_ip);
int rdma_region_remove(struct rdma_engine *e, uint32_t rkey);

int rdma_qp_create(struct rdma_engine *e, uint32_t qpn, uint32_t host, uint32_t pd, int send_cq, uint32_t max_send_wr);
int rdma_qp_destroy(struct rdma_engine *e, uint32_t qpn);

struct rdma_qp_path {
	uint32_t remote_qpn, remote_ip;
	uint8_t remote_mac[6];
	uint16_t udp_source_port;
	uint16_t path_mtu, pkey;
	uint32_t receive_psn;
	uint8_t transport, ack_every;
};

struct rdma_qp_sending {
	uint32_t send_psn;
	uint32_t window_packets;
	uint32_t ack_interval;   /* ask for an acknowledgement at least each so many packets */
	uint32_t retry_count, rnr_retry_count;
	uint64_t timeout_ns;     /* first retransmission timeout; doubles each time */
	int mark_remaining;      /* data packets say in their DSCP how much of their message is left, see codes.p4 */
};

int rdma_qp_to_rtr(struct rdma_engine *e, uint32_t qpn, const struct rdma_qp_path *path);
int rdma_qp_to_rts(struct rdma_engine *e, uint32_t qpn, const struct rdma_qp_sending *sending);
int rdma_qp_to_error(struct rdma_engine *e, uint32_t qpn);
int rdma_qp_state(struct rdma_engine *e, uint32_t qpn, uint32_t *state);

struct rdma_write {
	uint64_t wr_id;
	uint64_t arena_offset; /* of the bytes to send */
	uint64_t remote_va;
	uint32_t rkey;
	uint32_t length;
	int signaled;
};

/* -ENOMEM: the send queue or the completion queue is full; -ENOTCONN: not yet in RTS. */
int rdma_qp_post_write(struct rdma_engine *e, uint32_t qpn, const struct rdma_write *write);

struct rdma_qp_stats {
	uint64_t packets, bytes;                 /* data packets sent and their payload, repeats included */
	uint64_t retransmissions, timeouts;
	uint64_t naks, rnr_naks, acks;           /* received */
	uint64_t gaps;                           /* NAKs for a PSN sequence error sent as responder */
	uint64_t messages_received;              /* modulo 2^24 */
	uint64_t outstanding;                    /* packets in flight */
};

int rdma_qp_stats(struct rdma_engine *e, uint32_t qpn, struct rdma_qp_stats *out);

/* For tests: one WRITE packet as the engine would send it, into `frame`; returns its length. */
int rdma_frame_example(const struct rdma_qp_path *path, const uint8_t *local_mac, uint32_t local_ip, uint32_t psn,
		       uint8_t opcode, int ack_req, uint8_t dscp, uint64_t va, uint32_t rkey, uint32_t dma_length,
		       const uint8_t *payload, uint32_t payload_length, uint8_t *frame, uint32_t room);

/* The DSCP of a packet whose message has so many bytes left, its own included: 1 to 63. */
uint8_t rdma_remaining_class(uint32_t bytes);

#endif
