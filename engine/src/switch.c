#include "switch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "error.h"
#include "fabric.h"
#include "generator.h"
#include "pfc.h"

#define MASK_48   0xffffffffffffull
#define PORT_MASK 511u

static uint64_t now_us(const struct plait_switch *sw) { return sw->fabric->events.now / 1000; }

static void set_clock(struct plait_switch *sw)
{
    struct plait_instance *instance = &sw->program->instance;
    instance->now_ns = sw->fabric->events.now;
    instance->now_us = instance->now_ns / 1000;
}

static void release(struct plait_switch *sw, struct plait_pkt *pkt)
{
    if (pkt->packet.phv) {
        plait_phv_put(&sw->program->phvs, pkt->packet.phv);
        pkt->packet.phv = NULL;
    }
    plait_pool_put(&sw->fabric->pool, pkt);
}

static void drop(struct plait_switch *sw, struct plait_pkt *pkt, uint64_t *counter)
{
    ++*counter;
    release(sw, pkt);
}

/* Requests that the pipeline that comes next has not made. */
static void clear_requests(struct plait_std *std)
{
    std->clone_session = 0;
    std->clone_field_list = 0;
    std->resubmit_field_list = 0;
    std->recirculate_field_list = 0;
    std->digest_list = 0;
}

/* ------------------------------------------------------------------------------------------------------------
 * Copies */

/* The frame as it entered ingress, without PHV. */
static struct plait_pkt *copy_frame(struct plait_switch *sw, const struct plait_pkt *from)
{
    sw->stats.copies++;
    struct plait_pkt *pkt = plait_pool_copy(&sw->fabric->pool, from->packet.data, from->packet.length);
    if (!pkt) {
        sw->stats.drops_memory++;
        return NULL;
    }
    pkt->tag = from->tag;
    pkt->came_in = from->came_in;
    pkt->packet.arrival_length = from->packet.arrival_length;
    pkt->packet.payload_offset = from->packet.payload_offset;
    pkt->packet.std = from->packet.std;
    return pkt;
}

static struct plait_pkt *copy_with_phv(struct plait_switch *sw, const struct plait_pkt *from)
{
    struct plait_pkt *pkt = copy_frame(sw, from);
    if (!pkt)
        return NULL;
    pkt->packet.phv = plait_phv_get(&sw->program->phvs);
    if (!pkt->packet.phv) {
        drop(sw, pkt, &sw->stats.drops_memory);
        return NULL;
    }
    memcpy(pkt->packet.phv, from->packet.phv, sw->program->pipeline->phv_size);
    return pkt;
}

/* What standard metadata a copy starts with: nothing but its type and length. */
static void reset_std(struct plait_pkt *pkt, enum plait_instance_type type)
{
    pkt->packet.std = (struct plait_std){.instance_type = type, .packet_length = pkt->packet.std.packet_length};
}

static bool zero_phv(struct plait_switch *sw, struct plait_pkt *pkt)
{
    if (!pkt->packet.phv)
        pkt->packet.phv = plait_phv_get(&sw->program->phvs);
    if (!pkt->packet.phv)
        return false;
    memset(pkt->packet.phv, 0, sw->program->pipeline->phv_size);
    return true;
}

/* After the headers of a clone are in place: only the field list survives of metadata. */
static void keep_field_list(struct plait_switch *sw, struct plait_pkt *copy, const void *from, uint32_t field_list)
{
    const struct plait_pipeline *pipeline = sw->program->pipeline;
    if (!pipeline->reset_metadata)
        return;
    pipeline->reset_metadata(copy->packet.phv);
    if (pipeline->copy_field_list)
        pipeline->copy_field_list(field_list, copy->packet.phv, from);
}

/* ------------------------------------------------------------------------------------------------------------
 * Into the traffic manager */

static void to_queue(struct plait_switch *sw, struct plait_pkt *pkt, uint32_t number)
{
    struct plait_std *std = &pkt->packet.std;
    struct plait_port *port = number < PLAIT_PORTS ? sw->ports[number] : NULL;
    if (!port) {
        drop(sw, pkt, &sw->stats.drops_no_port);
        return;
    }
    if (std->priority >= port->n_queues) {
        drop(sw, pkt, &sw->stats.drops_priority);
        return;
    }
    std->egress_port = number;
    std->enq_timestamp = (uint32_t)now_us(sw);
    std->enq_qdepth = (uint32_t)port->packets & 0x7ffff;
    if (!plait_port_enqueue(port, std->priority, pkt))
        release(sw, pkt); /* counted by the port */
}

