// How full a port is, for those who choose among ports.

#ifndef PLAIT_QUEUE_DEPTH_P4
#define PLAIT_QUEUE_DEPTH_P4

#include "live_state.p4"
#include "port_up.p4"

const bit<32> QUEUE_UNUSABLE = 0xffffffff;   // deeper than any queue: the port is down

// Bytes that wait for `port`, or QUEUE_UNUSABLE.
control queue_depth(in metadata_t meta, in port_t port, out bit<32> depth) {
    apply {
        bit<1> up;
        queue_bytes.read(depth, (bit<32>)port);
        PORT_UP(up, port);
        depth = up == 1 ? depth : QUEUE_UNUSABLE;
    }
}  // control queue_depth

#endif
