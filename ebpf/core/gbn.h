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

WIRE_FN void nic_gbn_data(struct nic_qp *qp, int stream, const struct nic_packet *p, const struct nic_refs *refs,
			  wire_u64 now, struct nic_verdict *out)
{
	int ahead = nic_psn_distance(p->psn, qp->receiver[NIC_STREAM_REQUEST].epsn);

	if (stream != NIC_STREAM_REQUEST || p->flags & NIC_FLAGS_DATA) {
		out->event = WIRE_NIC_EVENT_DROP_BAD_OPCODE;
	} else if (ahead == 0) {
		nic_responder_execute(qp, p, refs->region, out);
	} else if (ahead < 0) {
		/* The requester has missed our acknowledgement: say again how far we are. */
		out->event = WIRE_NIC_EVENT_REQUEST_DUPLICATE;
		nic_reply_ack(qp, out);
	} else {
		out->event = WIRE_NIC_EVENT_REQUEST_SEQ_ERROR;
		if (qp->receiver[NIC_STREAM_REQUEST].nak_outstanding)
			return;
		qp->receiver[NIC_STREAM_REQUEST].nak_outstanding = 1;
		qp->receiver[NIC_STREAM_REQUEST].gaps++;
		nic_reply_nak(qp, WIRE_NAK_CODE_PSN_SEQUENCE_ERROR, out);
	}
}

WIRE_FN void nic_gbn_ack(struct nic_qp *qp, int stream, const struct nic_packet *p, wire_u64 now,
			 struct nic_verdict *out)
{
	if (stream == NIC_STREAM_REQUEST)
		nic_requester_take(qp, p, out);
	else
		out->event = WIRE_NIC_EVENT_DROP_BAD_OPCODE;
}

static const struct nic_transport nic_transport_gbn = {
	.data = nic_gbn_data,
	.ack = nic_gbn_ack,
	.ibta = 1,
};

#endif
