// k shortest paths, for topologies whose good paths are not all of one length (Jellyfish: Singla et al., NSDI 2012,
// section 5): a path is chosen where a packet enters the network and followed by name.
//
//     first switch   dst_addr --lpm--> next hops --policy--> index;  label = group + index, into dst MAC
//     on the way     label --exact--> port
//     last switch    no entry for the label: dst_addr --lpm--> the host's port
//
// A path's name is the lower half of the destination MAC, behind a prefix of its own (0a:50:4c, locally administered).
// MACs are rewritten at every hop anyway and the ICRC does not cover them, so that naming a path costs no byte, and
// tcpdump shows it.

#ifndef PLAIT_KSP_P4
#define PLAIT_KSP_P4

#include "../include/flow_hash.p4"
#include "../include/next_hop_routes.p4"
#include "../include/two_choices.p4"

const bit<24> PATH_LABEL_PREFIX = 0x0a504c;

// One of `count` by a number that is uniform over 16 bits.
control scale_to(in bit<16> uniform, in bit<8> count, out bit<8> index) {
    apply {
        index = ((bit<32>)uniform * (bit<32>)count)[23:16];
    }
}  // control scale_to

control ksp(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    next_hop_routes() routes;
    flow_hash() per_flow;
    scale_to() scale;
    shorter_of_two() shorter;
    live_next_hop() choice;
    next_hops_t hops;

    action follow(port_t port) {
        standard_metadata.egress_spec = port;
    }

    table path_label {
        key = { meta.path_label : exact; }
        actions = { follow; NoAction; }
        default_action = NoAction;
        size = 65536;
    }

    action per_flow_path() { }
    action per_packet_path() { }
    action two_choices() { }

    table path_policy {
        actions = { per_flow_path; per_packet_path; two_choices; }
        default_action = per_flow_path;
    }

    apply {
        bool on_path = false;
        if (hdr.ethernet.dst_addr[47:24] == PATH_LABEL_PREFIX) {
            meta.path_label = hdr.ethernet.dst_addr[23:0];
            on_path = path_label.apply().hit;
        }
        if (!on_path) {
            meta.path_label = 0;
            routes.apply(hdr, hops);
            if (hops.count != 0) {
                bit<8> index = 0;
                switch (path_policy.apply().action_run) {
                    per_flow_path: {
                        per_flow.apply(hdr, meta);
                        scale.apply(meta.flow_hash, hops.count, index);
                    }
                    per_packet_path: {
                        random(index, 0, hops.count - 1);
                    }
                    two_choices: {
                        shorter.apply(meta, hops, index);
                    }
                }
                choice.apply(meta, hops, index, standard_metadata.egress_spec);
                // Group 0 is this switch's own hosts: one hop, no name.
                if (hops.group != 0) {
                    meta.path_label = hops.group + (bit<24>)index;
                }
            }
        }
    }
}  // control ksp

// After the neighbor's addresses are written: the name takes the place of the destination.
control ksp_label(inout headers_t hdr, in metadata_t meta) {
    apply {
        if (meta.path_label != 0) {
            hdr.ethernet.dst_addr = PATH_LABEL_PREFIX ++ meta.path_label;
        }
    }
}  // control ksp_label

#endif
