#include "buffer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "fabric.h"
#include "pfc.h"
#include "switch.h"

#define LEAST_QUANTA 512u /* a repeated pause may wait for one frame of any length, and must not come late */

/* ------------------------------------------------------------------------------------------------------------
 * Packets */

struct plait_ingress *plait_buffer_ingress(const struct plait_buffer *buffer, uint32_t q, const struct plait_pkt *pkt)
{
    return buffer->spec.lossless >> q & 1 && pkt->came_in < PLAIT_PORTS ? buffer->ingress[pkt->came_in] : NULL;
}

byte_count plait_buffer_xoff(const struct plait_buffer *buffer)
{
    return buffer->spec.xoff_alpha.denominator
               ? plait_fraction_of(buffer->spec.xoff_alpha, plait_buffer_free_bytes(buffer))
               : buffer->spec.xoff_bytes;
}

static void use(struct plait_buffer *buffer, byte_count bytes)
{
    buffer->used += bytes;
    if (buffer->used > buffer->max_used)
        buffer->max_used = buffer->used;
}

static inline byte_count in_pool(const struct plait_share *share, byte_count bytes)
{
    return bytes > share->reserved ? bytes - share->reserved : 0;
}

/* `forced`: it waits already, so that only the books are to be written. */
static bool charge_queue(struct plait_buffer *buffer, struct plait_share *share, byte_count bytes, bool forced)
{
    byte_count after = in_pool(share, share->bytes + bytes), more = after - in_pool(share, share->bytes);
    byte_count free = plait_buffer_free_bytes(buffer);
    if (more && !forced && (more > free || after > plait_fraction_of(share->alpha, free)))
        return false;
    share->bytes += bytes;
    use(buffer, more);
    return true;
}

static void refresh(void *context)
{
    struct plait_ingress *ingress = context;
    uint32_t quanta = ingress->buffer->spec.pause_quanta;
    plait_pause_send(ingress->port, ingress->xoff, quanta);
    plait_event_schedule(ingress->port->events, &ingress->refresh,
                         ingress->port->events->now + plait_pause_time(ingress->port, quanta) / 2);
}

static void ask_to_pause(struct plait_ingress *ingress, uint32_t priority)
{
    ingress->xoff |= 1u << priority;
    ingress->accounts[priority].xoffs++;
    plait_event_cancel(ingress->port->events, &ingress->refresh);
    refresh(ingress); /* names all that are to pause: nothing is said twice within half of a pause */
}

static void tell_to_go_on(struct plait_ingress *ingress, uint32_t priorities)
{
    ingress->xoff &= ~priorities;
    if (!ingress->xoff)
        plait_event_cancel(ingress->port->events, &ingress->refresh);
    plait_pause_send(ingress->port, priorities, 0);
}

static bool charge_account(struct plait_buffer *buffer, struct plait_ingress *ingress, uint32_t priority,
                           byte_count bytes, bool forced)
{
    struct plait_account *account = &ingress->accounts[priority];
    if (account->pool + bytes <= plait_buffer_xoff(buffer) && bytes <= plait_buffer_free_bytes(buffer)) {
        account->pool += bytes;
        use(buffer, bytes);
        return true;
    }
    if (account->headroom + bytes > buffer->spec.headroom_bytes && !forced)
        return false;
    account->headroom += bytes;
    if (account->headroom > account->max_headroom)
        account->max_headroom = account->headroom;
    if (!(ingress->xoff >> priority & 1))
        ask_to_pause(ingress, priority);
    return true;
}

bool plait_buffer_charge(struct plait_buffer *buffer, struct plait_queue *queue, uint32_t q, struct plait_pkt *pkt)
{
    return pkt->ingress ? charge_account(buffer, pkt->ingress, q, pkt->queued_bytes, false)
                        : charge_queue(buffer, &queue->share, pkt->queued_bytes, false);
}

void plait_buffer_release(struct plait_buffer *buffer, struct plait_queue *queue, uint32_t q, struct plait_pkt *pkt)
{
    byte_count bytes = pkt->queued_bytes;
    if (!pkt->ingress) {
        struct plait_share *share = &queue->share;
        buffer->used -= in_pool(share, share->bytes) - in_pool(share, share->bytes - bytes);
        share->bytes -= bytes;
        return;
    }
    struct plait_account *account = &pkt->ingress->accounts[q];
    byte_count from_headroom = bytes < account->headroom ? bytes : account->headroom;
    account->headroom -= from_headroom;
    account->pool -= bytes - from_headroom;
    buffer->used -= bytes - from_headroom;
    if (pkt->ingress->xoff >> q & 1 && !account->headroom &&
        (!account->pool || account->pool + buffer->spec.xon_gap_bytes <= plait_buffer_xoff(buffer)))
        tell_to_go_on(pkt->ingress, 1u << q);
}

