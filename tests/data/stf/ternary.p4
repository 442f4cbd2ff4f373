#include "begin.p4"
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action forward(bit<9> port) { std.egress_spec = port; }
    action drop() { mark_to_drop(std); }
    table acl {
        key = { hdr.h.key: ternary; hdr.h.kind: ternary; }
        actions = { forward; drop; }
        default_action = drop;
    }
    apply { acl.apply(); }
}
#include "end.p4"
