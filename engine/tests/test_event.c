#include "event.h"
#include "random.h"
#include "unit.h"

#define EVENTS 2000

struct probe {
    struct plait_event event;
    struct plait_event_queue *queue;
    sim_time time;
    uint64_t order;
    bool armed;
};

static struct {
    sim_time time;
    uint64_t order;
} last;
static uint32_t fired;

static void observe(void *context)
{
    struct probe *probe = context;
    CHECK(probe->armed);
    probe->armed = false;
    CHECK(probe->queue->now == probe->time);
    CHECK(probe->time > last.time || (probe->time == last.time && probe->order > last.order));
    last.time = probe->time;
    last.order = probe->order;
    fired++;
}

static void arm(struct probe *probe, sim_time time, uint64_t *orders)
{
    probe->time = time;
    probe->order = ++*orders;
    probe->armed = true;
    plait_event_schedule(probe->queue, &probe->event, time);
}

/* Random schedules, few distinct times (many ties), a third cancelled, some scheduled anew. */
static void order_and_cancel(uint64_t seed)
{
    static struct probe probes[EVENTS];
    struct plait_event_queue queue;
    struct plait_random random;
    uint64_t orders = 0;
    uint32_t expected = 0;
    plait_random_seed(&random, seed);
    plait_event_queue_init(&queue);
    memset(&last, 0, sizeof last);
    fired = 0;
    for (int i = 0; i < EVENTS; i++) {
        probes[i] = (struct probe){.queue = &queue};
        CHECK(plait_event_init(&queue, &probes[i].event, observe, &probes[i]) == 0);
        arm(&probes[i], plait_random_between(&random, 1, 50), &orders);
    }
    for (int i = 0; i < EVENTS; i++) {
        if (plait_random_between(&random, 0, 2))
            continue;
        plait_event_cancel(&queue, &probes[i].event);
        CHECK(!plait_event_is_scheduled(&probes[i].event));
        probes[i].armed = false;
        if (plait_random_between(&random, 0, 1))
            arm(&probes[i], plait_random_between(&random, 1, 50), &orders);
    }
    for (int i = 0; i < EVENTS; i++)
        expected += probes[i].armed;
    while (queue.size)
        plait_event_fire_next(&queue);
    CHECK_EQUAL(fired, expected);
    for (int i = 0; i < EVENTS; i++) {
        CHECK(!probes[i].armed);
        plait_event_release(&queue, &probes[i].event);
    }
    CHECK_EQUAL(queue.registered, 0);
    plait_event_queue_free(&queue);
}

static void advance_stops_at_the_next_event(void)
{
    struct plait_event_queue queue;
    struct probe probe = {.queue = &queue};
    uint64_t orders = 0;
    memset(&last, 0, sizeof last);
    plait_event_queue_init(&queue);
    CHECK(plait_event_init(&queue, &probe.event, observe, &probe) == 0);
    arm(&probe, 100, &orders);
    plait_event_advance(&queue, 1000);
    CHECK_EQUAL(queue.now, 100);
    plait_event_fire_next(&queue);
    plait_event_advance(&queue, 50); /* never backwards */
    CHECK_EQUAL(queue.now, 100);
    plait_event_advance(&queue, 1000);
    CHECK_EQUAL(queue.now, 1000);
    plait_event_release(&queue, &probe.event);
    plait_event_release(&queue, &probe.event); /* a second time does nothing */
    CHECK_EQUAL(queue.registered, 0);
    plait_event_queue_free(&queue);
}

/* An order number drawn early comes first among equals, however late it is scheduled. */
static void drawn_order_decides_ties(void)
{
    struct plait_event_queue queue;
    struct probe early = {.queue = &queue, .time = 5, .armed = true},
                 late = {.queue = &queue, .time = 5, .armed = true};
    memset(&last, 0, sizeof last);
    plait_event_queue_init(&queue);
    CHECK(plait_event_init(&queue, &early.event, observe, &early) == 0);
    CHECK(plait_event_init(&queue, &late.event, observe, &late) == 0);
    uint64_t order = plait_event_draw_order(&queue);
    early.order = 1;
    late.order = 2;
    plait_event_schedule(&queue, &late.event, 5);
    plait_event_schedule_ordered(&queue, &early.event, 5, order);
    plait_event_fire_next(&queue);
    plait_event_fire_next(&queue);
    plait_event_release(&queue, &early.event);
    plait_event_release(&queue, &late.event);
    plait_event_queue_free(&queue);
}

void test_events(void)
{
    for (uint64_t seed = 1; seed <= 20; seed++)
        order_and_cancel(seed);
    advance_stops_at_the_next_event();
    drawn_order_decides_ties();
}
