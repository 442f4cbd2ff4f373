/*
 * The NIC core's entrance: a parsed packet and the queue pair it names in, a verdict out.
 *
 * A host around the core (the XDP shell, the simulator) asks nic_admit(), does the look-ups of refs.h, calls nic_receive(),
 * and then places and sends what the verdict says.
 */
#ifndef NIC_H
#define NIC_H

#include "credits.h"
#include "dcqcn.h"
#include "parse.h"
#include "transport.h"

WIRE_FN int nic_check_state(const struct nic_qp *qp, const struct nic_packet *p)
{
	wire_u32 state = qp->config.state;

	if (nic_opcode_in(NIC_OPS_RESPONSE | NIC_OPS_ACKNOWLEDGE, p->opcode))
		return state == WIRE_QP_STATE_RTS;
	return state == WIRE_QP_STATE_RTR || state == WIRE_QP_STATE_RTS;
}

/* Whether nic_receive() will look at the clock; asking for it costs an eBPF program as much as a map look-up. */
WIRE_FN int nic_needs_time(const struct nic_qp *qp, const struct nic_packet *p)
{
	return p->ecn == WIRE_ECN_CE && qp->config.flags & NIC_QP_CNP;
}

/*
 * DCQCN's notification point (SIGCOMM 2015, section 3.1): a marked packet of a flow makes a CNP, at most one an interval.
 * A frame can become one reply only, so where the packet has to be acknowledged the notification rides on that, as the
 * BTH's BECN bit.
 */
WIRE_FN void nic_notify(struct nic_qp *qp, int stream, wire_u64 now, struct nic_verdict *out)
{
	struct nic_receiver *r = &qp->receiver[stream];

	if (!nic_dcqcn_notify(r->cnps, r->cnp_time, qp->config.cnp_interval_ns, now))
		return;
	r->cnp_time = now;
	r->cnps++;
	if (out->reply == NIC_REPLY_NONE)
		out->reply = NIC_REPLY_CNP;
	else
		out->becn = 1;
}

/*
 * The checks in the order of IBTA vol. 1, section 9.6: what the queue pair is, whether it may receive, whether the packet
 * came from its peer to its own host, then the partition key.  `qp` is the slot that the packet's queue pair number names,
 * or NULL.  Gives NIC_STEP_OK or the event that the packet ends with.
 */
WIRE_FN int nic_admit(const struct nic_qp *qp, const struct nic_packet *p)
{
	if (!nic_opcode_in(NIC_OPS_REQUEST | NIC_OPS_RESPONSE | NIC_OPS_ACKNOWLEDGE, p->opcode) &&
	    p->opcode != WIRE_BTH_OPCODE_CNP)
		return WIRE_NIC_EVENT_DROP_BAD_OPCODE;
	if (!qp || !p->dest_qpn || qp->config.qpn != p->dest_qpn)
		return WIRE_NIC_EVENT_DROP_UNKNOWN_QP;
	if (!nic_check_state(qp, p))
		return WIRE_NIC_EVENT_DROP_QP_STATE;
	if (p->host != qp->config.host || p->src_ip != qp->config.remote_ip || p->dst_ip != qp->config.local_ip)
		return WIRE_NIC_EVENT_DROP_WRONG_PEER;
	return p->pkey == qp->config.pkey ? NIC_STEP_OK : WIRE_NIC_EVENT_DROP_BAD_HEADER;
}

WIRE_FN void nic_receive_data(const struct nic_transport *t, struct nic_qp *qp, int stream, const struct nic_packet *p,
			      const struct nic_refs *refs, wire_u64 now, struct nic_verdict *out)
{
	t->data(qp, stream, p, refs, now, out);
	if (out->reply && stream == NIC_STREAM_REQUEST &&
	    (qp->config.flags & (NIC_QP_CREDITS | NIC_QP_SRQ)) == NIC_QP_CREDITS)
		nic_grant_credits(qp, refs, out);
	if (nic_needs_time(qp, p))
		nic_notify(qp, stream, now, out);
}

WIRE_FN void nic_receive_notification(struct nic_qp *qp, struct nic_verdict *out)
{
	struct nic_sender *s = &qp->sender[NIC_STREAM_REQUEST];

	*(volatile wire_u32 *)&s->cnps = s->cnps + 1;
	out->doorbell = 1;
}

WIRE_FN void nic_receive_ack(const struct nic_transport *t, struct nic_qp *qp, int stream, const struct nic_packet *p,
			     wire_u64 now, struct nic_verdict *out)
{
	t->ack(qp, stream, p, now, out);
	if (p->becn && out->event != WIRE_NIC_EVENT_DROP_BAD_HEADER)
		nic_receive_notification(qp, out);
}

/* Whether an AETH that acknowledges requests came with the packet, and was believed. */
WIRE_FN int nic_has_credits(const struct nic_packet *p, const struct nic_verdict *v)
{
	return v->event == WIRE_NIC_EVENT_ACK_RECEIVED || v->event == WIRE_NIC_EVENT_SACK_RECEIVED ||
	       (v->event == WIRE_NIC_EVENT_RESPONSE_PLACED && nic_opcode_in(NIC_OPS_AETH, p->opcode) &&
		!(p->flags & NIC_FLAGS_DATA));
}

/* A packet that nic_admit() let in, to a queue pair of transport `t`. */
WIRE_FN void nic_receive(const struct nic_transport *t, struct nic_qp *qp, const struct nic_packet *p,
			 const struct nic_refs *refs, wire_u64 now, struct nic_verdict *out)
{
	if (nic_opcode_in(NIC_OPS_REQUEST, p->opcode)) {
		nic_receive_data(t, qp, NIC_STREAM_REQUEST, p, refs, now, out);
	} else if (nic_opcode_in(NIC_OPS_RESPONSE, p->opcode)) {
		nic_receive_data(t, qp, NIC_STREAM_RESPONSE, p, refs, now, out);
	} else if (p->opcode == WIRE_BTH_OPCODE_RC_ACKNOWLEDGE) {
		nic_receive_ack(t, qp, NIC_STREAM_REQUEST, p, now, out);
	} else if (p->opcode == WIRE_BTH_OPCODE_RC_READ_ACKNOWLEDGE) {
		nic_receive_ack(t, qp, NIC_STREAM_RESPONSE, p, now, out);
	} else {
		out->event = WIRE_NIC_EVENT_CNP_RECEIVED;
		nic_receive_notification(qp, out);
	}
	if (qp->config.flags & NIC_QP_CREDITS && nic_has_credits(p, out) && p->opcode != WIRE_BTH_OPCODE_RC_READ_ACKNOWLEDGE)
		nic_take_credits(qp, p);
}

/* Whether the packet is a request that a switch on the way has marked (RFC 3168); for the counter of such. */
WIRE_FN int nic_counts_ce(const struct nic_packet *p, const struct nic_verdict *v)
{
	return v->event != WIRE_NIC_EVENT_PASSED_TO_KERNEL && p->ecn == WIRE_ECN_CE &&
	       nic_opcode_in(NIC_OPS_REQUEST, p->opcode);
}

#endif
