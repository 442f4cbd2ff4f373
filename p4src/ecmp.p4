// ECMP routing with step ECN marking: the baseline program of the laboratory.

#include <core.p4>
#include <v1model.p4>

#include "include/roce_parser.p4"
#include "include/port_counters.p4"
#include "lb/ecmp.p4"
#include "aqm/step_ecn.p4"

control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    port_rx_counters() rx;
    ecmp() balance;

    apply {
        rx.apply(standard_metadata);
        // The default egress port is 0, a real port: a packet that nothing forwards must not leave by it.
        mark_to_drop(standard_metadata);
        if (hdr.ipv4.isValid() && hdr.ipv4.ttl > 1 && standard_metadata.checksum_error == 0
            && standard_metadata.parser_error == error.NoError) {
            hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
            balance.apply(hdr, meta, standard_metadata);
        }
    }
}  // control ingress

control egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    port_tx_counters() tx;
    step_ecn() mark;

    apply {
        tx.apply(standard_metadata);
        mark.apply(hdr, standard_metadata);
    }
}  // control egress

V1Switch(roce_parser(), roce_verify_checksum(), ingress(), egress(), roce_compute_checksum(), roce_deparser()) main;
