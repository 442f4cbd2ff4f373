// The path of a chosen packet: each switch sends a copy of it to the controller, with what happened to it there in
// front; the packet itself is not changed.
//
//     ingress: flow filter --> meta.trace, egress: clone --> copy to the CPU port with a packet_in header

#ifndef PLAIT_PATH_TRACE_P4
#define PLAIT_PATH_TRACE_P4

#include "roce_parser.p4"

const bit<32> INSTANCE_EGRESS_CLONE = 2;   // BMv2's PKT_INSTANCE_TYPE_EGRESS_CLONE

control trace_filter(in headers_t hdr, inout metadata_t meta, in standard_metadata_t standard_metadata) {
    action trace_to(bit<15> session) {
        meta.trace.session = session;
    }

    table trace {
        key = {
            hdr.ipv4.src_addr : ternary;
            hdr.ipv4.dst_addr : ternary;
            meta.l4_src_port  : ternary;
            meta.l4_dst_port  : ternary;
            meta.trace.psn    : ternary;
        }
        actions = { trace_to; NoAction; }
        default_action = NoAction;
        size = 64;
    }

    apply {
        if (hdr.bth.isValid()) {
            meta.trace.psn = hdr.bth.psn;
        }
        trace.apply();
        meta.trace.ingress_port = standard_metadata.ingress_port;
    }
}  // control trace_filter

control trace_copy(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        if (standard_metadata.instance_type == INSTANCE_EGRESS_CLONE) {
            hdr.packet_in.setValid();
            hdr.packet_in.ingress_port = meta.trace.ingress_port;
            hdr.packet_in.egress_port = meta.trace.egress_port;
            hdr.packet_in.queue_packets = meta.trace.queue_packets;
            hdr.packet_in.queued_us = meta.trace.queued_us;
            hdr.packet_in.padding = 0;
        } else if (meta.trace.session != 0) {
            meta.trace.egress_port = standard_metadata.egress_port;
            meta.trace.queue_packets = standard_metadata.enq_qdepth;
            meta.trace.queued_us = standard_metadata.deq_timedelta;
            clone_preserving_field_list(CloneType.E2E, (bit<32>)meta.trace.session, TRACE_FIELDS);
        }
    }
}  // control trace_copy

#endif
