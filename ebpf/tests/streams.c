#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "nic.h"

#include "streams.h"

#define RECEIVES 64

_Static_assert(sizeof(struct stream_step) == 64 && sizeof(struct stream_setup) == 64 &&
	       sizeof(struct stream_result) == 64, "as streams.py packs them");

struct world {
	struct nic_qp qps[2];
	struct nic_recv recvs[RECEIVES];
	struct nic_region region;
	wire_u32 posted;
};

static void reset(struct world *w, const struct stream_setup *setup, wire_u32 transport)
{
	memset(w, 0, sizeof(*w));
	w->posted = setup->first_recv;
	w->region.length = 1ull << 40;
	w->region.rkey = 1;
	w->region.access = NIC_ACCESS_LOCAL_WRITE | NIC_ACCESS_REMOTE_WRITE | NIC_ACCESS_REMOTE_READ |
			   NIC_ACCESS_REMOTE_ATOMIC;
	for (int i = 0; i < 2; i++) {
		struct nic_qp *qp = &w->qps[i];

		qp->config.state = WIRE_QP_STATE_RTS;
		qp->config.transport = (wire_u8)transport;
		qp->config.path_mtu = setup->mtu;
		qp->config.slots = setup->slots;
		qp->config.window = setup->window;
		qp->config.timeout_ns = setup->timeout_ns;
		qp->config.timeout_low_ns = setup->timeout_low_ns;
		qp->config.timeout_low_packets = setup->low_packets;
		qp->config.flags = setup->flags;
		qp->config.rnr_timer = setup->rnr_timer;
		for (int stream = 0; stream < NIC_STREAMS; stream++) {
			wire_u32 first = setup->first_psn[stream];

			qp->config.first_psn[stream] = first;
			qp->receiver[stream].epsn = first;
			qp->receiver[stream].msn = setup->first_msn;
			qp->sender[stream].snd_una = qp->emitter[stream].snd_nxt = qp->emitter[stream].posted = first;
		}
		qp->sender[NIC_STREAM_REQUEST].credit_limit = setup->first_msn;
		qp->receiver[NIC_STREAM_REQUEST].completed = setup->first_recv;
		qp->receiver[NIC_STREAM_REQUEST].fetches = setup->first_fetch;
		qp->emitter[NIC_STREAM_RESPONSE].served = setup->first_fetch;
	}
}

static void receives(struct world *w, const struct stream_step *s)
{
	for (; w->posted != s->wqe_sn; w->posted = nic_psn_add(w->posted, 1)) {
		struct nic_recv *recv = &w->recvs[w->posted % RECEIVES];

		memset(recv, 0, sizeof(*recv));
		recv->va = s->va + (wire_u64)(w->posted & 0xff) * s->dma_length;
		recv->length = s->dma_length;
		recv->lkey = 1;
	}
}

static void data(struct world *w, const struct nic_transport *t, const struct stream_step *s, struct stream_result *r)
{
	struct nic_qp *qp = &w->qps[s->qp];
	struct nic_receiver *receiver = &qp->receiver[s->stream];
	struct nic_packet p = {
		.va = s->va, .rkey = 1, .dma_length = s->dma_length, .psn = s->psn, .msn = s->msn, .ipsn = s->ipsn,
		.wqe_sn = s->wqe_sn, .payload_length = s->payload_length, .opcode = s->opcode, .ecn = s->ecn,
		.flags = s->flags,
	};
	struct nic_refs refs = { .region = &w->region, .posted = w->posted };
	struct nic_verdict v = { 0 };
	int ahead = nic_psn_distance(s->wqe_sn, receiver->completed);

	if (nic_needs_recv(&p) && ahead >= 0 && ahead < nic_psn_distance(w->posted, receiver->completed))
		refs.recv = &w->recvs[s->wqe_sn % RECEIVES];
	nic_receive(t, qp, &p, &refs, s->now, &v);
	r->place_at = v.place_at;
	r->place_length = v.place_length;
	r->event = v.event;
	r->doorbell = v.doorbell;
	r->reply = v.reply;
	r->reply_opcode = v.reply_opcode;
	r->reply_flags = v.reply_flags;
	r->reply_psn = v.reply_psn;
	r->reply_msn = v.reply_msn;
	r->sack_psn = v.sack_psn;
	r->syndrome = v.syndrome;
	r->words[0] = receiver->epsn;
	r->words[1] = receiver->msn;
	r->words[2] = receiver->completed;
	r->words[3] = receiver->fetches;
	r->words[4] = receiver->out_of_order;
	r->words[5] = receiver->gaps;
	r->words[6] = qp->config.state;
}