/* One copy for each replica; the packet itself is the last. */
static void replicate(struct plait_switch *sw, struct plait_pkt *pkt, const struct plait_replicas *replicas)
{
    uint32_t truncate = replicas->truncate;
    if (truncate && (!pkt->packet.std.truncate_to || pkt->packet.std.truncate_to > truncate + 1))
        pkt->packet.std.truncate_to = truncate + 1;
    for (uint32_t i = 0; i < replicas->count; i++) {
        bool last = i + 1 == replicas->count;
        struct plait_pkt *copy = last ? pkt : copy_with_phv(sw, pkt);
        if (!copy)
            continue;
        copy->packet.std.egress_rid = replicas->list[i].instance;
        to_queue(sw, copy, replicas->list[i].port);
    }
    if (replicas->count == 0)
        drop(sw, pkt, &sw->stats.drops_unknown_group);
}

static const struct plait_replicas *session_of(const struct plait_switch *sw, uint32_t request)
{
    uint32_t session = request & ~PLAIT_CLONE_REQUESTED;
    return sw->sessions && session < PLAIT_CLONE_SESSIONS ? sw->sessions[session] : NULL;
}

/* ------------------------------------------------------------------------------------------------------------
 * Resubmit and recirculate */

static void to_loop(struct plait_switch *sw, struct plait_pkt *pkt)
{
    if (sw->loop_length >= PLAIT_LOOP_LIMIT) {
        drop(sw, pkt, &sw->stats.drops_loop);
        return;
    }
    pkt->due = sw->fabric->events.now + PLAIT_LOOP_NS;
    sw->loop_length++;
    plait_list_append(&sw->loop, pkt);
    if (!plait_event_is_scheduled(&sw->loop_event))
        plait_event_schedule(&sw->fabric->events, &sw->loop_event, pkt->due);
}

/* A fresh PHV that holds only the field list; headers come from the parser. */
static bool restart_phv(struct plait_switch *sw, struct plait_pkt *pkt, uint32_t field_list)
{
    void *old = pkt->packet.phv;
    pkt->packet.phv = NULL;
    bool made = zero_phv(sw, pkt);
    if (made && sw->program->pipeline->copy_field_list)
        sw->program->pipeline->copy_field_list(field_list, pkt->packet.phv, old);
    plait_phv_put(&sw->program->phvs, old);
    return made;
}

static void resubmit(struct plait_switch *sw, struct plait_pkt *pkt)
{
    uint32_t field_list = pkt->packet.std.resubmit_field_list - 1;
    reset_std(pkt, PLAIT_RESUBMITTED);
    if (restart_phv(sw, pkt, field_list))
        to_loop(sw, pkt);
    else
        drop(sw, pkt, &sw->stats.drops_memory);
}

/* ------------------------------------------------------------------------------------------------------------
 * Ingress */

static void clone_ingress(struct plait_switch *sw, const struct plait_pkt *pkt)
{
    const struct plait_replicas *session = session_of(sw, pkt->packet.std.clone_session);
    if (!session || session->count == 0)
        return;
    struct plait_pkt *copy = copy_frame(sw, pkt);
    if (!copy)
        return;
    copy->came_in = PLAIT_NO_PORT;
    copy->packet.std.packet_length = copy->packet.length;
    reset_std(copy, PLAIT_INGRESS_CLONE);
    if (!zero_phv(sw, copy)) {
        drop(sw, copy, &sw->stats.drops_memory);
        return;
    }
    sw->program->pipeline->parse(&sw->program->instance, &copy->packet);
    reset_std(copy, PLAIT_INGRESS_CLONE);
    keep_field_list(sw, copy, pkt->packet.phv, pkt->packet.std.clone_field_list);
    copy->packet.std.priority = session->priority;
    replicate(sw, copy, session);
}

