/*
 * What a transport is: one table of functions, in a file of its own, and one line in the list at the end.
 *
 * The first two run in the NIC, for a packet that came in; the other two in the agent (or the simulator), which sends.
 * Each writes only its own side's fields (qp.h).  `stream` is a constant wherever they are called: NIC_STREAM_REQUEST or
 * NIC_STREAM_RESPONSE.  Times are in ns, of a clock that never goes back; `now` is 0 in the NIC unless nic_needs_time().
 *
 * Nothing here may call through these pointers in eBPF; see the dispatch below.
 *
 * What the agent does around next(), so that no transport has to know where messages end or what they are:
 *  - it keeps `posted` behind what may go now.  Fences, credits, the number of READs, a delayed last packet end there;
 *  - after an RNR NAK it calls next() only when the time is over.  timer() takes the NAK as the loss of snd_una;
 *  - it ends the queue pair when timeouts (timer() gave 1) or RNR NAKs without progress are too many;
 *  - plain transports, requests: a READ takes as many PSNs as it has responses, and next() gives them one by one like
 *    others.  The agent sends a request for the first that it is given, after a jump for the rest of the READ, and nothing
 *    for those that follow;
 *  - plain transports, responses: the agent puts snd_nxt and posted to the first PSN and behind the last of one READ or
 *    atomic after the other.  next() hands them out; nothing acknowledges them.
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
 * PSN after the last.  With `ibta` a READ request takes as many as it has response packets,
 * at least one (IBTA vol. 1, section 9.7.3.1): the agent adds them to `posted`, and next() steps over them.  For that,
 * the entry of a READ or atomic in nic_qp.outgoing stands before `posted` passes it, and its `valid` is 0 again before
 * `posted` passes the one that takes its slot next; receiver[NIC_STREAM_RESPONSE].msn counts those answered.  When
 * next() names a PSN within a READ, not its first, the responses before that have come: the agent asks for the rest,
 * with that PSN, and the address and length that are left (section 9.7.5.1.7).
 *
 * Responses.  The agent takes nic_qp.incoming in order, from emitter[NIC_STREAM_RESPONSE].served up to
 * receiver[NIC_STREAM_REQUEST].fetches.  Usually the packets of each take the next PSNs of the response stream, are sent
 * again like any other, and count as served when acknowledged.  With `ibta` the agent sends one entry at a time: when next() has nothing of the one before, it sets emitter[NIC_STREAM_RESPONSE].snd_nxt to the entry's psn and
 * `posted` to that plus the number of packets; when the last has left, it moves `served`.  It keeps the results of the
 * last NIC_FETCH_MAX atomics by PSN, and answers a `repeated` one with that, or not at all when there is none.  What
 * next() names with `acknowledge` is what the NIC held back so that it does not overtake responses (section 9.7.5.1.2).
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
};

/* The transports: X(name) stands for `name`.h and its table nic_transport_`name`.  Order gives the stored number. */
#define NIC_TRANSPORTS(X) X(gbn) X(mprdma)

#define NIC_TRANSPORT_ENUM(name) NIC_TRANSPORT_##name,
enum nic_transport_id { NIC_TRANSPORTS(NIC_TRANSPORT_ENUM) NIC_TRANSPORT_COUNT };

#include "gbn.h"
#include "mprdma.h"

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
