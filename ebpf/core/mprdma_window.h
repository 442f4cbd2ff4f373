/*
 * MP-RDMA's window: the arithmetic of sections 3.2, 3.3 and 3.5, and how its two writers share it.
 *
 *     awnd = cwnd + inflate - (snd_nxt - snd_una) = limit - snd_nxt    with limit = snd_una + inflate + cwnd
 *
 * The NIC moves the limit, both sides move snd_nxt: each counts what it has let go.  The two are published in one word,
 * so the agent may at worst miss what the NIC has just let go, that is two packets.
 *
 * What only the agent can see (timeouts, the end of an idle time) it tells the NIC by counting; the NIC acts on it with
 * the next acknowledgement, and until then the agent reckons as if it had.
 */
#ifndef NIC_MPRDMA_WINDOW_H
#define NIC_MPRDMA_WINDOW_H

#include "psn.h"
#include "qp.h"

#define NIC_MPRDMA_PACKET      65536u /* Q16.16 */
#define NIC_MPRDMA_INFLATE_MAX 32767
#define NIC_MPRDMA_COUNTER     0x7u   /* timeouts and restarts are counted modulo 8 */

/* Kinds of struct nic_credit. */
#define NIC_MPRDMA_NEW   0 /* `count` packets after those that were let go before */
#define NIC_MPRDMA_AGAIN 1 /* the packet `psn` */

/* What `published` holds. */
struct nic_mprdma_view {
	wire_u32 limit;
	wire_u32 granted;    /* PSN after the last packet let go, less the agent's part */
	wire_u8 recovering;
	wire_u8 timeouts;    /* the agent's, as far as taken into account */
	wire_u8 restarts;
};

/* Never 0: that stands for what nic_mprdma_initial() says. */
WIRE_FN wire_u64 nic_mprdma_pack(const struct nic_mprdma_view *v)
{
	return 1ull << 63 | (wire_u64)v->limit | (wire_u64)v->granted << 24 | (wire_u64)v->recovering << 48 |
	       (wire_u64)v->timeouts << 49 | (wire_u64)v->restarts << 52;
}

WIRE_FN struct nic_mprdma_view nic_mprdma_unpack(wire_u64 word)
{
	return (struct nic_mprdma_view){
		.limit = word & WIRE_PSN_MASK, .granted = (word >> 24) & WIRE_PSN_MASK, .recovering = (word >> 48) & 1,
		.timeouts = (word >> 49) & NIC_MPRDMA_COUNTER, .restarts = (word >> 52) & NIC_MPRDMA_COUNTER,
	};
}

/* What nic_mprdma_emitter.command holds. */
struct nic_mprdma_command {
	wire_u32 snd_retx;   /* after a timeout the NIC goes on retransmitting here */
	wire_u8 timeouts;    /* modulo 8 */
	wire_u8 restarts;
};

WIRE_FN wire_u32 nic_mprdma_pack_command(const struct nic_mprdma_command *c)
{
	return c->snd_retx | (wire_u32)(c->timeouts & NIC_MPRDMA_COUNTER) << 24 |
	       (wire_u32)(c->restarts & NIC_MPRDMA_COUNTER) << 27;
}

WIRE_FN struct nic_mprdma_command nic_mprdma_unpack_command(wire_u32 word)
{
	return (struct nic_mprdma_command){
		.snd_retx = word & WIRE_PSN_MASK, .timeouts = (word >> 24) & NIC_MPRDMA_COUNTER,
		.restarts = (word >> 27) & NIC_MPRDMA_COUNTER,
	};
}

WIRE_FN wire_u32 nic_mprdma_random(wire_u32 *state)
{
	wire_u32 x = *state;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	*state = x;
	return x;
}

/* Never 0, which xorshift cannot leave; `writer` tells the NIC's from the agent's. */
WIRE_FN wire_u32 nic_mprdma_seed(wire_u32 seed, wire_u32 writer)
{
	return ((seed + writer) * 2654435761u) | 1;
}

/* A virtual path: one of the 2^14 source ports around the connection's own (section 3.1). */
WIRE_FN wire_u16 nic_mprdma_path(wire_u16 base, wire_u32 *state)
{
	return (wire_u16)((base & 0xc000) | (nic_mprdma_random(state) >> 18));
}

/* cwnd <- cwnd + 1/cwnd, or cwnd - 1/2 with ECN (section 3.2).  At least one packet, at most `window`. */
WIRE_FN wire_u32 nic_mprdma_react(wire_u32 cwnd, int marked, wire_u16 window)
{
	wire_u32 most = (wire_u32)window * NIC_MPRDMA_PACKET;

	if (marked)
		return cwnd > NIC_MPRDMA_PACKET * 3 / 2 ? cwnd - NIC_MPRDMA_PACKET / 2 : NIC_MPRDMA_PACKET;
	cwnd += (wire_u32)(((1ull << 32) + cwnd / 2) / cwnd); /* rounded to the nearest */
	return cwnd < most ? cwnd : most;
}

/* cwnd - 1: a pruned path (section 3.3), or a window that is not used (section 3.5). */
WIRE_FN wire_u32 nic_mprdma_reduce(wire_u32 cwnd)
{
	return cwnd > 2 * NIC_MPRDMA_PACKET ? cwnd - NIC_MPRDMA_PACKET : NIC_MPRDMA_PACKET;
}

WIRE_FN int nic_mprdma_whole(wire_u32 cwnd)
{
	return (int)(cwnd / NIC_MPRDMA_PACKET);
}

/* IW, packets. */
WIRE_FN wire_u32 nic_mprdma_iw(const struct nic_qp_config *config)
{
	return config->initial_window < config->window ? config->initial_window : config->window;
}

/* Where the window ends before the first acknowledgement has come (section 3.2). */
WIRE_FN struct nic_mprdma_view nic_mprdma_initial(const struct nic_qp_config *config, int stream)
{
	return (struct nic_mprdma_view){
		.limit = nic_psn_add(config->first_psn[stream], nic_mprdma_iw(config)),
		.granted = config->first_psn[stream],
	};
}

#endif
