// Flowlet switching: a flow that has been silent for longer than the gap may take another port, drawn at random
// (LetFlow: Vanini et al., NSDI 2017, section 3).
//
//     dst_addr --lpm--> next hops;  flow_hash --> (last packet, index) --gap--> the same port or a new one

#ifndef PLAIT_FLOWLET_P4
#define PLAIT_FLOWLET_P4

#include "../include/flow_hash.p4"
#include "../include/next_hop_routes.p4"

control flowlet(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    // By flow hash. Flows that collide share a flowlet: they change port together, and more seldom.
    register<bit<48>>(65536) last_packet_us;
    register<bit<32>>(65536) flowlet_choice;   // set of next hops (24 bits), index + 1 in it; 0: none yet
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
            bit<32> chosen;
            bit<8> index;
            per_flow.apply(hdr, meta);
            last_packet_us.read(last_us, (bit<32>)meta.flow_hash);
            flowlet_choice.read(chosen, (bit<32>)meta.flow_hash);
            index = chosen[7:0] - 1;
            // A changed route is another set, or a set that ends before the index.
            if (chosen[31:8] != hops.group || index >= hops.count
                || standard_metadata.ingress_global_timestamp - last_us > gap_us) {
                random(index, 0, hops.count - 1);
            }
            choice.apply(meta, hops, index, standard_metadata.egress_spec);
            last_packet_us.write((bit<32>)meta.flow_hash, standard_metadata.ingress_global_timestamp);
            flowlet_choice.write((bit<32>)meta.flow_hash, hops.group ++ (index + 1));
        }
    }
}  // control flowlet

#endif
