/* A hand-written program for the engine's tests: forwards by destination MAC (exact) or IPv4 route (LPM, selector), and
 * does whatever else an action asks for.  Frames of EtherType 0x88b5 carry 20 bytes of telemetry that egress fills in,
 * so that a test sees what the traffic manager and the replication paths told the program. */
#include <string.h>

#include "pipeline.h"

#define ETHERNET       14u
#define TELEMETRY      20u
#define TYPE_IPV4      0x0800u
#define TYPE_TELEMETRY 0x88b5u

enum action {
    FORWARD,
    DROP,
    MULTICAST,
    CLONE_I2E,
    DIGEST,
    RESUBMIT,
    RECIRCULATE,
    WIDE,
    METERED,
    CLONE_E2E,
    EGRESS_DROP,
    PRIORITY
};
enum table { MAC, ROUTE, ACL, VRF, TINY };

struct phv {
    bool ethernet_valid, ipv4_valid, telemetry_valid;
    uint8_t dst[6], src[6];
    uint16_t type;
    uint8_t ipv4[20];
    uint8_t telemetry[TELEMETRY];
    struct {
        uint32_t keep, lose, e2e_session, egress_drop, loops;
    } meta;
};

static void parse(struct plait_instance *instance, struct plait_packet *packet)
{
    struct phv *phv = packet->phv;
    (void)instance;
    phv->meta.lose = 77; /* a parser that writes metadata: I2E clones must not see it */
    if (packet->length < ETHERNET) {
        packet->std.parser_error = 1;
        return;
    }
    memcpy(phv->dst, packet->data, 6);
    memcpy(phv->src, packet->data + 6, 6);
    phv->type = (uint16_t)(packet->data[12] << 8 | packet->data[13]);
    phv->ethernet_valid = true;
    packet->payload_offset = ETHERNET;
    if (phv->type == TYPE_IPV4 && packet->length >= ETHERNET + 20) {
        memcpy(phv->ipv4, packet->data + ETHERNET, 20);
        phv->ipv4_valid = true;
        packet->payload_offset += 20;
    } else if (phv->type == TYPE_TELEMETRY && packet->length >= ETHERNET + TELEMETRY) {
        memcpy(phv->telemetry, packet->data + ETHERNET, TELEMETRY);
        phv->telemetry_valid = true;
        packet->payload_offset += TELEMETRY;
    }
}

static void run(struct plait_instance *instance, struct plait_packet *packet, const struct plait_action_data *data,
                struct plait_entry *entry)
{
    struct phv *phv = packet->phv;
    struct plait_std *std = &packet->std;
    switch ((enum action)data->action) {
    case FORWARD:
        std->egress_spec = (uint32_t)data->params[0];
        break;
    case DROP:
        std->egress_spec = instance->drop_port;
        std->mcast_grp = 0;
        break;
    case MULTICAST:
        std->mcast_grp = (uint32_t)data->params[0];
        break;
    case CLONE_I2E:
        phv->meta.keep = 1234;
        phv->meta.lose = 55;
        std->egress_spec = (uint32_t)data->params[0];
        std->clone_session = (uint32_t)data->params[1] | PLAIT_CLONE_REQUESTED;
        std->clone_field_list = 1;
        break;
    case CLONE_E2E:
        std->egress_spec = (uint32_t)data->params[0];
        phv->meta.keep = 1234;
        phv->meta.lose = 55;
        phv->meta.e2e_session = (uint32_t)data->params[1];
        break;
    case DIGEST:
        std->egress_spec = (uint32_t)data->params[0];
        instance->runtime->digest(instance, 1, phv->dst, 6);
        instance->runtime->digest(instance, 1, phv->src, 6); /* the last call wins */
        break;
    case RESUBMIT:
        std->egress_spec = (uint32_t)data->params[0];
        if (phv->meta.keep < data->params[1]) {
            phv->meta.keep++;
            std->resubmit_field_list = 1 + 1;
        }
        break;
    case RECIRCULATE:
        std->egress_spec = (uint32_t)data->params[0];
        phv->meta.loops = (uint32_t)data->params[1];
        break;
    case WIDE:
        memcpy(instance->registers[4].cells, (const uint8_t *)data->params, 13);
        std->egress_spec = instance->drop_port;
        break;
    case METERED:
        std->egress_spec = (uint32_t)data->params[0];
        if (instance->runtime->meter_execute(instance, entry->meter, packet) == 2)
            std->egress_spec = instance->drop_port;
        break;
    case EGRESS_DROP:
        std->egress_spec = (uint32_t)data->params[0];
        phv->meta.egress_drop = 1;
        break;
    case PRIORITY:
        std->egress_spec = (uint32_t)data->params[0];
        std->priority = (uint32_t)data->params[1];
        break;
    }
}