static void ack(struct world *w, const struct nic_transport *t, const struct stream_step *s, struct stream_result *r)
{
	struct nic_qp *qp = &w->qps[s->qp];
	const struct nic_sender *sender = &qp->sender[s->stream];
	struct nic_packet p = {
		.psn = s->psn, .msn = s->msn, .sack_psn = s->sack_psn, .opcode = s->opcode, .flags = s->flags,
		.syndrome = s->syndrome,
	};
	struct nic_refs refs = { 0 };
	struct nic_verdict v = { 0 };

	nic_receive(t, qp, &p, &refs, s->now, &v);
	r->event = v.event;
	r->doorbell = v.doorbell;
	r->reply = v.reply;
	r->words[0] = sender->snd_una;
	r->words[1] = sender->naks;
	r->words[2] = sender->rnr_naks;
	r->words[3] = sender->acks;
	r->words[4] = sender->sacks;
	r->words[5] = sender->msn;
	r->words[6] = sender->marks;
	r->words[7] = sender->credit_limit;
}

static void wake(struct world *w, const struct nic_transport *t, const struct stream_step *s, struct stream_result *r)
{
	struct nic_qp *qp = &w->qps[s->qp];
	struct nic_send send;

	r->fired = (wire_u8)t->timer(qp, s->stream, s->now);
	while (r->sends < STREAM_SENDS && r->sends < s->dma_length && t->next(qp, s->stream, s->now, &send))
		r->words[r->sends++] = send.psn | (send.flags & NIC_RETRANSMISSION ? 1u << 31 : 0);
	r->place_at = qp->emitter[s->stream].deadline;
}

static void fetch(struct world *w, const struct stream_step *s)
{
	struct nic_outgoing *o = &w->qps[s->qp].outgoing[s->wqe_sn % NIC_FETCH_MAX];

	o->va = s->va;
	o->lkey = 1;
	o->length = s->dma_length;
	o->kind = s->opcode == WIRE_BTH_OPCODE_RC_READ_REQUEST ? NIC_OUTGOING_READ : NIC_OUTGOING_ATOMIC;
}

void stream_run(wire_u32 transport, const struct stream_step *steps, struct stream_result *results, wire_u32 count)
{
	const struct nic_transport *t = nic_transport(transport);
	static struct world w;

	for (wire_u32 i = 0; i < count; i++) {
		const struct stream_step *s = &steps[i];
		struct nic_qp *qp = &w.qps[s->qp & 1];

		switch (s->kind) {
		case STREAM_RESET:
			reset(&w, (const struct stream_setup *)&steps[++i], transport);
			break;
		case STREAM_DATA:
			data(&w, t, s, &results[i]);
			break;
		case STREAM_ACK:
			ack(&w, t, s, &results[i]);
			break;
		case STREAM_POST:
			qp->emitter[s->stream].posted = s->psn;
			break;
		case STREAM_RECEIVES:
			receives(&w, s);
			break;
		case STREAM_WAKE:
			wake(&w, t, s, &results[i]);
			break;
		case STREAM_FETCH:
			fetch(&w, s);
			break;
		case STREAM_SERVE:
			qp->emitter[NIC_STREAM_RESPONSE].served = s->wqe_sn;
			break;
		case STREAM_WINDOW:
			qp->config.window = (wire_u16)s->dma_length;
			break;
		}
	}
}

