#include "mprdma_history.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "nic.h"

#define MTU  256u
#define BASE 4096ull /* arena offset of the region */

/* What is under way in one direction, oldest first. */
struct data_flight {
	struct nic_packet packets[MPRDMA_FLIGHT];
	wire_u32 count;
};

struct ack_flight {
	struct mprdma_ack acks[MPRDMA_FLIGHT];
	wire_u32 count;
};

struct life {
	const struct mprdma_history *h;
	struct nic_qp a, b;                       /* sender and receiver */
	struct data_flight data;
	struct ack_flight acks;
	wire_u16 message_of[MPRDMA_PACKETS];
	wire_u16 first_of[MPRDMA_PACKETS];        /* by message */
	wire_u16 sends_before[MPRDMA_PACKETS];    /* by message */
	wire_u32 total, posted, messages_posted;
	wire_u64 now, ready_at;
	wire_u32 rnr_seen;
	wire_u32 said;
	int rung;
};

static void say(struct life *l, int value)
{
	if (l->said < l->h->room)
		l->h->said[l->said] = value;
	l->said++;
}

/* PSNs are said as their distance from the first. */
static void say_psn(struct life *l, wire_u32 psn)
{
	say(l, nic_psn_distance(psn, l->h->config.first_psn[0]));
}

static void lay_out(struct life *l)
{
	wire_u16 sends = 0;

	for (wire_u32 m = 0; m < l->h->messages; m++) {
		l->first_of[m] = (wire_u16)l->total;
		l->sends_before[m] = sends;
		sends += l->h->flags[m] & MPRDMA_MESSAGE_SEND;
		for (wire_u32 i = 0; i < l->h->packets[m]; i++)
			l->message_of[l->total++] = (wire_u16)m;
	}
}

static struct nic_packet packet(const struct life *l, const struct nic_send *send)
{
	wire_u32 number = (send->psn - l->h->config.first_psn[0]) & WIRE_PSN_MASK;
	wire_u32 m = l->message_of[number];
	wire_u32 index = number - l->first_of[m], packets = l->h->packets[m];
	int is_send = l->h->flags[m] & MPRDMA_MESSAGE_SEND;
	static const wire_u8 opcodes[2][4] = {
		{ WIRE_BTH_OPCODE_RC_WRITE_MIDDLE, WIRE_BTH_OPCODE_RC_WRITE_FIRST, WIRE_BTH_OPCODE_RC_WRITE_LAST,
		  WIRE_BTH_OPCODE_RC_WRITE_ONLY },
		{ WIRE_BTH_OPCODE_RC_SEND_MIDDLE, WIRE_BTH_OPCODE_RC_SEND_FIRST, WIRE_BTH_OPCODE_RC_SEND_LAST,
		  WIRE_BTH_OPCODE_RC_SEND_ONLY },
	};

	return (struct nic_packet){
		.psn = send->psn, .src_port = send->path, .ipsn = index, .va = (wire_u64)l->first_of[m] * MTU,
		.dma_length = packets * MTU, .wqe_sn = l->sends_before[m], .payload_length = MTU,
		.opcode = opcodes[is_send][(index == 0) + 2 * (index + 1 == packets)],
		.flags = (wire_u8)(NIC_FLAGS_DATA | send->flags |
				   (l->h->flags[m] & MPRDMA_MESSAGE_SYNCHRONISE ? NIC_SYNCHRONISE : 0)),
	};
}

/* Where the thing lies that a step's argument names, or -1: nothing is under way. */
static int pick(wire_u32 count, wire_u8 argument)
{
	wire_u32 at = argument & MPRDMA_PLACES;

	return at < count ? (int)at : (int)count - 1;
}

static int pick_data(struct data_flight *f, wire_u8 argument, int keep, struct nic_packet *out)
{
	int at = pick(f->count, argument);

	if (at < 0)
		return 0;
	*out = f->packets[at];
	if (!keep)
		memmove(f->packets + at, f->packets + at + 1, (--f->count - (wire_u32)at) * sizeof(*f->packets));
	return 1;
}