static void end_of_ingress(struct plait_switch *sw, struct plait_pkt *pkt)
{
    struct plait_std *std = &pkt->packet.std;
    struct plait_program *program = sw->program;
    if (std->clone_session)
        clone_ingress(sw, pkt);
    if (program->digest_pending) {
        program->digest_pending = false;
        plait_switch_notify(sw, PLAIT_NOTICE_DIGEST, program->digest_list, pkt->tag, program->digest_fields,
                            program->digest_length);
    }
    if (std->resubmit_field_list) {
        resubmit(sw, pkt);
        return;
    }
    clear_requests(std);
    if (std->mcast_grp) {
        const struct plait_replicas *group =
            sw->multicast && std->mcast_grp < PLAIT_MULTICAST_GROUPS ? sw->multicast[std->mcast_grp] : NULL;
        std->instance_type = PLAIT_REPLICATED;
        if (group)
            replicate(sw, pkt, group);
        else
            drop(sw, pkt, &sw->stats.drops_unknown_group);
    } else if (std->egress_spec == sw->drop_port) {
        drop(sw, pkt, &sw->stats.drops_ingress);
    } else {
        std->instance_type = PLAIT_NORMAL;
        to_queue(sw, pkt, std->egress_spec);
    }
}

/* Precondition: std is set, and the PHV is NULL or (resubmitted, recirculated) holds a field list. */
static void ingress(struct plait_switch *sw, struct plait_pkt *pkt)
{
    if (!pkt->packet.phv && !zero_phv(sw, pkt)) {
        drop(sw, pkt, &sw->stats.drops_memory);
        return;
    }
    struct plait_program *program = sw->program;
    const struct plait_pipeline *pipeline = program->pipeline;
    set_clock(sw);
    program->digest_pending = false;
    pkt->packet.payload_offset = 0;
    sw->stats.processed++;
    sw->fabric->hops++;
    pipeline->parse(&program->instance, &pkt->packet);
    pipeline->ingress(&program->instance, &pkt->packet);
    end_of_ingress(sw, pkt);
}

/* With priority flow control, MAC control frames end here, as at any MAC, and no program sees them. */
static void mac_control(struct plait_switch *sw, uint32_t port, struct plait_pkt *pkt)
{
    if (sw->ports[port])
        plait_pause_obey(sw->ports[port], pkt, sw->lossless);
    release(sw, pkt);
}

void plait_switch_receive(void *context, uint32_t port, struct plait_pkt *pkt)
{
    struct plait_switch *sw = context;
    struct plait_packet *packet = &pkt->packet;
    sw->received_packets[port]++;
    sw->received_bytes[port] += packet->length;
    pkt->came_in = port;
    if (__builtin_expect(sw->lossless != 0, 0) && plait_is_mac_control(pkt)) {
        pkt->packet.phv = NULL;
        mac_control(sw, port, pkt);
        return;
    }
    sw->stats.received++;
    if (!sw->program) {
        drop(sw, pkt, &sw->stats.drops_no_program);
        return;
    }
    if (packet->length > PLAIT_MAX_FRAME) {
        drop(sw, pkt, &sw->stats.drops_oversize);
        return;
    }
    plait_pkt_restore_headroom(pkt);
    packet->arrival_length = packet->length;
    packet->std = (struct plait_std){
        .ingress_port = port,
        .packet_length = packet->length,
        .ingress_global_timestamp = now_us(sw) & MASK_48,
    };
    ingress(sw, pkt);
}

static void loop_fire(void *context)
{
    struct plait_switch *sw = context;
    struct plait_pkt *pkt = plait_list_take(&sw->loop);
    sw->loop_length--;
    if (sw->loop.head)
        plait_event_schedule(&sw->fabric->events, &sw->loop_event, sw->loop.head->due);
    ingress(sw, pkt);
}

/* ------------------------------------------------------------------------------------------------------------
 * Egress */

/* The clone has the headers as egress left them, sees no parser, and starts egress anew. */
static void clone_egress(struct plait_switch *sw, const struct plait_pkt *pkt)
{
    const struct plait_replicas *session = session_of(sw, pkt->packet.std.clone_session);
    if (!session || session->count == 0)
        return;
    struct plait_pkt *copy = copy_with_phv(sw, pkt);
    if (!copy)
        return;
    copy->came_in = PLAIT_NO_PORT;
    reset_std(copy, PLAIT_EGRESS_CLONE);
    keep_field_list(sw, copy, pkt->packet.phv, pkt->packet.std.clone_field_list);
    copy->packet.std.priority = session->priority;
    replicate(sw, copy, session);
}

static bool frame_is_sound(const struct plait_pkt *pkt)
{
    const struct plait_packet *packet = &pkt->packet;
    return packet->data >= pkt->buffer && packet->data <= pkt->buffer + PLAIT_BUFFER_BYTES &&
           packet->length <= (size_t)(pkt->buffer + PLAIT_BUFFER_BYTES - packet->data) &&
           packet->length <= PLAIT_MAX_FRAME + 512;
}

