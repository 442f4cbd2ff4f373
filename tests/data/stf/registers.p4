#include "begin.p4"
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    register<bit<32>>(16) total;
    apply {
        bit<32> sum;
        total.read(sum, (bit<32>)hdr.h.key);
        sum = sum + hdr.h.value;
        total.write((bit<32>)hdr.h.key, sum);
        hdr.h.value = sum;
        std.egress_spec = 1;
    }
}
#include "end.p4"
