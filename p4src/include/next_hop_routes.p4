// Routes to sets of next hops, and the way around a dead port of a set.

#ifndef PLAIT_NEXT_HOP_ROUTES_P4
#define PLAIT_NEXT_HOP_ROUTES_P4

#include "next_hops.p4"
#include "port_up.p4"

control next_hop_routes(in headers_t hdr, out next_hops_t hops) {
    action set_next_hops(bit<24> group, bit<8> count, bit<64> ports_0_7, bit<64> ports_8_15) {
        hops.group = group;
        hops.count = count;
        hops.ports_0_7 = ports_0_7;
        hops.ports_8_15 = ports_8_15;
    }

    action no_route() {
        hops.group = 0;
        hops.count = 0;
        hops.ports_0_7 = 0;
        hops.ports_8_15 = 0;
    }

    table ipv4_lpm {
        key = { hdr.ipv4.dst_addr : lpm; }
        actions = { set_next_hops; no_route; }
        default_action = no_route;
        size = 4096;
    }

    apply {
        ipv4_lpm.apply();
    }
}  // control next_hop_routes

// Fast failover: where the chosen port is down, the next live one of the set takes its place, without the controller.
// The ring is walked at most once around; where all ports are down the choice stands, and the packet is lost there.
#define PROBE_NEXT if (up == 0) { \
        index = index + 1 == hops.count ? 0 : index + 1; \
        at.apply(hops, index, port); PORT_UP(up, port); \
    }

control live_next_hop(in metadata_t meta, in next_hops_t hops, inout bit<8> index, out port_t port) {
    next_hop_port() at;
    bit<1> up;

    apply {
        at.apply(hops, index, port);
        PORT_UP(up, port);
        if (up == 0) {
            PROBE_NEXT PROBE_NEXT PROBE_NEXT PROBE_NEXT PROBE_NEXT
            PROBE_NEXT PROBE_NEXT PROBE_NEXT PROBE_NEXT PROBE_NEXT
            PROBE_NEXT PROBE_NEXT PROBE_NEXT PROBE_NEXT PROBE_NEXT
        }
    }
}  // control live_next_hop

#endif