static void recirculate(struct plait_switch *sw, struct plait_pkt *pkt, uint32_t field_list)
{
    if (pkt->packet.length > PLAIT_MAX_FRAME) {
        drop(sw, pkt, &sw->stats.drops_oversize);
        return;
    }
    plait_pkt_restore_headroom(pkt);
    pkt->packet.arrival_length = pkt->packet.length;
    pkt->packet.std.packet_length = pkt->packet.length;
    reset_std(pkt, PLAIT_RECIRCULATED);
    if (restart_phv(sw, pkt, field_list))
        to_loop(sw, pkt);
    else
        drop(sw, pkt, &sw->stats.drops_memory);
}

/* As plait_port.depart: true if the packet is to be sent. */
static bool egress(void *context, struct plait_port *port, struct plait_pkt *pkt)
{
    struct plait_switch *sw = context;
    struct plait_program *program = sw->program;
    struct plait_packet *packet = &pkt->packet;
    struct plait_std *std = &packet->std;
    set_clock(sw);
    uint64_t us = program->instance.now_us;
    std->egress_port = port->number;
    std->egress_spec = (sw->drop_port + 1) & PORT_MASK; /* not the drop port: 0 by default, as bit<9> reads 512 */
    std->egress_global_timestamp = us & MASK_48;
    std->deq_timedelta = (uint32_t)us - std->enq_timestamp;
    std->deq_qdepth = (uint32_t)port->packets & 0x7ffff;
    clear_requests(std);
    program->pipeline->egress(&program->instance, packet);
    if (std->clone_session)
        clone_egress(sw, pkt);
    if (std->egress_spec == sw->drop_port) {
        drop(sw, pkt, &sw->stats.drops_egress);
        return false;
    }
    program->pipeline->deparse(&program->instance, packet);
    if (!frame_is_sound(pkt)) {
        drop(sw, pkt, &sw->stats.drops_oversize);
        return false;
    }
    if (std->recirculate_field_list) {
        recirculate(sw, pkt, std->recirculate_field_list - 1);
        return false;
    }
    plait_phv_put(&program->phvs, packet->phv);
    packet->phv = NULL;
    return true;
}

/* As plait_port.send of the CPU port and of tapped ports: out of the fabric, at once. */
static void to_control_plane(void *context, struct plait_pkt *pkt, sim_time last_bit)
{
    struct plait_port *port = context;
    struct plait_switch *sw = port->owner;
    bool is_cpu = sw->cpu_port && port->number == sw->cpu_port; /* 0 is "none", though also the number of a port */
    (void)last_bit;
    plait_switch_notify(sw, is_cpu ? PLAIT_NOTICE_PACKET_IN : PLAIT_NOTICE_SENT, port->number, pkt->tag,
                        pkt->packet.data, pkt->packet.length);
    release(sw, pkt);
}

/* ------------------------------------------------------------------------------------------------------------
 * Life */

int plait_switch_add_port(struct plait_switch *sw, uint32_t number, struct plait_link *link, struct plait_port **made,
                          struct plait_error *error)
{
    if (number >= PLAIT_PORTS || number == sw->drop_port)
        return plait_fail(error, ERANGE, "port %u of switch %s: ports are 0..%u without the drop port %u", number,
                          sw->name, PLAIT_PORTS - 1, sw->drop_port);
    if (sw->ports[number])
        return plait_fail(error, EEXIST, "port %u of switch %s is %s already", number, sw->name,
                          sw->links[number] ? "connected" : "the CPU port or tapped");
    struct plait_port *port = malloc(sizeof *port);
    if (!port || plait_port_init(port, &sw->fabric->events, &sw->fabric->pool, sw->n_queues)) {
        free(port);
        return plait_fail(error, ENOMEM, "no memory for a port");
    }
    port->number = number;
    port->owner = sw;
    port->depart = egress;
    port->serving = &sw->serving;
    port->live_packets = &sw->live_packets[number];
    port->live_bytes = &sw->live_bytes[number];
    if (!link) {
        port->send = to_control_plane;
        port->to = port;
        sw->live_up[number] = 1;
    }
    sw->ports[number] = port;
    sw->links[number] = link;
    int result = sw->buffer ? plait_buffer_add_port(sw, port, error) : 0;
    if (result) {
        plait_switch_remove_port(sw, number);
        return result;
    }
    if (made)
        *made = port;
    return 0;
}