static int pick_ack(struct ack_flight *f, wire_u8 argument, int keep, struct mprdma_ack *out)
{
	int at = pick(f->count, argument);

	if (at < 0)
		return 0;
	*out = f->acks[at];
	if (!keep)
		memmove(f->acks + at, f->acks + at + 1, (--f->count - (wire_u32)at) * sizeof(*f->acks));
	return 1;
}

static void post(struct life *l)
{
	if (l->messages_posted == l->h->messages)
		return;
	l->posted += l->h->packets[l->messages_posted++];
	l->a.emitter[0].posted = nic_psn_add(l->h->config.first_psn[0], l->posted);
}

/* As the agent's engine does: timer() when it is due or there are news, then next(). */
static void send(struct life *l, wire_u32 most)
{
	struct nic_emitter *e = &l->a.emitter[0];
	struct nic_send send;

	if (l->a.sender[0].rnr_naks != l->rnr_seen) {
		l->rnr_seen = l->a.sender[0].rnr_naks;
		l->ready_at = l->now + nic_rnr_ns(l->a.sender[0].rnr_timer);
	}
	if (l->rung || (e->deadline && l->now >= e->deadline))
		say(l, nic_transport_mprdma.timer(&l->a, 0, l->now));
	l->rung = 0;
	for (wire_u32 i = 0; i < most && l->now >= l->ready_at; i++) {
		wire_u32 sent = (e->snd_nxt - l->h->config.first_psn[0]) & WIRE_PSN_MASK;
		wire_u32 m = l->messages_posted;

		if (sent < l->posted)
			m = l->message_of[sent] + (sent != l->first_of[l->message_of[sent]] ? 1u : 0u);

		while (m < l->messages_posted && !(l->h->flags[m] & MPRDMA_MESSAGE_SYNCHRONISE))
			m++;
		e->synchronise = m < l->messages_posted ? nic_psn_add(l->h->config.first_psn[0], l->first_of[m]) : e->posted;
		if (!nic_transport_mprdma.next(&l->a, 0, l->now, &send))
			break;
		say_psn(l, send.psn);
		say(l, send.path);
		say(l, send.flags);
		if (l->data.count < MPRDMA_FLIGHT)
			l->data.packets[l->data.count++] = packet(l, &send);
	}
	say(l, e->deadline ? (int)e->deadline : -1);
}

/* One region that holds everything; `ready`: there is a receive for a SEND. */
static void take_data(struct nic_qp *b, const struct nic_packet *p, int ready, wire_u64 place, struct mprdma_ack *ack)
{
	const struct nic_region region = {
		.length = 1ull << 40, .arena_offset = BASE, .rkey = 1, .access = 0xf, .pd = b->config.pd,
		.owner_ip = b->config.local_ip,
	};
	struct nic_recv recv = { .length = 1u << 30, .lkey = 1, .va = p->va };
	const struct nic_refs refs = { .region = &region, .recv = ready ? &recv : NULL };
	struct nic_verdict out = { 0 };

	nic_transport_mprdma.data(b, 0, p, &refs, 0, &out);
	*ack = (struct mprdma_ack){
		.psn = out.reply_psn, .sack_psn = out.sack_psn, .path = p->src_port, .flags = out.reply_flags,
		.syndrome = out.syndrome, .event = out.event,
		.placed = out.place_length ? (out.place_at == BASE + place ? 1 : 2) : 0,
	};
	if (out.reply == NIC_REPLY_XACK)
		ack->flags |= NIC_FLAGS_ACK;
}

static void take_ack(struct nic_qp *a, const struct mprdma_ack *ack, struct nic_verdict *out)
{
	struct nic_packet p = {
		.psn = ack->psn, .sack_psn = ack->sack_psn, .path = ack->path, .flags = ack->flags,
		.syndrome = ack->syndrome, .opcode = WIRE_BTH_OPCODE_RC_ACKNOWLEDGE,
	};

	nic_transport_mprdma.ack(a, 0, &p, 0, out);
}

int mprdma_next(struct nic_qp *a, wire_u64 now, int rung, struct mprdma_sent *out)
{
	struct nic_emitter *e = &a->emitter[0];
	struct nic_send send;

	if (rung || (e->deadline && now >= e->deadline))
		nic_transport_mprdma.timer(a, 0, now);
	e->synchronise = e->posted;
	if (!nic_transport_mprdma.next(a, 0, now, &send))
		return 0;
	*out = (struct mprdma_sent){ .psn = send.psn, .path = send.path, .flags = send.flags };
	return 1;
}

