// DRILL(d, m): d ports drawn at random and the m best of the last decision; the shortest queue of them wins
// (Ghorbani et al., SIGCOMM 2017, section 3.2).
//
//     dst_addr --lpm--> next hops --random x d, best[group] x m--> plait.queue_bytes --> the shortest
//                                                \------------- remembered -----------/

#ifndef PLAIT_DRILL_P4
#define PLAIT_DRILL_P4

#include "../include/next_hop_routes.p4"
#include "../include/queue_depth.p4"

control drill(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    // Index + 1 of the best and second best by the lower bits of the group; 0: none yet.
    register<bit<8>>(4096) best;
    register<bit<8>>(4096) second_best;
    next_hop_routes() routes;
    next_hop_port() at;
    queue_depth() depth_of;
    live_next_hop() choice;
    next_hops_t hops;
    bit<3> samples = 2;
    bit<2> memory = 1;

    action set_drill(bit<3> d, bit<2> m) {   // d: 1 to 4, m: 0 to 2
        samples = d;
        memory = m;
    }

    table drill_parameters {
        actions = { set_drill; }
        default_action = set_drill(2, 1);
    }

// Keeps the two best of all that were considered. An equal depth does not displace: earlier draws win ties.
#define CONSIDER { \
        at.apply(hops, index, port); depth_of.apply(meta, port, depth); \
        if (depth < first_depth) { \
            if (index != first) { next = first; next_depth = first_depth; } \
            first = index; first_depth = depth; \
        } else if (depth < next_depth && index != first) { next = index; next_depth = depth; } \
    }
#define DRAW { random(index, 0, hops.count - 1); CONSIDER }
#define RECALL(slot) { \
        slot.read(index, (bit<32>)hops.group[11:0]); \
        if (index != 0 && index <= hops.count) { index = index - 1; CONSIDER } \
    }

    apply {
        routes.apply(hdr, hops);
        drill_parameters.apply();
        if (hops.count != 0) {
            bit<8> index;
            port_t port;
            bit<32> depth;
            bit<8> first;
            bit<8> next = 255;   // none: 255 + 1 is 0 in the register
            bit<32> first_depth;
            bit<32> next_depth = QUEUE_UNUSABLE;
            random(first, 0, hops.count - 1);
            at.apply(hops, first, port);
            depth_of.apply(meta, port, first_depth);
            if (samples > 1) DRAW
            if (samples > 2) DRAW
            if (samples > 3) DRAW
            if (memory > 0) RECALL(best)
            if (memory > 1) RECALL(second_best)
            best.write((bit<32>)hops.group[11:0], first + 1);
            second_best.write((bit<32>)hops.group[11:0], next + 1);
            choice.apply(meta, hops, first, standard_metadata.egress_spec);
        }
    }
}  // control drill

#endif
