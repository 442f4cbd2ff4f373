#include "fabric.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "error.h"
#include "interface.h"
#include "link.h"
#include "switch.h"

#define PACKETS_BETWEEN_WINDOWS 16u

/* Tells the processor that this is a waiting loop. */
static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#else
    __asm__ volatile("" ::: "memory");
#endif
}

static uint64_t read_clock(clockid_t id)
{
    struct timespec time;
    clock_gettime(id, &time);
    return (uint64_t)time.tv_sec * NS_PER_SECOND + (uint64_t)time.tv_nsec;
}

/* The runner opens windows of a few microseconds (plait_fabric_yield_slow). A waiter that slept in the mutex would be
 * woken by one and come too late for it, so waiters try again and again, at first without giving up the processor. */
void plait_fabric_lock(struct plait_fabric *fabric)
{
    if (pthread_mutex_trylock(&fabric->mutex) == 0)
        return;
    atomic_fetch_add(&fabric->waiters, 1);
    for (uint32_t tries = 1; pthread_mutex_trylock(&fabric->mutex); tries++) {
        if (tries % 1024 == 0)
            nanosleep(&(struct timespec){0, 50000}, NULL);
        else if (tries % 128 == 0)
            sched_yield();
        else
            relax();
    }
    atomic_fetch_add(&fabric->served, 1);
    atomic_fetch_sub(&fabric->waiters, 1);
}

void plait_fabric_unlock(struct plait_fabric *fabric) { pthread_mutex_unlock(&fabric->mutex); }

void plait_fabric_unlock_and_wake(struct plait_fabric *fabric)
{
    pthread_mutex_unlock(&fabric->mutex);
    if (fabric->wake_fd >= 0)
        eventfd_write(fabric->wake_fd, 1);
}

static bool is_served(struct plait_fabric *fabric, unsigned served)
{
    return atomic_load(&fabric->waiters) == 0 || atomic_load(&fabric->served) != served;
}

/* Lets one waiter in. A waiter that runs takes the mutex at once; for one that does not, packets do not wait longer
 * than these few tries, and then some of them pass before the next window. */
void plait_fabric_yield_slow(struct plait_fabric *fabric)
{
    if (fabric->packets_to_window) {
        fabric->packets_to_window--;
        return;
    }
    unsigned served = atomic_load(&fabric->served);
    pthread_mutex_unlock(&fabric->mutex);
    for (int tries = 0; tries < 200 && !is_served(fabric, served); tries++)
        relax();
    for (int tries = 0; tries < 4 && !is_served(fabric, served); tries++)
        sched_yield();
    fabric->packets_to_window = is_served(fabric, served) ? 0 : PACKETS_BETWEEN_WINDOWS;
    pthread_mutex_lock(&fabric->mutex);
}

sim_time plait_fabric_clock(const struct plait_fabric *fabric)
{
    return read_clock(CLOCK_MONOTONIC) - fabric->epoch_ns;
}

uint64_t plait_fabric_draw_seed(struct plait_fabric *fabric)
{
    struct plait_random mixer;
    plait_random_seed(&mixer, fabric->next_stream++);
    return plait_random_next(&mixer);
}

void plait_fabric_catch_up(struct plait_fabric *fabric)
{
    if (fabric->real_time)
        plait_event_advance(&fabric->events, plait_fabric_clock(fabric));
}

struct plait_fabric *plait_fabric_create(int real_time, uint64_t seed, struct plait_error *error)
{
    struct plait_fabric *fabric = calloc(1, sizeof *fabric);
    if (!fabric) {
        plait_fail(error, ENOMEM, "no memory for a fabric");
        return NULL;
    }
    pthread_mutex_init(&fabric->mutex, NULL);
    plait_event_queue_init(&fabric->events);
    plait_pool_init(&fabric->pool);
    plait_random_seed(&fabric->random, seed);
    fabric->next_stream = plait_random_next(&fabric->random);
    /* Order of results never depends on it, so it need not be reproducible, but must not be guessable. */
    if (getrandom(&fabric->hash_seed, sizeof fabric->hash_seed, 0) != sizeof fabric->hash_seed)
        fabric->hash_seed = read_clock(CLOCK_MONOTONIC);
    fabric->real_time = real_time != 0;
    fabric->epoll_fd = fabric->wake_fd = -1;
    if (fabric->real_time) {
        fabric->epoch_ns = read_clock(CLOCK_MONOTONIC);
        fabric->wall_epoch_ns = read_clock(CLOCK_REALTIME);
        fabric->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        fabric->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        struct epoll_event wake = {.events = EPOLLIN, .data.ptr = NULL};
        if (fabric->epoll_fd < 0 || fabric->wake_fd < 0 ||
            epoll_ctl(fabric->epoll_fd, EPOLL_CTL_ADD, fabric->wake_fd, &wake)) {
            plait_fail_system(error, errno, "epoll: %s", strerror(errno));
            plait_fabric_destroy(fabric);
            return NULL;
        }
    }
    return fabric;
}

