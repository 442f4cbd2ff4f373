#include "tm.h"

#include <string.h>

static void ready(void *context);

int plait_port_init(struct plait_port *port, struct plait_event_queue *events, struct plait_pool *pool,
                    uint32_t n_queues)
{
    assert(n_queues >= 1 && n_queues <= PLAIT_QUEUES);
    memset(port, 0, sizeof *port);
    port->events = events;
    port->pool = pool;
    port->n_queues = n_queues;
    port->serving = &port->serving_alone;
    for (uint32_t q = 0; q < PLAIT_QUEUES; q++) {
        port->queues[q].limit_packets = PLAIT_DEFAULT_QUEUE_PACKETS;
        port->queues[q].limit_bytes = PLAIT_UNLIMITED;
    }
    return plait_event_init(events, &port->ready, ready, port);
}

static inline void mirror(struct plait_port *port)
{
    if (port->live_packets) {
        *port->live_packets = port->packets;
        *port->live_bytes = port->bytes;
    }
}

static struct plait_pkt *take(struct plait_port *port)
{
    uint32_t q = 31u - (uint32_t)__builtin_clz(port->waiting); /* the highest priority that waits */
    struct plait_queue *queue = &port->queues[q];
    struct plait_pkt *pkt = plait_list_take(&queue->list);
    queue->packets--;
    queue->bytes -= pkt->queued_bytes;
    port->packets--;
    port->bytes -= pkt->queued_bytes;
    if (!queue->packets)
        port->waiting &= ~(1u << q);
    mirror(port);
    return pkt;
}

struct plait_pkt *plait_port_discard(struct plait_port *port) { return port->waiting ? take(port) : NULL; }

void plait_port_free(struct plait_port *port)
{
    struct plait_pkt *pkt;
    while ((pkt = plait_port_discard(port)))
        plait_pool_put(port->pool, pkt);
    plait_event_release(port->events, &port->ready);
}

sim_time plait_port_serialisation(struct plait_port *port, byte_count bytes)
{
    if (port->rate == 0)
        return 0;
    /* bytes < 2^14 and rate < 2^50 keep this below 2^64: 2^14 * 8 * 1e9 < 2^47. */
    uint64_t scaled = bytes * 8 * NS_PER_SECOND + port->carry;
    port->carry = scaled % port->rate;
    return scaled / port->rate;
}

static void schedule(struct plait_port *port)
{
    sim_time now = port->events->now;
    if (!plait_event_is_scheduled(&port->ready))
        plait_event_schedule(port->events, &port->ready, port->busy_until > now ? port->busy_until : now);
}

static void serve(struct plait_port *port)
{
    sim_time now = port->events->now;
    *port->serving = true;
    for (uint32_t left = PLAIT_SERVE_BATCH; left && port->waiting && now >= port->busy_until; left--) {
        struct plait_pkt *pkt = take(port);
        if (port->depart && !port->depart(port->owner, port, pkt))
            continue;
        if (now > port->busy_until)
            port->carry = 0;
        port->busy_until = now + plait_port_serialisation(port, pkt->packet.length);
        port->sent_packets++;
        port->sent_bytes += pkt->packet.length;
        port->send(port->to, pkt, port->busy_until);
    }
    *port->serving = false;
    if (port->waiting)
        schedule(port);
}

static void ready(void *context) { serve(context); }

bool plait_port_enqueue(struct plait_port *port, uint32_t q, struct plait_pkt *pkt)
{
    struct plait_queue *queue = &port->queues[q];
    byte_count bytes = pkt->packet.length;
    if (queue->packets >= queue->limit_packets || bytes > queue->limit_bytes ||
        queue->bytes > queue->limit_bytes - bytes) {
        port->drops++;
        return false;
    }
    pkt->queued_bytes = (uint32_t)bytes;
    plait_list_append(&queue->list, pkt);
    queue->packets++;
    queue->bytes += bytes;
    port->enqueued_packets++;
    port->packets++;
    port->bytes += bytes;
    port->waiting |= 1u << q;
    if (port->bytes > port->max_bytes)
        port->max_bytes = port->bytes;
    if (port->packets > port->max_packets)
        port->max_packets = port->packets;
    mirror(port);
    if (*port->serving)
        schedule(port);
    else if (!plait_event_is_scheduled(&port->ready))
        serve(port);
    return true;
}
