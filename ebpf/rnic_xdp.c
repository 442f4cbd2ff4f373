/*
 * The XDP shell around the NIC core: maps, look-ups, placement and sending.  What a packet means is decided in core/.
 *
 * Loaded once, it serves all hosts of a lab on this machine.  There is one program a transport, each with only its own
 * transport inside, so that each passes the verifier by itself and only those in use are loaded.  A host's interface has one
 * of them; it hands a packet for a queue pair of another transport to that one's by a tail call, which parses it again.
 *
 * The loader gives the sizes (-D): NIC_MAX_HOSTS, NIC_MAX_QPS, NIC_MAX_REGIONS, NIC_MAX_RQS, NIC_MAX_RECVS (powers of two),
 * NIC_CHUNK_SHIFT and NIC_CHUNKS (the arena), NIC_DOORBELL_PAGES; NIC_PROGRAMS(X), an X(name) for each transport that is
 * wanted; NIC_CHECK_ICRC if every packet's ICRC is to be checked.
 *
 * BCC compiles this file: no libbpf and no libc header may be included.
 */
#include "core/icrc_check.h"
#include "core/nic.h"
#include "core/pause.h"
#include "core/reply.h"

/* The arena: all registered memory, in chunks, since the verifier wants offsets below 2^29.  A packet may span two. */
#define NIC_CHUNK_BYTES (1ull << NIC_CHUNK_SHIFT)
#define NIC_PAYLOAD_MAX 4096 /* the largest path MTU (IBTA vol. 1, section 9.7.1) */

struct nic_chunk {
	wire_u8 bytes[NIC_CHUNK_BYTES];
};

BPF_F_TABLE("array", u32, struct nic_chunk, arena, NIC_CHUNKS, BPF_F_MMAPABLE);
/* Queue pairs and regions by the low bits of their number and key. */
BPF_F_TABLE("array", u32, struct nic_qp, qps, NIC_MAX_QPS, BPF_F_MMAPABLE);
BPF_F_TABLE("array", u32, struct nic_region, regions, NIC_MAX_REGIONS, BPF_F_MMAPABLE);
/* Receive queues by their number, and the receives of all of them. */
BPF_F_TABLE("array", u32, struct nic_rq, rqs, NIC_MAX_RQS, BPF_F_MMAPABLE);
BPF_F_TABLE("array", u32, struct nic_recv, recvs, NIC_MAX_RECVS, BPF_F_MMAPABLE);
/* By host slot; slot 0 is for frames that are no host's. */
BPF_F_TABLE("array", u32, struct nic_counters, counters, NIC_MAX_HOSTS, BPF_F_MMAPABLE);
/* By host slot: what the queue pairs of a host share. */
BPF_F_TABLE("array", u32, struct nic_host_state, host_states, NIC_MAX_HOSTS, BPF_F_MMAPABLE);
/* One element: constants for the ICRC of acknowledge packets, written by the agent. */
BPF_F_TABLE("array", u32, struct nic_icrc_tables, icrc_tables, 1, BPF_F_MMAPABLE);
/* Hosts by MAC address, and the same by slot. */
BPF_HASH(hosts, u64, struct nic_host, NIC_MAX_HOSTS);
BPF_ARRAY(host_slots, struct nic_host, NIC_MAX_HOSTS);
/* Host slots by the MAC address of the other end of their link, where pause frames come from. */
BPF_HASH(partners, u64, u32, NIC_MAX_HOSTS);
/* The programs by their transport's number. */
BPF_PROG_ARRAY(programs, NIC_TRANSPORT_COUNT);
/* Queue pairs with news for the agent. */
BPF_RINGBUF_OUTPUT(doorbells, NIC_DOORBELL_PAGES);

/*
 * What is known of the packet at hand.  It lies in a map and not on the stack because the verifier does not remember
 * what it has seen written there: it forgets on which way a value came about, and so follows each of the ways through
 * parse and transport once, not all their combinations.
 */
struct nic_work {
	struct nic_packet packet;
	struct nic_verdict verdict;
	u32 place_at, place_from; /* of place_in_steps() */
};

BPF_PERCPU_ARRAY(work, struct nic_work, 1);

