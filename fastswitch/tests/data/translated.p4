// Ports that the controller names by strings, and VRFs that are wider at the controller than in the data plane.

#include <core.p4>
#include <v1model.p4>

@p4runtime_translation("", string)
type bit<9> port_id_t;

@p4runtime_translation("example.org/vrf", 32)
type bit<12> vrf_t;

@controller_header("packet_in")
header packet_in_t {
    port_id_t ingress_port;
    bit<7>    reason;
}

@controller_header("packet_out")
header packet_out_t {
    bit<7>    reason;
    port_id_t egress_port;
}

header ethernet_t {
    bit<48> dst_addr;
    bit<48> src_addr;
    bit<16> ether_type;
}

struct headers_t {
    packet_in_t  packet_in;
    packet_out_t packet_out;
    ethernet_t   ethernet;
}

struct metadata_t {
    port_id_t port;
    vrf_t     vrf;
}

struct seen_t {
    port_id_t port;
    vrf_t     vrf;
    bit<48>   src_addr;
}

parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

control no_verify(inout headers_t hdr, inout metadata_t meta) { apply { } }

control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action forward(port_id_t port) { std.egress_spec = (bit<9>)port; }
    action set_vrf(vrf_t vrf) { meta.vrf = vrf; }

    table vrf_of_port {
        key = { meta.port : exact; }
        actions = { set_vrf; NoAction; }
    }

    table port_of_vrf {
        key = {
            meta.vrf : exact;
            meta.port : optional;
        }
        actions = { forward; NoAction; }
    }

    apply {
        meta.port = (port_id_t)std.ingress_port;
        vrf_of_port.apply();
        port_of_vrf.apply();
        digest<seen_t>(1, { meta.port, meta.vrf, hdr.ethernet.src_addr });
        if (std.egress_spec == 510) {
            hdr.packet_in.setValid();
            hdr.packet_in.ingress_port = meta.port;
        }
    }
}

control egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) { apply { } }
control no_compute(inout headers_t hdr, inout metadata_t meta) { apply { } }

control deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.packet_out);
        packet.emit(hdr.ethernet);
    }
}

V1Switch(parse(), no_verify(), ingress(), egress(), no_compute(), deparse()) main;
