/*
 * End-to-end flow control (IBTA vol. 1, section 9.7.7.2): acknowledgements say how many receives are posted, as credits for
 * the messages after their MSN.  The same for all transports: they acknowledge without credits, and nic.h adds them.
 *
 * The 5-bit codes of AETH syndromes, for credits (table 46) and for RNR timers (table 45), stand for numbers with two
 * significant bits: 0, 1, 2, 3, 4, 6, 8, 12, ... 32768, 49152.
 */
#ifndef NIC_CREDITS_H
#define NIC_CREDITS_H

#include "psn.h"
#include "refs.h"

#define NIC_CREDIT_CODE_MAX 30 /* 31 stands for no credits at all: WIRE_AETH_CREDITS_INVALID */

/* Any code; beyond 31 the series goes on. */
WIRE_FN wire_u32 nic_code_value(wire_u32 code)
{
	return code < 2 ? code : (2 + (code & 1)) << ((code / 2 - 1) & 31);
}

/* How long an RNR NAK asks to wait: in units of 10 us; code 0 is the longest, 655.36 ms. */
WIRE_FN wire_u64 nic_rnr_ns(wire_u32 code)
{
	return nic_code_value(code & 31 ? code & 31 : 32) * 10000ull;
}

/* The largest credit code that stands for no more than `value` (table 46). */
WIRE_FN wire_u32 nic_credit_code(wire_u32 value)
{
	wire_u32 low = 0;

#pragma GCC unroll 5
	for (wire_u32 step = 16; step; step >>= 1)
		if (low + step <= NIC_CREDIT_CODE_MAX && nic_code_value(low + step) <= value)
			low += step;
	return low;
}

/* Credits for a reply that acknowledges requests. */
WIRE_FN void nic_grant_credits(const struct nic_qp *qp, const struct nic_refs *refs, struct nic_verdict *out)
{
	int receives = nic_psn_distance(refs->posted, qp->receiver[NIC_STREAM_REQUEST].completed);

	if ((out->reply == NIC_REPLY_ACK || out->reply == NIC_REPLY_XACK) &&
	    out->syndrome == (WIRE_AETH_KIND_ACK | WIRE_AETH_CREDITS_INVALID))
		out->syndrome = (wire_u8)(WIRE_AETH_KIND_ACK | nic_credit_code(receives > 0 ? (wire_u32)receives : 0));
}

/* What an AETH says that acknowledges requests.  Credits are never taken back. */
WIRE_FN void nic_take_credits(struct nic_qp *qp, const struct nic_packet *p)
{
	struct nic_sender *s = &qp->sender[NIC_STREAM_REQUEST];
	wire_u32 code = p->syndrome & NIC_SYNDROME_VALUE;
	wire_u32 limit = nic_psn_add(p->msn, nic_code_value(code));

	if ((p->syndrome & NIC_SYNDROME_KIND) == WIRE_AETH_KIND_ACK && code != WIRE_AETH_CREDITS_INVALID &&
	    nic_psn_distance(limit, s->credit_limit) > 0)
		*(volatile wire_u32 *)&s->credit_limit = limit;
}

#endif
