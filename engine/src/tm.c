#include "tm.h"

#include <string.h>

#include "buffer.h"

static void ready(void *context);
static void wake(void *context);

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
    int result = plait_event_init(events, &port->ready, ready, port);
    return result ? result : plait_event_init(events, &port->wake, wake, port);
}

static inline uint32_t highest(uint32_t queues) { return 31u - (uint32_t)__builtin_clz(queues); }

static inline void mirror(struct plait_port *port)
{
    if (port->live_packets) {
        *port->live_packets = port->packets;
        *port->live_bytes = port->bytes;
    }
}

static struct plait_pkt *take(struct plait_port *port, uint32_t q)
{
    struct plait_queue *queue = &port->queues[q];
    struct plait_pkt *pkt = plait_list_take(&queue->list);
    queue->packets--;
    queue->bytes -= pkt->queued_bytes;
    port->packets--;
    port->bytes -= pkt->queued_bytes;
    if (!queue->packets)
        port->waiting &= ~(1u << q);
    mirror(port);
    if (__builtin_expect(port->buffer != NULL, 0))
        plait_buffer_release(port->buffer, queue, q, pkt);
    return pkt;
}

struct plait_pkt *plait_port_discard(struct plait_port *port)
{
    return port->waiting ? take(port, highest(port->waiting)) : NULL;
}

