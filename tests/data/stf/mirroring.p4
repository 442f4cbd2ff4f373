#define EGRESS
#include "begin.p4"
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        meta.mark = hdr.h.key;
        clone_preserving_field_list(CloneType.I2E, (bit<32>)hdr.h.kind, 1);
        std.egress_spec = 1;
        hdr.h.hops = 0xEE; /* the clone is of the packet as it came */
    }
}
control egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        if (std.instance_type == 1) {
            hdr.h.value = (bit<32>)meta.mark;
        }
    }
}
#include "end.p4"