static void link_free(struct plait_link *link)
{
    for (int d = 0; d < 2; d++)
        plait_wire_free(&link->wires[d]);
    plait_interface_free(link->interface);
    plait_capture_close(&link->capture, NULL);
    free(link->name);
    free(link);
}

void plait_fabric_destroy(struct plait_fabric *fabric)
{
    if (!fabric)
        return;
    if (fabric->interfaces)
        plait_interfaces_close(fabric);
    while (fabric->links) {
        struct plait_link *link = fabric->links;
        fabric->links = link->next;
        link_free(link);
    }
    while (fabric->switches) {
        struct plait_switch *sw = fabric->switches;
        fabric->switches = sw->next;
        plait_switch_free(sw);
    }
    assert(fabric->pool.alive == 0);
    assert(fabric->events.registered == 0);
    if (fabric->epoll_fd >= 0)
        close(fabric->epoll_fd);
    if (fabric->wake_fd >= 0)
        close(fabric->wake_fd);
    plait_pool_free(&fabric->pool);
    plait_event_queue_free(&fabric->events);
    pthread_mutex_destroy(&fabric->mutex);
    free(fabric);
}

/* ------------------------------------------------------------------------------------------------------------
 * Building */

struct plait_switch *plait_fabric_add_switch(struct plait_fabric *fabric, const char *name, uint32_t drop_port,
                                             uint32_t cpu_port, uint32_t priority_queues, struct plait_error *error)
{
    struct plait_switch *sw = NULL;
    plait_fabric_lock(fabric);
    if (plait_switch_create(fabric, name, drop_port, cpu_port, priority_queues, &sw, error) == 0) {
        sw->next = fabric->switches;
        fabric->switches = sw;
    }
    plait_fabric_unlock(fabric);
    return sw;
}

static int check_spec(const char *name, const struct plait_port_spec *spec, struct plait_error *error)
{
    if (!(spec->loss >= 0 && spec->loss <= 1))
        return plait_fail(error, EINVAL, "loss of link %s: %g is not in 0..1", name, spec->loss);
    if (spec->rate_bps > PLAIT_RATE_LIMIT)
        return plait_fail(error, EINVAL, "rate_bps of link %s: more than %llu", name, PLAIT_RATE_LIMIT);
    if (spec->delay_ns > PLAIT_DELAY_LIMIT)
        return plait_fail(error, EINVAL, "delay_ns of link %s: more than %llu", name, PLAIT_DELAY_LIMIT);
    return 0;
}

static void configure_port(struct plait_port *port, const struct plait_port_spec *spec)
{
    port->rate = spec->rate_bps;
    for (uint32_t q = 0; q < PLAIT_QUEUES; q++) {
        if (spec->queue_packets >= 0)
            port->queues[q].limit_packets = (uint64_t)spec->queue_packets;
        if (spec->queue_bytes >= 0)
            port->queues[q].limit_bytes = (uint64_t)spec->queue_bytes;
    }
}

static struct plait_link *link_create(struct plait_fabric *fabric, const char *name)
{
    struct plait_link *link = calloc(1, sizeof *link);
    if (link && !(link->name = strdup(name))) {
        free(link);
        link = NULL;
    }
    if (link) {
        link->fabric = fabric;
        link->up = true;
        link->capture_epoch_ns = fabric->wall_epoch_ns;
    }
    return link;
}

static int wire_up(struct plait_link *link, int direction, struct plait_port *from, const struct plait_port_spec *spec,
                   void (*deliver)(void *, uint32_t, struct plait_pkt *), void *to, uint32_t to_port,
                   struct plait_error *error)
{
    struct plait_fabric *fabric = link->fabric;
    struct plait_wire *wire = &link->wires[direction];
    if (plait_wire_init(wire, link, &fabric->events, &fabric->pool, from, plait_fabric_draw_seed(fabric)))
        return plait_fail(error, ENOMEM, "no memory for link %s", link->name);
    wire->delay = spec->delay_ns;
    plait_wire_set_loss(wire, spec->loss);
    wire->deliver = deliver;
    wire->to = to;
    wire->to_port = to_port;
    from->send = plait_wire_send;
    from->retime = plait_wire_retime;
    from->to = wire;
    configure_port(from, spec);
    return 0;
}

