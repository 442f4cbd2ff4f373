/*
 * One stream of a Eunomia connection, driven through its table by a list of steps: histories in one call, since a call
 * from Python costs more than a step.  eunomia_history.py makes the steps and knows what each must give.
 */
#ifndef EUNOMIA_HISTORY_H
#define EUNOMIA_HISTORY_H

#include "wire.h"

enum eunomia_step_kind {
	EUNOMIA_DATA = 0,     /* a data packet comes to the receiver */
	EUNOMIA_ACK = 1,      /* an acknowledge packet comes to the sender */
	EUNOMIA_POST = 2,     /* emitter.posted = psn */
	EUNOMIA_RECEIVES = 3, /* `psn` receives have been posted, each `dma_length` bytes, from va on, 2^16 apart */
	EUNOMIA_WAKE = 4,     /* timer(), then next() until it gives nothing */
	EUNOMIA_READ = 5      /* READ number wqe_sn waits for dma_length bytes to va */
};

#define EUNOMIA_WORDS 16
#define EUNOMIA_RECEIVES_MAX 64
#define EUNOMIA_HOLD_AT 0x7000000000ull

struct eunomia_step {
	wire_u64 now, va;
	wire_u32 psn, ipsn, wqe_sn, sack_psn, dma_length, head, rkey;
	wire_u16 payload_length;
	wire_u8 kind, opcode, flags, ecn, syndrome, reserved;
};

struct eunomia_setup {
	wire_u64 timeout_ns, timeout_low_ns, rtt_ns;
	wire_u32 first_psn, first_recv, booked, low_packets;
	wire_u16 window, mtu;
	wire_u8 stream, flags, rnr_timer, reserved;
};

/*
 * DATA: event, reply, opcode, syndrome, flags, reply PSN, SACK PSN, place, its length, release, its length, epsn, msn,
 * completed, out of order + gaps << 32, doorbell + state << 8.  ACK: event, snd_una, naks, rnr_naks, acks, sacks,
 * doorbell. WAKE: timeouts fired, deadline, retransmissions, how many were sent, the first ten of them (bit 31: again),
 * 0, 0.
 */
struct eunomia_result {
	wire_u64 words[EUNOMIA_WORDS];
};

void eunomia_run(const struct eunomia_setup *setup, const struct eunomia_step *steps, struct eunomia_result *results,
		 wire_u32 count);
/* After a run: a byte a block of the memory controller, 1 while it is in use. */
void eunomia_used(wire_u8 *used);

#endif
