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

int nic_native_receive(struct nic_native *nic, wire_u64 mac, wire_u32 host, wire_u8 *frame, wire_u32 *length,
		       wire_u32 room)
{
	struct nic_packet p;
	struct nic_verdict v = { 0 };
	struct nic_qp *qp;
	wire_u32 key;
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
	key = nic_region_key(qp, &p);
	nic_receive(qp, &p, nic_region_valid(&nic->regions[key & (nic->max_regions - 1)], key), &v);
	if (v.place_length)
		memcpy(nic->arena + v.place_at, frame + p.payload_at, v.place_length);
	nic->doorbells += v.doorbell;
	if (v.reply && room >= NIC_ACK_FRAME) {
		*length = NIC_ACK_FRAME;
		nic_ack_write(frame, qp, &p, &v, tables());
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

wire_u32 nic_native_ack_base(const struct nic_qp_config *qp)
{
	return nic_icrc_ack_base(qp);
}

void nic_native_icrc_tables(wire_u32 *words)
{
	memcpy(words, tables(), sizeof(struct nic_icrc_tables));
}