/*
 * The slot of the host that the frame is for, if it came in by that host's interface.  `guess` is the slot to try
 * first: a hash look-up takes as long as half of everything else.
 */
WIRE_FN u32 host_slot(struct xdp_md *ctx, u64 mac, u32 guess)
{
	struct nic_host *host = host_slots.lookup(&guess);

	if (!host || !host->slot || host->mac != mac)
		host = hosts.lookup(&mac);
	return host && host->ifindex == ctx->ingress_ifindex ? host->slot : NIC_HOST_NONE;
}

/*
 * Copies `length` (< 2 * NIC_PAYLOAD_MAX) frame bytes to `at` in a chunk in powers of two, each with its own bound: the
 * verifier does not relate a length to an offset.  The cursor lies in a map and is read anew for each step, so that
 * the verifier forgets how it came to be: otherwise it follows all 2^13 combinations of steps.
 */
WIRE_FN void place_in_steps(struct xdp_md *ctx, u32 from, struct nic_chunk *chunk, u32 at, u32 length)
{
	u32 zero = 0;
	volatile struct nic_work *c = work.lookup(&zero);

	if (!c)
		return;
	c->place_at = at;
	c->place_from = from;
#pragma unroll
	for (u32 step = NIC_PAYLOAD_MAX; step; step >>= 1) {
		u32 to = c->place_at, source = c->place_from;

		if (!(length & step))
			continue;
		if (to > NIC_CHUNK_BYTES - step)
			return;
		bpf_xdp_load_bytes(ctx, source, chunk->bytes + to, step);
		c->place_at = to + step;
		c->place_from = source + step;
	}
}

#define NIC_BLOCK      256
#define NIC_BLOCKS_MAX 1024

typedef u64 __attribute__((may_alias)) nic_word;

/* Full packets of the smaller path MTUs: the helper takes longer before its first byte than this for half of them. */
WIRE_FN int copy_blocks(struct xdp_md *ctx, u32 from, wire_u8 *to, u32 length)
{
	const wire_u8 *end = (void *)(long)ctx->data_end;
	const wire_u8 *at = (const wire_u8 *)(long)ctx->data + (from & 0xff); /* headers are shorter */

	for (u32 block = 0; block < NIC_BLOCKS_MAX; block += NIC_BLOCK) {
		if (length <= block)
			break;
		if (at + block + NIC_BLOCK > end)
			return 0;
#pragma unroll
		for (u32 i = block; i < block + NIC_BLOCK; i += sizeof(nic_word))
			*(nic_word *)(to + i) = *(const nic_word *)(at + i);
	}
	return 1;
}

/* Payload to its final address.  The core has checked that the range lies in a region. */
WIRE_FN int place(struct xdp_md *ctx, const struct nic_packet *p, const struct nic_verdict *v)
{
	u32 index = v->place_at >> NIC_CHUNK_SHIFT;
	u32 at = v->place_at & (NIC_CHUNK_BYTES - 1);
	u32 length = v->place_length;
	u32 first;
	struct nic_chunk *chunk = arena.lookup(&index);

	if (!chunk || !length || length > NIC_PAYLOAD_MAX)
		return 0;
	if (at <= NIC_CHUNK_BYTES - NIC_PAYLOAD_MAX && length <= NIC_BLOCKS_MAX && length % NIC_BLOCK == 0)
		return copy_blocks(ctx, p->payload_at, chunk->bytes + at, length);
	if (at <= NIC_CHUNK_BYTES - NIC_PAYLOAD_MAX)
		return bpf_xdp_load_bytes(ctx, p->payload_at, chunk->bytes + at, length) == 0;
	first = NIC_CHUNK_BYTES - at;
	if (first > length)
		first = length;
	place_in_steps(ctx, p->payload_at, chunk, at, first);
	if (first == length)
		return 1;
	index++;
	chunk = arena.lookup(&index);
	if (!chunk)
		return 0;
	place_in_steps(ctx, p->payload_at + first, chunk, 0, length - first);
	return 1;
}

