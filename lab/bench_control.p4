// What `plait bench control` inserts into: one large exact table.

#include <core.p4>
#include <v1model.p4>

header ethernet_t {
    bit<48> dst_addr;
    bit<48> src_addr;
    bit<16> ether_type;
}

struct headers_t { ethernet_t ethernet; }
struct metadata_t { }

parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

control no_verify(inout headers_t hdr, inout metadata_t meta) { apply { } }

control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action drop() { mark_to_drop(std); }
    action forward(bit<9> port) { std.egress_spec = port; }

    table forwarding {
        key = { hdr.ethernet.dst_addr : exact; }
        actions = { forward; drop; }
        const default_action = drop();
        size = 131072;
    }

    apply { forwarding.apply(); }
}

control egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) { apply { } }
control no_compute(inout headers_t hdr, inout metadata_t meta) { apply { } }
control deparse(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.ethernet); } }

V1Switch(parse(), no_verify(), ingress(), egress(), no_compute(), deparse()) main;
