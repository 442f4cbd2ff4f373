/*
 * The upper bound that papers compare with (Eunomia, section 2.1: "ideal ordering layer"): a receiver that can hold any
 * order of packets and never takes it for loss.  All that IRN has, without NACKs; a packet is lost when a timeout says
 * so, and then every one is that is not known to have come.
 *
 * "Unlimited" is the largest bitmap there is: the agent sets config.slots to NIC_BITMAP_SLOTS and a window no larger.
 */
#ifndef NIC_IDEAL_H
#define NIC_IDEAL_H

#include "irn.h"

WIRE_FN void nic_ideal_data(struct nic_qp *qp, int stream, const struct nic_packet *p, const struct nic_refs *refs,
			    wire_u64 now, struct nic_verdict *out)
{
	nic_irn_receive(qp, stream, p, refs, 0, out);
}

WIRE_FN int nic_ideal_timer(struct nic_qp *qp, int stream, wire_u64 now)
{
	return nic_irn_tick(qp, stream, now, 1);
}

static const struct nic_transport nic_transport_ideal = {
	.data = nic_ideal_data,
	.ack = nic_irn_ack,
	.next = nic_irn_next,
	.timer = nic_ideal_timer,
};

#endif
