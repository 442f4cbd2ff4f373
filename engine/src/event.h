/* Events over a clock: a 4-ary heap ordered by (time, order).
 *
 * Invariants: an event fires at most once per schedule; `now` never decreases; events of equal time fire in the order
 * in which their order numbers were drawn, which is insertion order unless a caller drew one earlier (a link does: a
 * packet's arrival is ordered by when it was sent, though only the first packet in flight has an event).
 *
 * While an event fires, its slot stays at the root as a hole that is before all others; most events schedule one other
 * (or themselves), which then takes the hole and sifts down once, where a removal and an insertion would sift twice.
 *
 * The event is its own handle: it is embedded in what it belongs to, so scheduling allocates nothing and cancelling
 * is O(log n).  plait_event_init reserves its place in the heap, hence plait_event_schedule cannot fail.
 */
#ifndef PLAIT_EVENT_H
#define PLAIT_EVENT_H

#include "units.h"

#define PLAIT_EVENT_IDLE  UINT32_MAX
#define PLAIT_EVENT_ARITY 4u /* children of a heap node */

struct plait_event {
    void (*fire)(void *context);
    void *context;
    uint32_t position; /* in the heap, or PLAIT_EVENT_IDLE */
};

struct plait_event_slot {
    sim_time time;
    uint64_t order;
    struct plait_event *event;
};

struct plait_event_queue {
    sim_time now;
    uint64_t next_order;
    uint64_t fired;
    struct plait_event_slot *heap;
    uint32_t size;
    bool hole; /* heap[0] is that of the event that fires */
    uint32_t registered; /* events initialised and not yet released: size <= registered + hole <= capacity */
    uint32_t capacity;
};

void plait_event_queue_init(struct plait_event_queue *queue);
void plait_event_queue_free(struct plait_event_queue *queue);

/* 0 or -ENOMEM. */
int plait_event_init(struct plait_event_queue *queue, struct plait_event *event, void (*fire)(void *), void *context);
/* Cancels and gives the place back; an event that was never initialised (all zero) is left alone. */
void plait_event_release(struct plait_event_queue *queue, struct plait_event *event);

/* Precondition: the event is not scheduled, time >= now. */
void plait_event_schedule(struct plait_event_queue *queue, struct plait_event *event, sim_time time);
void plait_event_schedule_ordered(struct plait_event_queue *queue, struct plait_event *event, sim_time time,
                                  uint64_t order);
void plait_event_cancel(struct plait_event_queue *queue, struct plait_event *event);

static inline uint64_t plait_event_draw_order(struct plait_event_queue *queue) { return queue->next_order++; }
static inline bool plait_event_is_scheduled(const struct plait_event *event)
{
    return event->position != PLAIT_EVENT_IDLE;
}
static inline sim_time plait_event_next_time(const struct plait_event_queue *queue)
{
    if (!queue->hole)
        return queue->size ? queue->heap[0].time : SIM_TIME_NEVER;
    sim_time next = SIM_TIME_NEVER; /* the least of the root's children */
    for (uint32_t child = 1; child < queue->size && child <= PLAIT_EVENT_ARITY; child++)
        if (queue->heap[child].time < next)
            next = queue->heap[child].time;
    return next;
}

/* Advances now to the first event and fires it. Precondition: there is one. */
void plait_event_fire_next(struct plait_event_queue *queue);
/* Moves now forward (never backward, never past the next event). */
void plait_event_advance(struct plait_event_queue *queue, sim_time time);

#endif
