#include "begin.p4"
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action forward(bit<9> port) { std.egress_spec = port; }
    table route {
        key = { hdr.h.value: lpm; }
        actions = { forward; NoAction; }
        default_action = forward(9);
    }
    apply { route.apply(); }
}
#include "end.p4"
