// Tables that cut their keys with a constant, which p4c writes as the mask of the key.
#include <core.p4>
#include <v1model.p4>

header three_t {
    bit<12> a;
    bit<4>  b;
    bit<16> c;
}

struct headers_t {
    three_t three;
}

struct metadata_t {}

parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.three);
        transition accept;
    }
}

control verify_nothing(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control compute_nothing(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action forward(bit<9> port) {
        standard.egress_spec = port;
    }

    table exact_table {
        key = {
            hdr.three.a & 0xf0f : exact @name("a");
            hdr.three.b : exact;
            hdr.three.c & 0x0ff0 : exact @name("c");
        }
        actions = { forward; NoAction; }
        default_action = NoAction();
    }

    table ternary_table {
        key = {
            hdr.three.c & 0x0ff0 : ternary @name("c");
        }
        actions = { forward; NoAction; }
        default_action = NoAction();
    }

    table lpm_table {
        key = {
            hdr.three.c & 0x0ff0 : lpm @name("c");
        }
        actions = { forward; NoAction; }
        default_action = NoAction();
    }

    apply {
        exact_table.apply();
        ternary_table.apply();
        lpm_table.apply();
    }
}

control egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {}
}

control deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.three);
    }
}

V1Switch(parse(), verify_nothing(), ingress(), egress(), compute_nothing(), deparse()) main;
