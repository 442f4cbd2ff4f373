/*
 * What a packet needs from the NIC's tables besides its queue pair.  When nic_admit() has let the packet in, a host around
 * the core looks it up with the keys that the functions below give, in this order: receive queue, receive, region.
 */
#ifndef NIC_REFS_H
#define NIC_REFS_H

#include "packet.h"
#include "psn.h"
#include "qp.h"

struct nic_refs {
	const struct nic_region *region; /* NULL: there is none with that key */
	struct nic_recv *recv;           /* NULL: not needed, or nothing is posted */
	struct nic_host_state *host;     /* NULL unless the transport's `host_state` is set */
	wire_u32 posted;                 /* nic_rq.posted, if nic_needs_rq() */
};

/* Whether the packet needs a receive: SENDs, and the end of a WRITE with immediate. */
WIRE_FN int nic_needs_recv(const struct nic_packet *p)
{
	return nic_opcode_in(NIC_OPS_SEND | NIC_OPS_WRITE_IMM, p->opcode);
}

/* Whether the receive queue is to be looked up: a shared queue grants no credits (IBTA vol. 1, section 9.7.7.2.1). */
WIRE_FN int nic_needs_rq(const struct nic_qp *qp, const struct nic_packet *p)
{
	return nic_needs_recv(p) || (qp->config.flags & (NIC_QP_CREDITS | NIC_QP_SRQ)) == NIC_QP_CREDITS;
}

WIRE_FN wire_u32 nic_receives(const struct nic_qp *qp, const struct nic_rq *rq)
{
	int receives = nic_psn_distance(*(const volatile wire_u32 *)&rq->posted, qp->receiver[NIC_STREAM_REQUEST].completed);

	return rq->in_use && receives > 0 ? (wire_u32)receives : 0;
}

#define NIC_RECV_NONE 0xffffffffu
#define NIC_RQ_TRIES  4 /* another CPU can come first so often; then the packet finds nothing, and comes again */

/* Takes the oldest receive of a shared queue that is not taken; gives its number or NIC_RECV_NONE. */
WIRE_FN wire_u32 nic_rq_take(struct nic_rq *rq)
{
	for (int i = 0; i < NIC_RQ_TRIES; i++) {
		wire_u64 taken = *(volatile wire_u64 *)&rq->taken;
		wire_u32 number = (wire_u32)taken & WIRE_PSN_MASK;

		if (nic_psn_distance(*(volatile wire_u32 *)&rq->posted, number) <= 0)
			return NIC_RECV_NONE;
		if (__sync_val_compare_and_swap(&rq->taken, taken, nic_psn_add(number, 1)) == taken)
			return number;
	}
	return NIC_RECV_NONE;
}

/*
 * The queue pair's receive `number` of a shared queue: it takes all up to that, so that later packets find theirs.  What
 * is taken stays with the queue pair; in ERROR, the agent flushes those from `completed` to `allotted`.
 */
WIRE_FN wire_u32 nic_rq_allot(struct nic_qp *qp, struct nic_rq *rq, wire_u32 number)
{
	struct nic_receiver *r = &qp->receiver[NIC_STREAM_REQUEST];
	/* Not just completed: the agent must have read which receive it was. */
	int ahead = nic_psn_distance(number, *(const volatile wire_u32 *)&qp->emitter[NIC_STREAM_REQUEST].served);

	if (ahead < 0 || ahead >= NIC_ALLOTTED)
		return NIC_RECV_NONE;
	for (int i = 0; i < NIC_ALLOTTED && nic_psn_distance(number, r->allotted) >= 0; i++) {
		wire_u32 taken = nic_rq_take(rq);

		if (taken == NIC_RECV_NONE)
			return NIC_RECV_NONE;
		qp->allotted[r->allotted & (NIC_ALLOTTED - 1)] = taken;
		/* Before `completed` passes it: the agent demands that. */
		*(volatile wire_u32 *)&r->allotted = nic_psn_add(r->allotted, 1);
	}
	return qp->allotted[number & (NIC_ALLOTTED - 1)];
}

