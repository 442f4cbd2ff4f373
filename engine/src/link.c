#include "link.h"

#include "fabric.h"

#include <string.h>

static void arrive(void *context);

int plait_wire_init(struct plait_wire *wire, struct plait_link *link, struct plait_event_queue *events,
                    struct plait_pool *pool, struct plait_port *from, uint64_t seed)
{
    memset(wire, 0, sizeof *wire);
    wire->events = events;
    wire->pool = pool;
    wire->link = link;
    wire->from = from;
    plait_random_seed(&wire->random, seed);
    return plait_event_init(events, &wire->arrival, arrive, wire);
}

void plait_wire_free(struct plait_wire *wire)
{
    if (!wire->events)
        return;
    plait_list_free(&wire->flight, wire->pool);
    plait_event_release(wire->events, &wire->arrival);
    plait_flows_free(wire->flows);
    wire->flows = NULL;
}

void plait_wire_set_loss(struct plait_wire *wire, double probability)
{
    assert(probability >= 0 && probability <= 1);
    /* 2^64 does not fit; just below it rounds to UINT64_MAX, which means "all". */
    wire->loss_threshold = probability >= 1 ? UINT64_MAX : (uint64_t)(probability * 18446744073709551616.0);
}

void plait_wire_send(void *context, struct plait_pkt *pkt, sim_time last_bit)
{
    struct plait_wire *wire = context;
    if (wire->loss_threshold &&
        (wire->loss_threshold == UINT64_MAX || plait_random_next(&wire->random) < wire->loss_threshold)) {
        wire->drops_loss++;
        plait_pool_put(wire->pool, pkt);
        return;
    }
    sim_time due = last_bit + wire->delay;
    if (due < wire->last_due)
        due = wire->last_due;
    wire->last_due = due;
    pkt->last_bit = last_bit;
    pkt->due = due;
    pkt->order = plait_event_draw_order(wire->events);
    bool first = !wire->flight.head;
    plait_list_append(&wire->flight, pkt);
    if (first)
        plait_event_schedule_ordered(wire->events, &wire->arrival, due, pkt->order);
}

void plait_wire_retime(void *context, bits_per_second old_rate, bits_per_second new_rate)
{
    struct plait_wire *wire = context;
    sim_time now = wire->events->now, before = 0;
    for (struct plait_pkt *pkt = wire->flight.head; pkt; pkt = pkt->next) {
        if (pkt->last_bit > now) {
            sim_time on_wire = pkt->due - pkt->last_bit;
            pkt->last_bit = now + plait_rescale(pkt->last_bit - now, old_rate, new_rate);
            pkt->due = pkt->last_bit + on_wire;
            if (pkt->due < before)
                pkt->due = before;
        }
        before = pkt->due;
    }
    struct plait_pkt *first = wire->flight.head;
    wire->last_due = first ? before : now;
    if (first) {
        plait_event_cancel(wire->events, &wire->arrival);
        plait_event_schedule_ordered(wire->events, &wire->arrival, first->due, first->order);
    }
}

static void arrive(void *context)
{
    struct plait_wire *wire = context;
    struct plait_link *link = wire->link;
    struct plait_pkt *pkt = plait_list_take(&wire->flight);
    struct plait_pkt *following = wire->flight.head;
    if (following)
        plait_event_schedule_ordered(wire->events, &wire->arrival, following->due, following->order);
    if (!link->up) {
        wire->drops_down++;
        plait_pool_put(wire->pool, pkt);
        return;
    }
    wire->packets++;
    wire->bytes += pkt->packet.length;
    if (wire->flows)
        plait_flows_count(wire->flows, pkt->packet.data, pkt->packet.length);
    if (link->capture.file) {
        plait_capture_write(&link->capture, wire->events->now + link->capture_epoch_ns, pkt->packet.data,
                            pkt->packet.length);
        link->fabric->captures_dirty = true;
    }
    wire->deliver(wire->to, wire->to_port, pkt);
}

void plait_link_show_up(struct plait_link *link)
{
    for (int end = 0; end < 2; end++)
        if (link->live_up[end])
            *link->live_up[end] = link->up;
}