struct plait_port *plait_switch_port(struct plait_switch *sw, uint32_t number, struct plait_error *error)
{
    if (number < PLAIT_PORTS && sw->ports[number])
        return sw->ports[number];
    plait_fail(error, ERANGE, "port %u of switch %s: there is none", number, sw->name);
    return NULL;
}

void plait_switch_remove_port(struct plait_switch *sw, uint32_t number)
{
    if (!sw->ports[number])
        return;
    if (sw->buffer)
        plait_buffer_remove_port(sw, sw->ports[number]);
    plait_port_free(sw->ports[number]);
    free(sw->ports[number]);
    sw->ports[number] = NULL;
    sw->links[number] = NULL;
}

int plait_switch_create(struct plait_fabric *fabric, const char *name, uint32_t drop_port, uint32_t cpu_port,
                        uint32_t n_queues, struct plait_switch **created, struct plait_error *error)
{
    if (n_queues < 1 || n_queues > PLAIT_QUEUES)
        return plait_fail(error, EINVAL, "priority_queues of switch %s: %u is not in 1..%u", name, n_queues,
                          PLAIT_QUEUES);
    if (drop_port >= PLAIT_PORTS)
        return plait_fail(error, EINVAL, "drop_port of switch %s: %u is not in 0..%u", name, drop_port,
                          PLAIT_PORTS - 1);
    struct plait_switch *sw = calloc(1, sizeof *sw);
    if (!sw)
        return plait_fail(error, ENOMEM, "no memory for a switch");
    sw->fabric = fabric;
    sw->drop_port = drop_port;
    sw->cpu_port = cpu_port;
    sw->n_queues = n_queues;
    sw->notices_end = &sw->notices;
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&sw->notice_lock, NULL);
    pthread_mutex_init(&sw->control_lock, NULL);
    pthread_cond_init(&sw->notice_ready, &attributes);
    pthread_condattr_destroy(&attributes);
    sw->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    sw->name = strdup(name);
    int result = 0;
    if (sw->event_fd < 0)
        result = plait_fail_system(error, errno, "eventfd for switch %s: %s", name, strerror(errno));
    else if (!sw->name || plait_event_init(&fabric->events, &sw->loop_event, loop_fire, sw))
        result = plait_fail(error, ENOMEM, "no memory for a switch");
    else if (cpu_port)
        result = plait_switch_add_port(sw, cpu_port, NULL, NULL, error);
    if (result) {
        plait_switch_free(sw);
        return result;
    }
    *created = sw;
    return 0;
}

void plait_switch_flush(struct plait_switch *sw)
{
    struct plait_pkt *pkt;
    for (uint32_t i = 0; i < PLAIT_PORTS; i++)
        while (sw->ports[i] && (pkt = plait_port_discard(sw->ports[i])))
            drop(sw, pkt, &sw->stats.drops_reload);
    while ((pkt = plait_list_take(&sw->loop)))
        drop(sw, pkt, &sw->stats.drops_reload);
    sw->loop_length = 0;
    plait_event_cancel(&sw->fabric->events, &sw->loop_event);
}

static void free_replicas(struct plait_replicas **table, uint32_t size)
{
    for (uint32_t i = 0; table && i < size; i++)
        free(table[i]);
    free(table);
}

void plait_switch_free(struct plait_switch *sw)
{
    if (!sw)
        return;
    plait_switch_end_polls(sw);
    plait_buffer_free(sw);
    plait_switch_flush(sw);
    plait_generators_free(sw);
    for (uint32_t i = 0; i < PLAIT_PORTS; i++)
        plait_switch_remove_port(sw, i);
    plait_event_release(&sw->fabric->events, &sw->loop_event);
    plait_program_close(sw->program);
    free_replicas(sw->multicast, PLAIT_MULTICAST_GROUPS);
    free_replicas(sw->sessions, PLAIT_CLONE_SESSIONS);
    plait_switch_forget_notices(sw);
    pthread_mutex_destroy(&sw->notice_lock);
    pthread_mutex_destroy(&sw->control_lock);
    pthread_cond_destroy(&sw->notice_ready);
    if (sw->event_fd >= 0)
        close(sw->event_fd);
    free(sw->name);
    free(sw);
}
