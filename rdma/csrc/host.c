/* A host's sending side: its packet socket, its pacer, and turns among its queue pairs. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "private.h"

#define NANOSECONDS      1000000000ll
#define BURST_NS         100000                      /* the pacer makes up for wake-ups that come this late */
#define BURST_MIN_BITS   (8 * (int64_t)RDMA_FRAME_ROOM) /* but lets at least one largest frame go */
#define BLOCKED_RETRY_NS 50000
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
		close(host.socket);
	return fd < 0 ? fd : 0;
}

void rdma_host_close(struct rdma_host *host)
{
	if (host->socket >= 0)
		close(host->socket);
	host->socket = -1;
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
		.replies_sent = c->replies_sent, .replies_lost = c->replies_lost,
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

/* The next queue pair in turn that has something to send, or NULL. */
static struct rdma_qp *next_in_turn(struct rdma_host *host, int64_t now)
{
	struct rdma_qp *start = host->busy, *qp = start;

	if (!start)
		return NULL;
	do {
		if (rdma_qp_can_send(qp, now)) {
			host->busy = qp->busy_next;
			return qp;
		}
		qp = qp->busy_next;
	} while (qp != start);
	return NULL;
}

/* Hands `count` frames to the kernel; what it does not take is undone, newest first, and tried again later. */
static int transmit(struct rdma_engine *e, struct rdma_host *host, const struct rdma_sent *sent, int count, int64_t now)
{
	struct iovec iov[RDMA_BATCH];
	struct mmsghdr messages[RDMA_BATCH];
	int taken = 0;

	memset(messages, 0, sizeof(messages));
	for (int i = 0; i < count; i++) {
		iov[i] = (struct iovec){ .iov_base = e->frames[i], .iov_len = sent[i].length };
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
	for (int i = count; i-- > taken;) {
		host->credit_bits += host->rate_bps ? 8ll * sent[i].length : 0;
		rdma_qp_unsend(&sent[i]);
	}
	for (int i = 0; i < taken; i++)
		host->stats.bytes += sent[i].length;
	host->stats.packets += (uint64_t)taken;
	return taken == count;
}

/* One batch at most.  Returns when this host wants its next turn; `now` or before means at once. */
int64_t rdma_host_send(struct rdma_engine *e, struct rdma_host *host, int64_t now)
{
	struct rdma_sent sent[RDMA_BATCH];
	int count = 0;

	if (!host->busy)
		return RDMA_NEVER;
	if (now < host->blocked_until)
		return host->blocked_until;
	if (host->rate_bps)
		pacer_refill(host, now);
	while (count < RDMA_BATCH && (!host->rate_bps || host->credit_bits > 0)) {
		struct rdma_qp *qp = next_in_turn(host, now);

		if (!qp)
			break;
		rdma_qp_next_packet(e, qp, now, e->frames[count], &sent[count]);
		if (host->rate_bps)
			host->credit_bits -= 8ll * sent[count].length;
		count++;
	}
	if (count && !transmit(e, host, sent, count, now))
		return host->blocked_until;
	if (host->rate_bps && host->credit_bits <= 0)
		return pacer_ready_at(host, now);
	/* A full batch: there may be more.  Otherwise only news or a timer opens the window. */
	return count == RDMA_BATCH ? now : RDMA_NEVER;
}
