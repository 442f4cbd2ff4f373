/* The real-time loop: one thread, events that are due, then frames that have come, then sleep until the next of either.
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <time.h>

#include "error.h"
#include "fabric.h"
#include "interface.h"
#include "link.h"
#include "switch.h"

#define EVENTS_PER_TURN 512u /* so that a busy timer cannot keep frames from being read */
#define POLL_BATCH      64

/* Captures are flushed before a sleep of at least IDLE_NS, and on a busy fabric once an interval. */
#define IDLE_NS           1000000u
#define FLUSH_INTERVAL_NS 100000000u

/* Fires what is due. Returns whether more is due already. */
static bool fire_due(struct plait_fabric *fabric)
{
    struct plait_event_queue *events = &fabric->events;
    sim_time clock = plait_fabric_clock(fabric);
    uint32_t fired = 0;
    while (plait_event_next_time(events) <= clock && events->size) {
        if (fired++ == EVENTS_PER_TURN)
            return true;
        plait_event_fire_next(events);
        plait_fabric_yield(fabric);
    }
    plait_event_advance(events, clock);
    return false;
}

static void poll_interfaces(struct plait_fabric *fabric, const struct timespec *timeout)
{
    struct epoll_event ready[POLL_BATCH];
    bool sleeping = timeout->tv_sec || timeout->tv_nsec;
    if (sleeping)
        pthread_mutex_unlock(&fabric->mutex);
    int count = epoll_pwait2(fabric->epoll_fd, ready, POLL_BATCH, timeout, NULL);
    if (sleeping)
        pthread_mutex_lock(&fabric->mutex);
    for (int i = 0; i < count; i++) {
        struct plait_interface *interface = ready[i].data.ptr;
        if (interface) {
            interface->readable = true;
            plait_interface_activate(interface);
        } else {
            eventfd_t value;
            eventfd_read(fabric->wake_fd, &value);
        }
    }
}

/* One batch in and all that goes out, of each interface with something to do. Returns whether frames came in. */
static bool serve_interfaces(struct plait_fabric *fabric)
{
    bool received = false;
    struct plait_interface *interface = fabric->active_interfaces;
    fabric->active_interfaces = NULL;
    while (interface) {
        struct plait_interface *next = interface->next_active;
        interface->active = false;
        if (interface->readable)
            received |= plait_interface_receive(interface) > 0;
        if (interface->out_length && !interface->out_blocked)
            plait_interface_flush(interface);
        if (interface->readable)
            plait_interface_activate(interface);
        interface = next;
    }
    return received;
}

/* Before the loop sleeps for `wait`: who looks at a capture while it runs sees what was carried until then. */
static void flush_captures(struct plait_fabric *fabric, sim_time now, sim_time wait)
{
    if (!fabric->captures_dirty || (wait < IDLE_NS && now - fabric->captures_flushed_at < FLUSH_INTERVAL_NS))
        return;
    for (struct plait_link *link = fabric->links; link; link = link->next)
        plait_capture_flush(&link->capture);
    fabric->captures_dirty = false;
    fabric->captures_flushed_at = now;
}

int plait_fabric_run_real(struct plait_fabric *fabric, struct plait_error *error)
{
    if (!fabric->real_time)
        return plait_fail(error, EINVAL, "the fabric's clock is virtual: use run_until");
    if (atomic_exchange(&fabric->running, true))
        return plait_fail(error, EBUSY, "the fabric is running already");
    /* The default slack of 50 us would show up in every delay. */
    prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
    pthread_mutex_lock(&fabric->mutex);
    while (!atomic_load_explicit(&fabric->stop, memory_order_relaxed)) {
        bool busy = fire_due(fabric);
        busy |= serve_interfaces(fabric);
        if (fabric->drain_wanted && fabric->pool.alive == 0)
            plait_fabric_tell_drained(fabric);
        struct timespec timeout = {0, 0};
        if (!busy) {
            sim_time next = plait_event_next_time(&fabric->events), clock = plait_fabric_clock(fabric);
            sim_time wait = next <= clock ? 0 : next - clock;
            if (wait > NS_PER_SECOND)
                wait = NS_PER_SECOND;
            if (next <= clock && fabric->events.size)
                continue; /* due now: no system call in between */
            flush_captures(fabric, clock, wait);
            timeout = (struct timespec){(time_t)(wait / NS_PER_SECOND), (long)(wait % NS_PER_SECOND)};
        }
        poll_interfaces(fabric, &timeout);
        plait_fabric_yield(fabric);
    }
    pthread_mutex_unlock(&fabric->mutex);
    atomic_store(&fabric->running, false);
    atomic_store(&fabric->stop, false);
    return 0;
}
