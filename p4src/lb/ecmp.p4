// Equal-cost multi-path: longest prefix match on the destination, one member of the next-hop group per flow.
//
//     dst_addr --lpm--> group --flow_hash % size--> member: port
//
// Weights (WCMP) are members that occur more than once in a group. A member's watch_port takes it out of its groups
// while that port is down.

#ifndef PLAIT_ECMP_P4
#define PLAIT_ECMP_P4

#include "../include/flow_hash.p4"

control ecmp(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    flow_hash() per_flow;
    action_selector(HashAlgorithm.identity, 1024, 16) next_hops;

    action forward(port_t port) {
        standard_metadata.egress_spec = port;
    }

    table ipv4_lpm {
        key = {
            hdr.ipv4.dst_addr : lpm;
            meta.flow_hash    : selector;
        }
        actions = { forward; }
        size = 4096;
        implementation = next_hops;
    }

    // A miss leaves the packet marked to drop: indirect tables have no default action on BMv2.
    apply {
        per_flow.apply(hdr, meta);
        ipv4_lpm.apply();
    }
}  // control ecmp

#endif