/* As place_in_steps(), from another place in the arena. */
WIRE_FN void copy_in_steps(const wire_u8 *from, struct nic_chunk *chunk, u32 at, u32 length)
{
	u32 zero = 0;
	volatile struct nic_work *c = work.lookup(&zero);

	if (!c)
		return;
	c->place_at = at;
	c->place_from = 0;
#pragma unroll
	for (u32 step = NIC_PAYLOAD_MAX; step; step >>= 1) {
		u32 to = c->place_at, source = c->place_from;

		if (!(length & step))
			continue;
		if (to > NIC_CHUNK_BYTES - step)
			return;
		bpf_probe_read_kernel(chunk->bytes + to, step, from + source);
		c->place_at = to + step;
		c->place_from = source + step;
	}
}

/* A packet that was held back goes from host memory to its place (Eunomia, appendix A.1). */
WIRE_FN void release(const struct nic_qp *qp, const struct nic_verdict *v)
{
	u32 slot = v->release_rkey & (NIC_MAX_REGIONS - 1), index = qp->config.hold_at >> NIC_CHUNK_SHIFT, first;
	const struct nic_region *region = nic_region_valid(regions.lookup(&slot), v->release_rkey);
	struct nic_chunk *source = arena.lookup(&index), *chunk;
	u32 length = v->release_length, at;
	const wire_u8 *from;
	wire_u64 to;

	if (!source || !nic_release(qp, region, v, &to))
		return;
	from = source->bytes + (qp->config.hold_at & (NIC_CHUNK_BYTES - 1));
	index = to >> NIC_CHUNK_SHIFT;
	at = to & (NIC_CHUNK_BYTES - 1);
	first = NIC_CHUNK_BYTES - at < length ? NIC_CHUNK_BYTES - at : length;
	chunk = arena.lookup(&index);
	if (chunk)
		copy_in_steps(from, chunk, at, first);
	index++;
	chunk = arena.lookup(&index);
	if (chunk && first != length)
		copy_in_steps(from + first, chunk, 0, length - first);
}

WIRE_FN void ring_doorbell(u32 qp_slot, u32 qpn)
{
	struct nic_doorbell bell = { .qp_slot = qp_slot, .qpn = qpn };

	/* A full ring loses nothing: the agent looks at every busy queue pair from time to time. */
	doorbells.ringbuf_output(&bell, sizeof(bell), 0);
}

/* The received frame becomes the reply.  `kind` is a constant, so that the frame's length is one. */
WIRE_FN int reply_as(struct xdp_md *ctx, const struct nic_qp *qp, const struct nic_packet *p,
		     const struct nic_verdict *v, wire_u8 kind)
{
	u32 zero = 0;
	const struct nic_icrc_tables *tables = icrc_tables.lookup(&zero);
	int length = (int)(ctx->data_end - ctx->data);
	int wanted = WIRE_ETHERNET_LEN + (int)nic_reply_total_len(kind);
	wire_u8 *frame;

	/* Growing (a request shorter than its reply) works only where the driver left tail room. */
	if (!tables || (length != wanted && bpf_xdp_adjust_tail(ctx, wanted - length)))
		return XDP_DROP;
	frame = (wire_u8 *)(long)ctx->data;
	if (frame + wanted > (wire_u8 *)(long)ctx->data_end)
		return XDP_DROP;
	nic_reply_write(frame, qp, p, v, kind, tables);
	return XDP_TX;
}

WIRE_FN int reply(struct xdp_md *ctx, const struct nic_qp *qp, const struct nic_packet *p, const struct nic_verdict *v)
{
	if (v->reply == NIC_REPLY_ACK)
		return reply_as(ctx, qp, p, v, NIC_REPLY_ACK);
	if (v->reply == NIC_REPLY_XACK)
		return reply_as(ctx, qp, p, v, NIC_REPLY_XACK);
	return reply_as(ctx, qp, p, v, NIC_REPLY_CNP);
}

/* The receive queue's part of `refs`. */
WIRE_FN void find_recv(struct nic_qp *qp, const struct nic_packet *p, struct nic_refs *refs)
{
	u32 slot = qp->config.rq & (NIC_MAX_RQS - 1);
	struct nic_rq *rq = rqs.lookup(&slot);
	u32 number;

	if (!rq)
		return;
	refs->posted = rq->posted;
	number = nic_recv_number(qp, p, rq);
	if (number == NIC_RECV_NONE)
		return;
	slot = (rq->base + (number & rq->mask)) & (NIC_MAX_RECVS - 1);
	refs->recv = recvs.lookup(&slot);
}