/* ------------------------------------------------------------------------------------------------------------
 * Configuration */

static int check_fraction(const char *name, const char *what, struct plait_fraction fraction, struct plait_error *error)
{
    if (fraction.numerator < 1 || fraction.numerator > PLAIT_FRACTION_LIMIT || fraction.denominator < 1 ||
        fraction.denominator > PLAIT_FRACTION_LIMIT)
        return plait_fail(error, EINVAL, "%s of switch %s: %u/%u is no fraction of numbers in 1..%u", what, name,
                          fraction.numerator, fraction.denominator, PLAIT_FRACTION_LIMIT);
    return 0;
}

static int check_spec(const struct plait_switch *sw, const struct plait_buffer_spec *spec, struct plait_error *error)
{
    const byte_count sizes[] = {spec->total_bytes, spec->reserved_bytes, spec->xoff_bytes, spec->xon_gap_bytes,
                                spec->headroom_bytes};
    static const char *const names[] = {"total_bytes", "reserved_bytes", "xoff_bytes", "xon_gap_bytes",
                                        "headroom_bytes"};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i] >= PLAIT_BUFFER_LIMIT)
            return plait_fail(error, EINVAL, "%s of switch %s: not below %llu", names[i], sw->name, PLAIT_BUFFER_LIMIT);
    int result = check_fraction(sw->name, "alpha", spec->alpha, error);
    if (result || !spec->lossless)
        return result;
    if (spec->lossless >> sw->n_queues)
        return plait_fail(error, EINVAL, "lossless priorities of switch %s: its ports have %u queues", sw->name,
                          sw->n_queues);
    if (spec->pause_quanta < LEAST_QUANTA || spec->pause_quanta > UINT16_MAX)
        return plait_fail(error, EINVAL, "pause_quanta of switch %s: %u is not in %u..%u", sw->name,
                          spec->pause_quanta, LEAST_QUANTA, UINT16_MAX);
    return spec->xoff_alpha.denominator ? check_fraction(sw->name, "xoff_alpha", spec->xoff_alpha, error) : 0;
}

/* What the ports of `sw` and `more` bytes leave of the total for the pool. */
static int size_pool(const struct plait_switch *sw, const struct plait_buffer_spec *spec, bool fresh, int64_t more,
                     byte_count *size, struct plait_error *error)
{
    byte_count reserved = 0, headroom = 0;
    uint32_t priorities = (uint32_t)__builtin_popcount(spec->lossless);
    for (uint32_t i = 0; i < PLAIT_PORTS; i++) {
        const struct plait_port *port = sw->ports[i];
        for (uint32_t q = 0; port && q < port->n_queues; q++)
            reserved += fresh ? spec->reserved_bytes : port->queues[q].share.reserved;
        headroom += port && sw->links[i] ? priorities * spec->headroom_bytes : 0;
    }
    reserved += (byte_count)more; /* more may be negative; the sum is not */
    if (reserved + headroom >= spec->total_bytes)
        return plait_fail(error, EINVAL,
                          "buffer of switch %s: %llu bytes reserved for queues and %llu of headroom leave nothing of "
                          "its %llu bytes",
                          sw->name, (unsigned long long)reserved, (unsigned long long)headroom,
                          (unsigned long long)spec->total_bytes);
    *size = spec->total_bytes - reserved - headroom;
    return 0;
}

static struct plait_ingress *ingress_create(struct plait_buffer *buffer, struct plait_port *port)
{
    struct plait_ingress *ingress = calloc(1, sizeof *ingress);
    if (ingress && plait_event_init(port->events, &ingress->refresh, refresh, ingress)) {
        free(ingress);
        ingress = NULL;
    }
    if (ingress) {
        ingress->buffer = buffer;
        ingress->port = port;
    }
    return ingress;
}

static void ingress_free(struct plait_ingress *ingress)
{
    if (ingress)
        plait_event_release(ingress->port->events, &ingress->refresh);
    free(ingress);
}

static void destroy(struct plait_buffer *buffer)
{
    if (!buffer)
        return;
    for (uint32_t i = 0; buffer->ingress && i < PLAIT_PORTS; i++)
        ingress_free(buffer->ingress[i]);
    free(buffer->ingress);
    free(buffer);
}

static struct plait_buffer *create(struct plait_switch *sw, const struct plait_buffer_spec *spec)
{
    struct plait_buffer *buffer = calloc(1, sizeof *buffer);
    if (!buffer || !(buffer->ingress = calloc(PLAIT_PORTS, sizeof *buffer->ingress))) {
        destroy(buffer);
        return NULL;
    }
    buffer->spec = *spec;
    for (uint32_t i = 0; spec->lossless && i < PLAIT_PORTS; i++)
        if (sw->links[i] && !(buffer->ingress[i] = ingress_create(buffer, sw->ports[i]))) {
            destroy(buffer);
            return NULL;
        }
    return buffer;
}

