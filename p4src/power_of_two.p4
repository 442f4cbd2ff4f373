// Power of two choices per packet.

#include <core.p4>
#include <v1model.p4>

#include "include/switch_ends.p4"
#include "lb/power_of_two.p4"

control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    arrival() arrive;
    power_of_two() balance;
    departure() depart;

    apply {
        bool routable;
        arrive.apply(hdr, meta, standard_metadata, routable);
        if (routable) {
            balance.apply(hdr, meta, standard_metadata);
            depart.apply(hdr, meta, standard_metadata);
        }
    }
}  // control ingress

V1Switch(roce_parser(), roce_verify_checksum(), ingress(), egress(), roce_compute_checksum(), roce_deparser()) main;
