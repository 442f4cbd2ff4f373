// DIBS: a packet that meets a full queue leaves by another port, from which the network brings it back
// (Zarifis et al., EuroSys 2014, section 3).
//
//     egress_spec --plait.queue_bytes > limit?--> up to 4 draws from the neighbors with room --> egress_spec
//
// The TTL bounds the detours: a packet with less than `min_ttl` left is deflected no more. It needs no byte in the
// packet, and a packet that already travelled far is let be.

#ifndef PLAIT_DIBS_P4
#define PLAIT_DIBS_P4

#include "../include/next_hops.p4"
#include "../include/queue_depth.p4"

control dibs(in headers_t hdr, in metadata_t meta, inout standard_metadata_t standard_metadata) {
    counter(512, CounterType.packets_and_bytes) deflected;   // by the port that was full
    next_hop_port() at;
    queue_depth() depth_of;
    next_hops_t detours;
    bit<32> limit = QUEUE_UNUSABLE;
    bit<8> ttl_bound = 0;

    action set_limit(bit<32> bytes) {
        limit = bytes;
    }

    table deflection_limit {
        key = { standard_metadata.egress_spec : exact; }
        actions = { set_limit; NoAction; }
        default_action = NoAction;
        size = 512;
    }

    // The ports that lead to other switches.
    action set_detours(bit<8> min_ttl, bit<8> count, bit<64> ports_0_7, bit<64> ports_8_15) {
        ttl_bound = min_ttl;
        detours.count = count;
        detours.ports_0_7 = ports_0_7;
        detours.ports_8_15 = ports_8_15;
    }

    table deflection_ports {
        actions = { set_detours; }
        default_action = set_detours(0, 0, 0, 0);
    }

#define DRAW_DETOUR if (depth > limit) { \
        random(index, 0, detours.count - 1); \
        at.apply(detours, index, port); depth_of.apply(meta, port, depth); \
    }

    apply {
        bit<32> depth = 0;
        port_t port = standard_metadata.egress_spec;
        bit<8> index;
        detours.group = 0;
        deflection_ports.apply();
        if (deflection_limit.apply().hit && detours.count != 0 && hdr.ipv4.ttl >= ttl_bound) {
            depth_of.apply(meta, port, depth);
            if (depth > limit) {
                DRAW_DETOUR DRAW_DETOUR DRAW_DETOUR DRAW_DETOUR
                // Nobody has room: the queue it was meant for decides.
                if (depth <= limit) {
                    deflected.count((bit<32>)standard_metadata.egress_spec);
                    standard_metadata.egress_spec = port;
                }
            }
        }
    }
}  // control dibs

#endif
