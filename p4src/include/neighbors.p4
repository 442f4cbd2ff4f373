// The addresses on the wire: each port leads to one neighbor.

#ifndef PLAIT_NEIGHBORS_P4
#define PLAIT_NEIGHBORS_P4

#include "roce_parser.p4"

control neighbors(inout headers_t hdr, in standard_metadata_t standard_metadata) {
    action set_macs(mac_addr_t src_mac, mac_addr_t dst_mac) {
        hdr.ethernet.src_addr = src_mac;
        hdr.ethernet.dst_addr = dst_mac;
    }

    table neighbor {
        key = { standard_metadata.egress_spec : exact; }
        actions = { set_macs; NoAction; }
        default_action = NoAction;
        size = 512;
    }

    apply {
        neighbor.apply();
    }
}  // control neighbors

#endif
