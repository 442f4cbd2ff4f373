#define EGRESS
#include "begin.p4"
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply { std.mcast_grp = hdr.h.key; }
}
control egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply { hdr.h.value = (bit<32>)std.egress_rid; }
}
#include "end.p4"
