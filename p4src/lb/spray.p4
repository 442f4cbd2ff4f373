// Packet spray: every packet goes its own way, at random (Dixit et al., INFOCOM 2013) or in turn.
//
//     dst_addr --lpm--> next hops --random | register[group]++--> port

#ifndef PLAIT_SPRAY_P4
#define PLAIT_SPRAY_P4

#include "../include/next_hop_routes.p4"

control spray(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    register<bit<8>>(4096) turns;   // by the group's lower bits: whose turn it is
    next_hop_routes() routes;
    live_next_hop() choice;
    next_hops_t hops;
    bool in_turn = false;

    action at_random() {
        in_turn = false;
    }

    action round_robin() {
        in_turn = true;
    }

    table spray_policy {
        actions = { at_random; round_robin; }
        default_action = at_random;
    }

    apply {
        routes.apply(hdr, hops);
        spray_policy.apply();
        if (hops.count != 0) {
            bit<8> index = 0;
            if (in_turn) {
                turns.read(index, (bit<32>)hops.group[11:0]);
                if (index >= hops.count) {
                    index = 0;
                }
            } else {
                random(index, 0, hops.count - 1);
            }
            choice.apply(meta, hops, index, standard_metadata.egress_spec);
            if (in_turn) {
                turns.write((bit<32>)hops.group[11:0], index + 1);
            }
        }
    }
}  // control spray

#endif
