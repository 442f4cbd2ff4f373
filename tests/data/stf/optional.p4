#include "begin.p4"
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action forward(bit<9> port) { std.egress_spec = port; }
    table pick {
        key = { hdr.h.key: range; hdr.h.kind: optional; }
        actions = { forward; }
        default_action = forward(9);
        const entries = {
            (100..199, _): forward(1);
            (150..250, 3): forward(2);
        }
    }
    table choose {
        key = { hdr.h.key: range; hdr.h.kind: optional; }
        actions = { forward; NoAction; }
    }
    apply {
        pick.apply();
        choose.apply();
    }
}
#include "end.p4"
