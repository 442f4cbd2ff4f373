#define EGRESS
#include "begin.p4"
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        if (std.instance_type == 0) {
            meta.mark = hdr.h.key;
            resubmit_preserving_field_list(1);
        }
        std.egress_spec = 1;
    }
}
control egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        if (hdr.h.hops > 0) {
            hdr.h.hops = hdr.h.hops - 1;
            hdr.h.value = hdr.h.value + 1;
            recirculate_preserving_field_list(1);
        }
    }
}
#include "end.p4"
