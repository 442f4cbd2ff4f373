// How many bytes wait for each egress port, as ingress reads it.
//
// plait-switch binds the register by name to its traffic manager: what ingress reads is what the queue holds at that
// moment. A switch that cannot (BMv2) runs the same program compiled with PLAIT_FEEDBACK: egress writes what each
// packet left behind in its queue, so a value is as old as the last packet that left by that port.

#ifndef PLAIT_LIVE_STATE_P4
#define PLAIT_LIVE_STATE_P4

#include "roce_parser.p4"

@name("plait.queue_bytes")
register<bit<32>>(512) queue_bytes;

#ifdef PLAIT_FEEDBACK

// Packets times this packet's length: BMv2 counts its queues in packets.
control queue_feedback(in standard_metadata_t standard_metadata) {
    apply {
        queue_bytes.write((bit<32>)standard_metadata.egress_port,
                          (bit<32>)standard_metadata.deq_qdepth * standard_metadata.packet_length);
    }
}  // control queue_feedback

#endif

#endif
