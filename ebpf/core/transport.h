/*
 * What a transport is: one table of functions, in a file of its own, and one line in the list at the end.
 *
 * The first two run in the NIC, for a packet that came in; the other two in the agent (or the simulator), which sends.
 * Each writes only its own side's fields (qp.h).  `stream` is a constant wherever they are called: NIC_STREAM_REQUEST or
 * NIC_STREAM_RESPONSE.  Times are in ns, of a clock that never goes back; `now` is 0 in the NIC unless nic_needs_time().
 *
 * Nothing here may call through these pointers in eBPF; see nic_transport() below.
 *
 * What the agent does around next(), so that no transport has to know where messages end or what they are:
 *  - it keeps `posted` behind what may go now.  Fences, credits, the number of READs, a delayed last packet end there;
 *  - after an RNR NAK it calls next() only when the time is over.  timer() takes the NAK as the loss of snd_una;
 *  - it ends the queue pair when timeouts (timer() gave 1) or RNR NAKs without progress are too many.
 */
#ifndef NIC_TRANSPORT_H
#define NIC_TRANSPORT_H

#include "packet.h"
#include "qp.h"
#include "refs.h"

/* What the agent may send next. */
struct nic_send {
	wire_u32 psn;
	wire_u16 path;        /* UDP source port */
	wire_u8 flags;        /* NIC_RETRANSMISSION */
	wire_u8 ack_req;      /* 1: the BTH must ask for an acknowledgement */
	wire_u8 acknowledge;  /* 1: not a data packet but an acknowledge packet: BTH psn, AETH syndrome, receiver's msn */
	wire_u8 syndrome;     /* of that */
};

/*
 * How the agent's numbers and a transport's PSNs go together.
 *
 * Requests.  Each packet of a message takes one PSN of NIC_STREAM_REQUEST, in the order of posting; emitter.posted is the
 * PSN after the last.  With `ibta` a READ request takes as many as it has response packets, at least one (IBTA vol. 1,
 * section 9.7.3): the agent adds them to `posted`, and next() steps over them.  For that, the entry of a READ or atomic
 * in nic_qp.outgoing stands before `posted` passes it; its kind is NIC_OUTGOING_NONE again once it was answered, which
 * receiver[NIC_STREAM_RESPONSE].msn counts.  When next() names a PSN within a READ, not its first, the responses before
 * that have come: the agent asks for the rest, with that PSN, and the address and length that are left.
 *
 * Responses.  The agent takes nic_qp.incoming in order, from emitter[NIC_STREAM_RESPONSE].served up to
 * receiver[NIC_STREAM_REQUEST].fetches.  Usually the packets of each take the next PSNs of the response stream, are
 * sent again like any other; they count as served when the agent has made room for them.  With `ibta` the agent sends one
 * entry at a time: when next() has nothing of the one before, it sets emitter[NIC_STREAM_RESPONSE].snd_nxt to the
 * entry's psn and `posted` to that plus the number of packets; when the last has left, it moves `served`, and calls next()
 * once more.  It keeps the results of the last NIC_FETCH_MAX atomics by PSN, and answers a `repeated` one with that, or not at all
 * when there is none.  What next() names with `acknowledge` is what the NIC held back so that it does not overtake
 * responses (section 9.7.5.1).
 *
 * End-to-end credits (NIC_QP_CREDITS; section 9.7.7.2).  Messages are numbered from 1 in the order of posting.  The
 * agent holds `posted` before a SEND or WRITE with immediate whose number lies behind sender.credit_limit, unless
 * everything before it has been acknowledged: one such message may always go, to learn of new credits.
 */
struct nic_transport {
	/* 1: packets as IBTA has them: no xdata_t, responses within the requests' PSNs.  0: xdata_t, split PSNs. */
	int ibta;
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
	/* 1: nic_refs.host is looked up for its packets. */
	wire_u8 host_state;
	/* 1: next() delays synchronise messages; else the agent holds them until all before is acknowledged. */
	wire_u8 synchronises;
	/* 1: the last packet of a WRITE with nothing behind it waits until all before is acknowledged (Eunomia, 3.5.2). */
	wire_u8 delays_last;
};

/* The transports: X(name) stands for `name`.h and its table nic_transport_`name`.  Order gives the stored number. */
#define NIC_TRANSPORTS(X) X(gbn) X(mprdma) X(irn) X(ideal) X(eunomia)

#define NIC_TRANSPORT_ENUM(name) NIC_TRANSPORT_##name,
enum nic_transport_id { NIC_TRANSPORTS(NIC_TRANSPORT_ENUM) NIC_TRANSPORT_COUNT };

#include "eunomia.h"
#include "gbn.h"
#include "ideal.h"
#include "irn.h"
#include "mprdma.h"

/*
 * A table by its number, for hosts that can call through a pointer; NULL: there is no such transport.  An eBPF program
 * cannot, so there each transport has a program of its own (rnic_xdp.c), in which the table is a constant.
 */
WIRE_FN const struct nic_transport *nic_transport(wire_u32 number)
{
#define NIC_TRANSPORT_TABLE(name)                                                                                      \
	if (number == NIC_TRANSPORT_##name)                                                                            \
		return &nic_transport_##name;
	NIC_TRANSPORTS(NIC_TRANSPORT_TABLE)
#undef NIC_TRANSPORT_TABLE
	return (const struct nic_transport *)0;
}

#endif
