/* Requester side of queue pairs: work requests, packets in order, and what the NIC reports about them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "icrc_init.h"
#include "nic.h"
#include "private.h"

#define BACKOFF_MAX 6 /* doublings of the retransmission timeout */

const char *rdma_transport_names(void)
{
#define NAME(transport) #transport " "
	return NIC_TRANSPORTS(NAME);
#undef NAME
}

static uint32_t psn_of(const struct rdma_qp *qp, uint64_t sequence)
{
	return nic_psn_add(qp->first_psn, (uint32_t)(sequence & WIRE_PSN_MASK));
}

static struct rdma_wr *wr_at(const struct rdma_qp *qp, uint32_t index)
{
	return &qp->wrs[(qp->wr_head + index) % qp->wr_capacity];
}

struct rdma_qp *rdma_qp_find(struct rdma_engine *e, uint32_t qpn)
{
	struct rdma_qp *qp = e->qps[qpn & (e->maps.max_qps - 1)];

	return qp && qp->qpn == qpn ? qp : NULL;
}

void rdma_qp_set_busy(struct rdma_qp *qp)
{
	struct rdma_host *host = qp->host;

	if (qp->busy)
		return;
	qp->busy = 1;
	if (!host->busy) {
		host->busy = qp->busy_next = qp->busy_previous = qp;
		return;
	}
	/* Last in turn: just before the one whose turn it is. */
	qp->busy_next = host->busy;
	qp->busy_previous = host->busy->busy_previous;
	qp->busy_previous->busy_next = qp;
	host->busy->busy_previous = qp;
}

static void set_idle(struct rdma_qp *qp)
{
	struct rdma_host *host = qp->host;

	qp->deadline = RDMA_NEVER;
	if (!qp->busy)
		return;
	qp->busy = 0;
	if (host->busy == qp)
		host->busy = qp->busy_next == qp ? NULL : qp->busy_next;
	qp->busy_next->busy_previous = qp->busy_previous;
	qp->busy_previous->busy_next = qp->busy_next;
}

static void complete_oldest(struct rdma_qp *qp, uint32_t status)
{
	struct rdma_wr *wr = wr_at(qp, 0);
	struct rdma_completion completion = {
		.wr_id = wr->write.wr_id, .qpn = qp->qpn, .status = status,
		.byte_len = status == RDMA_SUCCESS ? wr->write.length : 0,
	};

	qp->cq->reserved--;
	/* Errors are always reported, signaled or not (IBTA vol. 1, section 10.8.1). */
	if (wr->write.signaled || status != RDMA_SUCCESS)
		rdma_cq_push(qp->cq, &completion);
	qp->wr_head = (qp->wr_head + 1) % qp->wr_capacity;
	qp->wr_count--;
	if (qp->wr_current)
		qp->wr_current--;
}

/* The oldest request gets `status`, those behind it are flushed, and the queue pair is of no more use. */
void rdma_qp_fail(struct rdma_qp *qp, uint32_t status)
{
	__atomic_store_n(&qp->nic->config.state, WIRE_QP_STATE_ERROR, __ATOMIC_RELEASE);
	while (qp->wr_count) {
		complete_oldest(qp, status);
		status = RDMA_WR_FLUSH_ERR;
	}
	qp->wr_current = 0;
	qp->next = qp->max = qp->posted = qp->una;
	set_idle(qp);
}

static void arm_timer(struct rdma_qp *qp, int64_t now)
{
	qp->deadline = now + (int64_t)(qp->sending.timeout_ns << qp->backoff);
}

/* Sending goes on with the oldest unacknowledged packet. */
static void go_back(struct rdma_qp *qp)
{
	qp->next = qp->una;
	qp->wr_current = 0;
}

