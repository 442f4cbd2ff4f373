// Flowlet switching: a flow that has been silent for longer than the gap may take another port, drawn at random
// (LetFlow: Vanini et al., NSDI 2017, section 3).
//
//     dst_addr --lpm--> next hops;  flow_hash --> (last packet, index) --gap--> the same port or a new one

#ifndef PLAIT_FLOWLET_P4
#define PLAIT_FLOWLET_P4

#include "../include/flow_hash.p4"
#include "../include/next_hop_routes.p4"

control flowlet(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    // By flow hash and set of next hops. Flows that collide share a flowlet: they change port together, and more
    // seldom.
    register<bit<48>>(65536) last_packet_us;
    register<bit<8>>(65536) flowlet_index;   // index + 1; 0: none yet
    next_hop_routes() routes;
    flow_hash() per_flow;
    live_next_hop() choice;
    next_hops_t hops;
    bit<48> gap_us = 50;

    action set_gap(bit<48> us) {
        gap_us = us;
    }

    table flowlet_parameters {
        actions = { set_gap; }
        default_action = set_gap(50);
    }

    apply {
        routes.apply(hdr, hops);
        flowlet_parameters.apply();
        if (hops.count != 0) {
            bit<48> last_us;
            bit<8> index;
            per_flow.apply(hdr, meta);
            bit<32> slot = (bit<32>)(meta.flow_hash ^ hops.group[15:0]);
            last_packet_us.read(last_us, slot);
            flowlet_index.read(index, slot);
            index = index - 1;
            // 255, none yet, is beyond every set.
            if (index >= hops.count || standard_metadata.ingress_global_timestamp - last_us > gap_us) {
                random(index, 0, hops.count - 1);
            }
            choice.apply(meta, hops, index, standard_metadata.egress_spec);
            last_packet_us.write(slot, standard_metadata.ingress_global_timestamp);
            flowlet_index.write(slot, index + 1);
        }
    }
}  // control flowlet

#endif
