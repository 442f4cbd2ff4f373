/* A fabric: one clock, one event queue, one packet pool, and the switches and links that live on them.
 *
 * Locking: whoever runs the fabric holds `mutex` while it works on packets, and gives it up between two packets when
 * `waiters` says that someone wants it.  Control calls hold it for one short operation.
 */
#ifndef PLAIT_FABRIC_H
#define PLAIT_FABRIC_H

#include <pthread.h>
#include <stdatomic.h>

#include "api.h"
#include "event.h"
#include "packet.h"
#include "random.h"

#define PLAIT_RATE_LIMIT  100000000000000ull /* 100 Tb/s: serialisation times stay exact in 64 bits */
#define PLAIT_DELAY_LIMIT (3600 * NS_PER_SECOND)

struct plait_fabric {
    pthread_mutex_t mutex;
    atomic_uint waiters;        /* control threads that want the mutex */
    atomic_uint served;         /* waiters that got it, ever */
    uint32_t packets_to_window; /* before the runner lets waiters in again; the runner's own */
    atomic_bool stop, running;
    bool real_time;
    uint64_t epoch_ns;      /* CLOCK_MONOTONIC at creation; real time only */
    uint64_t wall_epoch_ns; /* CLOCK_REALTIME then */
    uint64_t hash_seed;
    struct plait_event_queue events;
    struct plait_pool pool;
    struct plait_random random;
    uint64_t next_stream; /* seeds of links' loss generators */
    uint64_t hops;        /* runs of an ingress pipeline */
    bool drain_wanted;    /* by a switch */
    struct plait_switch *switches;
    struct plait_link *links;
    bool captures_dirty;          /* in real time: a capture holds packets that are not in its file yet */
    sim_time captures_flushed_at;
    struct plait_interface *interfaces;
    struct plait_interface *active_interfaces; /* those with something to do in the loop's next turn */
    int epoll_fd, wake_fd;                     /* real time only, else -1 */
};

void plait_fabric_lock(struct plait_fabric *fabric);
void plait_fabric_unlock(struct plait_fabric *fabric);
/* As unlock; the loop then looks at its events again. For calls that scheduled something. */
void plait_fabric_unlock_and_wake(struct plait_fabric *fabric);
/* For the runner, between two packets, with the mutex held. */
void plait_fabric_yield_slow(struct plait_fabric *fabric);
static inline void plait_fabric_yield(struct plait_fabric *fabric)
{
    if (__builtin_expect(atomic_load_explicit(&fabric->waiters, memory_order_relaxed) != 0, 0))
        plait_fabric_yield_slow(fabric);
}
/* Real time since the fabric began. */
sim_time plait_fabric_clock(const struct plait_fabric *fabric);
uint64_t plait_fabric_draw_seed(struct plait_fabric *fabric);
/* In real time, brings `now` up to the clock (not past the next event), so that an injected packet is not back-dated.
 */
void plait_fabric_catch_up(struct plait_fabric *fabric);

#endif