static void advance(struct rdma_qp *qp, uint32_t snd_una, int64_t now)
{
	int forward = nic_psn_distance(snd_una, psn_of(qp, qp->una));

	if (forward <= 0 || (uint64_t)forward > qp->max - qp->una)
		return;
	qp->una += (uint64_t)forward;
	qp->retries = qp->rnr_retries = qp->backoff = 0;
	while (qp->wr_count && wr_at(qp, 0)->first + wr_at(qp, 0)->packets <= qp->una)
		complete_oldest(qp, RDMA_SUCCESS);
	if (qp->next < qp->una)
		go_back(qp);
	if (qp->una == qp->posted)
		set_idle(qp);
	else
		arm_timer(qp, now);
}

/* AETH syndrome of a fatal NAK to a completion's status (IBTA vol. 1, section 11.6.2). */
static uint32_t status_of(uint32_t syndrome)
{
	switch (syndrome & NIC_SYNDROME_VALUE) {
	case WIRE_NAK_CODE_REMOTE_ACCESS_ERROR:
		return RDMA_REM_ACCESS_ERR;
	case WIRE_NAK_CODE_REMOTE_OPERATIONAL_ERROR:
		return RDMA_REM_OP_ERR;
	default:
		return RDMA_REM_INV_REQ_ERR;
	}
}

/* IBTA vol. 1, table 45, in nanoseconds; code 0 is the longest. */
static int64_t rnr_wait(uint32_t code)
{
	static const int32_t hundredths_of_ms[32] = {
		65536, 1,   2,   3,   4,   6,    8,    12,   16,   24,   32,   48,    64,    96,    128,   192,
		256,   384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
	};

	return (int64_t)hundredths_of_ms[code & NIC_SYNDROME_VALUE] * 10000;
}

static void retry(struct rdma_qp *qp, uint32_t *count, uint32_t limit, uint32_t status)
{
	if (*count >= limit) {
		rdma_qp_fail(qp, status);
		return;
	}
	++*count;
	go_back(qp);
}

void rdma_qp_take_news(struct rdma_qp *qp, int64_t now)
{
	struct nic_sender *r = &qp->nic->sender[NIC_STREAM_REQUEST];
	/* Reasons first: the NIC writes snd_una before them, so what is read after them is at least as new. */
	uint32_t error = __atomic_load_n(&r->error, __ATOMIC_ACQUIRE);
	uint32_t naks = __atomic_load_n(&r->naks, __ATOMIC_ACQUIRE);
	uint32_t rnr_naks = __atomic_load_n(&r->rnr_naks, __ATOMIC_ACQUIRE);
	uint32_t state = __atomic_load_n(&qp->nic->config.state, __ATOMIC_ACQUIRE);

	if (state == WIRE_QP_STATE_RESET || state == WIRE_QP_STATE_INIT)
		return;
	advance(qp, __atomic_load_n(&r->snd_una, __ATOMIC_ACQUIRE), now);
	if (error || state == WIRE_QP_STATE_ERROR) {
		rdma_qp_fail(qp, error ? status_of(error) : RDMA_WR_FLUSH_ERR);
		return;
	}
	if (rnr_naks != qp->rnr_seen) {
		qp->rnr_seen = rnr_naks;
		qp->wait_until = now + rnr_wait(r->rnr_timer);
		/* 7 stands for "for ever" (IBTA vol. 1, section 9.7.5.2.8). */
		retry(qp, &qp->rnr_retries, qp->sending.rnr_retry_count == 7 ? UINT32_MAX : qp->sending.rnr_retry_count,
		      RDMA_RNR_RETRY_EXC_ERR);
	}
	if (naks != qp->naks_seen) {
		qp->naks_seen = naks;
		if (qp->una < qp->max)
			retry(qp, &qp->retries, qp->sending.retry_count, RDMA_RETRY_EXC_ERR);
	}
}

void rdma_qp_check_timer(struct rdma_qp *qp, int64_t now)
{
	if (now < qp->deadline)
		return;
	qp->timeouts++;
	if (qp->backoff < BACKOFF_MAX)
		qp->backoff++;
	arm_timer(qp, now);
	retry(qp, &qp->retries, qp->sending.retry_count, RDMA_RETRY_EXC_ERR);
}

int rdma_qp_can_send(const struct rdma_qp *qp, int64_t now)
{
	return qp->next < qp->posted && qp->next - qp->una < qp->sending.window_packets && now >= qp->wait_until;
}

