#include "generator.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "fabric.h"

struct plait_generator {
    struct plait_generator *next;
    struct plait_switch *sw;
    struct plait_event event;
    sim_time interval;
    uint64_t left;
    uint32_t port, length;
    uint8_t frame[];
};

static void emit(void *context)
{
    struct plait_generator *generator = context;
    struct plait_event_queue *events = &generator->sw->fabric->events;
    if (--generator->left)
        plait_event_schedule(events, &generator->event, events->now + generator->interval);
    struct plait_pkt *pkt = plait_pool_copy(&generator->sw->fabric->pool, generator->frame, generator->length);
    if (pkt)
        plait_switch_receive(generator->sw, generator->port, pkt);
    else
        generator->sw->stats.drops_memory++;
}

int plait_generator_start(struct plait_switch *sw, uint32_t port, const uint8_t *frame, uint32_t length, uint64_t count,
                          sim_time start, sim_time interval, struct plait_error *error)
{
    struct plait_generator *generator = malloc(sizeof *generator + length);
    if (!generator || plait_event_init(&sw->fabric->events, &generator->event, emit, generator)) {
        free(generator);
        return plait_fail(error, ENOMEM, "no memory for a generator");
    }
    generator->sw = sw;
    generator->interval = interval;
    generator->left = count;
    generator->port = port;
    generator->length = length;
    memcpy(generator->frame, frame, length);
    generator->next = sw->generators;
    sw->generators = generator;
    if (count)
        plait_event_schedule(&sw->fabric->events, &generator->event, start);
    return 0;
}

void plait_generators_free(struct plait_switch *sw)
{
    while (sw->generators) {
        struct plait_generator *generator = sw->generators;
        sw->generators = generator->next;
        plait_event_release(&sw->fabric->events, &generator->event);
        free(generator);
    }
}
