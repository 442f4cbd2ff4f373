/*
 * DCQCN (Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015): how fast a queue pair sends.
 * The congestion point is the switch's RED marking (p4src/aqm); here are the other two.
 *
 * Notification point, the receiver (section 3.1): a marked packet is answered by a CNP, at most one an interval N.
 *
 * Reaction point, the sender: a CNP cuts the rate by alpha/2 and raises alpha (equation 1); alpha falls each K without
 * a CNP (equation 2).  Between cuts, a timer (T) and a byte counter (B) each raise the rate: F times half way back to
 * the target (fast recovery, equation 3), then the target grows too, by R_AI (additive increase, equation 4) or, once
 * both have come beyond F, by R_HAI (hyper increase).  A flow starts at line rate, with alpha = 1.
 *
 * Formats: rates in bit/s, below 2^48.  alpha in units of 2^-30, g = 2^-gain_shift.  alpha is rounded towards 0 by less
 * than one unit at each step, so it is never more than 2^gain_shift units from the exact one.  To the error of the rate
 * each cut adds no more than rate * 2^(gain_shift - 31) + 2 bit/s, each increase no more than 1 bit/s.
 *
 * All of a reaction point is the agent's: it calls nic_dcqcn_advance() until that has caught up with the clock, then
 * nic_dcqcn_cnp() or nic_dcqcn_sent(), and paces by `rate`.
 */
#ifndef NIC_DCQCN_H
#define NIC_DCQCN_H

#include "wire.h"

#define NIC_DCQCN_ALPHA_BITS 30
#define NIC_DCQCN_ONE        (1u << NIC_DCQCN_ALPHA_BITS)
#define NIC_DCQCN_RATE_MAX   ((1ull << 48) - 1)
#define NIC_DCQCN_STEPS      64 /* of each timer that one call catches up with, at most */

/*
 * What the paper gives (sections 3.1, 5.2; table "DCQCN parameters"), for the 40 Gb/s of its testbed.  R_HAI is not
 * given there: 10 * R_AI as in HPCC's ns-3 (run.py); nor is a lowest rate: 1/1000 of the line, as there and in QCN.
 */
#define NIC_DCQCN_CNP_INTERVAL_NS 50000 /* N */
#define NIC_DCQCN_RATIO_PERCENT   110   /* K = T = 55 us = 1.1 * N: K must be the longer */
#define NIC_DCQCN_GAIN_SHIFT      8     /* g = 1/256 */
#define NIC_DCQCN_STAGES          5     /* F */
#define NIC_DCQCN_ADDITIVE_PART   1000  /* R_AI = 40 Mb/s */
#define NIC_DCQCN_HYPER_PART      100
#define NIC_DCQCN_LOWEST_PART     1000
#define NIC_DCQCN_BYTE_PERIODS    220   /* B = 10 MB, what the line carries in 400/11 T: line * T / 2.2e8, in bytes */
/* At fewer packets an interval, alpha would fall between two CNPs though each packet is marked. */
#define NIC_DCQCN_CNP_PACKETS     16

struct nic_dcqcn_params {
	wire_u64 line_rate;       /* bit/s, the first and the highest rate */
	wire_u64 min_rate;
	wire_u64 additive;        /* R_AI, bit/s */
	wire_u64 hyper;           /* R_HAI, bit/s */
	wire_u64 alpha_period_ns; /* K */
	wire_u64 timer_period_ns; /* T */
	wire_u64 byte_period;     /* B */
	wire_u64 cnp_interval_ns; /* N, of the notification point */
	wire_u8 gain_shift;       /* 1 to 16 */
	wire_u8 stages;           /* F, below 255 */
	/*
	 * 1: every CNP sets the target to the rate (equation 1).  0: only if the timer has raised the rate since the
	 * last cut, so that CNPs in a row leave the target where it was (ConnectX's clamp_tgt_rate).
	 */
	wire_u8 clamp_target;
	wire_u8 reserved[5];
};

/* The reaction point of one queue pair. */
struct nic_dcqcn {
	wire_u64 rate;            /* R_C, bit/s */
	wire_u64 target;          /* R_T >= R_C */
	wire_u64 alpha_deadline;  /* when alpha falls next; 0: it is 0 or there has been no CNP */
	wire_u64 timer_deadline;  /* when the timer raises the rate next; 0: it is the line's, nothing is counted */
	wire_u32 alpha;
	wire_u32 bytes;           /* sent since the byte counter's last event */
	wire_u8 timer_stage;      /* T's events since the last cut, at most 255 */
	wire_u8 byte_stage;       /* B's */
	wire_u8 reserved[6];
};

/* MP-RDMA (section 1) counts about 60 bytes for what DCQCN adds; the receiver has 12, for CNPs and their last time. */
_Static_assert(sizeof(struct nic_dcqcn) == 48, "DCQCN's bytes a connection");

/*
 * The paper's parameters for another line (at least 1 Mb/s), round trip (without queues) and full packet.  Loops that
 * take longer than the paper's have proportionally longer periods, so that what happens in one stays the same.
 */
