#include "begin.p4"
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action forward(bit<9> port) { std.egress_spec = port; }
    action drop() { mark_to_drop(std); }
    table route {
        key = { hdr.h.kind: exact; hdr.h.key: exact; }
        actions = { forward; drop; }
        default_action = drop;
    }
    apply { route.apply(); }
}
#include "end.p4"
