/*
 * Two queue pairs with go-back-N, driven by a list of steps: histories in batches, since a call into C costs more than what
 * it tests.  Requests go from queue pair 0 to queue pair 1.
 */
#ifndef NIC_GBN_HISTORY_H
#define NIC_GBN_HISTORY_H

#include "wire.h"

enum gbn_step_kind {
	GBN_RESET = 0,
	GBN_REQUEST = 1,  /* a request comes */
	GBN_ANSWER = 2,   /* a response or acknowledge packet comes */
	GBN_POST = 3,     /* emitter.posted = psn; with an opcode, first a READ or atomic as outgoing `number`, PSN `msn` */
	GBN_TAKEN = 4,    /* the agent takes the outgoing `number` out */
	GBN_RECEIVES = 5, /* receives are posted up to `number`, each with dma_length bytes at va + number * dma_length */
	GBN_WAKE = 6,     /* timer(), then next() until it gives nothing, dma_length and GBN_SENDS times at most */
	GBN_SERVE = 7,    /* the agent begins to answer the incoming `number`; gives it */
	GBN_SERVED = 8,   /* it has: served = number */
	GBN_WINDOW = 9    /* config.window = dma_length */
};

#define GBN_SENDS 8

/* What a step does not need is 0. */
struct gbn_step {
	wire_u64 now, va, atomic;
	wire_u32 psn, msn, dma_length, number;
	wire_u16 payload_length;
	wire_u8 kind, stream, opcode, ack_req, syndrome, flags, rnr_timer, ack_every;
	wire_u8 reserved[14];
};

/* What a step does not give is 0. */
struct gbn_result {
	wire_u64 place_at; /* or the deadline, or the address that was asked for */
	wire_u32 place_length, reply_psn, reply_msn;
	wire_u8 event, reply, syndrome, doorbell, fired, sends, repeated, padding;
	/*
	 * REQUEST: epsn, msn, completed, fetches, nak_outstanding, held, gaps, state.  ANSWER: snd_una, naks, rnr_naks, error,
	 * credit_limit, msn of responses, original, state.  WAKE: what was sent, bit 24: again, 25: asks for an acknowledgement,
	 * 26: an acknowledge packet with that syndrome.  SERVE: psn, length.
	 */
	wire_u32 words[GBN_SENDS];
	wire_u32 zero;
};

/* RESET: psn: the first; msn: of messages; number: of receives, READs and atomics; now: timeout; dma_length: window. */
void gbn_run(const struct gbn_step *steps, struct gbn_result *results, wire_u32 count);

#endif
