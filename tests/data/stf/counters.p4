#include "begin.p4"
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    counter(16, CounterType.packets_and_bytes) seen;
    direct_counter(CounterType.packets_and_bytes) hits;
    action forward(bit<9> port) {
        hits.count();
        std.egress_spec = port;
    }
    action drop() {
        hits.count();
        mark_to_drop(std);
    }
    table route {
        key = { hdr.h.key: exact; }
        actions = { forward; drop; }
        default_action = drop;
        counters = hits;
    }
    apply {
        seen.count((bit<32>)std.ingress_port);
        route.apply();
    }
}
#include "end.p4"