/* Ends the pauses of the old rules: those that peers hold for us, and those that we hold for them. */
static void end_pauses(struct plait_switch *sw)
{
    for (uint32_t i = 0; i < PLAIT_PORTS; i++) {
        struct plait_ingress *ingress = sw->buffer->ingress[i];
        if (ingress && ingress->xoff)
            tell_to_go_on(ingress, ingress->xoff);
        for (uint32_t c = 0; sw->ports[i] && c < PLAIT_QUEUES; c++)
            if (sw->ports[i]->pauses.classes >> c & 1)
                plait_port_pause(sw->ports[i], c, 0);
    }
}

/* What waits is charged by the rules of `buffer` (NULL: none), and stays even where they would not have let it in. */
static void charge_anew(struct plait_switch *sw, struct plait_buffer *buffer)
{
    for (uint32_t i = 0; i < PLAIT_PORTS; i++) {
        struct plait_port *port = sw->ports[i];
        for (uint32_t q = 0; port && q < port->n_queues; q++) {
            struct plait_queue *queue = &port->queues[q];
            if (buffer)
                queue->share = (struct plait_share){.reserved = buffer->spec.reserved_bytes,
                                                    .alpha = buffer->spec.alpha};
            for (struct plait_pkt *pkt = queue->list.head; buffer && pkt; pkt = pkt->next) {
                pkt->ingress = plait_buffer_ingress(buffer, q, pkt);
                if (pkt->ingress)
                    charge_account(buffer, pkt->ingress, q, pkt->queued_bytes, true);
                else
                    charge_queue(buffer, &queue->share, pkt->queued_bytes, true);
            }
        }
        if (port)
            port->buffer = buffer;
    }
}

int plait_buffer_configure(struct plait_switch *sw, const struct plait_buffer_spec *spec, struct plait_error *error)
{
    struct plait_buffer *buffer = NULL, *old = sw->buffer;
    if (spec->total_bytes) {
        byte_count size;
        int result = check_spec(sw, spec, error);
        if (!result)
            result = size_pool(sw, spec, true, 0, &size, error);
        if (result)
            return result;
        buffer = create(sw, spec);
        if (!buffer)
            return plait_fail(error, ENOMEM, "no memory for the buffer of switch %s", sw->name);
        buffer->size = size;
    }
    if (old)
        end_pauses(sw);
    sw->buffer = buffer;
    sw->lossless = buffer ? spec->lossless : 0;
    charge_anew(sw, buffer);
    destroy(old);
    return 0;
}

int plait_buffer_grow(struct plait_switch *sw, int64_t more, struct plait_error *error)
{
    byte_count size;
    int result = size_pool(sw, &sw->buffer->spec, false, more, &size, error);
    if (!result)
        sw->buffer->size = size;
    return result;
}

int plait_buffer_add_port(struct plait_switch *sw, struct plait_port *port, struct plait_error *error)
{
    struct plait_buffer *buffer = sw->buffer;
    for (uint32_t q = 0; q < port->n_queues; q++)
        port->queues[q].share = (struct plait_share){.reserved = buffer->spec.reserved_bytes,
                                                     .alpha = buffer->spec.alpha};
    struct plait_ingress *ingress = NULL;
    if (buffer->spec.lossless && sw->links[port->number] && !(ingress = ingress_create(buffer, port)))
        return plait_fail(error, ENOMEM, "no memory for the buffer of switch %s", sw->name);
    int result = plait_buffer_grow(sw, 0, error);
    if (result) {
        ingress_free(ingress);
        return result;
    }
    buffer->ingress[port->number] = ingress;
    port->buffer = buffer;
    return 0;
}

void plait_buffer_remove_port(struct plait_switch *sw, struct plait_port *port)
{
    struct plait_buffer *buffer = sw->buffer;
    ingress_free(buffer->ingress[port->number]);
    buffer->ingress[port->number] = NULL;
    for (uint32_t q = 0; q < port->n_queues; q++)
        buffer->size += port->queues[q].share.reserved;
    if (sw->links[port->number])
        buffer->size += (uint32_t)__builtin_popcount(buffer->spec.lossless) * buffer->spec.headroom_bytes;
}

void plait_buffer_free(struct plait_switch *sw)
{
    for (uint32_t i = 0; i < PLAIT_PORTS; i++)
        if (sw->ports[i])
            sw->ports[i]->buffer = NULL;
    destroy(sw->buffer);
    sw->buffer = NULL;
}

void plait_buffer_set_share(struct plait_buffer *buffer, struct plait_queue *queue, byte_count reserved,
                            struct plait_fraction alpha)
{
    struct plait_share *share = &queue->share;
    buffer->used -= in_pool(share, share->bytes);
    share->reserved = reserved;
    share->alpha = alpha;
    use(buffer, in_pool(share, share->bytes));
}
