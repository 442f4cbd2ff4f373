/* A host's sending side: its packet socket, its pacer, and turns among its queue pairs. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "private.h"

#define NANOSECONDS      1000000000ll
#define BURST_NS         100000                      /* the pacer makes up for wake-ups that come this late */
#define BURST_MIN_BITS   (8 * (int64_t)RDMA_FRAME_ROOM) /* but lets at least one largest frame go */
#define BLOCKED_RETRY_NS 50000
#define PAUSE_POLL_NS    20000
#define SEND_BUFFER      (8 << 20)

/* Opens the socket in `netns_fd`'s namespace; the calling thread returns to its own before this returns. */
static int open_socket(int netns_fd, const char *interface)
{
	int home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	int size = SEND_BUFFER;
	struct sockaddr_ll address = { .sll_family = AF_PACKET };
	int fd = -1, error = 0;

	if (home < 0)
		return -errno;
	if (setns(netns_fd, CLONE_NEWNET)) {
		error = -errno;
		close(home);
		return error;
	}
	/* Protocol 0: it sends only, no received frame is copied to it. */
	fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (fd < 0)
		error = -errno;
	if (!error) {
		address.sll_ifindex = (int)if_nametoindex(interface);
		if (!address.sll_ifindex || bind(fd, (void *)&address, sizeof(address)))
			error = -errno;
		/* A smaller buffer than asked for only costs system calls. */
		(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size));
	}
	if (setns(home, CLONE_NEWNET) && !error)
		error = -errno;
	close(home);
	if (error && fd >= 0)
		close(fd);
	return error ? error : fd;
}

int rdma_host_add(struct rdma_engine *e, uint32_t slot, int netns_fd, const char *interface, const uint8_t *mac,
		  uint32_t ip, uint64_t rate_bps)
{
	struct rdma_host host = { .ip = ip, .rate_bps = rate_bps };
	int fd;

	if (slot == NIC_HOST_NONE || slot >= e->maps.max_hosts)
		return -EINVAL;
	fd = open_socket(netns_fd, interface);
	if (fd < 0)
		return fd;
	host.kept = malloc(RDMA_BATCH * sizeof(*host.kept)); /* no page of it is touched before a socket is full */
	if (!host.kept) {
		close(fd);
		return -ENOMEM;
	}
	host.counters = &e->counters[slot];
	host.socket = fd;
	memcpy(host.mac, mac, sizeof(host.mac));
	host.credit_ceiling = (int64_t)(rate_bps / (NANOSECONDS / BURST_NS));
	if (host.credit_ceiling < BURST_MIN_BITS)
		host.credit_ceiling = BURST_MIN_BITS;
	host.credit_bits = host.credit_ceiling;
	host.credit_time = rdma_now();
	rdma_lock(e);
	if (e->hosts[slot].socket < 0)
		e->hosts[slot] = host;
	else
		fd = -EEXIST;
	rdma_unlock(e);
	if (fd < 0)
		rdma_host_close(&host);
	return fd < 0 ? fd : 0;
}

void rdma_host_close(struct rdma_host *host)
{
	if (host->socket >= 0)
		close(host->socket);
	host->socket = -1;
	free(host->kept);
	host->kept = NULL;
}

int rdma_host_stats(struct rdma_engine *e, uint32_t slot, struct rdma_host_stats *out)
{
	if (slot >= e->maps.max_hosts || e->hosts[slot].socket < 0)
		return -ENODEV;
	rdma_lock(e);
	*out = e->hosts[slot].stats;
	rdma_unlock(e);
	return 0;
}

int rdma_host_event(struct rdma_engine *e, uint32_t slot, unsigned event, uint64_t *out)
{
	if (slot >= e->maps.max_hosts || event >= NIC_EVENT_SLOTS)
		return -EINVAL;
	*out = __atomic_load_n(&e->counters[slot].events[event], __ATOMIC_RELAXED);
	return 0;
}

int rdma_host_totals(struct rdma_engine *e, uint32_t slot, struct rdma_nic_totals *out)
{
	const struct nic_counters *c;

	if (slot >= e->maps.max_hosts)
		return -EINVAL;
	c = &e->counters[slot];
	*out = (struct rdma_nic_totals){
		.ce_marked = c->ce_marked, .bytes_placed = c->bytes_placed,
		.replies_sent = c->replies_sent, .replies_lost = c->replies_lost, .cnps_sent = c->cnps_sent,
	};
	return 0;
}

/* Credit grows with time up to a ceiling; a packet may go while it is positive, so it overdraws by at most one. */
static void pacer_refill(struct rdma_host *host, int64_t now)
{
	int64_t elapsed = now - host->credit_time;

	if (elapsed > NANOSECONDS)
		elapsed = NANOSECONDS;
	host->credit_bits += (int64_t)((__int128)elapsed * host->rate_bps / NANOSECONDS);
	if (host->credit_bits > host->credit_ceiling)
		host->credit_bits = host->credit_ceiling;
	host->credit_time = now;
}

static int64_t pacer_ready_at(const struct rdma_host *host, int64_t now)
{
	return now + (int64_t)((__int128)(1 - host->credit_bits) * NANOSECONDS / host->rate_bps) + 1;
}