void mprdma_data(struct nic_qp *b, const struct mprdma_sent *data, int marked, struct mprdma_ack *out)
{
	wire_u64 index = (data->psn - b->config.first_psn[0]) & WIRE_PSN_MASK;
	const struct nic_packet p = {
		.psn = data->psn, .src_port = data->path, .va = index * MTU, .dma_length = MTU, .payload_length = MTU,
		.opcode = WIRE_BTH_OPCODE_RC_WRITE_ONLY, .flags = (wire_u8)(NIC_FLAGS_DATA | data->flags),
		.ecn = marked ? WIRE_ECN_CE : WIRE_ECN_ECT_0,
	};

	take_data(b, &p, 1, index * MTU, out);
}

void mprdma_take(struct nic_qp *a, const struct mprdma_ack *ack)
{
	struct nic_verdict out = { 0 };

	take_ack(a, ack, &out);
}

wire_u32 mprdma_bytes(void)
{
	return NIC_MPRDMA_BYTES;
}

static void receive_data(struct life *l, const struct nic_packet *arrived, wire_u8 argument)
{
	wire_u32 number = (arrived->psn - l->h->config.first_psn[0]) & WIRE_PSN_MASK;
	struct nic_packet p = *arrived;
	struct mprdma_ack ack;

	if (argument & MPRDMA_MARKED)
		p.ecn = WIRE_ECN_CE;
	take_data(&l->b, &p, !(argument & MPRDMA_NOT_READY), (wire_u64)number * MTU, &ack);
	say(l, ack.event);
	say(l, ack.placed);
	say_psn(l, l->b.receiver[0].epsn);
	say(l, (int)l->b.receiver[0].msn);
	say(l, (int)l->b.receiver[0].completed);
	if (!(ack.flags & NIC_FLAGS_ACK))
		return;
	say_psn(l, ack.psn);
	say(l, ack.syndrome);
	say(l, ack.flags);
	if (l->acks.count < MPRDMA_FLIGHT)
		l->acks.acks[l->acks.count++] = ack;
}

static void receive_ack(struct life *l, const struct mprdma_ack *ack)
{
	const struct nic_mprdma_sender *m = &l->a.sender[0].transport.mprdma;
	const struct nic_mprdma_emitter *e = &l->a.emitter[0].transport.mprdma;
	struct nic_mprdma_view view;
	struct nic_verdict out = { 0 };

	take_ack(&l->a, ack, &out);
	l->rung |= out.doorbell;
	view = nic_mprdma_unpack(m->published);
	say(l, out.event);
	say(l, (int)m->cwnd);
	say(l, m->inflate);
	say_psn(l, l->a.sender[0].snd_una);
	say_psn(l, nic_psn_add(view.granted, e->granted));
	say_psn(l, m->snd_ooh);
	say_psn(l, m->snd_retx);
	say(l, view.recovering);
	say(l, (int)(m->head - e->tail));
}

static void step(struct life *l, wire_u8 what, wire_u8 argument)
{
	struct nic_packet data;
	struct mprdma_ack ack;

	say(l, -1000 - what);
	switch (what) {
	case MPRDMA_POST:
		post(l);
		break;
	case MPRDMA_WAIT:
		l->now += argument * l->h->config.rtt_ns / 16;
		break;
	case MPRDMA_SEND:
		send(l, 1u + argument);
		break;
	case MPRDMA_DATA:
	case MPRDMA_DATA_TWICE:
	case MPRDMA_DATA_LOST:
		if (pick_data(&l->data, argument, what == MPRDMA_DATA_TWICE, &data) && what != MPRDMA_DATA_LOST)
			receive_data(l, &data, argument);
		break;
	case MPRDMA_ACK:
	case MPRDMA_ACK_TWICE:
	case MPRDMA_ACK_LOST:
		if (pick_ack(&l->acks, argument, what == MPRDMA_ACK_TWICE, &ack) && what != MPRDMA_ACK_LOST)
			receive_ack(l, &ack);
		break;
	}
}

