/*
 * The XDP shell around the NIC core: maps, look-ups, placement and sending.  What a packet means is decided in core/.
 *
 * One program, loaded once, serves all hosts of a lab on this machine.  The loader gives the sizes (-D): NIC_MAX_HOSTS,
 * NIC_MAX_QPS, NIC_MAX_REGIONS, NIC_MAX_RQS, NIC_MAX_RECVS (powers of two), NIC_CHUNK_SHIFT and NIC_CHUNKS (the arena), NIC_DOORBELL_PAGES.
 *
 * BCC compiles this file: no libbpf and no libc header may be included.
 */
#include "core/nic.h"
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
/* One element: constants for the ICRC of acknowledge packets, written by the agent. */
BPF_F_TABLE("array", u32, struct nic_icrc_tables, icrc_tables, 1, BPF_F_MMAPABLE);
/* Hosts by MAC address, and the same by slot. */
BPF_HASH(hosts, u64, struct nic_host, NIC_MAX_HOSTS);
BPF_ARRAY(host_slots, struct nic_host, NIC_MAX_HOSTS);
/* Queue pairs with news for the agent. */
BPF_RINGBUF_OUTPUT(doorbells, NIC_DOORBELL_PAGES);

/* Scratch of place_in_steps(). */
struct nic_place_cursor {
	u32 at, from;
};

BPF_PERCPU_ARRAY(cursors, struct nic_place_cursor, 1);

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
	volatile struct nic_place_cursor *c = cursors.lookup(&zero);

	if (!c)
		return;
	c->at = at;
	c->from = from;
#pragma unroll
	for (u32 step = NIC_PAYLOAD_MAX; step; step >>= 1) {
		u32 to = c->at, source = c->from;

		if (!(length & step))
			continue;
		if (to > NIC_CHUNK_BYTES - step)
			return;
		bpf_xdp_load_bytes(ctx, source, chunk->bytes + to, step);
		c->at = to + step;
		c->from = source + step;
	}
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

/* The receive that the packet needs, or NULL: nothing is posted. */
WIRE_FN struct nic_recv *find_recv(const struct nic_qp *qp, const struct nic_packet *p)
{
	u32 slot = qp->config.rq & (NIC_MAX_RQS - 1);
	u32 number = nic_recv_number(qp, p);
	struct nic_rq *rq = rqs.lookup(&slot);

	if (!rq || !nic_recv_posted(rq, number, qp->receiver[NIC_STREAM_REQUEST].completed))
		return 0;
	slot = (rq->base + (number & rq->mask)) & (NIC_MAX_RECVS - 1);
	return recvs.lookup(&slot);
}

/* The one exit: each frame counts exactly one event. */
WIRE_FN int finish(u32 host, const struct nic_packet *p, const struct nic_verdict *v, int action)
{
	struct nic_counters *c = counters.lookup(&host);

	if (!c)
		return action;
	__sync_fetch_and_add(&c->events[v->event & (NIC_EVENT_SLOTS - 1)], 1);
	if (v->place_length)
		__sync_fetch_and_add(&c->bytes_placed, v->place_length);
	if (nic_counts_ce(p, v))
		__sync_fetch_and_add(&c->ce_marked, 1);
	if (v->reply && action == XDP_TX)
		__sync_fetch_and_add(&c->replies_sent, 1);
	else if (v->reply)
		__sync_fetch_and_add(&c->replies_lost, 1);
	return action;
}

WIRE_FN int receive(struct xdp_md *ctx)
{
	struct nic_packet p;
	struct nic_verdict v = {};
	struct nic_refs refs = {};
	struct nic_qp *qp;
	u64 now = 0;
	u32 slot, key;
	int action = XDP_DROP;
	int event = nic_parse((void *)(long)ctx->data, (void *)(long)ctx->data_end, &p);

	slot = p.dest_qpn & (NIC_MAX_QPS - 1);
	qp = qps.lookup(&slot);
	p.host = host_slot(ctx, p.dst_mac, qp ? qp->config.host : NIC_HOST_NONE);
	if (p.host == NIC_HOST_NONE || !qp)
		event = WIRE_NIC_EVENT_PASSED_TO_KERNEL;
	if (event != NIC_PARSED) {
		v.event = event;
		if (event == WIRE_NIC_EVENT_PASSED_TO_KERNEL)
			action = XDP_PASS;
		goto out;
	}
	if (nic_needs_recv(&p))
		refs.recv = find_recv(qp, &p);
	key = nic_region_key(qp, &p, refs.recv);
	slot = key & (NIC_MAX_REGIONS - 1);
	refs.region = nic_region_valid(regions.lookup(&slot), key);
	if (nic_needs_time(qp, &p))
		now = bpf_ktime_get_ns();
	nic_receive(qp, &p, &refs, now, &v);
	if (v.place_length)
		place(ctx, &p, &v);
	if (v.doorbell)
		ring_doorbell(p.dest_qpn & (NIC_MAX_QPS - 1), p.dest_qpn);
	if (v.reply)
		action = reply(ctx, qp, &p, &v);
out:
	return finish(p.host, &p, &v, action);
}

int rnic(struct xdp_md *ctx)
{
	return receive(ctx);
}

/* For the other end of a host's veth: without an XDP program there, frames sent by XDP_TX are lost. */
int pass(struct xdp_md *ctx)
{
	return XDP_PASS;
}

#ifdef NIC_BENCH
/*
 * Entrances for measuring (bench.py).  BCC finds programs in its main file only, so they stand here.
 *
 * BPF_PROG_RUN repeats a program on one frame, which would be a duplicate from the second time on, and after a reply not
 * even a request any more.  So each repetition first puts the queue pair's responder and the frame's head back as they
 * were; what that costs is measured by a program that does nothing else.
 */
#define NIC_BENCH_HEAD 80

struct nic_bench {
	struct nic_receiver receiver;
	wire_u32 qp_slot;
	wire_u32 frame_length;
	wire_u8 head[NIC_BENCH_HEAD];
};

BPF_F_TABLE("array", u32, struct nic_bench, bench, 1, BPF_F_MMAPABLE);

WIRE_FN int bench_restore(struct xdp_md *ctx)
{
	u32 zero = 0, slot;
	struct nic_bench *saved = bench.lookup(&zero);
	struct nic_qp *qp;
	int length = (int)(ctx->data_end - ctx->data);

	if (!saved)
		return 0;
	slot = saved->qp_slot;
	qp = qps.lookup(&slot);
	if (!qp)
		return 0;
	qp->receiver[NIC_STREAM_REQUEST] = saved->receiver;
	if (length != (int)saved->frame_length && bpf_xdp_adjust_tail(ctx, (int)saved->frame_length - length))
		return 0;
	return bpf_xdp_store_bytes(ctx, 0, saved->head, NIC_BENCH_HEAD) == 0;
}

int bench_restore_only(struct xdp_md *ctx)
{
	return bench_restore(ctx) ? XDP_PASS : XDP_ABORTED;
}

int bench_receive(struct xdp_md *ctx)
{
	return bench_restore(ctx) ? receive(ctx) : XDP_ABORTED;
}
#endif
