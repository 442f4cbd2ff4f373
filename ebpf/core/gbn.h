/*
 * Go-back-N, the reliable connection of RoCEv2 as IBTA has it (vol. 1, section 9.7).
 *
 * The responder executes only the expected PSN.  It keeps nothing of a packet beyond a gap: the first of them is
 * answered by a NAK with the expected PSN, the others are dropped, and the requester sends all of them again.
 */
#ifndef NIC_GBN_H
#define NIC_GBN_H

#include "gbn_agent.h"
#include "requester.h"
#include "responder.h"

WIRE_FN void nic_gbn_request(struct nic_qp *qp, const struct nic_packet *p, const struct nic_refs *refs,
			     struct nic_verdict *out)
{
	struct nic_receiver *r = &qp->receiver[NIC_STREAM_REQUEST];
	int ahead = nic_psn_distance(p->psn, r->epsn);

	if (ahead == 0) {
		nic_responder_execute(qp, p, refs, out);
	} else if (ahead < 0) {
		nic_responder_repeat(qp, p, refs, out);
	} else {
		out->event = WIRE_NIC_EVENT_REQUEST_SEQ_ERROR;
		if (r->nak_outstanding)
			return;
		r->gaps++;
		nic_reply_nak(qp, WIRE_AETH_KIND_NAK | WIRE_NAK_CODE_PSN_SEQUENCE_ERROR, out);
	}
}

WIRE_FN void nic_gbn_data(struct nic_qp *qp, int stream, const struct nic_packet *p, const struct nic_refs *refs,
			  wire_u64 now, struct nic_verdict *out)
{
	if (p->flags)
		out->event = WIRE_NIC_EVENT_DROP_BAD_HEADER;
	else if (stream == NIC_STREAM_REQUEST)
		nic_gbn_request(qp, p, refs, out);
	else
		nic_requester_response(qp, p, refs, out);
}

WIRE_FN void nic_gbn_ack(struct nic_qp *qp, int stream, const struct nic_packet *p, wire_u64 now,
			 struct nic_verdict *out)
{
	if (p->flags)
		out->event = WIRE_NIC_EVENT_DROP_BAD_HEADER;
	else if (stream == NIC_STREAM_REQUEST)
		nic_requester_take(qp, p, out);
	else
		out->event = WIRE_NIC_EVENT_DROP_BAD_OPCODE;
}

static const struct nic_transport nic_transport_gbn = {
	.ibta = 1,
	.data = nic_gbn_data,
	.ack = nic_gbn_ack,
	.next = nic_gbn_next,
	.timer = nic_gbn_timer,
};

#endif
