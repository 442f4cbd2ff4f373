// The state of the egress ports, as ingress reads it.
//
// plait-switch binds these three registers by name to its traffic manager: what ingress reads is what the queue
// holds at that moment. A switch that cannot (BMv2) runs the same program compiled with PLAIT_FEEDBACK: egress writes
// what each packet left behind in its queue, so a value is as old as the last packet that left by that port, and
// the controller names the dead ports (docs/p4/live_state.md says how stale that is).

#ifndef PLAIT_LIVE_STATE_P4
#define PLAIT_LIVE_STATE_P4

#include "roce_parser.p4"

const bit<32> QUEUE_UNUSABLE = 0xffffffff;   // deeper than any queue: the port is down

@name("plait.queue_bytes")
register<bit<32>>(512) queue_bytes;

#ifdef PLAIT_FEEDBACK

control dead_ports(inout metadata_t meta) {
    action set_dead_ports(bit<256> mask) {
        meta.dead_ports = mask;
    }

    table port_liveness {
        actions = { set_dead_ports; }
        default_action = set_dead_ports(0);
    }

    apply {
        port_liveness.apply();
    }
}  // control dead_ports

#define PORT_UP(up, port) up = (bit<1>)1 ^ (bit<1>)((meta.dead_ports >> (bit<8>)(port)) & 1)

// Packets times this packet's length: BMv2 counts its queues in packets.
control queue_feedback(in standard_metadata_t standard_metadata) {
    apply {
        queue_bytes.write((bit<32>)standard_metadata.egress_port,
                          (bit<32>)standard_metadata.deq_qdepth * standard_metadata.packet_length);
    }
}  // control queue_feedback

#else

@name("plait.port_up")
register<bit<1>>(512) port_up;

#define PORT_UP(up, port) port_up.read(up, (bit<32>)(port))

#endif

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