static uint8_t write_opcode(uint32_t index, uint32_t packets)
{
	if (packets == 1)
		return WIRE_BTH_OPCODE_RC_WRITE_ONLY;
	if (index == 0)
		return WIRE_BTH_OPCODE_RC_WRITE_FIRST;
	return index + 1 == packets ? WIRE_BTH_OPCODE_RC_WRITE_LAST : WIRE_BTH_OPCODE_RC_WRITE_MIDDLE;
}

/* Builds the packet `next` and counts it as sent.  Asks for an acknowledgement wherever sending might pause. */
void rdma_qp_next_packet(struct rdma_engine *e, struct rdma_qp *qp, int64_t now, uint8_t *frame, struct rdma_sent *sent)
{
	struct rdma_wr *wr = wr_at(qp, qp->wr_current);
	uint32_t index = (uint32_t)(qp->next - wr->first);
	uint32_t offset = index * qp->path_mtu;
	uint32_t left = wr->write.length - offset;
	int last = index + 1 == wr->packets;
	struct rdma_packet packet = {
		.psn = psn_of(qp, qp->next),
		.opcode = write_opcode(index, wr->packets),
		.ack_req = last || qp->next - qp->una + 1 >= qp->sending.window_packets ||
			   qp->next % qp->sending.ack_interval == 0,
		.dscp = qp->sending.mark_remaining ? rdma_remaining_class(left) : 0,
		.va = wr->write.remote_va,
		.rkey = wr->write.rkey,
		.dma_length = wr->write.length,
		.payload = e->arena + wr->write.arena_offset + offset,
		.payload_length = left < qp->path_mtu ? left : qp->path_mtu,
	};

	*sent = (struct rdma_sent){
		.qp = qp, .sequence = qp->next, .max_before = qp->max, .payload = packet.payload_length,
		.repeat = qp->next < qp->max, .length = rdma_frame_build(&qp->template, &packet, frame),
	};
	if (qp->una == qp->next)
		arm_timer(qp, now);
	qp->next++;
	if (last)
		qp->wr_current++;
	if (qp->next > qp->max) {
		qp->max = qp->next;
		/* Before the packet leaves, or the NIC would not know what its acknowledgement is for. */
		__atomic_store_n(&qp->nic->emitter[NIC_STREAM_REQUEST].snd_nxt, psn_of(qp, qp->max), __ATOMIC_RELEASE);
	}
	qp->packets++;
	qp->bytes += packet.payload_length;
	qp->retransmissions += sent->repeat;
}

/* The socket did not take the packet: as if it had not been built.  Call for the newest packet first. */
void rdma_qp_unsend(const struct rdma_sent *sent)
{
	struct rdma_qp *qp = sent->qp;

	qp->next = sent->sequence;
	while (qp->wr_current && (qp->wr_current >= qp->wr_count || wr_at(qp, qp->wr_current)->first > qp->next))
		qp->wr_current--;
	qp->max = sent->max_before;
	__atomic_store_n(&qp->nic->emitter[NIC_STREAM_REQUEST].snd_nxt, psn_of(qp, qp->max), __ATOMIC_RELEASE);
	qp->packets--;
	qp->bytes -= sent->payload;
	qp->retransmissions -= sent->repeat;
}

void rdma_qp_free(struct rdma_engine *e, struct rdma_qp *qp)
{
	if (!qp)
		return;
	__atomic_store_n(&qp->nic->config.qpn, 0, __ATOMIC_RELEASE);
	qp->nic->config.state = WIRE_QP_STATE_RESET;
	set_idle(qp);
	qp->cq->reserved -= qp->wr_count;
	e->qps[qp->qpn & (e->maps.max_qps - 1)] = NULL;
	free(qp->wrs);
	free(qp);
}

