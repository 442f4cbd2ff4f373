/* Control of switches and links: programs, packets, replication, statistics. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "fabric.h"
#include "generator.h"
#include "interface.h"
#include "link.h"
#include "switch.h"

/* ------------------------------------------------------------------------------------------------------------
 * Programs and packets */

int plait_switch_load(struct plait_switch *sw, const char *path, struct plait_error *error)
{
    struct plait_program *program;
    pthread_mutex_lock(&sw->control_lock);
    int result = plait_program_open(sw, path, &program, error);
    if (!result) {
        plait_fabric_lock(sw->fabric);
        plait_switch_flush(sw);
        plait_switch_forget_notices(sw);
        struct plait_program *old = sw->program;
        sw->program = program;
        plait_fabric_unlock_and_wake(sw->fabric); /* who waits for a drain has waited for the flushed packets */
        plait_program_close(old);
    }
    pthread_mutex_unlock(&sw->control_lock);
    return result;
}

const struct plait_pipeline *plait_switch_pipeline(struct plait_switch *sw)
{
    plait_fabric_lock(sw->fabric);
    const struct plait_pipeline *pipeline = sw->program ? sw->program->pipeline : NULL;
    plait_fabric_unlock(sw->fabric);
    return pipeline;
}

int plait_switch_tap(struct plait_switch *sw, uint32_t port, struct plait_error *error)
{
    plait_fabric_lock(sw->fabric);
    int result = plait_switch_add_port(sw, port, NULL, NULL, error);
    plait_fabric_unlock(sw->fabric);
    return result;
}

int plait_switch_set_port_up(struct plait_switch *sw, uint32_t port, int up, struct plait_error *error)
{
    plait_fabric_lock(sw->fabric);
    int result = 0;
    if (port >= PLAIT_PORTS || !sw->ports[port] || sw->links[port])
        result = plait_fail(error, ERANGE, "port %u of switch %s: there is no such port without link", port, sw->name);
    else
        sw->live_up[port] = up != 0;
    plait_fabric_unlock(sw->fabric);
    return result;
}

static int check_frame(const struct plait_switch *sw, uint32_t port, uint32_t length, struct plait_error *error)
{
    if (port >= PLAIT_PORTS)
        return plait_fail(error, ERANGE, "port %u of switch %s: ports are 0..%u", port, sw->name, PLAIT_PORTS - 1);
    if (length == 0 || length > PLAIT_MAX_FRAME)
        return plait_fail(error, EINVAL, "frame for switch %s: %u bytes are not in 1..%d", sw->name, length,
                          PLAIT_MAX_FRAME);
    return 0;
}

int plait_switch_inject(struct plait_switch *sw, uint32_t port, uint64_t tag, const uint8_t *frame, uint32_t length,
                        struct plait_error *error)
{
    int result = check_frame(sw, port, length, error);
    if (result)
        return result;
    plait_fabric_lock(sw->fabric);
    plait_fabric_catch_up(sw->fabric);
    struct plait_pkt *pkt = plait_pool_copy(&sw->fabric->pool, frame, length);
    if (pkt) {
        pkt->tag = tag;
        plait_switch_receive(sw, port, pkt);
    } else {
        result = plait_fail(error, ENOMEM, "frame for switch %s: no packet is free", sw->name);
    }
    plait_fabric_unlock_and_wake(sw->fabric);
    return result;
}

int plait_switch_generate(struct plait_switch *sw, uint32_t port, const uint8_t *frame, uint32_t length, uint64_t count,
                          uint64_t start_ns, uint64_t interval_ns, struct plait_error *error)
{
    int result = check_frame(sw, port, length, error);
    if (result)
        return result;
    if (start_ns > PLAIT_DELAY_LIMIT || interval_ns > PLAIT_DELAY_LIMIT)
        return plait_fail(error, EINVAL, "generator: start_ns and interval_ns are at most %llu", PLAIT_DELAY_LIMIT);
    plait_fabric_lock(sw->fabric);
    plait_fabric_catch_up(sw->fabric);
    result =
        plait_generator_start(sw, port, frame, length, count, sw->fabric->events.now + start_ns, interval_ns, error);
    plait_fabric_unlock_and_wake(sw->fabric);
    return result;
}

/* ------------------------------------------------------------------------------------------------------------
 * Statistics */