wire_u32 stream_transport(const char *name)
{
#define STREAM_NAMED(transport)                                                                                        \
	if (!strcmp(name, #transport))                                                                                 \
		return NIC_TRANSPORT_##transport;
	NIC_TRANSPORTS(STREAM_NAMED)
	return ~0u;
}

wire_u64 stream_rnr_ns(wire_u32 code)
{
	return nic_rnr_ns(code);
}

/* ---- two threads ---- */

#define WIRE_ROOM 1024 /* a power of two */

struct race {
	struct world world;
	const struct nic_transport *transport;
	struct nic_send wire[WIRE_ROOM]; /* from agent to NIC */
	atomic_uint sent, taken;
	atomic_int over;
	wire_u32 lost, random;
};

static wire_u64 clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (wire_u64)t.tv_sec * 1000000000u + (wire_u64)t.tv_nsec;
}

static int loses(struct race *r)
{
	r->random = r->random * 1664525 + 1013904223;
	return (r->random >> 8) % 1000 < r->lost;
}

/* The receiver's NIC and, behind a network without delay, the sender's. */
static void *nic_thread(void *argument)
{
	struct race *r = argument;

	while (!atomic_load(&r->over)) {
		wire_u32 at = atomic_load_explicit(&r->taken, memory_order_relaxed);
		struct stream_step s = { .qp = 1, .opcode = WIRE_BTH_OPCODE_RC_WRITE_ONLY, .dma_length = 8,
					 .payload_length = 8 };
		struct stream_result placed = { 0 }, taken = { 0 };

		if (at == atomic_load_explicit(&r->sent, memory_order_acquire)) {
			sched_yield();
			continue;
		}
		s.psn = r->wire[at % WIRE_ROOM].psn;
		s.flags = NIC_FLAGS_DATA;
		atomic_store_explicit(&r->taken, at + 1, memory_order_release);
		if (loses(r))
			continue;
		data(&r->world, r->transport, &s, &placed);
		if (loses(r))
			continue;
		s = (struct stream_step){ .opcode = placed.reply_opcode, .psn = placed.reply_psn,
					  .msn = placed.reply_msn, .sack_psn = placed.sack_psn,
					  .syndrome = placed.syndrome,
					  .flags = NIC_FLAGS_ACK | placed.reply_flags };
		ack(&r->world, r->transport, &s, &taken);
	}
	return NULL;
}

/* As the agent's engine does: timer() when it is due or there are news, then next(). */
static int agent(struct race *r, wire_u32 *acks, struct nic_send *send)
{
	struct nic_qp *qp = &r->world.qps[0];
	wire_u32 seen = __atomic_load_n(&qp->sender[0].acks, __ATOMIC_ACQUIRE);
	wire_u64 now = clock_ns();

	if (seen != *acks || (qp->emitter[0].deadline && now >= qp->emitter[0].deadline))
		r->transport->timer(qp, 0, now);
	*acks = seen;
	return r->transport->next(qp, 0, now, send);
}

wire_u32 stream_race(wire_u32 transport, wire_u32 packets, wire_u32 lost, wire_u64 patience_ns)
{
	static struct race race;
	struct race *r = &race;
	struct nic_qp *qp = &r->world.qps[0];
	struct stream_setup setup = { .timeout_ns = 1000000, .timeout_low_ns = 300000, .low_packets = 3, .slots = 256,
				      .window = 200, .mtu = 256, .first_psn = { 0xfffff0, 0 } };
	wire_u32 una = 0xfffff0, acks = 0;
	wire_u64 moved = clock_ns();
	pthread_t thread;

	memset(r, 0, sizeof(*r));
	reset(&r->world, &setup, transport);
	r->transport = nic_transport(transport);
	r->lost = lost;
	qp->emitter[0].posted = nic_psn_add(una, packets);
	if (pthread_create(&thread, NULL, nic_thread, r))
		return 0;
	while (una != qp->emitter[0].posted && clock_ns() - moved < patience_ns) {
		wire_u32 at = atomic_load_explicit(&r->sent, memory_order_relaxed);

		if (at - atomic_load_explicit(&r->taken, memory_order_acquire) < WIRE_ROOM &&
		    agent(r, &acks, &r->wire[at % WIRE_ROOM]))
			atomic_store_explicit(&r->sent, at + 1, memory_order_release);
		else
			sched_yield();
		if (una != __atomic_load_n(&qp->sender[0].snd_una, __ATOMIC_ACQUIRE)) {
			una = qp->sender[0].snd_una;
			moved = clock_ns();
		}
	}
	atomic_store(&r->over, 1);
	pthread_join(thread, NULL);
	return r->world.qps[1].receiver[0].epsn == una ? (wire_u32)nic_psn_distance(una, setup.first_psn[0]) : 0;
}