static int qp_build(struct rdma_engine *e, uint32_t qpn, uint32_t host, uint32_t pd, int cq, uint32_t max_send_wr)
{
	uint32_t slot = qpn & (e->maps.max_qps - 1);
	struct rdma_qp *qp;

	if (!qpn || qpn > WIRE_QPN_MASK || !max_send_wr || !rdma_cq_find(e, cq))
		return -EINVAL;
	if (host == NIC_HOST_NONE || host >= e->maps.max_hosts || e->hosts[host].socket < 0)
		return -ENODEV;
	if (e->qps[slot])
		return -EEXIST;
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return -ENOMEM;
	qp->wrs = calloc(max_send_wr, sizeof(*qp->wrs));
	if (!qp->wrs) {
		free(qp);
		return -ENOMEM;
	}
	qp->nic = &e->nic_qps[slot];
	qp->host = &e->hosts[host];
	qp->cq = e->cqs[cq];
	qp->cq_number = cq;
	qp->qpn = qpn;
	qp->wr_capacity = max_send_wr;
	qp->deadline = RDMA_NEVER;
	memset(qp->nic, 0, sizeof(*qp->nic));
	qp->nic->config.host = host;
	qp->nic->config.pd = pd;
	qp->nic->config.local_ip = qp->host->ip;
	qp->nic->config.state = WIRE_QP_STATE_INIT;
	e->qps[slot] = qp;
	__atomic_store_n(&qp->nic->config.qpn, qpn, __ATOMIC_RELEASE);
	return 0;
}

int rdma_qp_create(struct rdma_engine *e, uint32_t qpn, uint32_t host, uint32_t pd, int cq, uint32_t max_send_wr)
{
	int error;

	rdma_lock(e);
	error = qp_build(e, qpn, host, pd, cq, max_send_wr);
	rdma_unlock(e);
	return error;
}

int rdma_qp_destroy(struct rdma_engine *e, uint32_t qpn)
{
	struct rdma_qp *qp;

	rdma_lock(e);
	qp = rdma_qp_find(e, qpn);
	rdma_qp_free(e, qp);
	rdma_unlock(e);
	return qp ? 0 : -ENOENT;
}

int rdma_qp_to_rtr(struct rdma_engine *e, uint32_t qpn, const struct rdma_qp_path *path)
{
	struct rdma_qp *qp;
	int error = 0;

	if (path->path_mtu < 256 || path->path_mtu > 4096 || path->path_mtu % 4 || path->transport >= NIC_TRANSPORT_COUNT ||
	    path->receive_psn > WIRE_PSN_MASK)
		return -EINVAL;
	rdma_lock(e);
	qp = rdma_qp_find(e, qpn);
	if (!qp) {
		error = -ENOENT;
	} else if (qp->nic->config.state != WIRE_QP_STATE_INIT) {
		error = -EISCONN;
	} else {
		struct nic_qp_config *c = &qp->nic->config;

		c->remote_qpn = path->remote_qpn;
		c->remote_ip = path->remote_ip;
		c->path_mtu = path->path_mtu;
		c->pkey = path->pkey;
		c->transport = path->transport;
		c->ack_every = path->ack_every;
		nic_icrc_bases(c);
		qp->nic->receiver[NIC_STREAM_REQUEST].epsn = path->receive_psn;
		qp->path_mtu = path->path_mtu;
		rdma_frame_template_init(&qp->template, path, qp->host->mac, qp->host->ip);
		__atomic_store_n(&c->state, WIRE_QP_STATE_RTR, __ATOMIC_RELEASE);
	}
	rdma_unlock(e);
	return error;
}

int rdma_qp_to_rts(struct rdma_engine *e, uint32_t qpn, const struct rdma_qp_sending *sending)
{
	struct rdma_qp *qp;
	int error = 0;

	/* Timeout: up to a minute, so that its doublings stay in range. */
	if (sending->send_psn > WIRE_PSN_MASK || !sending->window_packets || sending->window_packets >= NIC_PSN_HALF ||
	    !sending->ack_interval || !sending->timeout_ns || sending->timeout_ns > 60000000000ull)
		return -EINVAL;
	rdma_lock(e);
	qp = rdma_qp_find(e, qpn);
	if (!qp) {
		error = -ENOENT;
	} else if (qp->nic->config.state != WIRE_QP_STATE_RTR) {
		error = -EISCONN;
	} else {
		qp->sending = *sending;
		qp->first_psn = sending->send_psn;
		qp->nic->sender[NIC_STREAM_REQUEST].snd_una = sending->send_psn;
		qp->nic->emitter[NIC_STREAM_REQUEST].snd_nxt = sending->send_psn;
		__atomic_store_n(&qp->nic->config.state, WIRE_QP_STATE_RTS, __ATOMIC_RELEASE);
	}
	rdma_unlock(e);
	return error;
}