static void ingress(struct plait_instance *instance, struct plait_packet *packet)
{
    struct phv *phv = packet->phv;
    struct plait_entry *entry;
    packet->std.egress_spec = instance->drop_port;
    if (packet->std.ingress_port < instance->counters[0].size) {
        instance->counters[0].cells[packet->std.ingress_port].packets++;
        instance->counters[0].cells[packet->std.ingress_port].bytes += packet->arrival_length;
    }
    if (phv->ipv4_valid) {
        if (phv->ipv4[8] == 0)
            return;
        phv->ipv4[8]--;
        entry = instance->runtime->lookup(instance->tables[ROUTE], phv->ipv4 + 16);
        if (!entry)
            return;
        const struct plait_action_data *data = entry->data;
        if (entry->group) {
            if (entry->group->size == 0)
                return;
            uint32_t hash = (phv->ipv4[15] * 31u) ^ phv->ipv4[19];
            data = entry->group->members[hash % entry->group->size];
        }
        run(instance, packet, data, entry);
        return;
    }
    entry = instance->runtime->lookup(instance->tables[MAC], phv->dst);
    if (entry) {
        entry->packets++;
        entry->bytes += packet->arrival_length;
        entry->last_hit_ns = instance->now_ns;
        run(instance, packet, entry->data, entry);
    } else if (instance->tables[MAC]->default_entry->data) {
        run(instance, packet, instance->tables[MAC]->default_entry->data, instance->tables[MAC]->default_entry);
    }
}

static void put(uint8_t **to, uint64_t value, uint32_t bytes)
{
    while (bytes-- > 0)
        *(*to)++ = (uint8_t)(value >> (8 * bytes));
}

static void egress(struct plait_instance *instance, struct plait_packet *packet)
{
    struct phv *phv = packet->phv;
    const struct plait_std *std = &packet->std;
    if (phv->telemetry_valid) {
        uint8_t *at = phv->telemetry;
        put(&at, std->instance_type, 1);
        put(&at, std->egress_rid, 1);
        put(&at, std->ingress_port, 2);
        put(&at, std->enq_qdepth, 4);
        put(&at, std->deq_qdepth, 4);
        put(&at, std->deq_timedelta, 4);
        put(&at, phv->meta.keep, 2);
        put(&at, phv->meta.lose, 2);
    }
    if (phv->meta.e2e_session && std->instance_type == 0) {
        packet->std.clone_session = phv->meta.e2e_session | PLAIT_CLONE_REQUESTED;
        packet->std.clone_field_list = 1;
    }
    if (phv->meta.egress_drop)
        packet->std.egress_spec = instance->drop_port;
    if (phv->meta.loops && std->instance_type == 0 && phv->meta.keep < phv->meta.loops) {
        phv->meta.keep++;
        packet->std.recirculate_field_list = 1 + 1;
    }
}

static void deparse(struct plait_instance *instance, struct plait_packet *packet)
{
    struct phv *phv = packet->phv;
    (void)instance;
    uint8_t *at = packet->data + packet->payload_offset;
    if (phv->telemetry_valid)
        memcpy(at -= TELEMETRY, phv->telemetry, TELEMETRY);
    if (phv->ipv4_valid)
        memcpy(at -= 20, phv->ipv4, 20);
    if (phv->ethernet_valid) {
        at -= ETHERNET;
        memcpy(at, phv->dst, 6);
        memcpy(at + 6, phv->src, 6);
        at[12] = (uint8_t)(phv->type >> 8);
        at[13] = (uint8_t)phv->type;
    }
    packet->length += (uint32_t)(packet->data - at);
    packet->data = at;
    if (packet->std.truncate_to && packet->length > packet->std.truncate_to - 1)
        packet->length = packet->std.truncate_to - 1;
}

static void copy_field_list(uint32_t field_list, void *to, const void *from)
{
    if (field_list == 1)
        ((struct phv *)to)->meta.keep = ((const struct phv *)from)->meta.keep;
}

