#include "begin.p4"
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    meter(4, MeterType.bytes) police;
    apply {
        bit<8> color;
        police.execute_meter((bit<32>)hdr.h.key, color);
        hdr.h.hops = color;
        std.egress_spec = 1;
    }
}
#include "end.p4"