int rdma_qp_to_error(struct rdma_engine *e, uint32_t qpn)
{
	struct rdma_qp *qp;

	rdma_lock(e);
	qp = rdma_qp_find(e, qpn);
	if (qp) {
		rdma_qp_take_news(qp, rdma_now());
		rdma_qp_fail(qp, RDMA_WR_FLUSH_ERR);
	}
	rdma_unlock(e);
	return qp ? 0 : -ENOENT;
}

int rdma_qp_state(struct rdma_engine *e, uint32_t qpn, uint32_t *state)
{
	struct rdma_qp *qp;

	rdma_lock(e);
	qp = rdma_qp_find(e, qpn);
	if (qp)
		*state = qp->nic->config.state;
	rdma_unlock(e);
	return qp ? 0 : -ENOENT;
}

static int post(struct rdma_engine *e, struct rdma_qp *qp, const struct rdma_write *write)
{
	struct rdma_wr *wr;

	if (!qp)
		return -ENOENT;
	if (qp->nic->config.state == WIRE_QP_STATE_ERROR)
		rdma_qp_take_news(qp, rdma_now());
	else if (qp->nic->config.state != WIRE_QP_STATE_RTS)
		return -ENOTCONN;
	if (write->length > NIC_MESSAGE_MAX - 1 || write->arena_offset > e->maps.arena_bytes ||
	    write->length > e->maps.arena_bytes - write->arena_offset)
		return -EINVAL;
	if (qp->wr_count == qp->wr_capacity || qp->cq->count + qp->cq->reserved >= qp->cq->capacity)
		return -ENOMEM;
	wr = wr_at(qp, qp->wr_count);
	wr->write = *write;
	wr->first = qp->posted;
	wr->packets = write->length ? (write->length + qp->path_mtu - 1u) / qp->path_mtu : 1;
	qp->posted += wr->packets;
	qp->wr_count++;
	qp->cq->reserved++;
	/* What is posted in ERROR completes at once (IBTA vol. 1, section 10.3.1). */
	if (qp->nic->config.state == WIRE_QP_STATE_ERROR)
		rdma_qp_fail(qp, RDMA_WR_FLUSH_ERR);
	else
		rdma_qp_set_busy(qp);
	return 0;
}

int rdma_qp_post_write(struct rdma_engine *e, uint32_t qpn, const struct rdma_write *write)
{
	int error;

	rdma_lock(e);
	error = post(e, rdma_qp_find(e, qpn), write);
	rdma_unlock(e);
	if (!error)
		rdma_wake(e);
	return error;
}

int rdma_qp_stats(struct rdma_engine *e, uint32_t qpn, struct rdma_qp_stats *out)
{
	struct rdma_qp *qp;

	rdma_lock(e);
	qp = rdma_qp_find(e, qpn);
	if (qp)
		*out = (struct rdma_qp_stats){
			.packets = qp->packets, .bytes = qp->bytes, .retransmissions = qp->retransmissions,
			.timeouts = qp->timeouts, .naks = qp->nic->sender[NIC_STREAM_REQUEST].naks,
			.rnr_naks = qp->nic->sender[NIC_STREAM_REQUEST].rnr_naks, .acks = qp->nic->sender[NIC_STREAM_REQUEST].acks,
			.gaps = qp->nic->receiver[NIC_STREAM_REQUEST].gaps, .messages_received = qp->nic->receiver[NIC_STREAM_REQUEST].msn,
			.outstanding = qp->max - qp->una,
		};
	rdma_unlock(e);
	return qp ? 0 : -ENOENT;
}