static void reset_metadata(void *phv) { memset(&((struct phv *)phv)->meta, 0, sizeof((struct phv *)phv)->meta); }

static const struct plait_param_desc port_params[] = {{"port", 9, 0}};
static const struct plait_param_desc group_params[] = {{"group", 16, 0}};
static const struct plait_param_desc two_params[] = {{"port", 9, 0}, {"value", 16, 8}};
static const struct plait_param_desc wide_params[] = {{"value", 100, 0}};

static const struct plait_action_desc actions[] = {
    [FORWARD] = {"forward", 1, 1, 8, port_params},
    [DROP] = {"drop", 2, 0, 0, NULL},
    [MULTICAST] = {"multicast", 3, 1, 8, group_params},
    [CLONE_I2E] = {"clone_i2e", 4, 2, 16, two_params},
    [DIGEST] = {"digest", 5, 1, 8, port_params},
    [RESUBMIT] = {"resubmit", 6, 2, 16, two_params},
    [RECIRCULATE] = {"recirculate", 7, 2, 16, two_params},
    [WIDE] = {"wide", 8, 1, 16, wide_params},
    [METERED] = {"metered", 9, 1, 8, port_params},
    [CLONE_E2E] = {"clone_e2e", 10, 2, 16, two_params},
    [EGRESS_DROP] = {"egress_drop", 11, 1, 8, port_params},
    [PRIORITY] = {"priority", 12, 2, 16, two_params},
};

static const struct plait_key_desc mac_keys[] = {{"dst", PLAIT_EXACT, 48, 0}};
static const struct plait_key_desc route_keys[] = {{"dst", PLAIT_LPM, 32, 0}};
static const struct plait_key_desc acl_keys[] = {
    {"dst", PLAIT_TERNARY, 32, 0}, {"port", PLAIT_RANGE, 16, 4}, {"proto", PLAIT_OPTIONAL, 8, 6}};
static const struct plait_key_desc vrf_keys[] = {{"vrf", PLAIT_EXACT, 12, 0}, {"dst", PLAIT_LPM, 32, 2}};
static const struct plait_key_desc tiny_keys[] = {{"key", PLAIT_EXACT, 8, 0}};

static const struct plait_table_desc tables[] = {
    [MAC] = {"mac", PLAIT_TABLE_SIMPLE, 1024, 1, 6, mac_keys, true, true, 1},
    [ROUTE] = {"route", PLAIT_TABLE_INDIRECT_SELECTOR, 200000, 1, 4, route_keys, false, false, -1},
    [ACL] = {"acl", PLAIT_TABLE_SIMPLE, 1024, 3, 7, acl_keys, false, false, -1},
    [VRF] = {"vrf", PLAIT_TABLE_SIMPLE, 1024, 2, 6, vrf_keys, false, false, -1},
    [TINY] = {"tiny", PLAIT_TABLE_SIMPLE, 2, 1, 1, tiny_keys, false, false, -1},
};

static const struct plait_array_desc counters[] = {{"ports", 512, 0, false}};
static const struct plait_array_desc registers[] = {
    {"scratch", 16, 30, false},
    {"plait.queue_bytes", 512, 32, false},
    {"plait.queue_packets", 512, 32, false},
    {"plait.port_up", 64, 1, false},
    {"wide", 4, 100, false},
};
static const struct plait_array_desc meters[] = {{"limit", 16, 1, false}, {"mac_meter", 0, 0, true}};
static const uint32_t learn_widths[] = {48};
static const struct plait_learn_desc learn[] = {{1, 1, learn_widths}};

__attribute__((visibility("default"))) extern const struct plait_pipeline plait_pipeline;
const struct plait_pipeline plait_pipeline = {
    .abi = PLAIT_PIPELINE_ABI,
    .phv_size = sizeof(struct phv),
    .program = "echo",
    .n_tables = 5,
    .n_actions = 12,
    .n_counters = 1,
    .n_registers = 5,
    .n_meters = 2,
    .n_learn = 1,
    .tables = tables,
    .actions = actions,
    .counters = counters,
    .registers = registers,
    .meters = meters,
    .learn = learn,
    .parse = parse,
    .ingress = ingress,
    .egress = egress,
    .deparse = deparse,
    .copy_field_list = copy_field_list,
    .reset_metadata = reset_metadata,
};
