/*
 * What a transport is: one table of functions, in a file of its own, and one line in the list at the end.
 *
 * The first two run in the NIC, for a packet that came in; the other two in the agent (or the simulator), which sends.
 * Each writes only its own side's fields (qp.h).  `stream` is a constant wherever they are called: NIC_STREAM_REQUEST or
 * NIC_STREAM_RESPONSE.  Times are in ns, of a clock that never goes back; `now` is 0 in the NIC unless nic_needs_time().
 *
 * Nothing here may call through these pointers in eBPF; see the dispatch below.
 */
#ifndef NIC_TRANSPORT_H
#define NIC_TRANSPORT_H

#include "packet.h"
#include "qp.h"
#include "refs.h"

/* What the agent may send next. */
struct nic_send {
	wire_u32 psn;
	wire_u16 path;  /* UDP source port */
	wire_u8 flags;  /* NIC_RETRANSMISSION */
	wire_u8 ack_req; /* 1: the BTH must ask for an acknowledgement */
};

struct nic_transport {
	/*
	 * NIC: a data packet of `stream` that came to a queue pair which may receive: a request (to the responder) or
	 * a READ or atomic response (to the requester).  Leaves placement, reply and event in `out`.
	 */
	void (*data)(struct nic_qp *qp, int stream, const struct nic_packet *p, const struct nic_refs *refs, wire_u64 now,
		     struct nic_verdict *out);
	/* NIC: an acknowledge packet for what this side sent on `stream`. */
	void (*ack)(struct nic_qp *qp, int stream, const struct nic_packet *p, wire_u64 now, struct nic_verdict *out);
	/*
	 * Agent: what to send now.  1: `out` names it, and it counts as sent from here on: the caller sends it, in this
	 * order, however long the interface takes.  0: nothing may go before an acknowledgement, a timer or new work.
	 * emitter.posted is up to date.
	 */
	int (*next)(struct nic_qp *qp, int stream, wire_u64 now, struct nic_send *out);
	/*
	 * Agent: looks at the clock and at what the NIC has learnt; called when emitter.deadline has come, and after
	 * every doorbell, before next().  Returns 1 if a retransmission timeout fired (it counts as a retry).
	 */
	int (*timer)(struct nic_qp *qp, int stream, wire_u64 now);
};

/* The transports: X(name) stands for `name`.h and its table nic_transport_`name`.  Order gives the stored number. */
#define NIC_TRANSPORTS(X) X(gbn)

#define NIC_TRANSPORT_ENUM(name) NIC_TRANSPORT_##name,
enum nic_transport_id { NIC_TRANSPORTS(NIC_TRANSPORT_ENUM) NIC_TRANSPORT_COUNT };

#include "gbn.h"

/*
 * Dispatch.  An eBPF program cannot call through a pointer, so the tables are named in a switch made from the list;
 * each case is a constant, which the compiler inlines.
 */
WIRE_FN void nic_transport_data(struct nic_qp *qp, int stream, const struct nic_packet *p, const struct nic_refs *refs,
				wire_u64 now, struct nic_verdict *out)
{
	switch (qp->config.transport) {
#define NIC_TRANSPORT_CASE(name)                                                                                       \
	case NIC_TRANSPORT_##name:                                                                                     \
		nic_transport_##name.data(qp, stream, p, refs, now, out);                                              \
		break;
		NIC_TRANSPORTS(NIC_TRANSPORT_CASE)
#undef NIC_TRANSPORT_CASE
	}
}

WIRE_FN void nic_transport_ack(struct nic_qp *qp, int stream, const struct nic_packet *p, wire_u64 now,
			       struct nic_verdict *out)
{
	switch (qp->config.transport) {
#define NIC_TRANSPORT_CASE(name)                                                                                       \
	case NIC_TRANSPORT_##name:                                                                                     \
		nic_transport_##name.ack(qp, stream, p, now, out);                                                     \
		break;
		NIC_TRANSPORTS(NIC_TRANSPORT_CASE)
#undef NIC_TRANSPORT_CASE
	}
}

#endif