int plait_switch_port_stats(struct plait_switch *sw, uint32_t number, struct plait_port_stats *stats,
                            struct plait_error *error)
{
    plait_fabric_lock(sw->fabric);
    struct plait_port *port = plait_switch_port(sw, number, error);
    if (port)
        *stats = (struct plait_port_stats){
            .received_packets = sw->received_packets[number],
            .received_bytes = sw->received_bytes[number],
            .sent_packets = port->sent_packets,
            .sent_bytes = port->sent_bytes,
            .drops_queue = port->drops,
            .queue_bytes = port->bytes,
            .queue_packets = port->packets,
            .max_queue_bytes = port->max_bytes,
            .max_queue_packets = port->max_packets,
            .rate_bps = port->rate,
            .pauses_sent = port->pauses.frames_sent,
            .pauses_received = port->pauses.frames_received,
            .pauses_lost = port->pauses.frames_lost,
            .mac_control_ignored = port->pauses.frames_ignored,
        };
    plait_fabric_unlock(sw->fabric);
    return port ? 0 : -ERANGE;
}

void plait_switch_stats(struct plait_switch *sw, struct plait_switch_stats *stats)
{
    plait_fabric_lock(sw->fabric);
    *stats = sw->stats;
    plait_fabric_unlock(sw->fabric);
}

/* ------------------------------------------------------------------------------------------------------------
 * Replication */

static int set_replicas(struct plait_switch *sw, struct plait_replicas ***table, uint32_t size, const char *what,
                        uint32_t index, const struct plait_replica *list, uint32_t count, uint32_t truncate,
                        uint32_t priority, struct plait_error *error)
{
    if (index == 0 || index >= size)
        return plait_fail(error, ERANGE, "%s %u: not in 1..%u", what, index, size - 1);
    if (count > PLAIT_GROUP_LIMIT || truncate > PLAIT_MAX_FRAME)
        return plait_fail(error, EINVAL, "%s %u: too many replicas (%u) or bytes (%u)", what, index, count, truncate);
    for (uint32_t i = 0; i < count; i++)
        if (list[i].port >= PLAIT_PORTS)
            return plait_fail(error, ERANGE, "%s %u: port %u is not in 0..%u", what, index, list[i].port,
                              PLAIT_PORTS - 1);
    if (priority >= sw->n_queues)
        return plait_fail(error, EINVAL, "%s %u: queue %u, but ports have %u", what, index, priority, sw->n_queues);
    struct plait_replicas *replicas = malloc(sizeof *replicas + count * sizeof *list);
    if (!replicas)
        return plait_fail(error, ENOMEM, "no memory for %s %u", what, index);
    replicas->count = count;
    replicas->truncate = truncate;
    replicas->priority = priority;
    if (count)
        memcpy(replicas->list, list, count * sizeof *list);
    plait_fabric_lock(sw->fabric);
    if (!*table)
        *table = calloc(size, sizeof **table);
    struct plait_replicas *old = replicas;
    if (*table) {
        old = (*table)[index];
        (*table)[index] = replicas;
    }
    plait_fabric_unlock(sw->fabric);
    free(old);
    return old == replicas ? plait_fail(error, ENOMEM, "no memory for %s %u", what, index) : 0;
}

static int delete_replicas(struct plait_switch *sw, struct plait_replicas **const *table, uint32_t size,
                           const char *what, uint32_t index, struct plait_error *error)
{
    plait_fabric_lock(sw->fabric);
    struct plait_replicas *old = *table && index < size ? (*table)[index] : NULL;
    if (old)
        (*table)[index] = NULL;
    plait_fabric_unlock(sw->fabric);
    free(old);
    return old ? 0 : plait_fail(error, ENOENT, "%s %u: there is none", what, index);
}

int plait_control_multicast_set(struct plait_switch *sw, uint32_t group, const struct plait_replica *replicas,
                                uint32_t count, struct plait_error *error)
{
    return set_replicas(sw, &sw->multicast, PLAIT_MULTICAST_GROUPS, "multicast group", group, replicas, count, 0, 0,
                        error);
}

int plait_control_multicast_delete(struct plait_switch *sw, uint32_t group, struct plait_error *error)
{
    return delete_replicas(sw, &sw->multicast, PLAIT_MULTICAST_GROUPS, "multicast group", group, error);
}

int plait_control_clone_session_set(struct plait_switch *sw, uint32_t session, const struct plait_replica *replicas,
                                    uint32_t count, uint32_t truncate, uint32_t priority, struct plait_error *error)
{
    return set_replicas(sw, &sw->sessions, PLAIT_CLONE_SESSIONS, "clone session", session, replicas, count, truncate,
                        priority, error);
}

int plait_control_clone_session_delete(struct plait_switch *sw, uint32_t session, struct plait_error *error)
{
    return delete_replicas(sw, &sw->sessions, PLAIT_CLONE_SESSIONS, "clone session", session, error);
}

/* ------------------------------------------------------------------------------------------------------------
 * Links */

