/*
 * The NIC core's entrance: a parsed packet and the queue pair it names in, a verdict out.
 *
 * The checks stand in the order of IBTA vol. 1, section 9.6: what the queue pair is, whether it may receive, whether
 * the packet came from its peer to its own host, then the partition key.  A host around the core (the XDP shell, the
 * simulator) does the look-ups, the placement and the sending.
 */
#ifndef NIC_H
#define NIC_H

#include "parse.h"
#include "transport.h"

/*
 * Queue pair numbers and keys hold their slot in the low bits and a random part above, so that a look-up is an array
 * access and a guess is unlikely to hit.
 */
WIRE_FN const struct nic_region *nic_region_valid(const struct nic_region *region, wire_u32 rkey)
{
	return region && rkey && region->rkey == rkey ? region : (const struct nic_region *)0;
}

/* The key whose region the packet needs: its own, or that of the message it continues. */
WIRE_FN wire_u32 nic_region_key(const struct nic_qp *qp, const struct nic_packet *p)
{
	return nic_opcode_in(NIC_OPS_RETH, p->opcode) ? p->rkey : qp->responder.rkey;
}

WIRE_FN int nic_check_state(const struct nic_qp *qp, const struct nic_packet *p)
{
	wire_u32 state = qp->config.state;

	if (nic_opcode_in(NIC_OPS_RESPONSE, p->opcode))
		return state == WIRE_QP_STATE_RTS;
	return state == WIRE_QP_STATE_RTR || state == WIRE_QP_STATE_RTS;
}

/* `qp` is the slot that the packet's queue pair number names, or NULL. */
WIRE_FN void nic_receive(struct nic_qp *qp, const struct nic_packet *p, const struct nic_region *region,
			 struct nic_verdict *out)
{
	int request = nic_opcode_in(NIC_OPS_REQUEST, p->opcode);

	*out = (struct nic_verdict){ 0 };
	if (!request && !nic_opcode_in(NIC_OPS_RESPONSE, p->opcode) && p->opcode != WIRE_BTH_OPCODE_CNP)
		out->event = WIRE_NIC_EVENT_DROP_BAD_OPCODE;
	else if (!qp || !p->dest_qpn || qp->config.qpn != p->dest_qpn)
		out->event = WIRE_NIC_EVENT_DROP_UNKNOWN_QP;
	else if (!nic_check_state(qp, p))
		out->event = WIRE_NIC_EVENT_DROP_QP_STATE;
	else if (p->host != qp->config.host || p->src_ip != qp->config.remote_ip || p->dst_ip != qp->config.local_ip)
		out->event = WIRE_NIC_EVENT_DROP_WRONG_PEER;
	else if (p->pkey != qp->config.pkey)
		out->event = WIRE_NIC_EVENT_DROP_BAD_HEADER;
	else if (p->opcode == WIRE_BTH_OPCODE_CNP)
		out->event = WIRE_NIC_EVENT_CNP_RECEIVED;
	else if (request)
		nic_transport_request(qp, p, region, out);
	else
		nic_transport_response(qp, p, out);
}

/* Whether the packet is a request that a switch on the way has marked (RFC 3168); for the counter of such. */
WIRE_FN int nic_counts_ce(const struct nic_packet *p, const struct nic_verdict *v)
{
	return v->event != WIRE_NIC_EVENT_PASSED_TO_KERNEL && p->ecn == WIRE_ECN_CE &&
	       nic_opcode_in(NIC_OPS_REQUEST, p->opcode);
}

#endif
