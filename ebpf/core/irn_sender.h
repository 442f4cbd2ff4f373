/*
 * IRN's sender, the half that acknowledgements move: the cumulative one, the bitmap of selective ones, and word of
 * NACKs for the agent (irn_emitter.h).
 *
 * An acknowledgement that was overtaken by a later one still names a packet that has come, but asks for nothing.  One
 * that names packets which are not outstanding changes nothing.
 */
#ifndef NIC_IRN_SENDER_H
#define NIC_IRN_SENDER_H

#include "bitmap.h"
#include "packet.h"
#include "psn.h"
#include "qp.h"

/* The packet that the acknowledgement names; returns whether that is news. */
WIRE_FN int nic_irn_sack(struct nic_sender *s, const struct nic_packet *p, wire_u32 snd_nxt)
{
	if (!(p->flags & NIC_SACK_VALID) || nic_psn_distance(p->sack_psn, s->snd_una) < 0 ||
	    nic_psn_distance(p->sack_psn, snd_nxt) >= 0 || nic_bitmap1_get(&s->transport.sacked, p->sack_psn))
		return 0;
	nic_bitmap1_set(&s->transport.sacked, p->sack_psn);
	return 1;
}

/* All before `psn` have come.  snd_una first: the agent looks at it again after it has looked at the bitmap. */
WIRE_FN void nic_irn_advance(struct nic_sender *s, wire_u32 psn, int moved)
{
	wire_u32 from = s->snd_una;

	*(volatile wire_u32 *)&s->snd_una = psn;
	nic_bitmap1_clear(&s->transport.sacked, from, (wire_u32)moved);
}

/* A NAK that ends the connection, or asks to wait.  It is about the oldest packet that is outstanding. */
WIRE_FN void nic_irn_refused(struct nic_qp *qp, struct nic_sender *s, const struct nic_packet *p)
{
	if ((p->syndrome & NIC_SYNDROME_KIND) == WIRE_AETH_KIND_RNR_NAK) {
		*(volatile wire_u32 *)&s->rnr_timer = p->syndrome & NIC_SYNDROME_VALUE;
		*(volatile wire_u32 *)&s->rnr_naks = s->rnr_naks + 1;
		return;
	}
	*(volatile wire_u32 *)&s->error_psn = p->psn;
	*(volatile wire_u32 *)&s->error = p->syndrome;
	qp->config.state = WIRE_QP_STATE_ERROR;
}

WIRE_FN void nic_irn_take(struct nic_qp *qp, int stream, const struct nic_packet *p, struct nic_verdict *out)
{
	struct nic_sender *s = &qp->sender[stream];
	wire_u32 snd_nxt = *(const volatile wire_u32 *)&qp->emitter[stream].snd_nxt;
	wire_u8 kind = p->syndrome & NIC_SYNDROME_KIND;
	wire_u8 code = p->syndrome & NIC_SYNDROME_VALUE;
	int ack = kind == WIRE_AETH_KIND_ACK;
	int nack = kind == WIRE_AETH_KIND_NAK && code == WIRE_NAK_CODE_PSN_SEQUENCE_ERROR;
	int refused = kind == WIRE_AETH_KIND_RNR_NAK ||
		      (kind == WIRE_AETH_KIND_NAK && !nack && code <= WIRE_NAK_CODE_REMOTE_OPERATIONAL_ERROR);
	wire_u32 upto = ack ? nic_psn_add(p->psn, 1) : p->psn;
	int moved = nic_psn_distance(upto, s->snd_una);
	int outstanding = nic_psn_distance(snd_nxt, upto);
	int named;

	if (!(p->flags & NIC_FLAGS_ACK) || (!ack && !nack && !refused)) {
		out->event = WIRE_NIC_EVENT_DROP_BAD_HEADER;
		return;
	}
	out->event = WIRE_NIC_EVENT_ACK_STALE;
	if (outstanding < 0 || (refused && (moved < 0 || outstanding == 0)))
		return;
	if (moved > 0)
		nic_irn_advance(s, upto, moved);
	named = nic_irn_sack(s, p, snd_nxt);
	if (p->flags & NIC_ECE)
		s->marks++;
	s->acks++;
	if (moved >= 0)
		s->msn = p->msn;
	if (refused) {
		nic_irn_refused(qp, s, p);
		out->event = WIRE_NIC_EVENT_NAK_RECEIVED;
	} else if (nack && moved >= 0 && outstanding > 0) {
		*(volatile wire_u32 *)&s->naks = s->naks + 1;
		out->event = WIRE_NIC_EVENT_NAK_RECEIVED;
	} else if (moved > 0) {
		out->event = WIRE_NIC_EVENT_ACK_RECEIVED;
	} else if (named) {
		s->sacks++;
		out->event = WIRE_NIC_EVENT_SACK_RECEIVED;
	}
	out->doorbell = out->event != WIRE_NIC_EVENT_ACK_STALE;
}

#endif
