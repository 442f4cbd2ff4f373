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
	int arena_fd, qps_fd, regions_fd, rqs_fd, recvs_fd, counters_fd, host_states_fd, icrc_fd, doorbells_fd;
	uint32_t max_hosts, max_qps, max_regions, max_rqs, max_recvs;
	uint64_t arena_bytes, doorbell_bytes;
};

int rdma_engine_open(const struct rdma_maps *maps, struct rdma_engine **out);
void rdma_engine_close(struct rdma_engine *e);
int rdma_engine_run(struct rdma_engine *e); /* until rdma_engine_stop(), or an error */
void rdma_engine_stop(struct rdma_engine *e);
int rdma_die_with_parent(void);
const char *rdma_transport_names(void); /* by number, separated by spaces */
int rdma_transport_tracks(uint8_t transport); /* whether its receiver has a slot for each packet of the window */

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
	uint64_t ce_marked, bytes_placed, replies_sent, replies_lost, cnps_sent;
};

int rdma_host_totals(struct rdma_engine *e, uint32_t slot, struct rdma_nic_totals *out);

/* Completion queues: `event_fd` becomes readable when a completion arrives; the engine owns it. */
int rdma_cq_create(struct rdma_engine *e, uint32_t capacity, int *cq, int *event_fd);
int rdma_cq_destroy(struct rdma_engine *e, int cq);

/* Values as in libibverbs' enum ibv_wc_status. */
enum rdma_status {
	RDMA_SUCCESS = 0,
	RDMA_LOC_LEN_ERR = 1,
	RDMA_LOC_PROT_ERR = 4,
	RDMA_WR_FLUSH_ERR = 5,
	RDMA_REM_INV_REQ_ERR = 9,
	RDMA_REM_ACCESS_ERR = 10,
	RDMA_REM_OP_ERR = 11,
	RDMA_RETRY_EXC_ERR = 12,
	RDMA_RNR_RETRY_EXC_ERR = 13
};

/* Values as in enum ibv_wc_opcode. */
enum rdma_wc_opcode {
	RDMA_WC_SEND = 0,
	RDMA_WC_RDMA_WRITE = 1,
	RDMA_WC_RDMA_READ = 2,
	RDMA_WC_COMP_SWAP = 3,
	RDMA_WC_FETCH_ADD = 4,
	RDMA_WC_RECV = 128,
	RDMA_WC_RECV_RDMA_WITH_IMM = 129
};

/* Values as in enum ibv_wc_flags. */
#define RDMA_WC_WITH_IMM 2
#define RDMA_WC_WITH_INV 8

struct rdma_completion {
	uint64_t wr_id;
	uint32_t qpn, status, opcode, byte_len, flags;
	uint32_t immediate; /* or the key that was invalidated */
};

/* Takes up to `max` completions; returns how many. */
int rdma_cq_poll(struct rdma_engine *e, int cq, struct rdma_completion *out, int max);

/* The range must be the caller's: the engine checks only that it lies in the arena.  It is zeroed. */
int rdma_region_add(struct rdma_engine *e, uint32_t rkey, uint64_t arena_offset, uint64_t length, uint64_t va,
		    uint32_t access, uint32_t pd, uint32_t owner_ip);
int rdma_region_remove(struct rdma_engine *e, uint32_t rkey);

/*
 * Receive queues: number `rq` with `capacity` (a power of two) receives from place `base` of those of all queues.  A
 * shared one serves any number of queue pairs, another one the one that is created with it.
 */
int rdma_rq_create(struct rdma_engine *e, uint32_t rq, uint32_t base, uint32_t capacity, int shared);
int rdma_rq_destroy(struct rdma_engine *e, uint32_t rq);

struct rdma_recv_wr {
	uint64_t wr_id, va;
	uint32_t lkey, length;
};

/* -ENOMEM: the receive queue or the completion queue is full. */
int rdma_post_recv(struct rdma_engine *e, uint32_t rq, const struct rdma_recv_wr *wr);

struct rdma_qp_init {
	uint32_t host, pd, rq, max_send_wr;
	int send_cq, recv_cq;
};

int rdma_qp_create(struct rdma_engine *e, uint32_t qpn, const struct rdma_qp_init *init);
int rdma_qp_destroy(struct rdma_engine *e, uint32_t qpn);

/* What a queue pair has to know to receive. */
struct rdma_qp_path {
	uint32_t remote_qpn, remote_ip;
	uint8_t remote_mac[6];
	uint16_t udp_source_port;
	uint16_t path_mtu, pkey;
	uint32_t receive_psn;
	uint8_t transport, ack_every;
	uint8_t flags;           /* NIC_QP_..., see qp.h */
	uint8_t priority;        /* PFC */
	uint8_t rnr_timer;       /* what an RNR NAK asks for (IBTA vol. 1, table 45) */
	uint16_t slots, delta;
	uint64_t rtt_ns;
	uint64_t hold_at;        /* with NIC_QP_HOLD_LAST: path_mtu bytes of the arena */
	uint64_t cnp_rate_bps;   /* the line's: what the interval of CNPs follows from */
};