void plait_port_free(struct plait_port *port)
{
    struct plait_pkt *pkt;
    while ((pkt = plait_port_discard(port)))
        plait_pool_put(port->pool, pkt);
    plait_event_release(port->events, &port->ready);
    plait_event_release(port->events, &port->wake);
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

static inline uint32_t eligible(const struct plait_port *port) { return port->waiting & ~port->blocked; }

static void schedule(struct plait_port *port)
{
    sim_time now = port->events->now;
    if (!plait_event_is_scheduled(&port->ready))
        plait_event_schedule(port->events, &port->ready, port->busy_until > now ? port->busy_until : now);
}

/* ------------------------------------------------------------------------------------------------------------
 * What keeps a queue from being served */

/* After a change of held, throttled or pauses: brings `blocked` and `wake` in line with them. */
static void update_blocked(struct plait_port *port)
{
    uint32_t paused = port->pauses.classes;
    if (port->one_class && paused)
        paused |= 1u;
    port->blocked = port->held | port->throttled | paused;
    sim_time next = SIM_TIME_NEVER;
    for (uint32_t q = 0; q < PLAIT_QUEUES; q++) {
        if (port->throttled >> q & 1 && port->queues[q].shaper.next < next)
            next = port->queues[q].shaper.next;
        if (port->pauses.classes >> q & 1 && port->pauses.until[q] < next)
            next = port->pauses.until[q];
    }
    plait_event_cancel(port->events, &port->wake);
    if (next != SIM_TIME_NEVER)
        plait_event_schedule(port->events, &port->wake, next);
}

/* The same where the port is not being served. */
static void review(struct plait_port *port)
{
    update_blocked(port);
    if (eligible(port))
        schedule(port);
}

static void set_paused(struct plait_port *port, uint32_t c, bool paused)
{
    struct plait_pauses *pauses = &port->pauses;
    bool was = pauses->classes >> c & 1;
    if (paused && !was)
        pauses->since[c] = port->events->now;
    if (!paused && was)
        pauses->total_ns[c] += port->events->now - pauses->since[c];
    pauses->classes = (pauses->classes & ~(1u << c)) | (uint32_t)paused << c;
}

/* A pause or throttling that ends now is over before any packet is chosen now. */
static void end_what_is_due(struct plait_port *port)
{
    sim_time now = port->events->now;
    for (uint32_t q = 0; q < PLAIT_QUEUES; q++) {
        if (port->throttled >> q & 1 && port->queues[q].shaper.next <= now)
            port->throttled &= ~(1u << q);
        if (port->pauses.classes >> q & 1 && port->pauses.until[q] <= now)
            set_paused(port, q, false);
    }
    update_blocked(port);
}

static void wake(void *context)
{
    struct plait_port *port = context;
    end_what_is_due(port);
    if (eligible(port))
        schedule(port);
}

void plait_port_pause(struct plait_port *port, uint32_t c, sim_time until)
{
    port->pauses.until[c] = until;
    set_paused(port, c, until > port->events->now);
    review(port);
}

void plait_port_hold(struct plait_port *port, uint32_t queues, bool hold)
{
    port->held = hold ? port->held | queues : port->held & ~queues;
    review(port);
}

/* The time of the shaper's last packet from `start` on; `carry` is what the one before left over. */
static sim_time shaper_end(struct plait_shaper *shaper)
{
    uint64_t units = shaper->counts_packets ? 1 : shaper->last_bytes * 8; /* below 2^64, as in serialisation */
    uint64_t scaled = units * NS_PER_SECOND + shaper->carry;
    shaper->carry = scaled % shaper->rate;
    return shaper->start + scaled / shaper->rate;
}

/* A packet of a queue with a rate of its own starts now. */
static void shape(struct plait_port *port, uint32_t q, byte_count bytes)
{
    struct plait_shaper *shaper = &port->queues[q].shaper;
    sim_time now = port->events->now;
    if (now > shaper->next)
        shaper->carry = 0;
    shaper->start = now;
    shaper->last_bytes = bytes;
    shaper->next = shaper_end(shaper);
    if (shaper->next > now) {
        port->throttled |= 1u << q;
        update_blocked(port);
    }
}

void plait_port_set_shaper(struct plait_port *port, uint32_t q, uint64_t rate, bool counts_packets)
{
    struct plait_shaper *shaper = &port->queues[q].shaper;
    bool had_one = shaper->rate != 0;
    shaper->rate = rate;
    shaper->counts_packets = counts_packets;
    shaper->carry = 0;
    port->shaped = (port->shaped & ~(1u << q)) | (uint32_t)(rate != 0) << q;
    shaper->next = rate && had_one && shaper->last_bytes ? shaper_end(shaper) : 0;
    bool throttled = shaper->next > port->events->now;
    port->throttled = (port->throttled & ~(1u << q)) | (uint32_t)throttled << q;
    review(port);
}

void plait_port_set_rate(struct plait_port *port, bits_per_second rate)
{
    bits_per_second old = port->rate;
    sim_time now = port->events->now;
    if (rate == old)
        return;
    port->rate = rate;
    if (port->busy_until > now) {
        /* The bits that are left, times 1e9, are (time left) * old + carry. */
        unsigned __int128 scaled = (unsigned __int128)(port->busy_until - now) * old + port->carry;
        port->busy_until = now + (rate ? (sim_time)(scaled / rate) : 0);
        port->carry = rate ? (uint64_t)(scaled % rate) : 0;
        if (port->retime)
            port->retime(port->to, old, rate);
    } else {
        port->carry = 0;
    }
    plait_event_cancel(port->events, &port->ready);
    if (eligible(port))
        schedule(port);
}

/* ------------------------------------------------------------------------------------------------------------
 * Out */

/* The port is busy with `bytes` from now, or from when it is free, on. Returns when their last bit leaves. */
static sim_time occupy(struct plait_port *port, byte_count bytes)
{
    sim_time now = port->events->now;
    if (now > port->busy_until) {
        port->carry = 0;
        port->busy_until = now;
    }
    port->busy_until += plait_port_serialisation(port, bytes);
    return port->busy_until;
}

static void serve(struct plait_port *port)
{
    sim_time now = port->events->now;
    *port->serving = true;
    if (__builtin_expect(port->blocked != 0, 0))
        end_what_is_due(port);
    for (uint32_t left = PLAIT_SERVE_BATCH; left && eligible(port) && now >= port->busy_until; left--) {
        uint32_t q = highest(eligible(port));
        struct plait_pkt *pkt = take(port, q);
        if (__builtin_expect(port->shaped >> q & 1, 0))
            shape(port, q, pkt->queued_bytes);
        if (port->depart && !port->depart(port->owner, port, pkt))
            continue;
        sim_time last_bit = occupy(port, pkt->packet.length);
        port->sent_packets++;
        port->sent_bytes += pkt->packet.length;
        port->send(port->to, pkt, last_bit);
    }
    *port->serving = false;
    if (eligible(port))
        schedule(port);
}

static void ready(void *context) { serve(context); }

void plait_port_send_control(struct plait_port *port, struct plait_pkt *pkt)
{
    port->pauses.frames_sent++;
    port->send(port->to, pkt, occupy(port, pkt->packet.length));
}

/* ------------------------------------------------------------------------------------------------------------
 * In */

static bool refuse(struct plait_port *port, struct plait_queue *queue, enum plait_drop_reason reason)
{
    queue->drops[reason]++;
    port->drops++;
    return false;
}

/* Whether the queue's own limits leave room. */
static bool fits(struct plait_port *port, struct plait_queue *queue, byte_count bytes)
{
    if (__builtin_expect(queue->packets >= queue->limit_packets, 0))
        return refuse(port, queue, PLAIT_DROP_PACKETS);
    if (__builtin_expect(bytes > queue->limit_bytes || queue->bytes > queue->limit_bytes - bytes, 0))
        return refuse(port, queue, PLAIT_DROP_BYTES);
    return true;
}

/* With a shared buffer the limits hold for packets that nobody can be asked to hold back. */
static bool admit(struct plait_port *port, struct plait_queue *queue, uint32_t q, struct plait_pkt *pkt)
{
    pkt->ingress = plait_buffer_ingress(port->buffer, q, pkt);
    if (!pkt->ingress && !fits(port, queue, pkt->queued_bytes))
        return false;
    if (plait_buffer_charge(port->buffer, queue, q, pkt))
        return true;
    return refuse(port, queue, pkt->ingress ? PLAIT_DROP_HEADROOM : PLAIT_DROP_SHARED);
}

bool plait_port_enqueue(struct plait_port *port, uint32_t q, struct plait_pkt *pkt)
{
    struct plait_queue *queue = &port->queues[q];
    byte_count bytes = pkt->packet.length;
    pkt->queued_bytes = (uint32_t)bytes;
    if (__builtin_expect(port->buffer != NULL, 0) ? !admit(port, queue, q, pkt) : !fits(port, queue, bytes))
        return false;
    plait_list_append(&queue->list, pkt);
    queue->packets++;
    queue->bytes += bytes;
    queue->enqueued_packets++;
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
