/* Control of queues and of the shared buffer. A change holds at once, and what it lets go goes by an event. */
#include <errno.h>

#include "error.h"
#include "fabric.h"
#include "switch.h"

/* The port, with `queue` (-1: all) checked; or NULL with the error filled. */
static struct plait_port *queue_of(struct plait_switch *sw, uint32_t number, int32_t queue, struct plait_error *error)
{
    struct plait_port *port = plait_switch_port(sw, number, error);
    if (port && queue >= (int32_t)port->n_queues) {
        plait_fail(error, ERANGE, "queue %d of port %u: the port has %u queues", queue, number, port->n_queues);
        return NULL;
    }
    return port;
}

static uint32_t mask_of(const struct plait_port *port, int32_t queue)
{
    return queue >= 0 ? 1u << queue : (1u << port->n_queues) - 1;
}

static int check_change(const struct plait_queue_change *change, uint32_t number, struct plait_error *error)
{
    if (change->rate_bps > (int64_t)PLAIT_RATE_LIMIT || change->rate_pps > (int64_t)PLAIT_RATE_LIMIT)
        return plait_fail(error, EINVAL, "%s of port %u: more than %llu",
                          change->rate_bps > (int64_t)PLAIT_RATE_LIMIT ? "rate_bps" : "rate_pps", number,
                          PLAIT_RATE_LIMIT);
    if (change->alpha.denominator && (change->alpha.numerator < 1 || change->alpha.numerator > PLAIT_FRACTION_LIMIT ||
                                      change->alpha.denominator > PLAIT_FRACTION_LIMIT))
        return plait_fail(error, EINVAL, "alpha of port %u: %u/%u is no fraction of numbers in 1..%u", number,
                          change->alpha.numerator, change->alpha.denominator, PLAIT_FRACTION_LIMIT);
    return 0;
}

/* Reserves and alphas of the queues in `mask`. */
static int set_shares(struct plait_switch *sw, struct plait_port *port, uint32_t mask,
                      const struct plait_queue_change *change, struct plait_error *error)
{
    if (change->reserved_bytes < 0 && !change->alpha.denominator)
        return 0;
    if (!sw->buffer)
        return plait_fail(error, EINVAL, "port %u of switch %s: a reserve and alpha need a shared buffer", port->number,
                          sw->name);
    int64_t more = 0;
    for (uint32_t q = 0; change->reserved_bytes >= 0 && q < port->n_queues; q++)
        if (mask >> q & 1)
            more += change->reserved_bytes - (int64_t)port->queues[q].share.reserved;
    if (change->reserved_bytes >= (int64_t)PLAIT_BUFFER_LIMIT)
        return plait_fail(error, EINVAL, "reserved_bytes of port %u: not below %llu", port->number, PLAIT_BUFFER_LIMIT);
    int result = plait_buffer_grow(sw, more, error);
    for (uint32_t q = 0; !result && q < port->n_queues; q++) {
        struct plait_queue *queue = &port->queues[q];
        if (mask >> q & 1)
            plait_buffer_set_share(sw->buffer, queue,
                                   change->reserved_bytes >= 0 ? (uint64_t)change->reserved_bytes
                                                               : queue->share.reserved,
                                   change->alpha.denominator ? change->alpha : queue->share.alpha);
    }
    return result;
}

static void set_limits(struct plait_port *port, uint32_t mask, bool whole_port, const struct plait_queue_change *change)
{
    if (whole_port && change->rate_bps >= 0)
        plait_port_set_rate(port, (uint64_t)change->rate_bps);
    for (uint32_t q = 0; q < port->n_queues; q++) {
        if (!(mask >> q & 1))
            continue;
        if (change->depth_packets >= 0)
            port->queues[q].limit_packets = (uint64_t)change->depth_packets;
        if (change->depth_bytes >= 0)
            port->queues[q].limit_bytes = (uint64_t)change->depth_bytes;
        if (!whole_port && change->rate_bps >= 0)
            plait_port_set_shaper(port, q, (uint64_t)change->rate_bps, false);
        if (change->rate_pps >= 0)
            plait_port_set_shaper(port, q, (uint64_t)change->rate_pps, true);
    }
}

int plait_switch_set_queue(struct plait_switch *sw, uint32_t number, int32_t queue,
                           const struct plait_queue_change *change, struct plait_error *error)
{
    int result = check_change(change, number, error);
    if (result)
        return result;
    plait_fabric_lock(sw->fabric);
    plait_fabric_catch_up(sw->fabric);
    struct plait_port *port = queue_of(sw, number, queue, error);
    result = port ? set_shares(sw, port, mask_of(port, queue), change, error) : -ERANGE;
    if (!result)
        set_limits(port, mask_of(port, queue), queue < 0, change);
    plait_fabric_unlock_and_wake(sw->fabric);
    return result;
}

