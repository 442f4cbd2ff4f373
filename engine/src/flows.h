/* Packets and bytes by IPv4 5-tuple on one direction of a link, in a bounded table.
 *
 * Invariant: `count` <= limit <= slots / 2; packets of flows beyond the limit, and all that is not IPv4, are counted in
 * `unrecorded`.  Fragments and protocols without ports count under ports 0.
 */
#ifndef PLAIT_FLOWS_H
#define PLAIT_FLOWS_H

#include "api.h"
#include "units.h"

struct plait_flows {
    struct plait_flow *slots; /* free: packets == 0 */
    uint32_t slot_mask, count, limit;
    uint64_t unrecorded;
};

struct plait_flows *plait_flows_create(uint32_t limit);
void plait_flows_free(struct plait_flows *flows);
void plait_flows_count(struct plait_flows *flows, const uint8_t *frame, uint32_t length);

#endif
