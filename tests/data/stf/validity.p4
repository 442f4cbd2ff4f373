#include "begin.p4"
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action forward(bit<9> port) { std.egress_spec = port; }
    table route {
        key = { hdr.inner.isValid(): exact; hdr.inner.value: ternary; }
        actions = { forward; }
        default_action = forward(9);
    }
    apply { route.apply(); }
}
#include "end.p4"