WIRE_FN void look_up(struct nic_qp *qp, const struct nic_transport *t, const struct nic_packet *p, struct nic_refs *refs)
{
	u32 host = p->host, key, slot;

	if (nic_needs_rq(qp, p))
		find_recv(qp, p, refs);
	key = nic_region_key(qp, p, refs->recv);
	slot = key & (NIC_MAX_REGIONS - 1);
	refs->region = nic_region_valid(regions.lookup(&slot), key);
	if (t->host_state)
		refs->host = host_states.lookup(&host);
}

/*
 * The one exit: each frame counts exactly one event.  A veth has one receive queue, so one CPU at a time counts for a
 * host; only what is no host's can come from several.
 */
WIRE_FN int finish(u32 host, const struct nic_packet *p, const struct nic_verdict *v, int action)
{
	struct nic_counters *c = counters.lookup(&host);

	if (!c)
		return action;
	if (host == NIC_HOST_NONE) {
		__sync_fetch_and_add(&c->events[v->event & (NIC_EVENT_SLOTS - 1)], 1);
		return action;
	}
	c->events[v->event & (NIC_EVENT_SLOTS - 1)]++;
	if (v->place_length)
		c->bytes_placed += v->place_length;
	if (nic_counts_ce(p, v))
		c->ce_marked++;
	if (!v->reply)
		return action;
	if (action != XDP_TX) {
		c->replies_lost++;
		return action;
	}
	c->replies_sent++;
	if (v->reply == NIC_REPLY_CNP || v->becn)
		c->cnps_sent++;
	return action;
}

/* A pause frame from the other end of a host's link; gives that host, or none. */
WIRE_FN u32 take_pause(struct xdp_md *ctx)
{
	const wire_u8 *frame = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct nic_counters *c;
	struct nic_host *host;
	u64 partner;
	u32 *slot, index;

	if (!nic_is_pause(frame, end) || frame + NIC_PAUSE_LEN > end)
		return NIC_HOST_NONE;
	partner = wire_ethernet_get_src_addr((const void *)frame);
	slot = partners.lookup(&partner);
	if (!slot)
		return NIC_HOST_NONE;
	index = *slot;
	c = counters.lookup(&index);
	host = host_slots.lookup(&index);
	if (!c || !host)
		return NIC_HOST_NONE;
	nic_pause(c, frame, host->pause_quantum_ps, bpf_ktime_get_ns());
	return index;
}

WIRE_FN int icrc_is_right(struct xdp_md *ctx, const struct nic_packet *p)
{
#ifdef NIC_CHECK_ICRC
	u32 zero = 0;
	const struct nic_icrc_tables *tables = icrc_tables.lookup(&zero);

	return tables && nic_icrc_is_right(tables, (void *)(long)ctx->data, (void *)(long)ctx->data_end, p);
#else
	return 1;
#endif
}

