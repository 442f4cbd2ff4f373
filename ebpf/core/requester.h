/*
 * Taking acknowledge packets: what every transport with cumulative acknowledgements does (IBTA vol. 1, section 9.7.7).
 *
 * The agent sends and owns snd_nxt; this side moves snd_una and leaves word of NAKs.  An acknowledgement counts only
 * for packets that are outstanding, so an old or invented one changes nothing.
 */
#ifndef NIC_REQUESTER_H
#define NIC_REQUESTER_H

#include "packet.h"
#include "psn.h"
#include "qp.h"

#define NIC_SYNDROME_KIND  0x60
#define NIC_SYNDROME_VALUE 0x1f

/* Names a PSN between snd_una and snd_nxt. */
WIRE_FN int nic_outstanding(const struct nic_qp *qp, wire_u32 psn)
{
	wire_u32 snd_nxt = *(const volatile wire_u32 *)&qp->emitter[NIC_STREAM_REQUEST].snd_nxt;
	int ahead = nic_psn_distance(psn, qp->sender[NIC_STREAM_REQUEST].snd_una);

	return ahead >= 0 && ahead < nic_psn_distance(snd_nxt, qp->sender[NIC_STREAM_REQUEST].snd_una);
}

WIRE_FN void nic_take_nak(struct nic_qp *qp, const struct nic_packet *p, struct nic_verdict *out)
{
	wire_u8 code = p->syndrome & NIC_SYNDROME_VALUE;

	if (code > WIRE_NAK_CODE_REMOTE_OPERATIONAL_ERROR) {
		out->event = WIRE_NIC_EVENT_DROP_BAD_HEADER;
		return;
	}
	/* A NAK acknowledges everything before its PSN.  The agent reads the reason first, then snd_una. */
	*(volatile wire_u32 *)&qp->sender[NIC_STREAM_REQUEST].snd_una = p->psn;
	if (code == WIRE_NAK_CODE_PSN_SEQUENCE_ERROR) {
		*(volatile wire_u32 *)&qp->sender[NIC_STREAM_REQUEST].naks = qp->sender[NIC_STREAM_REQUEST].naks + 1;
	} else {
		*(volatile wire_u32 *)&qp->sender[NIC_STREAM_REQUEST].error = p->syndrome;
		qp->config.state = WIRE_QP_STATE_ERROR;
	}
	out->event = WIRE_NIC_EVENT_NAK_RECEIVED;
	out->doorbell = 1;
}

WIRE_FN void nic_take_rnr(struct nic_qp *qp, const struct nic_packet *p, struct nic_verdict *out)
{
	*(volatile wire_u32 *)&qp->sender[NIC_STREAM_REQUEST].snd_una = p->psn;
	*(volatile wire_u32 *)&qp->sender[NIC_STREAM_REQUEST].rnr_timer = p->syndrome & NIC_SYNDROME_VALUE;
	*(volatile wire_u32 *)&qp->sender[NIC_STREAM_REQUEST].rnr_naks = qp->sender[NIC_STREAM_REQUEST].rnr_naks + 1;
	out->event = WIRE_NIC_EVENT_NAK_RECEIVED;
	out->doorbell = 1;
}

WIRE_FN void nic_requester_take(struct nic_qp *qp, const struct nic_packet *p, struct nic_verdict *out)
{
	wire_u8 kind = p->syndrome & NIC_SYNDROME_KIND;

	if (!nic_outstanding(qp, p->psn)) {
		out->event = WIRE_NIC_EVENT_ACK_STALE;
		return;
	}
	if (kind == WIRE_AETH_KIND_ACK) {
		*(volatile wire_u32 *)&qp->sender[NIC_STREAM_REQUEST].snd_una = nic_psn_add(p->psn, 1);
		qp->sender[NIC_STREAM_REQUEST].acks++;
		out->event = WIRE_NIC_EVENT_ACK_RECEIVED;
		out->doorbell = 1;
	} else if (kind == WIRE_AETH_KIND_NAK) {
		nic_take_nak(qp, p, out);
	} else if (kind == WIRE_AETH_KIND_RNR_NAK) {
		nic_take_rnr(qp, p, out);
	} else {
		out->event = WIRE_NIC_EVENT_DROP_BAD_HEADER;
	}
}

#endif
