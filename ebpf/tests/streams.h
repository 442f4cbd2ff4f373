/*
 * Two connected queue pairs of one transport, driven through its table by a list of steps: histories in batches, since
 * a call into C costs more than what it tests.  Requests go from queue pair 0 to queue pair 1.
 */
#ifndef NIC_STREAMS_TEST_H
#define NIC_STREAMS_TEST_H

#include "wire.h"

enum stream_step_kind {
	STREAM_RESET = 0,
	STREAM_DATA = 1,    /* a data packet comes */
	STREAM_ACK = 2,     /* an acknowledge packet comes */
	STREAM_POST = 3,    /* emitter.posted = psn */
	STREAM_RECEIVES = 4, /* receives are posted up to number wqe_sn, each at va + number * dma_length */
	STREAM_WAKE = 5,    /* timer(), then next() until it gives nothing, dma_length and STREAM_SENDS times at most */
	STREAM_FETCH = 6,   /* a READ (dma_length bytes to va) or atomic (opcode) will be posted as number wqe_sn */
	STREAM_SERVE = 7,   /* the response stream's emitter.served = wqe_sn */
	STREAM_WINDOW = 8   /* config.window = dma_length */
};

#define STREAM_SENDS 8

/* What a step does not need is 0. */
struct stream_step {
	wire_u64 now;
	wire_u64 va;
	wire_u32 psn, msn, ipsn, wqe_sn, sack_psn, dma_length;
	wire_u16 payload_length;
	wire_u8 kind, qp, stream, opcode, flags, ecn, syndrome;
	wire_u8 reserved[15];
};

/* With STREAM_RESET. */
struct stream_setup {
	wire_u64 timeout_ns, timeout_low_ns;
	wire_u32 first_psn[2];
	wire_u32 first_recv, first_fetch, first_msn;
	wire_u16 slots, window, low_packets, mtu;
	wire_u8 flags, rnr_timer;
	wire_u8 reserved[18];
};

/* What a step does not give is 0. */
struct stream_result {
	wire_u64 place_at; /* or the deadline */
	wire_u32 place_length, reply_psn, reply_msn, sack_psn;
	wire_u8 event, reply, reply_opcode, reply_flags, syndrome, doorbell, fired, sends;
	/*
	 * DATA: epsn, msn, completed, fetches, out_of_order, gaps, state.  ACK: snd_una, naks, rnr_naks, acks, sacks,
	 * msn, marks, credit_limit.  WAKE: what was sent, bit 31: again.
	 */
	wire_u32 words[STREAM_SENDS];
};

/* `transport`: as nic_qp_config's.  Steps, setups and results have 64 bytes; a setup lies where its step does. */
void stream_run(wire_u32 transport, const struct stream_step *steps, struct stream_result *results, wire_u32 count);
/* The number of a transport by its name; ~0: there is none. */
wire_u32 stream_transport(const char *name);
wire_u64 stream_rnr_ns(wire_u32 code);
/*
 * Agent and NIC in threads of their own, as in user space and XDP: `packets` WRITEs of one packet through a network
 * that loses `lost` of 1000 packets and acknowledgements.  Returns how many were acknowledged; it gives up when for
 * `patience_ns` nothing is.
 */
wire_u32 stream_race(wire_u32 transport, wire_u32 packets, wire_u32 lost, wire_u64 patience_ns);

#endif
