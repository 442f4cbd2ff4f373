/* A host for the NIC core in user space. */
#include "native.h"

#include <string.h>

#include "icrc_check.h"
#include "dcqcn.h"
#include "hd_bitmap.h"
#include "icrc_init.h"
#include "nic.h"
#include "pause.h"

static const struct nic_icrc_tables *tables(void)
{
	static struct nic_icrc_tables made;
	static int done;

	if (!done)
		nic_icrc_tables_init(&made);
	done = 1;
	return &made;
}

static int finish(struct nic_native *nic, const struct nic_packet *p, const struct nic_verdict *v, int action)
{
	struct nic_counters *c = &nic->counters[p->host];

	c->events[v->event]++;
	c->bytes_placed += v->place_length;
	c->ce_marked += nic_counts_ce(p, v);
	if (v->reply && action == NIC_ACTION_TX)
		c->replies_sent++;
	else if (v->reply)
		c->replies_lost++;
	if ((v->reply == NIC_REPLY_CNP || v->becn) && action == NIC_ACTION_TX)
		c->cnps_sent++;
	return action;
}

static void look_up(struct nic_native *nic, struct nic_qp *qp, const struct nic_transport *t, const struct nic_packet *p,
		    struct nic_refs *refs)
{
	wire_u32 key;

	if (nic_needs_rq(qp, p)) {
		struct nic_rq *rq = &nic->rqs[qp->config.rq & (nic->max_rqs - 1)];
		wire_u32 number = nic_recv_number(qp, p, rq);

		refs->posted = rq->posted;
		if (number != NIC_RECV_NONE)
			refs->recv = &nic->recvs[(rq->base + (number & rq->mask)) & (nic->max_recvs - 1)];
	}
	key = nic_region_key(qp, p, refs->recv);
	refs->region = nic_region_valid(&nic->regions[key & (nic->max_regions - 1)], key);
	if (t->host_state)
		refs->host = &nic->host_states[p->host];
}

/* A packet that was held back goes from host memory to its place. */
static void release(struct nic_native *nic, const struct nic_qp *qp, const struct nic_verdict *v)
{
	const struct nic_region *region = &nic->regions[v->release_rkey & (nic->max_regions - 1)];
	wire_u64 to;

	if (nic_release(qp, nic_region_valid(region, v->release_rkey), v, &to))
		memmove(nic->arena + to, nic->arena + qp->config.hold_at, v->release_length);
}

/* What the packet ends with if it goes no further; NIC_STEP_OK: `t` is its transport. */
static int admit(const struct nic_native *nic, const struct nic_qp *qp, const struct nic_packet *p,
		 const wire_u8 *frame, const wire_u8 *end, const struct nic_transport **t)
{
	int event = nic_admit(qp, p);

	if (event == NIC_STEP_OK && nic->check_icrc && !nic_icrc_is_right(tables(), frame, end, p))
		event = WIRE_NIC_EVENT_DROP_BAD_ICRC;
	*t = nic_transport(qp->config.transport);
	return event == NIC_STEP_OK && !*t ? WIRE_NIC_EVENT_DROP_QP_STATE : event;
}

int nic_native_receive(struct nic_native *nic, wire_u64 mac, wire_u32 host, wire_u8 *frame, wire_u32 *length,
		       wire_u32 room, wire_u64 now)
{
	struct nic_packet p;
	struct nic_verdict v = { 0 };
	struct nic_refs refs = { 0 };
	const struct nic_transport *t;
	struct nic_qp *qp;
	wire_u32 wanted;
	int action = NIC_ACTION_DROP;
	int event = nic_parse(frame, frame + *length, &p);

	p.host = p.dst_mac == mac ? host : NIC_HOST_NONE;
	if (nic_is_pause(frame, frame + *length) && wire_ethernet_get_src_addr((const void *)frame) == nic->partner) {
		p.host = host;
		event = WIRE_NIC_EVENT_PAUSE_RECEIVED;
		nic_pause(&nic->counters[host], frame, nic->pause_quantum_ps, now);
	} else if (p.host == NIC_HOST_NONE) {
		event = WIRE_NIC_EVENT_PASSED_TO_KERNEL;
	}
	qp = &nic->qps[p.dest_qpn & (nic->max_qps - 1)];
	if (event == NIC_PARSED)
		event = admit(nic, qp, &p, frame, frame + *length, &t);
	if (event != NIC_STEP_OK) {
		v.event = (wire_u8)event;
		return finish(nic, &p, &v, event == WIRE_NIC_EVENT_PASSED_TO_KERNEL ? NIC_ACTION_PASS : action);
	}
	look_up(nic, qp, t, &p, &refs);
	nic_placing(qp, &p);
	nic_receive(t, qp, &p, &refs, now, &v);
	if (v.place_length)
		memcpy(nic->arena + v.place_at, frame + p.payload_at, v.place_length);
	if (v.release_length)
		release(nic, qp, &v);
	nic_placed(qp, &p);
	nic->doorbells += v.doorbell;
	wanted = WIRE_ETHERNET_LEN + nic_reply_total_len(v.reply);
	if (v.reply && room >= wanted) {
		*length = wanted;
		nic_reply_write(frame, qp, &p, &v, v.reply, tables());
		action = NIC_ACTION_TX;
	}
	return finish(nic, &p, &v, action);
}

wire_u32 nic_native_part_bytes(enum nic_native_part part)
{
	switch (part) {
	case NIC_PART_MPRDMA:
		return NIC_MPRDMA_BYTES - 2 * 64 / 8;
	case NIC_PART_IRN:
		return NIC_IRN_BYTES(0);
	case NIC_PART_EUNOMIA_IDLE:
		return sizeof(struct nic_hd_addr);
	case NIC_PART_EUNOMIA_MOST:
		return sizeof(struct nic_hd_addr) + 16 + 2 * (NIC_HD_ROWS - 1) + NIC_HD_CAP / 8;
	case NIC_PART_DCQCN:
		/* The reaction point, and the notification point's time of the last CNP. */
		return sizeof(struct nic_dcqcn) - sizeof(((struct nic_dcqcn *)0)->reserved) + sizeof(wire_u64);
	}
	return 0;
}

int nic_native_psn_distance(wire_u32 psn, wire_u32 base)
{
	return nic_psn_distance(psn, base);
}

wire_u32 nic_native_psn_add(wire_u32 psn, wire_u32 count)
{
	return nic_psn_add(psn, count);
}

wire_u32 nic_native_credit_code(wire_u32 value)
{
	return nic_credit_code(value);
}

void nic_native_icrc_bases(struct nic_qp_config *qp)
{
	nic_icrc_bases(qp);
}

wire_u32 nic_native_icrc_tables(wire_u32 *words)
{
	if (words)
		memcpy(words, tables(), sizeof(struct nic_icrc_tables));
	return sizeof(struct nic_icrc_tables);
}

int nic_native_next(struct nic_qp *qp, int stream, wire_u64 now, struct nic_native_send *out)
{
	struct nic_send send = { 0 };
	int any = nic_transport(qp->config.transport)->next(qp, stream, now, &send);

	*out = (struct nic_native_send){
		.psn = send.psn, .ack_req = send.ack_req, .retransmission = (send.flags & NIC_RETRANSMISSION) != 0,
		.acknowledge = send.acknowledge, .syndrome = send.syndrome,
	};
	return any;
}

int nic_native_timer(struct nic_qp *qp, int stream, wire_u64 now)
{
	return nic_transport(qp->config.transport)->timer(qp, stream, now);
}