void rdma_ready_add(struct rdma_qp *qp)
{
	struct rdma_qp **ring = &qp->host->ready[qp->nic->config.priority];

	if (qp->ready)
		return;
	qp->ready = 1;
	if (!*ring) {
		*ring = qp->ready_next = qp->ready_previous = qp;
		return;
	}
	/* Last in turn: just before the one whose turn it is. */
	qp->ready_next = *ring;
	qp->ready_previous = (*ring)->ready_previous;
	qp->ready_previous->ready_next = qp;
	(*ring)->ready_previous = qp;
}

void rdma_ready_remove(struct rdma_qp *qp)
{
	struct rdma_qp **ring = &qp->host->ready[qp->nic->config.priority];

	if (!qp->ready)
		return;
	qp->ready = 0;
	if (*ring == qp)
		*ring = qp->ready_next == qp ? NULL : qp->ready_next;
	qp->ready_next->ready_previous = qp->ready_previous;
	qp->ready_previous->ready_next = qp->ready_next;
}

static int64_t paused_until(const struct rdma_host *host, int priority)
{
	return (int64_t)__atomic_load_n(&host->counters->pause_until[priority], __ATOMIC_RELAXED);
}

/* The next queue pair in turn, of the priorities in turn; NULL: none may send.  `wake`: when a pause has to be looked at. */
static struct rdma_qp *next_in_turn(struct rdma_host *host, int64_t now, int64_t *wake)
{
	for (int i = 0; i < NIC_PFC_PRIORITIES; i++) {
		struct rdma_qp **ring;

		host->priority = (host->priority + 1) % NIC_PFC_PRIORITIES;
		ring = &host->ready[host->priority];
		if (!*ring)
			continue;
		if (paused_until(host, host->priority) > now) {
			/* A pause may be taken back before its time, and rings no bell. */
			*wake = now + PAUSE_POLL_NS;
			continue;
		}
		*ring = (*ring)->ready_next;
		return (*ring)->ready_previous;
	}
	return NULL;
}

/* Hands frames to the kernel; returns how many it took. */
static int hand_over(struct rdma_host *host, uint8_t (*frames)[RDMA_FRAME_ROOM], const uint32_t *lengths, int count,
		     int64_t now)
{
	struct iovec iov[RDMA_BATCH];
	struct mmsghdr messages[RDMA_BATCH];
	int taken = 0;

	memset(messages, 0, sizeof(messages));
	for (int i = 0; i < count; i++) {
		iov[i] = (struct iovec){ .iov_base = frames[i], .iov_len = lengths[i] };
		messages[i].msg_hdr.msg_iov = &iov[i];
		messages[i].msg_hdr.msg_iovlen = 1;
	}
	while (taken < count) {
		int n = sendmmsg(host->socket, messages + taken, (unsigned)(count - taken), MSG_DONTWAIT);

		if (n > 0) {
			taken += n;
		} else if (errno != EINTR) {
			if (errno == EAGAIN || errno == ENOBUFS)
				host->stats.socket_full++;
			else
				host->stats.socket_errors++;
			host->blocked_until = now + BLOCKED_RETRY_NS;
			break;
		}
	}
	for (int i = 0; i < taken; i++)
		host->stats.bytes += lengths[i];
	host->stats.packets += (uint64_t)taken;
	return taken;
}

/* Frames count as sent once they are built, so those that the socket did not take have to follow, in order. */
static void keep(struct rdma_host *host, uint8_t (*frames)[RDMA_FRAME_ROOM], const uint32_t *lengths, int count)
{
	memcpy(host->kept, frames, (size_t)count * RDMA_FRAME_ROOM);
	memcpy(host->kept_length, lengths, (size_t)count * sizeof(*lengths));
	host->kept_first = 0;
	host->kept_end = count;
}

static int send_kept(struct rdma_host *host, int64_t now)
{
	int count = host->kept_end - host->kept_first;

	if (count)
		host->kept_first +=
			hand_over(host, host->kept + host->kept_first, host->kept_length + host->kept_first, count, now);
	return host->kept_first == host->kept_end;
}

/* One batch at most.  Returns when this host wants its next turn; `now` or before means at once. */
int64_t rdma_host_send(struct rdma_engine *e, struct rdma_host *host, int64_t now)
{
	uint32_t lengths[RDMA_BATCH];
	int64_t wake = RDMA_NEVER;
	int count = 0, taken;

	if (host->socket < 0)
		return RDMA_NEVER;
	if (now < host->blocked_until)
		return host->blocked_until;
	if (!send_kept(host, now))
		return host->blocked_until;
	if (host->rate_bps)
		pacer_refill(host, now);
	while (count < RDMA_BATCH && (!host->rate_bps || host->credit_bits > 0)) {
		struct rdma_qp *qp = next_in_turn(host, now, &wake);

		if (!qp)
			break;
		lengths[count] = rdma_qp_packet(e, qp, now, e->frames[count]);
		if (!lengths[count])
			continue;
		if (host->rate_bps)
			host->credit_bits -= 8ll * lengths[count];
		count++;
	}
	taken = count ? hand_over(host, e->frames, lengths, count, now) : 0;
	if (taken < count) {
		keep(host, e->frames + taken, lengths + taken, count - taken);
		return host->blocked_until;
	}
	if (host->rate_bps && host->credit_bits <= 0)
		return pacer_ready_at(host, now);
	/* A full batch: there may be more.  Otherwise only news or a timer lets something go. */
	return count == RDMA_BATCH ? now : wake;
}