static int done(const struct life *l)
{
	return nic_psn_distance(l->a.sender[0].snd_una, l->h->config.first_psn[0]) == (int)l->total;
}

wire_u32 mprdma_history_run(const struct mprdma_history *h)
{
	struct life *l = calloc(1, sizeof(*l));
	wire_u32 said, round;

	if (!l)
		return 0;
	l->h = h;
	l->now = 1;
	l->a.config = l->b.config = h->config;
	l->a.emitter[0].snd_nxt = l->a.emitter[0].posted = l->a.sender[0].snd_una = l->b.receiver[0].epsn =
		h->config.first_psn[0];
	lay_out(l);
	for (wire_u32 i = 0; i < h->count; i++)
		step(l, h->steps[2 * i], h->steps[2 * i + 1]);
	while (l->messages_posted < h->messages)
		post(l);
	for (round = 0; round < h->rounds && !done(l); round++) {
		step(l, MPRDMA_SEND, 255);
		while (l->data.count)
			step(l, MPRDMA_DATA, 0);
		while (l->acks.count)
			step(l, MPRDMA_ACK, 0);
		step(l, MPRDMA_WAIT, 8);
	}
	say(l, done(l));
	said = l->said;
	free(l);
	return said;
}

/* ---- two threads ---- */

#define WIRE_ROOM 1024 /* a power of two */

struct race {
	struct nic_qp *a, *b;
	struct mprdma_sent wire[WIRE_ROOM]; /* from agent to NIC */
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

/* The receiver's NIC and, behind a network without delay, the sender's. */
static void *nic_thread(void *argument)
{
	struct race *r = argument;

	while (!atomic_load(&r->over)) {
		wire_u32 at = atomic_load_explicit(&r->taken, memory_order_relaxed);
		struct mprdma_sent data;
		struct mprdma_ack ack;

		if (at == atomic_load_explicit(&r->sent, memory_order_acquire)) {
			sched_yield();
			continue;
		}
		data = r->wire[at % WIRE_ROOM];
		atomic_store_explicit(&r->taken, at + 1, memory_order_release);
		if (nic_mprdma_random(&r->random) % 1000 < r->lost)
			continue;
		mprdma_data(r->b, &data, 0, &ack);
		if (nic_mprdma_random(&r->random) % 1000 >= r->lost)
			mprdma_take(r->a, &ack);
	}
	return NULL;
}

wire_u32 mprdma_race(struct nic_qp *a, struct nic_qp *b, wire_u32 packets, wire_u32 lost, wire_u64 patience_ns)
{
	struct race *r = calloc(1, sizeof(*r));
	wire_u32 first = a->config.first_psn[0], acks = 0, una = first;
	wire_u64 moved = clock_ns();
	pthread_t thread;

	if (!r)
		return 0;
	r->a = a;
	r->b = b;
	r->lost = lost;
	r->random = 1;
	a->emitter[0].posted = nic_psn_add(first, packets);
	if (pthread_create(&thread, NULL, nic_thread, r)) {
		free(r);
		return 0;
	}
	while (una != a->emitter[0].posted && clock_ns() - moved < patience_ns) {
		wire_u32 seen = __atomic_load_n(&a->sender[0].acks, __ATOMIC_ACQUIRE);
		wire_u32 at = atomic_load_explicit(&r->sent, memory_order_relaxed);
		struct mprdma_sent send;
		int rung = seen != acks;

		acks = seen;
		if (at - atomic_load_explicit(&r->taken, memory_order_acquire) < WIRE_ROOM &&
		    mprdma_next(a, clock_ns(), rung, &send)) {
			r->wire[at % WIRE_ROOM] = send;
			atomic_store_explicit(&r->sent, at + 1, memory_order_release);
		} else {
			sched_yield();
		}
		if (una != __atomic_load_n(&a->sender[0].snd_una, __ATOMIC_ACQUIRE)) {
			una = a->sender[0].snd_una;
			moved = clock_ns();
		}
	}
	atomic_store(&r->over, 1);
	pthread_join(thread, NULL);
	free(r);
	return (wire_u32)nic_psn_distance(una, first);
}
