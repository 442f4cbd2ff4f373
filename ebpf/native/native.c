/* A host for the NIC core in user space. */
#include "native.h"

#include <string.h>

#include "icrc_init.h"
#include "nic.h"

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
	return action;
}

static struct nic_recv *find_recv(const struct nic_native *nic, const struct nic_qp *qp, const struct nic_packet *p)
{
	const struct nic_rq *rq = &nic->rqs[qp->config.rq & (nic->max_rqs - 1)];
	wire_u32 number = nic_recv_number(qp, p);

	if (!nic_needs_recv(p) || !nic_recv_posted(rq, number, qp->receiver[NIC_STREAM_REQUEST].completed))
		return NULL;
	return &nic->recvs[(rq->base + (number & rq->mask)) & (nic->max_recvs - 1)];
}

int nic_native_receive(struct nic_native *nic, wire_u64 mac, wire_u32 host, wire_u8 *frame, wire_u32 *length,
		       wire_u32 room, wire_u64 now)
{
	struct nic_packet p;
	struct nic_verdict v = { 0 };
	struct nic_refs refs = { 0 };
	struct nic_qp *qp;
	wire_u32 key, wanted;
	int action = NIC_ACTION_DROP;
	int event = nic_parse(frame, frame + *length, &p);

	p.host = p.dst_mac == mac ? host : NIC_HOST_NONE;
	if (p.host == NIC_HOST_NONE)
		event = WIRE_NIC_EVENT_PASSED_TO_KERNEL;
	if (event != NIC_PARSED) {
		v.event = (wire_u8)event;
		return finish(nic, &p, &v, event == WIRE_NIC_EVENT_PASSED_TO_KERNEL ? NIC_ACTION_PASS : action);
	}
	qp = &nic->qps[p.dest_qpn & (nic->max_qps - 1)];
	refs.recv = find_recv(nic, qp, &p);
	key = nic_region_key(qp, &p, refs.recv);
	refs.region = nic_region_valid(&nic->regions[key & (nic->max_regions - 1)], key);
	nic_receive(qp, &p, &refs, now, &v);
	if (v.place_length)
		memcpy(nic->arena + v.place_at, frame + p.payload_at, v.place_length);
	nic->doorbells += v.doorbell;
	wanted = WIRE_ETHERNET_LEN + nic_reply_total_len(v.reply);
	if (v.reply && room >= wanted) {
		*length = wanted;
		nic_reply_write(frame, qp, &p, &v, v.reply, tables());
		action = NIC_ACTION_TX;
	}
	return finish(nic, &p, &v, action);
}

int nic_native_psn_distance(wire_u32 psn, wire_u32 base)
{
	return nic_psn_distance(psn, base);
}

wire_u32 nic_native_psn_add(wire_u32 psn, wire_u32 count)
{
	return nic_psn_add(psn, count);
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
