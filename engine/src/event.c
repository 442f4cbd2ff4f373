#include "event.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ARITY PLAIT_EVENT_ARITY

static inline bool before(const struct plait_event_slot *a, const struct plait_event_slot *b)
{
    return a->time < b->time || (a->time == b->time && a->order < b->order);
}

static inline void place(struct plait_event_queue *queue, uint32_t position, struct plait_event_slot slot)
{
    queue->heap[position] = slot;
    slot.event->position = position;
}

static void sift_up(struct plait_event_queue *queue, uint32_t position, struct plait_event_slot slot)
{
    while (position > 0) {
        uint32_t parent = (position - 1) / ARITY;
        if (!before(&slot, &queue->heap[parent]))
            break;
        place(queue, position, queue->heap[parent]);
        position = parent;
    }
    place(queue, position, slot);
}

static void sift_down(struct plait_event_queue *queue, uint32_t position, struct plait_event_slot slot)
{
    for (;;) {
        uint32_t first = position * ARITY + 1;
        if (first >= queue->size)
            break;
        uint32_t end = first + ARITY < queue->size ? first + ARITY : queue->size;
        uint32_t least = first;
        for (uint32_t child = first + 1; child < end; child++)
            if (before(&queue->heap[child], &queue->heap[least]))
                least = child;
        if (!before(&queue->heap[least], &slot))
            break;
        place(queue, position, queue->heap[least]);
        position = least;
    }
    place(queue, position, slot);
}

void plait_event_queue_init(struct plait_event_queue *queue) { memset(queue, 0, sizeof *queue); }

void plait_event_queue_free(struct plait_event_queue *queue)
{
    free(queue->heap);
    memset(queue, 0, sizeof *queue);
}

int plait_event_init(struct plait_event_queue *queue, struct plait_event *event, void (*fire)(void *), void *context)
{
    if (queue->registered == queue->capacity) {
        uint32_t capacity = queue->capacity ? queue->capacity * 2 : 64;
        struct plait_event_slot *heap = realloc(queue->heap, capacity * sizeof *heap);
        if (!heap)
            return -ENOMEM;
        queue->heap = heap;
        queue->capacity = capacity;
    }
    queue->registered++;
    *event = (struct plait_event){.fire = fire, .context = context, .position = PLAIT_EVENT_IDLE};
    return 0;
}

void plait_event_release(struct plait_event_queue *queue, struct plait_event *event)
{
    if (!event->fire)
        return;
    plait_event_cancel(queue, event);
    queue->registered--;
    event->fire = NULL;
}

void plait_event_schedule_ordered(struct plait_event_queue *queue, struct plait_event *event, sim_time time,
                                  uint64_t order)
{
    assert(event->position == PLAIT_EVENT_IDLE);
    assert(time >= queue->now);
    if (queue->hole) {
        queue->hole = false;
        sift_down(queue, 0, (struct plait_event_slot){time, order, event});
        return;
    }
    assert(queue->size < queue->capacity);
    sift_up(queue, queue->size++, (struct plait_event_slot){time, order, event});
}

void plait_event_schedule(struct plait_event_queue *queue, struct plait_event *event, sim_time time)
{
    plait_event_schedule_ordered(queue, event, time, plait_event_draw_order(queue));
}

static void remove_at(struct plait_event_queue *queue, uint32_t position)
{
    struct plait_event_slot last = queue->heap[--queue->size];
    if (position == queue->size)
        return;
    if (position > 0 && before(&last, &queue->heap[(position - 1) / ARITY]))
        sift_up(queue, position, last);
    else
        sift_down(queue, position, last);
}

void plait_event_cancel(struct plait_event_queue *queue, struct plait_event *event)
{
    if (event->position == PLAIT_EVENT_IDLE)
        return;
    assert(event->position < queue->size && queue->heap[event->position].event == event);
    remove_at(queue, event->position);
    event->position = PLAIT_EVENT_IDLE;
}

void plait_event_fire_next(struct plait_event_queue *queue)
{
    assert(queue->size > 0);
    assert(!queue->hole);
    struct plait_event_slot first = queue->heap[0];
    assert(first.time >= queue->now);
    first.event->position = PLAIT_EVENT_IDLE;
    queue->now = first.time;
    queue->fired++;
    queue->hole = true;
    first.event->fire(first.event->context);
    if (queue->hole) {
        queue->hole = false;
        remove_at(queue, 0);
    }
}

void plait_event_advance(struct plait_event_queue *queue, sim_time time)
{
    sim_time next = plait_event_next_time(queue);
    if (time > next)
        time = next;
    if (time > queue->now)
        queue->now = time;
}
