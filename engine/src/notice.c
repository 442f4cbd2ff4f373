/* What a switch tells the control plane: packets in, digests, log lines; a bounded queue with a lock of its own. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "error.h"
#include "fabric.h"
#include "switch.h"

bool plait_switch_notify(struct plait_switch *sw, enum plait_notice_kind kind, uint32_t number, uint64_t tag,
                         const uint8_t *bytes, uint32_t length)
{
    struct plait_notice_node *node = malloc(sizeof *node + length);
    if (!node) {
        sw->stats.drops_event++;
        return false;
    }
    node->next = NULL;
    node->notice.kind = kind;
    node->notice.number = number;
    node->notice.tag = tag;
    node->notice.length = length;
    if (length)
        memcpy(node->notice.bytes, bytes, length);
    pthread_mutex_lock(&sw->notice_lock);
    bool room = sw->n_notices < PLAIT_NOTICE_LIMIT || kind == PLAIT_NOTICE_DRAINED;
    if (room) {
        *sw->notices_end = node;
        sw->notices_end = &node->next;
        if (sw->n_notices++ == 0)
            eventfd_write(sw->event_fd, 1);
        pthread_cond_signal(&sw->notice_ready);
    }
    pthread_mutex_unlock(&sw->notice_lock);
    if (!room) {
        sw->stats.drops_event++;
        free(node);
    }
    return room;
}

struct plait_notice *plait_switch_poll(struct plait_switch *sw, uint64_t timeout_ns)
{
    struct timespec deadline;
    clock_gettime(CLOCK_MONOTONIC, &deadline);
    deadline.tv_sec += (time_t)(timeout_ns / NS_PER_SECOND);
    deadline.tv_nsec += (long)(timeout_ns % NS_PER_SECOND);
    if (deadline.tv_nsec >= (long)NS_PER_SECOND) {
        deadline.tv_sec++;
        deadline.tv_nsec -= (long)NS_PER_SECOND;
    }
    pthread_mutex_lock(&sw->notice_lock);
    int waited = 0;
    sw->pollers++;
    while (!sw->notices && timeout_ns && !waited && !sw->closing)
        waited = pthread_cond_timedwait(&sw->notice_ready, &sw->notice_lock, &deadline);
    struct plait_notice_node *node = sw->notices;
    if (node) {
        sw->notices = node->next;
        if (--sw->n_notices == 0) {
            eventfd_t value;
            sw->notices_end = &sw->notices;
            eventfd_read(sw->event_fd, &value);
        }
    }
    if (--sw->pollers == 0 && sw->closing)
        pthread_cond_broadcast(&sw->notice_ready);
    pthread_mutex_unlock(&sw->notice_lock);
    return node ? &node->notice : NULL;
}

void plait_switch_forget_notices(struct plait_switch *sw)
{
    pthread_mutex_lock(&sw->notice_lock);
    struct plait_notice_node **link = &sw->notices, *node;
    uint32_t before = sw->n_notices;
    while ((node = *link)) {
        if (node->notice.kind == PLAIT_NOTICE_DRAINED && !sw->closing) {
            link = &node->next;
            continue;
        }
        *link = node->next;
        sw->n_notices--;
        sw->stats.drops_event++;
        free(node);
    }
    sw->notices_end = link;
    if (before && !sw->n_notices) {
        eventfd_t value;
        eventfd_read(sw->event_fd, &value);
    }
    pthread_mutex_unlock(&sw->notice_lock);
}

int plait_switch_drain(struct plait_switch *sw, uint64_t tag, struct plait_error *error)
{
    struct plait_fabric *fabric = sw->fabric;
    if (!fabric->real_time)
        return plait_fail(error, EINVAL, "drain: the fabric's clock is virtual, run until no event is left");
    plait_fabric_lock(fabric);
    int result = 0;
    if (fabric->interfaces) /* which keep packets to receive into */
        result = plait_fail(error, EINVAL, "drain: the fabric has interfaces, from which packets may always come");
    else
        sw->drain_wanted = fabric->drain_wanted = true;
    sw->drain_tag = tag;
    plait_fabric_unlock_and_wake(fabric);
    return result;
}

void plait_fabric_tell_drained(struct plait_fabric *fabric)
{
    fabric->drain_wanted = false;
    for (struct plait_switch *sw = fabric->switches; sw; sw = sw->next) {
        if (sw->drain_wanted)
            sw->drain_wanted = !plait_switch_notify(sw, PLAIT_NOTICE_DRAINED, 0, sw->drain_tag, NULL, 0);
        fabric->drain_wanted |= sw->drain_wanted; /* no memory: in the loop's next turn */
    }
}

void plait_switch_end_polls(struct plait_switch *sw)
{
    pthread_mutex_lock(&sw->notice_lock);
    sw->closing = true;
    pthread_cond_broadcast(&sw->notice_ready);
    while (sw->pollers)
        pthread_cond_wait(&sw->notice_ready, &sw->notice_lock);
    pthread_mutex_unlock(&sw->notice_lock);
}

void plait_notice_free(struct plait_notice *notice)
{
    if (notice)
        free(plait_container_of(notice, struct plait_notice_node, notice));
}

int plait_switch_event_fd(struct plait_switch *sw) { return sw->event_fd; }
