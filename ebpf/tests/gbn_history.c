#include "gbn_history.h"

#include <string.h>

#include "nic.h"

#define RECEIVES 64

_Static_assert(sizeof(struct gbn_step) == 64 && sizeof(struct gbn_result) == 64, "as gbn_history.py packs them");

struct world {
	struct nic_qp qps[2];
	struct nic_recv recvs[RECEIVES];
	struct nic_rq rq;
	struct nic_region region;
};

static void reset(struct world *w, const struct gbn_step *s)
{
	memset(w, 0, sizeof(*w));
	w->region.length = 1ull << 40;
	w->region.rkey = 1;
	w->region.access = NIC_ACCESS_LOCAL_WRITE | NIC_ACCESS_REMOTE_WRITE | NIC_ACCESS_REMOTE_READ |
			   NIC_ACCESS_REMOTE_ATOMIC;
	w->rq = (struct nic_rq){ .mask = RECEIVES - 1, .posted = s->number, .in_use = 1 };
	for (int i = 0; i < 2; i++) {
		struct nic_qp *qp = &w->qps[i];

		qp->config.state = WIRE_QP_STATE_RTS;
		qp->config.transport = NIC_TRANSPORT_gbn;
		qp->config.path_mtu = s->payload_length;
		qp->config.window = (wire_u16)s->dma_length;
		qp->config.timeout_ns = s->now;
		qp->config.flags = s->flags;
		qp->config.rnr_timer = s->rnr_timer;
		qp->config.ack_every = s->ack_every;
		qp->config.first_psn[NIC_STREAM_REQUEST] = s->psn;
		qp->receiver[NIC_STREAM_REQUEST].epsn = s->psn;
		qp->receiver[NIC_STREAM_REQUEST].msn = s->msn;
		qp->receiver[NIC_STREAM_REQUEST].completed = s->number;
		qp->receiver[NIC_STREAM_REQUEST].fetches = s->number;
		qp->receiver[NIC_STREAM_RESPONSE].msn = s->number;
		qp->sender[NIC_STREAM_REQUEST].snd_una = s->psn;
		qp->sender[NIC_STREAM_REQUEST].credit_limit = s->msn;
		qp->emitter[NIC_STREAM_REQUEST].snd_nxt = qp->emitter[NIC_STREAM_REQUEST].posted = s->psn;
		qp->emitter[NIC_STREAM_RESPONSE].served = s->number;
	}
}

static struct nic_packet packet(const struct gbn_step *s)
{
	return (struct nic_packet){
		.va = s->va, .rkey = s->va ? 1 : 0, .dma_length = s->dma_length, .swap_add = s->atomic, .psn = s->psn, .msn = s->msn,
		.payload_length = s->payload_length, .opcode = s->opcode, .ack_req = s->ack_req, .syndrome = s->syndrome,
	};
}

static void take(struct world *w, struct nic_qp *qp, const struct gbn_step *s, struct gbn_result *r)
{
	const struct nic_packet p = packet(s);
	struct nic_refs refs = { 0 };
	struct nic_verdict v = { 0 };

	if (nic_needs_rq(qp, &p)) {
		wire_u32 number = nic_recv_number(qp, &p, &w->rq);

		refs.posted = w->rq.posted;
		if (number != NIC_RECV_NONE)
			refs.recv = &w->recvs[number & w->rq.mask];
	}
	refs.region = nic_region_valid(&w->region, nic_region_key(qp, &p, refs.recv));
	nic_receive(&nic_transport_gbn, qp, &p, &refs, s->now, &v);
	r->place_at = v.place_at;
	r->place_length = v.place_length;
	r->event = v.event;
	r->doorbell = v.doorbell;
	r->reply = v.reply;
	r->reply_psn = v.reply_psn;
	r->reply_msn = v.reply_msn;
	r->syndrome = v.syndrome;
}

static void request(struct world *w, const struct gbn_step *s, struct gbn_result *r)
{
	struct nic_qp *qp = &w->qps[1];
	const struct nic_receiver *receiver = &qp->receiver[NIC_STREAM_REQUEST];

	take(w, qp, s, r);
	r->words[0] = receiver->epsn;
	r->words[1] = receiver->msn;
	r->words[2] = receiver->completed;
	r->words[3] = receiver->fetches;
	r->words[4] = receiver->nak_outstanding;
	r->words[5] = receiver->transport.gbn.held;
	r->words[6] = receiver->gaps;
	r->words[7] = qp->config.state;
}

