// Two different next hops at random, and the one with the shorter queue.

#ifndef PLAIT_TWO_CHOICES_P4
#define PLAIT_TWO_CHOICES_P4

#include "next_hops.p4"
#include "queue_depth.p4"

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

#endif
