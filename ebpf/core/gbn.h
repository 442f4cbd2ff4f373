/*
 * Go-back-N, the reliable connection of RoCEv2 as IBTA has it (vol. 1, sections 9.7.4 and 9.7.5).
 *
 * The responder executes only the expected PSN.  It keeps nothing of a packet beyond a gap: the first of them is
 * answered by a NAK with the expected PSN, the others are dropped, and the requester sends all of them again.
 */
#ifndef NIC_GBN_H
#define NIC_GBN_H

#include "requester.h"
#include "responder.h"

WIRE_FN void nic_gbn_request(struct nic_qp *qp, const struct nic_packet *p, const struct nic_region *region,
			     struct nic_verdict *out)
{
	int ahead = nic_psn_distance(p->psn, qp->responder.epsn);

	if (ahead == 0) {
		nic_responder_execute(qp, p, region, out);
	} else if (ahead < 0) {
		/* The requester has missed our acknowledgement: say again how far we are. */
		out->event = WIRE_NIC_EVENT_REQUEST_DUPLICATE;
		nic_reply_ack(qp, out);
	} else {
		out->event = WIRE_NIC_EVENT_REQUEST_SEQ_ERROR;
		if (qp->responder.nak_outstanding)
			return;
		qp->responder.nak_outstanding = 1;
		qp->responder.gaps++;
		nic_reply_nak(qp, WIRE_NAK_CODE_PSN_SEQUENCE_ERROR, out);
	}
}

WIRE_FN void nic_gbn_response(struct nic_qp *qp, const struct nic_packet *p, struct nic_verdict *out)
{
	nic_requester_take(qp, p, out);
}

static const struct nic_transport nic_transport_gbn = {
	.request = nic_gbn_request,
	.response = nic_gbn_response,
};

#endif