static void answer(struct world *w, const struct gbn_step *s, struct gbn_result *r)
{
	struct nic_qp *qp = &w->qps[0];
	const struct nic_sender *sender = &qp->sender[NIC_STREAM_REQUEST];
	wire_u32 slot = qp->receiver[NIC_STREAM_RESPONSE].msn & (NIC_FETCH_MAX - 1);

	take(w, qp, s, r);
	r->words[0] = sender->snd_una;
	r->words[1] = sender->naks;
	r->words[2] = sender->rnr_naks;
	r->words[3] = sender->error;
	r->words[4] = sender->credit_limit;
	r->words[5] = qp->receiver[NIC_STREAM_RESPONSE].msn;
	r->words[6] = (wire_u32)qp->outgoing[slot].original;
	r->words[7] = qp->config.state;
}

static void post(struct world *w, const struct gbn_step *s)
{
	struct nic_qp *qp = &w->qps[0];

	if (s->opcode)
		qp->outgoing[s->number & (NIC_FETCH_MAX - 1)] = (struct nic_outgoing){
			.va = s->va, .lkey = 1, .length = s->dma_length, .psn = s->msn,
			.kind = s->opcode == WIRE_BTH_OPCODE_RC_READ_REQUEST ? NIC_OUTGOING_READ : NIC_OUTGOING_ATOMIC,
		};
	qp->emitter[NIC_STREAM_REQUEST].posted = s->psn;
}

static void receives(struct world *w, const struct gbn_step *s)
{
	for (; w->rq.posted != s->number; w->rq.posted = nic_psn_add(w->rq.posted, 1)) {
		struct nic_recv *recv = &w->recvs[w->rq.posted & w->rq.mask];

		*recv = (struct nic_recv){ .length = s->dma_length, .lkey = 1 };
		recv->va = s->va + (wire_u64)(w->rq.posted & 0xff) * s->dma_length;
	}
}

static void wake(struct world *w, const struct gbn_step *s, struct gbn_result *r)
{
	struct nic_qp *qp = &w->qps[s->stream];
	struct nic_send send;

	r->fired = (wire_u8)nic_gbn_timer(qp, s->stream, s->now);
	while (r->sends < GBN_SENDS && r->sends < s->dma_length && nic_gbn_next(qp, s->stream, s->now, &send)) {
		r->words[r->sends++] = send.psn | (send.flags & NIC_RETRANSMISSION ? 1u << 24 : 0) |
				       (wire_u32)send.ack_req << 25 | (wire_u32)send.acknowledge << 26;
		if (send.acknowledge)
			r->syndrome = send.syndrome;
	}
	r->place_at = qp->emitter[s->stream].deadline;
}

static void serve(struct world *w, const struct gbn_step *s, struct gbn_result *r)
{
	struct nic_qp *qp = &w->qps[1];
	const struct nic_incoming *in = &qp->incoming[s->number & (NIC_FETCH_MAX - 1)];
	struct nic_emitter *e = &qp->emitter[NIC_STREAM_RESPONSE];

	e->snd_nxt = in->psn;
	e->posted = nic_psn_add(in->psn, nic_fetch_packets(&qp->config, in->length));
	r->place_at = in->va;
	r->repeated = in->repeated;
	r->words[0] = in->psn;
	r->words[1] = in->length;
}

void gbn_run(const struct gbn_step *steps, struct gbn_result *results, wire_u32 count)
{
	static _Thread_local struct world w;

	for (wire_u32 i = 0; i < count; i++) {
		const struct gbn_step *s = &steps[i];
		struct gbn_result *r = &results[i];

		memset(r, 0, sizeof(*r));
		if (s->kind == GBN_RESET)
			reset(&w, s);
		else if (s->kind == GBN_REQUEST)
			request(&w, s, r);
		else if (s->kind == GBN_ANSWER)
			answer(&w, s, r);
		else if (s->kind == GBN_POST)
			post(&w, s);
		else if (s->kind == GBN_TAKEN)
			w.qps[0].outgoing[s->number & (NIC_FETCH_MAX - 1)].kind = NIC_OUTGOING_NONE;
		else if (s->kind == GBN_RECEIVES)
			receives(&w, s);
		else if (s->kind == GBN_WAKE)
			wake(&w, s, r);
		else if (s->kind == GBN_SERVE)
			serve(&w, s, r);
		else if (s->kind == GBN_SERVED)
			w.qps[1].emitter[NIC_STREAM_RESPONSE].served = s->number;
		else
			w.qps[0].config.window = (wire_u16)s->dma_length;
	}
}
