#include "nic.h"

#include <stddef.h>
#include <string.h>

#include "eunomia_history.h"

#define SENDS 10

static struct world {
	struct nic_qp sender, receiver;
	struct nic_host_state host;
	struct nic_recv recvs[EUNOMIA_RECEIVES_MAX];
	struct nic_region region;
	wire_u32 posted;
	int stream;
} world;

static void set_up(struct nic_qp *qp, const struct eunomia_setup *setup)
{
	qp->config.state = WIRE_QP_STATE_RTS;
	qp->config.transport = NIC_TRANSPORT_eunomia;
	qp->config.path_mtu = setup->mtu;
	qp->config.window = setup->window;
	qp->config.timeout_ns = setup->timeout_ns;
	qp->config.timeout_low_ns = setup->timeout_low_ns;
	qp->config.timeout_low_packets = setup->low_packets;
	qp->config.rtt_ns = setup->rtt_ns;
	qp->config.flags = setup->flags;
	qp->config.rnr_timer = setup->rnr_timer;
	qp->config.hold_at = EUNOMIA_HOLD_AT;
	for (int stream = 0; stream < NIC_STREAMS; stream++) {
		qp->config.first_psn[stream] = setup->first_psn;
		qp->receiver[stream].epsn = qp->sender[stream].snd_una = setup->first_psn;
		qp->emitter[stream].snd_nxt = qp->emitter[stream].posted = setup->first_psn;
	}
	qp->receiver[NIC_STREAM_REQUEST].completed = setup->first_recv;
}

static void reset(const struct eunomia_setup *setup)
{
	struct nic_mc *mc = &world.host.memory;

	memset(&world, 0, offsetof(struct world, host));
	/* The master array keeps what was in it: whoever takes a block must write it. */
	memset(mc->block_alloc_bitmap, 0, sizeof(*mc) - sizeof(mc->master));
	for (wire_u32 i = 0; i < setup->booked; i++)
		nic_mc_take(mc, i, 1, NIC_MC_BITMAP);
	world.stream = setup->stream;
	world.posted = setup->first_recv;
	world.region = (struct nic_region){
		.length = 1ull << 40, .rkey = 1, .access = NIC_ACCESS_LOCAL_WRITE | NIC_ACCESS_REMOTE_WRITE,
	};
	set_up(&world.sender, setup);
	set_up(&world.receiver, setup);
}

static void receives(const struct eunomia_step *s)
{
	for (; world.posted != s->psn; world.posted = nic_psn_add(world.posted, 1))
		world.recvs[world.posted % EUNOMIA_RECEIVES_MAX] = (struct nic_recv){
			.va = s->va + ((wire_u64)(world.posted % EUNOMIA_RECEIVES_MAX) << 16),
			.length = s->dma_length, .lkey = 1,
		};
}

static void data(const struct eunomia_step *s, wire_u64 *w)
{
	struct nic_receiver *r = &world.receiver.receiver[world.stream];
	struct nic_packet p = {
		.va = s->va, .rkey = s->rkey, .dma_length = s->dma_length, .psn = s->psn, .ipsn = s->ipsn,
		.wqe_sn = s->wqe_sn, .head = s->head, .payload_length = s->payload_length, .opcode = s->opcode,
		.flags = s->flags, .ecn = s->ecn,
	};
	struct nic_refs refs = { .host = &world.host, .posted = world.posted };
	struct nic_verdict v = { 0 };
	int ahead = nic_psn_distance(s->wqe_sn, r->completed);

	if (nic_needs_recv(&p) && ahead >= 0 && ahead < nic_psn_distance(world.posted, r->completed))
		refs.recv = &world.recvs[s->wqe_sn % EUNOMIA_RECEIVES_MAX];
	refs.region = nic_region_valid(&world.region, nic_region_key(&world.receiver, &p, refs.recv));
	nic_receive(&nic_transport_eunomia, &world.receiver, &p, &refs, s->now, &v);
	w[0] = v.event;
	w[1] = v.reply;
	w[2] = v.reply_opcode;
	w[3] = v.syndrome;
	w[4] = v.reply_flags;
	w[5] = v.reply_psn;
	w[6] = v.sack_psn;
	w[7] = v.place_length ? v.place_at : 0;
	w[8] = v.place_length;
	w[9] = v.release_va;
	w[10] = v.release_length;
	w[11] = r->epsn;
	w[12] = r->msn;
	w[13] = r->completed;
	w[14] = r->out_of_order | (wire_u64)r->gaps << 32;
	w[15] = v.doorbell | world.receiver.config.state << 8;
}

static void ack(const struct eunomia_step *s, wire_u64 *w)
{
	const struct nic_sender *sender = &world.sender.sender[world.stream];
	struct nic_packet p = {
		.psn = s->psn, .sack_psn = s->sack_psn, .opcode = s->opcode, .flags = s->flags, .syndrome = s->syndrome,
	};
	struct nic_refs refs = { 0 };
	struct nic_verdict v = { 0 };

	nic_receive(&nic_transport_eunomia, &world.sender, &p, &refs, s->now, &v);
	w[0] = v.event;
	w[1] = sender->snd_una;
	w[2] = sender->naks;
	w[3] = sender->rnr_naks;
	w[4] = sender->acks;
	w[5] = sender->sacks;
	w[6] = v.doorbell;
}

static void wake(const struct eunomia_step *s, wire_u64 *w)
{
	const struct nic_emitter *e = &world.sender.emitter[world.stream];
	struct nic_send send;

	w[0] = (wire_u64)nic_transport_eunomia.timer(&world.sender, world.stream, s->now);
	while (w[3] < SENDS && nic_transport_eunomia.next(&world.sender, world.stream, s->now, &send))
		w[4 + w[3]++] = send.psn | (send.flags & NIC_RETRANSMISSION ? 1u << 31 : 0);
	w[1] = e->deadline;
	w[2] = e->retransmissions;
}

void eunomia_run(const struct eunomia_setup *setup, const struct eunomia_step *steps, struct eunomia_result *results,
		 wire_u32 count)
{
	reset(setup);
	for (wire_u32 i = 0; i < count; i++) {
		const struct eunomia_step *s = &steps[i];
		wire_u64 *w = results[i].words;
		struct nic_outgoing *o = &world.receiver.outgoing[s->wqe_sn % NIC_FETCH_MAX];

		switch (s->kind) {
		case EUNOMIA_DATA:
			data(s, w);
			break;
		case EUNOMIA_ACK:
			ack(s, w);
			break;
		case EUNOMIA_POST:
			world.sender.emitter[world.stream].posted = s->psn;
			break;
		case EUNOMIA_RECEIVES:
			receives(s);
			break;
		case EUNOMIA_WAKE:
			wake(s, w);
			break;
		case EUNOMIA_READ:
			*o = (struct nic_outgoing){
				.va = s->va, .lkey = 1, .length = s->dma_length, .kind = NIC_OUTGOING_READ,
			};
			break;
		}
	}
}

void eunomia_used(wire_u8 *used)
{
	for (wire_u32 block = 0; block < NIC_MC_BLOCKS; block++)
		used[block] = world.host.memory.block_alloc_bitmap[block / 32] >> (block % 32) & 1;
}