struct plait_link *plait_fabric_connect(struct plait_fabric *fabric, const char *name, struct plait_switch *a,
                                        uint32_t port_a, struct plait_switch *b, uint32_t port_b,
                                        const struct plait_port_spec *spec, struct plait_error *error)
{
    struct plait_port *from_a = NULL, *from_b = NULL;
    if (check_spec(name, spec, error))
        return NULL;
    plait_fabric_lock(fabric);
    struct plait_link *link = link_create(fabric, name);
    if (!link)
        plait_fail(error, ENOMEM, "no memory for link %s", name);
    if (!link || plait_switch_add_port(a, port_a, link, &from_a, error) ||
        plait_switch_add_port(b, port_b, link, &from_b, error) ||
        wire_up(link, 0, from_a, spec, plait_switch_receive, b, port_b, error) ||
        wire_up(link, 1, from_b, spec, plait_switch_receive, a, port_a, error)) {
        if (from_a)
            plait_switch_remove_port(a, port_a);
        if (from_b)
            plait_switch_remove_port(b, port_b);
        if (link)
            link_free(link);
        link = NULL;
    } else {
        link->live_up[0] = &a->live_up[port_a];
        link->live_up[1] = &b->live_up[port_b];
        plait_link_show_up(link);
        link->next = fabric->links;
        fabric->links = link;
    }
    plait_fabric_unlock(fabric);
    return link;
}

struct plait_link *plait_fabric_attach(struct plait_fabric *fabric, const char *name, struct plait_switch *a,
                                       uint32_t port_a, const char *interface, const struct plait_port_spec *spec,
                                       struct plait_error *error)
{
    struct plait_port *from_a = NULL;
    if (check_spec(name, spec, error))
        return NULL;
    if (!fabric->real_time) {
        plait_fail(error, EINVAL, "interface %s: an interface needs a fabric with a real clock", interface);
        return NULL;
    }
    plait_fabric_lock(fabric);
    struct plait_link *link = link_create(fabric, name);
    if (!link)
        plait_fail(error, ENOMEM, "no memory for link %s", name);
    if (!link || plait_switch_add_port(a, port_a, link, &from_a, error) ||
        plait_interface_open(fabric, interface, &link->interface, error) ||
        wire_up(link, 0, from_a, spec, plait_interface_send, link->interface, 0, error) ||
        wire_up(link, 1, &link->interface->port, spec, plait_switch_receive, a, port_a, error)) {
        if (from_a)
            plait_switch_remove_port(a, port_a);
        if (link)
            link_free(link);
        link = NULL;
    } else {
        link->interface->sw = a;
        plait_interface_address(link->interface, from_a->pauses.source);
        link->live_up[0] = &a->live_up[port_a];
        plait_link_show_up(link);
        link->next = fabric->links;
        fabric->links = link;
    }
    plait_fabric_unlock_and_wake(fabric);
    return link;
}

/* ------------------------------------------------------------------------------------------------------------
 * Running */

uint64_t plait_fabric_now(struct plait_fabric *fabric)
{
    if (fabric->real_time)
        return plait_fabric_clock(fabric);
    plait_fabric_lock(fabric);
    uint64_t now = fabric->events.now;
    plait_fabric_unlock(fabric);
    return now;
}

uint64_t plait_fabric_run_until(struct plait_fabric *fabric, uint64_t until, uint64_t limit, int *done)
{
    uint64_t fired = 0;
    plait_fabric_lock(fabric);
    struct plait_event_queue *events = &fabric->events;
    while (fired < limit && plait_event_next_time(events) <= until && events->size &&
           !atomic_load_explicit(&fabric->stop, memory_order_relaxed)) {
        plait_event_fire_next(events);
        fired++;
        plait_fabric_yield(fabric);
    }
    *done = !events->size || plait_event_next_time(events) > until;
    if (*done && until != SIM_TIME_NEVER)
        plait_event_advance(events, until);
    plait_fabric_unlock(fabric);
    return fired;
}

uint64_t plait_fabric_next_event(struct plait_fabric *fabric)
{
    plait_fabric_lock(fabric);
    uint64_t time = plait_event_next_time(&fabric->events);
    plait_fabric_unlock(fabric);
    return time;
}

void plait_fabric_stop(struct plait_fabric *fabric)
{
    atomic_store(&fabric->stop, true);
    if (fabric->wake_fd >= 0)
        eventfd_write(fabric->wake_fd, 1);
}

uint64_t plait_fabric_packets_alive(struct plait_fabric *fabric)
{
    plait_fabric_lock(fabric);
    uint64_t alive = fabric->pool.alive;
    plait_fabric_unlock(fabric);
    return alive;
}

uint64_t plait_fabric_hops(struct plait_fabric *fabric)
{
    plait_fabric_lock(fabric);
    uint64_t hops = fabric->hops;
    plait_fabric_unlock(fabric);
    return hops;
}

uint64_t plait_fabric_events(struct plait_fabric *fabric)
{
    plait_fabric_lock(fabric);
    uint64_t fired = fabric->events.fired;
    plait_fabric_unlock(fabric);
    return fired;
}
