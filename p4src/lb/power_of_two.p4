// Power of two choices: two different ports at random, the one with the shorter queue (Mitzenmacher, 2001).
//
//     dst_addr --lpm--> next hops --random--> a, b --plait.queue_bytes--> the shorter

#ifndef PLAIT_POWER_OF_TWO_P4
#define PLAIT_POWER_OF_TWO_P4

#include "../include/next_hop_routes.p4"
#include "../include/two_choices.p4"

control power_of_two(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    next_hop_routes() routes;
    shorter_of_two() shorter;
    live_next_hop() choice;
    next_hops_t hops;

    apply {
        routes.apply(hdr, hops);
        if (hops.count != 0) {
            bit<8> index;
            shorter.apply(meta, hops, index);
            choice.apply(meta, hops, index, standard_metadata.egress_spec);
        }
    }
}  // control power_of_two

#endif