/* And to send. */
struct rdma_qp_sending {
	uint32_t send_psn;
	uint16_t window_packets, initial_window, probe_per_mille, alpha_per_mille;
	uint32_t ack_interval;   /* ask for an acknowledgement at least each so many packets */
	uint32_t retry_count, rnr_retry_count;
	uint32_t max_rd_atomic;  /* READs and atomics outstanding, 1 to 16 */
	uint64_t timeout_ns;     /* first retransmission timeout; doubles each time */
	uint64_t timeout_low_ns; /* IRN: with at most timeout_low_packets in flight */
	uint32_t timeout_low_packets;
	uint64_t dcqcn_rate_bps; /* the line's, of which DCQCN's parameters are derived; 0: no DCQCN */
	int mark_remaining;      /* data packets say in their DSCP how much of their message is left, see codes.p4 */
};

int rdma_qp_to_rtr(struct rdma_engine *e, uint32_t qpn, const struct rdma_qp_path *path);
int rdma_qp_to_rts(struct rdma_engine *e, uint32_t qpn, const struct rdma_qp_sending *sending);
int rdma_qp_to_error(struct rdma_engine *e, uint32_t qpn);
int rdma_qp_state(struct rdma_engine *e, uint32_t qpn, uint32_t *state);

/* Values as in libibverbs' enum ibv_wr_opcode. */
enum rdma_wr_opcode {
	RDMA_WR_RDMA_WRITE = 0,
	RDMA_WR_RDMA_WRITE_WITH_IMM = 1,
	RDMA_WR_SEND = 2,
	RDMA_WR_SEND_WITH_IMM = 3,
	RDMA_WR_RDMA_READ = 4,
	RDMA_WR_ATOMIC_CMP_AND_SWP = 5,
	RDMA_WR_ATOMIC_FETCH_AND_ADD = 6,
	RDMA_WR_SEND_WITH_INV = 9
};

/* As enum ibv_send_flags; the last one is MP-RDMA's (section 3.4). */
#define RDMA_SEND_FENCE       0x1
#define RDMA_SEND_SIGNALED    0x2
#define RDMA_SEND_SOLICITED   0x4
#define RDMA_SEND_SYNCHRONISE 0x100

struct rdma_send_wr {
	uint64_t wr_id;
	uint64_t va;          /* local */
	uint64_t remote_va;
	uint64_t compare_add; /* what to compare with, or to add */
	uint64_t swap;
	uint32_t lkey, rkey, length;
	uint32_t immediate;   /* or the key to invalidate */
	uint32_t opcode;      /* enum rdma_wr_opcode */
	uint32_t flags;       /* RDMA_SEND_... */
};

/* -ENOMEM: the send queue or the completion queue is full; -ENOTCONN: not yet in RTS. */
int rdma_qp_post_send(struct rdma_engine *e, uint32_t qpn, const struct rdma_send_wr *wr);

struct rdma_qp_stats {
	uint64_t packets, bytes;                 /* data packets sent and their payload, repeats included */
	uint64_t retransmissions, timeouts;
	uint64_t naks, rnr_naks, acks, sacks;    /* received */
	uint64_t gaps;                           /* NAKs for a PSN sequence error sent as responder */
	uint64_t out_of_order;                   /* packets placed ahead of their turn */
	uint64_t messages_received;              /* modulo 2^24 */
	uint64_t outstanding;                    /* packets in flight */
	uint64_t cnps_sent, cnps_received;
	uint64_t rate_bps;                       /* DCQCN's; 0: it is off */
};

int rdma_qp_stats(struct rdma_engine *e, uint32_t qpn, struct rdma_qp_stats *out);

/* A packet; what its opcode has no header for is not looked at. */
struct rdma_packet {
	uint32_t psn;
	uint16_t source_port;
	uint8_t opcode, ack_req, solicited, dscp;
	uint8_t extension;           /* enum wire_bth_extension: NONE or DATA */
	uint8_t retransmission, synchronise, last;
	uint32_t msn, ipsn, wqe_sn, head;
	uint64_t va;
	uint32_t rkey, dma_length;
	uint64_t swap_add, compare;  /* swap_add: also the original value that an atomic's response holds */
	uint32_t immediate;
	uint8_t syndrome;
	uint32_t aeth_msn;
	uint32_t payload_length;
	const uint8_t *payload;
};

/* For tests: a packet as the engine would send it, into `frame`; returns its length. */
int rdma_frame_example(const struct rdma_qp_path *path, const uint8_t *local_mac, uint32_t local_ip,
		       const struct rdma_packet *packet, uint8_t *frame, uint32_t room);

/* The DSCP of a packet whose message has so many bytes left, its own included: 1 to 63. */
uint8_t rdma_remaining_class(uint32_t bytes);

#endif