int plait_switch_hold_queue(struct plait_switch *sw, uint32_t number, int32_t queue, int hold,
                            struct plait_error *error)
{
    plait_fabric_lock(sw->fabric);
    plait_fabric_catch_up(sw->fabric);
    struct plait_port *port = queue_of(sw, number, queue, error);
    if (port)
        plait_port_hold(port, mask_of(port, queue), hold != 0);
    plait_fabric_unlock_and_wake(sw->fabric);
    return port ? 0 : -ERANGE;
}

static void add_shares(const struct plait_buffer *buffer, const struct plait_port *port, uint32_t q,
                       struct plait_queue_state *state)
{
    const struct plait_share *share = &port->queues[q].share;
    const struct plait_ingress *ingress = buffer->ingress[port->number];
    state->reserved_bytes = share->reserved;
    state->alpha_numerator = share->alpha.numerator;
    state->alpha_denominator = share->alpha.denominator;
    state->threshold_bytes = share->reserved + plait_fraction_of(share->alpha, plait_buffer_free_bytes(buffer));
    if (ingress) {
        const struct plait_account *account = &ingress->accounts[q];
        state->ingress_bytes = account->pool + account->headroom;
        state->headroom_bytes = account->headroom;
        state->max_headroom_bytes = account->max_headroom;
        state->xoff = ingress->xoff >> q & 1;
        state->xoffs = account->xoffs;
    }
}

int plait_switch_queue_state(struct plait_switch *sw, uint32_t number, uint32_t q, struct plait_queue_state *state,
                             struct plait_error *error)
{
    plait_fabric_lock(sw->fabric);
    plait_fabric_catch_up(sw->fabric);
    const struct plait_port *port = q > INT32_MAX ? NULL : queue_of(sw, number, (int32_t)q, error);
    if (port) {
        const struct plait_queue *queue = &port->queues[q];
        const struct plait_pauses *pauses = &port->pauses;
        uint64_t rate = queue->shaper.rate, paused = pauses->classes >> q & 1;
        *state = (struct plait_queue_state){
            .packets = queue->packets,
            .bytes = queue->bytes,
            .enqueued_packets = queue->enqueued_packets,
            .drops_packets = queue->drops[PLAIT_DROP_PACKETS],
            .drops_bytes = queue->drops[PLAIT_DROP_BYTES],
            .drops_shared = queue->drops[PLAIT_DROP_SHARED],
            .drops_headroom = queue->drops[PLAIT_DROP_HEADROOM],
            .depth_packets = queue->limit_packets,
            .depth_bytes = queue->limit_bytes,
            .rate_bps = queue->shaper.counts_packets ? 0 : rate,
            .rate_pps = queue->shaper.counts_packets ? rate : 0,
            .held = port->held >> q & 1,
            .paused = paused,
            .paused_ns = pauses->total_ns[q] + (paused ? sw->fabric->events.now - pauses->since[q] : 0),
        };
        if (sw->buffer)
            add_shares(sw->buffer, port, q, state);
    }
    plait_fabric_unlock(sw->fabric);
    return port ? 0 : -ERANGE;
}

int plait_switch_set_buffer(struct plait_switch *sw, const struct plait_buffer_spec *spec, struct plait_error *error)
{
    plait_fabric_lock(sw->fabric);
    plait_fabric_catch_up(sw->fabric);
    int result = plait_buffer_configure(sw, spec, error);
    plait_fabric_unlock_and_wake(sw->fabric);
    return result;
}

void plait_switch_buffer_state(struct plait_switch *sw, struct plait_buffer_state *state)
{
    plait_fabric_lock(sw->fabric);
    *state = (struct plait_buffer_state){0};
    if (sw->buffer)
        *state = (struct plait_buffer_state){sw->buffer->size, sw->buffer->used, sw->buffer->max_used};
    plait_fabric_unlock(sw->fabric);
}

uint32_t plait_switch_ports(struct plait_switch *sw, uint32_t *ports)
{
    uint32_t count = 0;
    plait_fabric_lock(sw->fabric);
    for (uint32_t i = 0; i < PLAIT_PORTS; i++)
        if (sw->ports[i])
            ports[count++] = i;
    plait_fabric_unlock(sw->fabric);
    return count;
}
