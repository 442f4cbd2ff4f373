#include "flows.h"

#include <stdlib.h>

#define ETHERTYPE_IPV4 0x0800u
#define ETHERTYPE_VLAN 0x8100u
#define ETHERTYPE_QINQ 0x88a8u
#define PROTOCOL_TCP   6u
#define PROTOCOL_UDP   17u

static uint32_t read16(const uint8_t *at) { return (uint32_t)at[0] << 8 | at[1]; }
static uint32_t read32(const uint8_t *at) { return read16(at) << 16 | read16(at + 2); }

struct plait_flows *plait_flows_create(uint32_t limit)
{
    uint32_t slots = 16;
    while (slots < limit * 2)
        slots *= 2;
    struct plait_flows *flows = calloc(1, sizeof *flows);
    if (!flows)
        return NULL;
    flows->slots = calloc(slots, sizeof *flows->slots);
    if (!flows->slots) {
        free(flows);
        return NULL;
    }
    flows->slot_mask = slots - 1;
    flows->limit = limit;
    return flows;
}

void plait_flows_free(struct plait_flows *flows)
{
    if (flows) {
        free(flows->slots);
        free(flows);
    }
}

static bool parse(const uint8_t *frame, uint32_t length, struct plait_flow *flow)
{
    uint32_t at = 12;
    if (length < 14)
        return false;
    uint32_t type = read16(frame + at);
    while ((type == ETHERTYPE_VLAN || type == ETHERTYPE_QINQ) && length >= at + 6) {
        at += 4;
        type = read16(frame + at);
    }
    at += 2;
    if (type != ETHERTYPE_IPV4 || length < at + 20 || frame[at] >> 4 != 4)
        return false;
    const uint8_t *ip = frame + at;
    uint32_t header = (ip[0] & 15u) * 4;
    if (header < 20)
        return false;
    *flow = (struct plait_flow){.source = read32(ip + 12), .destination = read32(ip + 16), .protocol = ip[9]};
    bool fragment = (read16(ip + 6) & 0x1fff) != 0;
    if (!fragment && (ip[9] == PROTOCOL_TCP || ip[9] == PROTOCOL_UDP) && length >= at + header + 4) {
        flow->source_port = (uint16_t)read16(ip + header);
        flow->destination_port = (uint16_t)read16(ip + header + 2);
    }
    return true;
}

static bool same(const struct plait_flow *a, const struct plait_flow *b)
{
    return a->source == b->source && a->destination == b->destination && a->source_port == b->source_port &&
           a->destination_port == b->destination_port && a->protocol == b->protocol;
}

void plait_flows_count(struct plait_flows *flows, const uint8_t *frame, uint32_t length)
{
    struct plait_flow flow;
    if (!parse(frame, length, &flow)) {
        flows->unrecorded++;
        return;
    }
    uint64_t hash = ((uint64_t)flow.source << 32 | flow.destination) * 0x9e3779b97f4a7c15ull;
    hash ^= ((uint64_t)flow.source_port << 32 | (uint64_t)flow.destination_port << 8 | flow.protocol) *
            0xd6e8feb86659fd93ull;
    hash ^= hash >> 32;
    uint32_t slot = (uint32_t)hash & flows->slot_mask;
    while (flows->slots[slot].packets && !same(&flows->slots[slot], &flow))
        slot = (slot + 1) & flows->slot_mask;
    struct plait_flow *found = &flows->slots[slot];
    if (!found->packets) {
        if (flows->count >= flows->limit) {
            flows->unrecorded++;
            return;
        }
        flows->count++;
        *found = flow;
    }
    found->packets++;
    found->bytes += length;
}
