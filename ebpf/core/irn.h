/*
 * IRN (Mittal et al., "Revisiting Network Support for RDMA", SIGCOMM 2018): selective repeat over a network that loses
 * packets.  See irn_receiver.h, irn_sender.h and irn_emitter.h.
 */
#ifndef NIC_IRN_H
#define NIC_IRN_H

#include "irn_emitter.h"
#include "irn_receiver.h"
#include "irn_sender.h"

WIRE_FN void nic_irn_data(struct nic_qp *qp, int stream, const struct nic_packet *p, const struct nic_refs *refs,
			  wire_u64 now, struct nic_verdict *out)
{
	nic_irn_receive(qp, stream, p, refs, 1, out);
}

WIRE_FN void nic_irn_ack(struct nic_qp *qp, int stream, const struct nic_packet *p, wire_u64 now,
			 struct nic_verdict *out)
{
	nic_irn_take(qp, stream, p, out);
}

WIRE_FN int nic_irn_timer(struct nic_qp *qp, int stream, wire_u64 now)
{
	return nic_irn_tick(qp, stream, now, 0);
}

static const struct nic_transport nic_transport_irn = {
	.data = nic_irn_data,
	.ack = nic_irn_ack,
	.next = nic_irn_next,
	.timer = nic_irn_timer,
};

#endif
