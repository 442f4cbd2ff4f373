/*
 * What a packet needs from the NIC's tables besides its queue pair.  A host around the core looks it up with the
 * keys that the functions below give, in this order: receive queue, receive, region.
 */
#ifndef NIC_REFS_H
#define NIC_REFS_H

#include "packet.h"
#include "psn.h"
#include "qp.h"

struct nic_refs {
	const struct nic_region *region; /* NULL: there is none with that key */
	struct nic_recv *recv;           /* NULL: not needed, or nothing is posted */
};

/* Whether the packet needs a receive: SENDs, and the end of a WRITE with immediate. */
WIRE_FN int nic_needs_recv(const struct nic_packet *p)
{
	return nic_opcode_in(NIC_OPS_SEND | NIC_OPS_WRITE_IMM, p->opcode);
}

/* The number of that receive (IRN: recv_WQE_SN); without an extension, the first one that is not completed. */
WIRE_FN wire_u32 nic_recv_number(const struct nic_qp *qp, const struct nic_packet *p)
{
	return p->flags & NIC_FLAGS_DATA ? p->wqe_sn : qp->receiver[NIC_STREAM_REQUEST].completed;
}

/* Whether receive `number` of a queue has been posted and not yet been reused; `done`: receives completed. */
WIRE_FN int nic_recv_posted(const struct nic_rq *rq, wire_u32 number, wire_u32 done)
{
	wire_u32 posted = *(const volatile wire_u32 *)&rq->posted;
	int ahead = nic_psn_distance(number, done);

	return rq->in_use && ahead >= 0 && ahead < nic_psn_distance(posted, done);
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

WIRE_FN const struct nic_region *nic_region_valid(const struct nic_region *region, wire_u32 rkey)
{
	return region && rkey && region->rkey == rkey ? region : (const struct nic_region *)0;
}

#endif
