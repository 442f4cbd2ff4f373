/* Yardsticks without a fabric: the bare AF_PACKET forwarder that the switch is measured against, and a source. */
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "error.h"
#include "interface.h"

#define BATCH   64
#define POLL_MS 10 /* how soon a stop is seen */

struct batch {
    struct mmsghdr messages[BATCH];
    struct iovec vectors[BATCH];
    uint8_t frames[BATCH][PLAIT_MAX_FRAME];
};

static int open_side(const char *name, int protocol, int *fd, struct plait_error *error)
{
    int one = 1, result = plait_packet_socket(name, protocol, fd, error);
    if (!result) {
        setsockopt(*fd, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof one);
        setsockopt(*fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof one);
    }
    return result;
}

/* Sends all of the batch, waiting where the kernel has no room; frames that it refuses for good are skipped. */
static uint64_t send_all(int fd, struct mmsghdr *messages, uint32_t count, volatile int *stop)
{
    uint32_t done = 0;
    uint64_t sent = 0;
    while (done < count && !*stop) {
        int now = sendmmsg(fd, messages + done, count - done, 0);
        if (now > 0) {
            done += (uint32_t)now;
            sent += (uint32_t)now;
        } else if (errno == EAGAIN || errno == ENOBUFS) {
            struct pollfd room = {.fd = fd, .events = POLLOUT};
            poll(&room, 1, 1);
        } else {
            done++;
        }
    }
    return sent;
}

int plait_bench_forward(const char *a, const char *b, volatile int *stop, uint64_t *forwarded,
                        struct plait_error *error)
{
    int fds[2] = {-1, -1};
    struct batch *batch = calloc(1, sizeof *batch);
    int result = batch ? 0 : plait_fail(error, ENOMEM, "no memory for a batch");
    if (!result)
        result = open_side(a, ETH_P_ALL, &fds[0], error);
    if (!result)
        result = open_side(b, ETH_P_ALL, &fds[1], error);
    *forwarded = 0;
    while (!result && !*stop) {
        struct pollfd ready[2] = {{.fd = fds[0], .events = POLLIN}, {.fd = fds[1], .events = POLLIN}};
        if (poll(ready, 2, POLL_MS) <= 0)
            continue;
        for (int side = 0; side < 2; side++) {
            if (!(ready[side].revents & POLLIN))
                continue;
            for (int i = 0; i < BATCH; i++) {
                batch->vectors[i] = (struct iovec){batch->frames[i], PLAIT_MAX_FRAME};
                batch->messages[i].msg_hdr = (struct msghdr){.msg_iov = &batch->vectors[i], .msg_iovlen = 1};
            }
            int count = recvmmsg(fds[side], batch->messages, BATCH, MSG_DONTWAIT, NULL);
            for (int i = 0; i < count; i++)
                batch->vectors[i].iov_len = batch->messages[i].msg_len;
            if (count > 0)
                *forwarded += send_all(fds[!side], batch->messages, (uint32_t)count, stop);
        }
    }
    for (int side = 0; side < 2; side++)
        if (fds[side] >= 0)
            close(fds[side]);
    free(batch);
    return result;
}

static double seconds_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

int plait_bench_source(const char *interface, const uint8_t *frame, uint32_t length, uint64_t count, double seconds,
                       volatile int *stop, uint64_t *sent, struct plait_error *error)
{
    int fd, result = open_side(interface, 0, &fd, error);
    if (result)
        return result;
    struct mmsghdr messages[BATCH];
    struct iovec vector = {(void *)(uintptr_t)frame, length};
    for (int i = 0; i < BATCH; i++)
        messages[i].msg_hdr = (struct msghdr){.msg_iov = &vector, .msg_iovlen = 1};
    double end = seconds_now() + seconds;
    *sent = 0;
    while (!*stop && (count == 0 || *sent < count) && (seconds <= 0 || seconds_now() < end)) {
        uint64_t left = count ? count - *sent : BATCH;
        *sent += send_all(fd, messages, left < BATCH ? (uint32_t)left : BATCH, stop);
    }
    close(fd);
    return 0;
}
