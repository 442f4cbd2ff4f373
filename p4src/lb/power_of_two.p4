// Power of two choices: two different ports at random, the one with the shorter queue (Mitzenmacher, 2001).
//
//     dst_addr --lpm--> next hops --random--> a, b --plait.queue_bytes--> the shorter

#ifndef PLAIT_POWER_OF_TWO_P4
#define PLAIT_POWER_OF_TWO_P4

#include "../include/next_hops.p4"

// Two different indexes below `count`, uniform; the same one where there is only one.
control two_indexes(in bit<8> count, out bit<8> first, out bit<8> second) {
    apply {
        first = 0;
        second = 0;
        if (count > 1) {
            bit<8> distance;
            random(first, 0, count - 1);
            random(distance, 1, count - 1);
            second = first + distance;
            second = second < count ? second : second - count;
        }
    }
}  // control two_indexes

// The index of the one with the shorter queue; the first of the two where they are equal.
control shorter_of_two(in metadata_t meta, in next_hops_t hops, out bit<8> index) {
    two_indexes() draw;
    next_hop_port() at;
    queue_depth() depth_of;

    apply {
        bit<8> other;
        port_t port;
        bit<32> depth;
        bit<32> other_depth;
        draw.apply(hops.count, index, other);
        at.apply(hops, index, port);
        depth_of.apply(meta, port, depth);
        at.apply(hops, other, port);
        depth_of.apply(meta, port, other_depth);
        index = other_depth < depth ? other : index;
    }
}  // control shorter_of_two

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
