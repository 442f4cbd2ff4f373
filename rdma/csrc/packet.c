/* A queue pair's next packet: what its transport wants to send, as a frame. */
#include "private.h"

#define PACE_SLACK_NS 100000 /* DCQCN's pacer makes up for wake-ups that come this late */

static void pace(struct rdma_qp *qp, uint32_t length, int64_t now)
{
	int64_t start = qp->pace_at > now - PACE_SLACK_NS ? qp->pace_at : now - PACE_SLACK_NS;

	if (!qp->sending.dcqcn_rate_bps)
		return;
	qp->pace_at = start + (int64_t)((__int128)8 * length * 1000000000 / qp->dcqcn.rate);
	nic_dcqcn_sent(&qp->dcqcn, &qp->dcqcn_params, length);
}

/* An acknowledgement that the NIC held back, so that it would not overtake responses. */
static void acknowledge_packet(const struct rdma_qp *qp, const struct nic_send *send, struct rdma_packet *out)
{
	out->opcode = WIRE_BTH_OPCODE_RC_ACKNOWLEDGE;
	out->extension = WIRE_BTH_EXTENSION_NONE;
	out->syndrome = send->syndrome;
	out->aeth_msn = qp->nic->receiver[NIC_STREAM_REQUEST].msn;
}

/* 1: `out` is the next packet of `stream`; 0: nothing; negative: the queue pair has failed. */
static int next_of(struct rdma_engine *e, struct rdma_qp *qp, int stream, int64_t now, struct rdma_packet *out)
{
	struct nic_send send;
	int found;

	do {
		send = (struct nic_send){ 0 };
		if (!qp->transport->next(qp->nic, stream, (wire_u64)now, &send))
			return 0;
		*out = (struct rdma_packet){
			.psn = send.psn,
			.source_port = send.path ? send.path : qp->nic->config.source_port,
			.extension = qp->transport->ibta ? WIRE_BTH_EXTENSION_NONE : WIRE_BTH_EXTENSION_DATA,
			.retransmission = (send.flags & NIC_RETRANSMISSION) != 0,
			.head = qp->streams[stream].first_psn,
			.dscp = (uint8_t)(qp->nic->config.priority << 3), /* class selectors (RFC 2474) */
		};
		if (send.acknowledge) {
			acknowledge_packet(qp, &send, out);
			return 1;
		}
		found = stream == NIC_STREAM_REQUEST ? rdma_request_packet(e, qp, &send, out)
						     : rdma_response_packet(e, qp, &send, out);
		if (found > 0 && stream == NIC_STREAM_RESPONSE)
			rdma_response_sent(e, qp);
	} while (!found);
	if (found > 0)
		out->ack_req |= send.ack_req;
	return found;
}

/* Requests, that wait for a receiver that is not ready, or may have been released meanwhile. */
static int next_request(struct rdma_engine *e, struct rdma_qp *qp, int64_t now, struct rdma_packet *out)
{
	int found;
	uint64_t before;

	if (qp->wait_until)
		return 0;
	found = next_of(e, qp, NIC_STREAM_REQUEST, now, out);
	if (found)
		return found;
	before = qp->streams[NIC_STREAM_REQUEST].released;
	rdma_requests_release(e, qp);
	if (qp->failed || before == qp->streams[NIC_STREAM_REQUEST].released)
		return 0;
	return next_of(e, qp, NIC_STREAM_REQUEST, now, out);
}

uint32_t rdma_qp_packet(struct rdma_engine *e, struct rdma_qp *qp, int64_t now, uint8_t *frame)
{
	struct rdma_packet packet;
	uint32_t length;
	int found = 0;

	qp->clock = now;
	for (int i = 0; i < NIC_STREAMS && !found && qp->pace_at <= now; i++) {
		qp->turn = !qp->turn;
		found = qp->turn == NIC_STREAM_REQUEST ? next_request(e, qp, now, &packet)
						       : next_of(e, qp, NIC_STREAM_RESPONSE, now, &packet);
	}
	if (found <= 0) {
		rdma_ready_remove(qp);
		if (!qp->failed)
			rdma_qp_schedule(e, qp, now);
		return 0;
	}
	length = rdma_frame_build(&qp->template, &packet, frame);
	pace(qp, length, now);
	if (packet.opcode != WIRE_BTH_OPCODE_RC_ACKNOWLEDGE) {
		qp->packets++;
		qp->bytes += packet.payload_length;
		qp->retransmissions += packet.retransmission;
	}
	return length;
}