int plait_link_stats(struct plait_link *link, uint32_t direction, struct plait_direction_stats *stats)
{
    if (direction > 1)
        return -ERANGE;
    plait_fabric_lock(link->fabric);
    const struct plait_wire *wire = &link->wires[direction];
    const struct plait_port *port = wire->from;
    *stats = (struct plait_direction_stats){
        .packets = wire->packets,
        .bytes = wire->bytes,
        .drops_queue = port->drops,
        .drops_loss = wire->drops_loss,
        .drops_down = wire->drops_down,
        .max_queue_bytes = port->max_bytes,
        .max_queue_packets = port->max_packets,
        .queue_bytes = port->bytes,
        .queue_packets = port->packets,
    };
    struct plait_interface *interface = link->interface;
    if (interface) {
        plait_interface_read_kernel_drops(interface);
        stats->drops_interface = direction == 0 ? interface->stats.drops_send
                                                : interface->stats.drops_kernel + interface->stats.drops_oversize +
                                                      interface->stats.drops_memory;
    }
    plait_fabric_unlock(link->fabric);
    return 0;
}

int plait_link_interface_stats(struct plait_link *link, struct plait_interface_stats *stats)
{
    if (!link->interface)
        return -ENODEV;
    plait_fabric_lock(link->fabric);
    plait_interface_read_kernel_drops(link->interface);
    *stats = link->interface->stats;
    plait_fabric_unlock(link->fabric);
    return 0;
}

void plait_link_set_up(struct plait_link *link, int up)
{
    plait_fabric_lock(link->fabric);
    link->up = up != 0;
    plait_link_show_up(link);
    plait_fabric_unlock(link->fabric);
}

int plait_link_set(struct plait_link *link, int64_t rate_bps, int64_t delay_ns, double loss, struct plait_error *error)
{
    if (rate_bps > (int64_t)PLAIT_RATE_LIMIT)
        return plait_fail(error, EINVAL, "rate_bps of link %s: more than %llu", link->name, PLAIT_RATE_LIMIT);
    if (delay_ns > (int64_t)PLAIT_DELAY_LIMIT)
        return plait_fail(error, EINVAL, "delay_ns of link %s: more than %llu", link->name, PLAIT_DELAY_LIMIT);
    if (!(loss <= 1))
        return plait_fail(error, EINVAL, "loss of link %s: %g is not in 0..1", link->name, loss);
    plait_fabric_lock(link->fabric);
    plait_fabric_catch_up(link->fabric);
    for (int d = 0; d < 2; d++) {
        if (rate_bps >= 0)
            plait_port_set_rate(link->wires[d].from, (uint64_t)rate_bps);
        if (delay_ns >= 0)
            link->wires[d].delay = (uint64_t)delay_ns;
        if (loss >= 0)
            plait_wire_set_loss(&link->wires[d], loss);
    }
    plait_fabric_unlock_and_wake(link->fabric);
    return 0;
}

int plait_link_capture(struct plait_link *link, const char *path, struct plait_error *error)
{
    plait_fabric_lock(link->fabric);
    int result = plait_capture_open(&link->capture, path, error);
    plait_fabric_unlock(link->fabric);
    return result;
}

int plait_link_capture_stop(struct plait_link *link, struct plait_error *error)
{
    plait_fabric_lock(link->fabric);
    int result = plait_capture_close(&link->capture, error);
    plait_fabric_unlock(link->fabric);
    return result;
}

int plait_link_record_flows(struct plait_link *link, uint32_t limit, struct plait_error *error)
{
    if (limit == 0 || limit > 1u << 24)
        return plait_fail(error, EINVAL, "flow limit of link %s: %u is not in 1..%u", link->name, limit, 1u << 24);
    struct plait_flows *flows[2] = {plait_flows_create(limit), plait_flows_create(limit)};
    if (!flows[0] || !flows[1]) {
        plait_flows_free(flows[0]);
        plait_flows_free(flows[1]);
        return plait_fail(error, ENOMEM, "no memory for flows of link %s", link->name);
    }
    plait_fabric_lock(link->fabric);
    for (int d = 0; d < 2; d++) {
        struct plait_flows *old = link->wires[d].flows;
        link->wires[d].flows = flows[d];
        flows[d] = old;
    }
    plait_fabric_unlock(link->fabric);
    plait_flows_free(flows[0]);
    plait_flows_free(flows[1]);
    return 0;
}

uint32_t plait_link_flows(struct plait_link *link, uint32_t direction, struct plait_flow *out, uint32_t room,
                          uint64_t *unrecorded_packets)
{
    if (direction > 1)
        return 0;
    plait_fabric_lock(link->fabric);
    const struct plait_flows *flows = link->wires[direction].flows;
    uint32_t found = 0;
    *unrecorded_packets = flows ? flows->unrecorded : 0;
    for (uint32_t i = 0; flows && i <= flows->slot_mask; i++) {
        if (!flows->slots[i].packets)
            continue;
        if (found < room)
            out[found] = flows->slots[i];
        found++;
    }
    plait_fabric_unlock(link->fabric);
    return found;
}
