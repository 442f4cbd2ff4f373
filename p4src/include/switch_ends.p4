// What every program does before and after its load balancer.

#ifndef PLAIT_SWITCH_ENDS_P4
#define PLAIT_SWITCH_ENDS_P4

#include "controller_port.p4"
#include "neighbors.p4"
#include "path_trace.p4"
#include "port_counters.p4"
#include "roce_parser.p4"
#include "../aqm/red.p4"
#ifdef PLAIT_FEEDBACK
#include "port_up.p4"
#endif

control arrival(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata,
                out bool routable) {
    port_rx_counters() rx;
    controller_port() controllers;
    bool taken;
#ifdef PLAIT_FEEDBACK
    dead_ports() dead;
#endif

    apply {
        rx.apply(standard_metadata);
#ifdef PLAIT_FEEDBACK
        dead.apply(meta);
#endif
        // The default egress port is 0, a real port: a packet that nothing forwards must not leave by it.
        mark_to_drop(standard_metadata);
        controllers.apply(hdr, standard_metadata, taken);
        routable = !taken && hdr.ipv4.isValid() && hdr.ipv4.ttl > 1 && standard_metadata.checksum_error == 0
            && standard_metadata.parser_error == error.NoError;
    }
}  // control arrival

control departure(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    neighbors() macs;
    red_arrival() found;
    trace_filter() trace;

    apply {
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
        macs.apply(hdr, standard_metadata);
        found.apply(meta, standard_metadata);
        trace.apply(hdr, meta, standard_metadata);
    }
}  // control departure

control egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    port_tx_counters() tx;
    red_mark() mark;
    trace_copy() copy;
#ifdef PLAIT_FEEDBACK
    queue_feedback() feedback;
#endif

    apply {
        if (standard_metadata.instance_type != INSTANCE_EGRESS_CLONE) {
            tx.apply(standard_metadata);
            mark.apply(hdr, meta, standard_metadata);
#ifdef PLAIT_FEEDBACK
            feedback.apply(standard_metadata);
#endif
        }
        copy.apply(hdr, meta, standard_metadata);
    }
}  // control egress

#endif