/* `t` is the table of transport `number`; both are constants. */
WIRE_FN int receive(struct xdp_md *ctx, const struct nic_transport *t, u32 number)
{
	struct nic_refs refs = {};
	struct nic_packet *p;
	struct nic_verdict *v;
	struct nic_qp *qp;
	u64 now = 0;
	u32 zero = 0, slot;
	int event, action = XDP_DROP;
	struct nic_work *w = work.lookup(&zero);

	if (!w)
		return XDP_ABORTED;
	p = &w->packet;
	v = &w->verdict;
	*v = (struct nic_verdict){ 0 };
	event = nic_parse((void *)(long)ctx->data, (void *)(long)ctx->data_end, p);
	slot = p->dest_qpn & (NIC_MAX_QPS - 1);
	qp = qps.lookup(&slot);
	p->host = host_slot(ctx, p->dst_mac, qp ? qp->config.host : NIC_HOST_NONE);
	if (p->host == NIC_HOST_NONE || !qp) {
		p->host = take_pause(ctx);
		event = p->host ? WIRE_NIC_EVENT_PAUSE_RECEIVED : WIRE_NIC_EVENT_PASSED_TO_KERNEL;
	}
	if (event == NIC_PARSED)
		event = nic_admit(qp, p);
	if (event == NIC_STEP_OK && qp && qp->config.transport != number) {
		programs.call(ctx, qp->config.transport);
		event = WIRE_NIC_EVENT_DROP_QP_STATE; /* that program is not loaded */
	}
	if (event == NIC_STEP_OK && !icrc_is_right(ctx, p))
		event = WIRE_NIC_EVENT_DROP_BAD_ICRC;
	if (event != NIC_STEP_OK || !qp) {
		v->event = event;
		return finish(p->host, p, v, event == WIRE_NIC_EVENT_PASSED_TO_KERNEL ? XDP_PASS : XDP_DROP);
	}
	look_up(qp, t, p, &refs);
	if (nic_needs_time(qp, p))
		now = bpf_ktime_get_ns();
	nic_placing(qp, p);
	nic_receive(t, qp, p, &refs, now, v);
	if (v->place_length)
		place(ctx, p, v);
	if (t->delays_last && v->release_length)
		release(qp, v);
	nic_placed(qp, p);
	if (v->doorbell)
		ring_doorbell(slot, p->dest_qpn);
	if (v->reply)
		action = reply(ctx, qp, p, v);
	return finish(p->host, p, v, action);
}

#ifndef NIC_BENCH
#define RNIC_PROGRAM(name)                                                                                             \
	int rnic_##name(struct xdp_md *ctx)                                                                            \
	{                                                                                                              \
		return receive(ctx, &nic_transport_##name, NIC_TRANSPORT_##name);                                      \
	}
#else
/*
 * For measuring (bench.py).  BPF_PROG_RUN repeats a program on one frame, which would be a duplicate from the second time
 * on, and after a reply not even a request any more.  So each repetition first puts what a packet changes back as it was;
 * what that costs is measured by a program that does nothing else.
 */
#define NIC_BENCH_HEAD 96

struct nic_bench {
	struct nic_receiver receiver;
	struct nic_sender sender;
	struct nic_host_state host_state;
	wire_u32 qp_slot;
	wire_u32 host; /* whose state is to be put back, too; 0: none */
	wire_u32 frame_length;
	wire_u32 padding;
	wire_u8 head[NIC_BENCH_HEAD];
};

BPF_F_TABLE("array", u32, struct nic_bench, bench, 1, BPF_F_MMAPABLE);

WIRE_FN int bench_restore(struct xdp_md *ctx)
{
	u32 zero = 0, slot;
	struct nic_bench *saved = bench.lookup(&zero);
	struct nic_host_state *host;
	struct nic_qp *qp;
	int length = (int)(ctx->data_end - ctx->data);

	if (!saved)
		return 0;
	slot = saved->qp_slot;
	qp = qps.lookup(&slot);
	slot = saved->host;
	host = host_states.lookup(&slot);
	if (!qp || !host)
		return 0;
	qp->receiver[NIC_STREAM_REQUEST] = saved->receiver;
	qp->sender[NIC_STREAM_REQUEST] = saved->sender;
	if (slot)
		bpf_probe_read_kernel(host, sizeof(*host), &saved->host_state);
	if (length != (int)saved->frame_length && bpf_xdp_adjust_tail(ctx, (int)saved->frame_length - length))
		return 0;
	return bpf_xdp_store_bytes(ctx, 0, saved->head, NIC_BENCH_HEAD) == 0;
}

int restore(struct xdp_md *ctx)
{
	return bench_restore(ctx) ? XDP_PASS : XDP_ABORTED;
}

#define RNIC_PROGRAM(name)                                                                                             \
	int rnic_##name(struct xdp_md *ctx)                                                                            \
	{                                                                                                              \
		return bench_restore(ctx) ? receive(ctx, &nic_transport_##name, NIC_TRANSPORT_##name) : XDP_ABORTED;   \
	}
#endif
NIC_PROGRAMS(RNIC_PROGRAM)

/* For the other end of a host's veth: without an XDP program there, frames sent by XDP_TX are lost. */
int pass(struct xdp_md *ctx)
{
	return XDP_PASS;
}
