/*
 * The response stream: answers to a peer's READs and atomics, in the order of the requests.
 *
 * Go-back-N numbers responses by the requests' PSNs, so there the stream has one job at a time; elsewhere it is a stream
 * like that of requests, with acknowledgements and timeouts of its own (IRN, "Supporting RDMA Reads and Atomics").
 */
#include <errno.h>

#include "private.h"

#define JOBS_MAX 1024 /* each of those sent has a packet in the window, each other one is the requester's, 16 at most */

/* As one word, with regard to applications too; all hosts of a lab share the engine's thread. */
static int execute(struct rdma_engine *e, const struct rdma_qp *qp, const struct nic_incoming *in, uint64_t *original)
{
	uint64_t *word = (void *)rdma_memory(e, qp, in->rkey, in->va, sizeof(*word), NIC_ACCESS_REMOTE_ATOMIC);

	if (!word || (uintptr_t)word % sizeof(*word))
		return -EACCES;
	if (in->opcode == WIRE_BTH_OPCODE_RC_FETCH_ADD) {
		*original = __atomic_fetch_add(word, in->swap_add, __ATOMIC_SEQ_CST);
	} else {
		*original = in->compare;
		__atomic_compare_exchange_n(word, original, in->swap_add, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	}
	return 0;
}

/* Go-back-N's memory of what atomics gave (IBTA vol. 1, section 9.7.4.3). */
static int recall(const struct rdma_qp *qp, uint32_t psn, uint64_t *original)
{
	for (int i = 0; i < NIC_FETCH_MAX; i++) {
		if (qp->results[i].valid && qp->results[i].psn == psn) {
			*original = qp->results[i].original;
			return 1;
		}
	}
	return 0;
}

static void remember(struct rdma_qp *qp, uint32_t psn, uint64_t original)
{
	qp->results[qp->result_next] = (struct rdma_atomic_result){ .original = original, .psn = psn, .valid = 1 };
	qp->result_next = (qp->result_next + 1) % NIC_FETCH_MAX;
}

/* 1: `job` is the answer; 0: there is none; -EACCES: the memory has gone since the NIC looked at it. */
static int answer(struct rdma_engine *e, struct rdma_qp *qp, const struct nic_incoming *in, struct rdma_job *job)
{
	*job = (struct rdma_job){
		.packets = 1, .length = in->length, .va = in->va, .rkey = in->rkey, .opcode = in->opcode,
		.first = qp->streams[NIC_STREAM_RESPONSE].tail, .number = qp->nic->emitter[NIC_STREAM_RESPONSE].served,
		.msn = in->psn,
	};
	if (in->opcode == WIRE_BTH_OPCODE_RC_READ_REQUEST) {
		if (in->length)
			job->packets = (in->length + qp->path_mtu - 1u) / qp->path_mtu;
		return 1;
	}
	if (qp->transport->ibta && in->repeated)
		return recall(qp, in->psn, &job->swap_add);
	if (execute(e, qp, in, &job->swap_add))
		return -EACCES;
	remember(qp, in->psn, job->swap_add);
	return 1;
}

/* Go-back-N: the job's packets have the PSNs that the request has kept for them. */
static void begin(struct rdma_qp *qp, const struct rdma_job *job)
{
	struct nic_emitter *emitter = &qp->nic->emitter[NIC_STREAM_RESPONSE];

	qp->answering = 1;
	emitter->snd_nxt = job->msn;
	emitter->posted = nic_psn_add(job->msn, job->packets);
}

/* The NIC may use the request's place again. */
static void served(struct rdma_qp *qp)
{
	struct nic_emitter *emitter = &qp->nic->emitter[NIC_STREAM_RESPONSE];

	__atomic_store_n(&emitter->served, nic_psn_add(emitter->served, 1), __ATOMIC_RELEASE);
}

static struct rdma_job *room(struct rdma_jobs *jobs)
{
	struct rdma_job *job = rdma_jobs_room(jobs);

	if (!job && jobs->capacity < JOBS_MAX && !rdma_jobs_grow(jobs))
		job = rdma_jobs_room(jobs);
	return job;
}

/* PSNs compare over half their range only; go-back-N's are the requester's, one answer at a time. */
static int psns_are_free(const struct rdma_qp *qp, const struct nic_incoming *in)
{
	const struct rdma_stream *s = &qp->streams[NIC_STREAM_RESPONSE];

	return qp->transport->ibta || s->tail - s->una + nic_fetch_packets(&qp->nic->config, in->length) < NIC_PSN_HALF;
}

void rdma_responses_accept(struct rdma_engine *e, struct rdma_qp *qp)
{
	struct rdma_stream *s = &qp->streams[NIC_STREAM_RESPONSE];
	struct nic_emitter *emitter = &qp->nic->emitter[NIC_STREAM_RESPONSE];
	uint32_t ready = __atomic_load_n(&qp->nic->receiver[NIC_STREAM_REQUEST].fetches, __ATOMIC_ACQUIRE);

	nic_settle(qp->nic);
	while (!qp->answering && nic_psn_distance(ready, emitter->served) > 0) {
		const struct nic_incoming *in = &qp->nic->incoming[emitter->served & (NIC_FETCH_MAX - 1)];
		struct rdma_job *job = room(&s->jobs);
		int found;

		if (!job || !psns_are_free(qp, in))
			return;
		found = answer(e, qp, in, job);
		if (found < 0) {
			rdma_qp_fail(e, qp, RDMA_WR_FLUSH_ERR, 0);
			return;
		}
		if (!found) {
			served(qp);
			continue;
		}
		rdma_jobs_push(&s->jobs);
		s->tail += job->packets;
		s->released = s->tail;
		if (qp->transport->ibta) {
			begin(qp, job);
			return;
		}
		emitter->posted = emitter->synchronise = rdma_psn_of(s, s->tail);
		served(qp);
	}
}

/* Go-back-N: when an answer's last packet has left, the next one's turn has come. */
void rdma_response_sent(struct rdma_engine *e, struct rdma_qp *qp)
{
	const struct nic_emitter *emitter = &qp->nic->emitter[NIC_STREAM_RESPONSE];

	if (!qp->answering || emitter->snd_nxt != emitter->posted)
		return;
	qp->answering = 0;
	rdma_jobs_pop(&qp->streams[NIC_STREAM_RESPONSE].jobs);
	served(qp);
	rdma_responses_accept(e, qp);
}

static uint8_t opcode_of(const struct rdma_job *job, uint32_t index)
{
	if (job->opcode != WIRE_BTH_OPCODE_RC_READ_REQUEST)
		return WIRE_BTH_OPCODE_RC_ATOMIC_ACKNOWLEDGE;
	if (job->packets == 1)
		return WIRE_BTH_OPCODE_RC_READ_RESPONSE_ONLY;
	if (index == 0)
		return WIRE_BTH_OPCODE_RC_READ_RESPONSE_FIRST;
	return index + 1 == job->packets ? WIRE_BTH_OPCODE_RC_READ_RESPONSE_LAST : WIRE_BTH_OPCODE_RC_READ_RESPONSE_MIDDLE;
}

static struct rdma_job *find(struct rdma_qp *qp, uint32_t psn, uint32_t *index, int *last)
{
	struct rdma_stream *s = &qp->streams[NIC_STREAM_RESPONSE];
	struct rdma_job *job;
	uint64_t sequence;
	int ahead;

	if (qp->transport->ibta) {
		job = qp->answering ? rdma_jobs_at(&s->jobs, 0) : NULL;
		ahead = job ? nic_psn_distance(psn, job->msn) : -1;
		*index = (uint32_t)ahead;
		return ahead >= 0 && (uint32_t)ahead < job->packets ? job : NULL;
	}
	ahead = nic_psn_distance(psn, rdma_psn_of(s, s->una));
	sequence = s->una + (uint64_t)ahead;
	job = ahead >= 0 ? rdma_jobs_find(&s->jobs, sequence) : NULL;
	if (job)
		*index = (uint32_t)(sequence - job->first);
	*last = sequence + 1 == s->tail;
	return job;
}

/* As rdma_request_packet(). */
int rdma_response_packet(struct rdma_engine *e, struct rdma_qp *qp, const struct nic_send *send, struct rdma_packet *out)
{
	uint32_t index = 0, offset, left;
	int last = 0;
	const struct rdma_job *job = find(qp, send->psn, &index, &last);

	if (!job)
		return 0;
	offset = index * qp->path_mtu;
	left = job->length - offset;
	out->opcode = opcode_of(job, index);
	out->msn = out->aeth_msn = qp->nic->receiver[NIC_STREAM_REQUEST].msn;
	out->syndrome = WIRE_AETH_KIND_ACK | WIRE_AETH_CREDITS_INVALID;
	out->wqe_sn = job->number;
	out->ipsn = index;
	out->last = (uint8_t)last;
	out->swap_add = job->swap_add;
	if (job->opcode != WIRE_BTH_OPCODE_RC_READ_REQUEST)
		return 1;
	out->payload_length = left < qp->path_mtu ? left : qp->path_mtu;
	out->dscp = qp->sending.mark_remaining ? rdma_remaining_class(left) : out->dscp;
	out->payload = rdma_memory(e, qp, job->rkey, job->va + offset, out->payload_length, NIC_ACCESS_REMOTE_READ);
	if (out->payload_length && !out->payload) {
		rdma_qp_fail(e, qp, RDMA_WR_FLUSH_ERR, 0);
		return -EACCES;
	}
	return 1;
}