WIRE_FN void nic_dcqcn_derive(struct nic_dcqcn_params *p, wire_u64 line_rate, wire_u64 rtt_ns, wire_u32 packet_bytes)
{
	wire_u64 interval = NIC_DCQCN_CNP_PACKETS * 8000000000ull * packet_bytes / line_rate;

	*p = (struct nic_dcqcn_params){ 0 };
	if (interval < rtt_ns)
		interval = rtt_ns;
	if (interval < NIC_DCQCN_CNP_INTERVAL_NS)
		interval = NIC_DCQCN_CNP_INTERVAL_NS;
	p->line_rate = line_rate;
	p->min_rate = line_rate / NIC_DCQCN_LOWEST_PART;
	p->additive = line_rate / NIC_DCQCN_ADDITIVE_PART;
	p->hyper = line_rate / NIC_DCQCN_HYPER_PART;
	p->cnp_interval_ns = interval;
	p->alpha_period_ns = interval * NIC_DCQCN_RATIO_PERCENT / 100;
	p->timer_period_ns = p->alpha_period_ns;
	p->byte_period = line_rate / 1000 * p->timer_period_ns / 1000 / NIC_DCQCN_BYTE_PERIODS;
	p->gain_shift = NIC_DCQCN_GAIN_SHIFT;
	p->stages = NIC_DCQCN_STAGES;
	p->clamp_target = 1;
}

/* ---- notification point ---- */

/* Whether a packet that came marked is answered by a CNP.  `sent`: CNPs so far, the last of them at `last`. */
WIRE_FN int nic_dcqcn_notify(wire_u32 sent, wire_u64 last, wire_u64 interval_ns, wire_u64 now)
{
	return !sent || now - last >= interval_ns;
}

/* ---- reaction point ---- */

WIRE_FN void nic_dcqcn_init(struct nic_dcqcn *d, const struct nic_dcqcn_params *p)
{
	*d = (struct nic_dcqcn){ .rate = p->line_rate, .target = p->line_rate, .alpha = NIC_DCQCN_ONE };
}

/* rate * alpha, in two parts since the product has 78 bits; too small by less than 2. */
WIRE_FN wire_u64 nic_dcqcn_scale(wire_u64 rate, wire_u32 alpha)
{
	const int half = NIC_DCQCN_ALPHA_BITS / 2;

	return ((rate >> half) * alpha >> half) + ((rate & ((1u << half) - 1)) * alpha >> NIC_DCQCN_ALPHA_BITS);
}

WIRE_FN void nic_dcqcn_cnp(struct nic_dcqcn *d, const struct nic_dcqcn_params *p, wire_u64 now)
{
	if (p->clamp_target || d->timer_stage)
		d->target = d->rate;
	d->rate -= nic_dcqcn_scale(d->rate, d->alpha) / 2;
	if (d->rate < p->min_rate)
		d->rate = p->min_rate;
	d->alpha += (NIC_DCQCN_ONE - d->alpha) >> p->gain_shift;
	d->alpha_deadline = now + p->alpha_period_ns;
	d->timer_deadline = now + p->timer_period_ns;
	d->bytes = 0;
	d->timer_stage = 0;
	d->byte_stage = 0;
}

/* One event of the timer or the byte counter, already counted in its stage (figure "RP state machine"). */
WIRE_FN void nic_dcqcn_increase(struct nic_dcqcn *d, const struct nic_dcqcn_params *p)
{
	wire_u8 most = d->timer_stage > d->byte_stage ? d->timer_stage : d->byte_stage;
	wire_u8 least = d->timer_stage > d->byte_stage ? d->byte_stage : d->timer_stage;

	if (most > p->stages)
		d->target += least > p->stages ? p->hyper : p->additive;
	if (d->target > p->line_rate)
		d->target = p->line_rate;
	/* Rounded up, so that half ways end. */
	d->rate = (d->rate + d->target + 1) / 2;
	if (d->rate == p->line_rate)
		d->timer_deadline = 0;
}

/* `bytes` have left. */
WIRE_FN void nic_dcqcn_sent(struct nic_dcqcn *d, const struct nic_dcqcn_params *p, wire_u32 bytes)
{
	wire_u64 count = (wire_u64)d->bytes + bytes;

	for (int i = 0; i < NIC_DCQCN_STEPS && count >= p->byte_period && d->timer_deadline; i++) {
		count -= p->byte_period;
		d->byte_stage += d->byte_stage < 255;
		nic_dcqcn_increase(d, p);
	}
	/* At line rate there is nothing to count for, and a CNP starts anew. */
	d->bytes = !d->timer_deadline ? 0 : count < 0xffffffff ? (wire_u32)count : 0xffffffff;
}

/* What the timers have to do up to `now`.  Returns when to call next, maybe at once; 0: not before the next CNP. */
WIRE_FN wire_u64 nic_dcqcn_advance(struct nic_dcqcn *d, const struct nic_dcqcn_params *p, wire_u64 now)
{
	for (int i = 0; i < NIC_DCQCN_STEPS && d->alpha_deadline && d->alpha_deadline <= now; i++) {
		d->alpha -= (d->alpha + (1u << p->gain_shift) - 1) >> p->gain_shift;
		d->alpha_deadline = d->alpha ? d->alpha_deadline + p->alpha_period_ns : 0;
	}
	for (int i = 0; i < NIC_DCQCN_STEPS && d->timer_deadline && d->timer_deadline <= now; i++) {
		d->timer_deadline += p->timer_period_ns;
		d->timer_stage += d->timer_stage < 255;
		nic_dcqcn_increase(d, p);
	}
	if (!d->alpha_deadline || (d->timer_deadline && d->timer_deadline < d->alpha_deadline))
		return d->timer_deadline;
	return d->alpha_deadline;
}

#endif
