// Packets between the controller and the switch's neighbors, as they are: neither routed nor rewritten.
//
//     from the controller: packet_out names the port that they leave by
//     LLDP and ARP: to the controller, with the port that they came in by

#ifndef PLAIT_CONTROLLER_PORT_P4
#define PLAIT_CONTROLLER_PORT_P4

#include "roce_parser.p4"

control controller_port(inout headers_t hdr, inout standard_metadata_t standard_metadata, out bool taken) {
    apply {
        taken = true;
        if (hdr.packet_out.isValid()) {
            standard_metadata.egress_spec = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
        } else if (hdr.ethernet.isValid()
                   && (hdr.ethernet.ether_type == ether_type_t.LLDP || hdr.ethernet.ether_type == ether_type_t.ARP)) {
            standard_metadata.egress_spec = CPU_PORT;
            hdr.packet_in.setValid();
            hdr.packet_in.ingress_port = standard_metadata.ingress_port;
            hdr.packet_in.egress_port = 0;
            hdr.packet_in.queue_packets = 0;
            hdr.packet_in.queued_us = 0;
            hdr.packet_in.padding = 0;
        } else {
            taken = false;
        }
    }
}  // control controller_port

#endif
