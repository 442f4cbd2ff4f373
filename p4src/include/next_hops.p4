// Where a destination can be reached: a set of up to 16 ports, a byte each, that fits in the data of one action.
// Load balancers choose an index into it.

#ifndef PLAIT_NEXT_HOPS_P4
#define PLAIT_NEXT_HOPS_P4

#include "roce_parser.p4"

struct next_hops_t {
    bit<24> group;        // number of the set: load balancers keep their state by it
    bit<8>  count;        // 1 to 16; 0 where there is no route
    bit<64> ports_0_7;    // port 0 in the lowest byte
    bit<64> ports_8_15;
}

control next_hop_port(in next_hops_t hops, in bit<8> index, out port_t port) {
    apply {
        port = (port_t)((index[3:3] == 1 ? hops.ports_8_15 : hops.ports_0_7) >> (index[2:0] ++ 3w0))[7:0];
    }
}  // control next_hop_port

#endif
