/*
 * What a transport is: one table of functions, in a file of its own, and one line in the list at the end.
 */
#ifndef NIC_TRANSPORT_H
#define NIC_TRANSPORT_H

#include "packet.h"
#include "qp.h"

struct nic_transport {
	/* A request that came to a queue pair which may receive; `region` is what nic_region_key() named, or NULL. */
	void (*request)(struct nic_qp *qp, const struct nic_packet *p, const struct nic_region *region,
			struct nic_verdict *out);
	/* An acknowledge packet that came to a queue pair which may send. */
	void (*response)(struct nic_qp *qp, const struct nic_packet *p, struct nic_verdict *out);
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
WIRE_FN void nic_transport_request(struct nic_qp *qp, const struct nic_packet *p, const struct nic_region *region,
				   struct nic_verdict *out)
{
	switch (qp->config.transport) {
#define NIC_TRANSPORT_CASE(name)                                                                                       \
	case NIC_TRANSPORT_##name:                                                                                     \
		nic_transport_##name.request(qp, p, region, out);                                                      \
		break;
		NIC_TRANSPORTS(NIC_TRANSPORT_CASE)
#undef NIC_TRANSPORT_CASE
	}
}

WIRE_FN void nic_transport_response(struct nic_qp *qp, const struct nic_packet *p, struct nic_verdict *out)
{
	switch (qp->config.transport) {
#define NIC_TRANSPORT_CASE(name)                                                                                       \
	case NIC_TRANSPORT_##name:                                                                                     \
		nic_transport_##name.response(qp, p, out);                                                             \
		break;
		NIC_TRANSPORTS(NIC_TRANSPORT_CASE)
#undef NIC_TRANSPORT_CASE
	}
}

#endif
