// k shortest paths, per flow, per packet or by two choices.

#include <core.p4>
#include <v1model.p4>

#include "include/switch_ends.p4"
#include "lb/ksp.p4"

control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    arrival() arrive;
    ksp() balance;
    ksp_label() name_path;
    departure() depart;

    apply {
        bool routable;
        arrive.apply(hdr, meta, standard_metadata, routable);
        if (routable) {
            balance.apply(hdr, meta, standard_metadata);
            depart.apply(hdr, meta, standard_metadata);
            name_path.apply(hdr, meta);
        }
    }
}  // control ingress

V1Switch(roce_parser(), roce_verify_checksum(), ingress(), egress(), roce_compute_checksum(), roce_deparser()) main;
