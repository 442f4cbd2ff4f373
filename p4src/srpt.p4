// ECMP, and SRPT by eight strict priorities.

#include <core.p4>
#include <v1model.p4>

#include "include/switch_ends.p4"
#include "lb/ecmp.p4"
#include "sched/srpt.p4"

control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    arrival() arrive;
    ecmp() balance;
    srpt() prioritize;
    departure() depart;

    apply {
        bool routable;
        arrive.apply(hdr, meta, standard_metadata, routable);
        if (routable) {
            balance.apply(hdr, meta, standard_metadata);
            prioritize.apply(hdr, standard_metadata);
            depart.apply(hdr, meta, standard_metadata);
        }
    }
}  // control ingress

V1Switch(roce_parser(), roce_verify_checksum(), ingress(), egress(), roce_compute_checksum(), roce_deparser()) main;