/*
 * Which receive of its queue the packet fills, or NIC_RECV_NONE.  The packet says it (IRN: recv_WQE_SN); without an
 * extension it is the first one that is not completed, and the packet's if it comes in its turn.
 */
WIRE_FN wire_u32 nic_recv_number(struct nic_qp *qp, const struct nic_packet *p, struct nic_rq *rq)
{
	const struct nic_receiver *r = &qp->receiver[NIC_STREAM_REQUEST];
	wire_u32 number = p->flags & NIC_FLAGS_DATA ? p->wqe_sn : r->completed;
	int ahead = nic_psn_distance(number, r->completed);

	if (!nic_needs_recv(p) || !rq->in_use || (!(p->flags & NIC_FLAGS_DATA) && p->psn != r->epsn))
		return NIC_RECV_NONE;
	if (ahead < 0)
		return NIC_RECV_NONE;
	if (qp->config.flags & NIC_QP_SRQ)
		return nic_rq_allot(qp, rq, number);
	return ahead < (int)nic_receives(qp, rq) ? number : NIC_RECV_NONE;
}

/* Which of this side's READs or atomics a response answers. */
WIRE_FN wire_u32 nic_outgoing_slot(const struct nic_qp *qp, const struct nic_packet *p)
{
	wire_u32 number = p->flags & NIC_FLAGS_DATA ? p->wqe_sn : qp->receiver[NIC_STREAM_RESPONSE].msn;

	return number & (NIC_FETCH_MAX - 1);
}

/*
 * The key whose region the packet needs: its own, that of the message it continues, that of the receive or READ that it
 * fills.  0: none.
 *
 * Keys hold their slot in the low bits and a random part above, so that a look-up is an array access and a guess is
 * unlikely to hit; the same with queue pair numbers.
 */
WIRE_FN wire_u32 nic_region_key(const struct nic_qp *qp, const struct nic_packet *p, const struct nic_recv *recv)
{
	if (nic_opcode_in(NIC_OPS_SEND, p->opcode))
		return recv ? recv->lkey : 0;
	if (nic_opcode_in(NIC_OPS_RESPONSE, p->opcode))
		return qp->outgoing[nic_outgoing_slot(qp, p)].lkey;
	if (nic_opcode_in(NIC_OPS_FETCH, p->opcode) || p->flags & NIC_FLAGS_DATA ||
	    nic_opcode_in(NIC_OPS_WRITE_START, p->opcode))
		return p->rkey;
	return qp->receiver[NIC_STREAM_REQUEST].rkey;
}

/*
 * The core moves a receiver on before the host around it has placed the payload.  The host puts these two around both; the agent,
 * when it has read `completed`, `fetches` or the responses' `msn` and before it acts on them, waits until what it has read
 * is true of memory, too.
 */
WIRE_FN void nic_placing(struct nic_qp *qp, const struct nic_packet *p)
{
	if (p->payload_length)
		*(volatile wire_u32 *)&qp->placing = qp->placing | 1;
}

/* Even whatever has happened in between: the agent may have taken the queue pair away. */
WIRE_FN void nic_placed(struct nic_qp *qp, const struct nic_packet *p)
{
	if (p->payload_length)
		*(volatile wire_u32 *)&qp->placing = (qp->placing + 1) & ~1u;
}

WIRE_FN void nic_settle(const struct nic_qp *qp)
{
	const volatile wire_u32 *placing = &qp->placing;
	wire_u32 now = *placing;

	while (now & 1 && *placing == now)
		;
	__sync_synchronize();
}

WIRE_FN const struct nic_region *nic_region_valid(const struct nic_region *region, wire_u32 rkey)
{
	return region && rkey && region->rkey == rkey ? region : (const struct nic_region *)0;
}

#endif
