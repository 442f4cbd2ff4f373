// Every kind of key and of action that tables can have, for tests of the verbs on real switches.

#include <core.p4>
#include <v1model.p4>

header ethernet_t {
    bit<48> dst_addr;
    bit<48> src_addr;
    bit<16> ether_type;
}

struct headers_t {
    ethernet_t ethernet;
}

struct metadata_t {
    bit<32> ipv4_addr;
    bit<16> l4_port;
    bit<8>  protocol;
}

parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

control verify_checksums(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    action_selector(HashAlgorithm.crc16, 8, 16) next_hops;
    direct_counter(CounterType.packets_and_bytes) zoo_counter;

    action forward(bit<9> port) {
        standard_metadata.egress_spec = port;
    }

    action drop() {
        mark_to_drop(standard_metadata);
    }

    table zoo {
        key = {
            hdr.ethernet.ether_type        : ternary;
            meta.ipv4_addr                 : ternary;
            meta.l4_port                   : range;
            meta.protocol                  : optional;
            standard_metadata.ingress_port : exact;
        }
        actions = { forward; drop; NoAction; }
        size = 4;
        counters = zoo_counter;
        default_action = drop;
    }

    table routes {
        key = {
            meta.ipv4_addr        : lpm;
            hdr.ethernet.src_addr : selector;
        }
        actions = { forward; }
        size = 16;
        implementation = next_hops;
    }

    table keyless {
        actions = { forward; NoAction; }
        default_action = NoAction;
    }

    apply {
        zoo.apply();
        routes.apply();
        keyless.apply();
    }
}  // control ingress

control egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply { }
}

control compute_checksums(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
    }
}

V1Switch(parse(), verify_checksums(), ingress(), egress(), compute_checksums(), deparse()) main;
