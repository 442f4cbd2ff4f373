// One object of every kind that P4Runtime knows: what the server's tests write to and read from.

#include <core.p4>
#include <v1model.p4>

header ethernet_t {
    bit<48> dst_addr;
    bit<48> src_addr;
    bit<16> ether_type;
}

header ipv4_t {
    bit<4>  version;
    bit<4>  ihl;
    bit<8>  diffserv;
    bit<16> total_len;
    bit<16> identification;
    bit<3>  flags;
    bit<13> frag_offset;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> checksum;
    bit<32> src_addr;
    bit<32> dst_addr;
}

@controller_header("packet_in")
header packet_in_t {
    bit<9> ingress_port;
    bit<7> reason;
}

@controller_header("packet_out")
header packet_out_t {
    bit<9> egress_port;
    bit<7> padding;
}

struct headers_t {
    packet_out_t packet_out;
    packet_in_t  packet_in;
    ethernet_t   ethernet;
    ipv4_t       ipv4;
}

struct metadata_t {
    bit<16> hash;
    bit<2>  color;
}

struct learn_t {
    bit<48> src_addr;
    bit<9>  port;
}

#define CPU_PORT 510

parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    value_set<bit<16>>(4) tunnels;

    state start {
        transition select(std.ingress_port) {
            CPU_PORT: parse_packet_out;
            default: parse_ethernet;
        }
    }

    state parse_packet_out {
        packet.extract(hdr.packet_out);
        transition parse_ethernet;
    }

    state parse_ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            0x800: parse_ipv4;
            tunnels: parse_ipv4;
            default: accept;
        }
    }

    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }
}

control no_verify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    counter(16, CounterType.packets_and_bytes) port_counter;
    meter(8, MeterType.bytes) port_meter;
    register<bit<32>>(32) words;
    register<bit<128>>(4) wide;
    register<int<16>>(4) signed;
    direct_counter(CounterType.packets_and_bytes) exact_counter;
    direct_meter<bit<2>>(MeterType.bytes) exact_meter;

    action drop() {
        mark_to_drop(std);
    }

    action forward(bit<9> port) {
        std.egress_spec = port;
    }

    action forward_counted(bit<9> port) {
        std.egress_spec = port;
        exact_counter.count();
        exact_meter.read(meta.color);
    }

    action rewrite(bit<48> dst_addr, bit<9> port) {
        hdr.ethernet.dst_addr = dst_addr;
        std.egress_spec = port;
    }

    action broadcast(bit<16> group) {
        std.mcast_grp = group;
    }

    action to_controller() {
        std.egress_spec = CPU_PORT;
        hdr.packet_in.setValid();
        hdr.packet_in.ingress_port = std.ingress_port;
        hdr.packet_in.reason = 1;
    }

    action learn() {
        digest<learn_t>(1, { hdr.ethernet.src_addr, std.ingress_port });
    }

    table exact_table {
        key = {
            hdr.ethernet.dst_addr : exact;
            std.ingress_port : exact;
        }
        actions = { forward_counted; broadcast; to_controller; @defaultonly drop; }
        default_action = drop();
        counters = exact_counter;
        meters = exact_meter;
        size = 128;
    }

    table lpm_table {
        key = { hdr.ipv4.dst_addr : lpm; }
        actions = { forward; rewrite; @tableonly drop; NoAction; }
        default_action = NoAction();
        size = 65536;
    }

    table exact_lpm_table {
        key = {
            std.ingress_port : exact;
            hdr.ipv4.dst_addr : lpm;
        }
        actions = { forward; NoAction; }
        const default_action = NoAction();
    }

    table ternary_table {
        key = {
            hdr.ipv4.src_addr : ternary;
            hdr.ipv4.dst_addr : lpm;
            hdr.ipv4.protocol : exact;
        }
        actions = { forward; drop; NoAction; }
        size = 64;
    }

    table range_table {
        key = {
            hdr.ipv4.total_len : range;
            hdr.ipv4.protocol : ternary;
        }
        actions = { drop; NoAction; }
    }

    table optional_table {
        key = {
            hdr.ipv4.src_addr : optional;
            hdr.ipv4.dst_addr : optional;
        }
        actions = { drop; NoAction; }
    }

    table constant_table {
        key = { hdr.ipv4.protocol : exact; }
        actions = { forward; NoAction; }
        const entries = {
            6 : forward(1);
            17 : forward(2);
        }
    }

    table constant_ternary_table {
        key = { hdr.ipv4.diffserv : ternary; }
        actions = { forward; NoAction; }
        const entries = {
            0x10 &&& 0xf0 : forward(1);
            _ : forward(2);
        }
    }

    table initial_table {
        key = { hdr.ipv4.ttl : exact; }
        actions = { forward; NoAction; }
        default_action = NoAction();
        entries = {
            64 : forward(1);
        }
        size = 16;
    }

    table keyless_table {
        actions = { forward; learn; NoAction; }
    }

    table timeout_table {
        key = { hdr.ethernet.src_addr : exact; }
        actions = { NoAction; }
        default_action = NoAction();
        support_timeout = true;
    }

    action_profile(4) plain_profile;
    table profile_table {
        key = { hdr.ipv4.src_addr : exact; }
        actions = { forward; rewrite; NoAction; }
        implementation = plain_profile;
    }

    @max_group_size(8)
    action_selector(HashAlgorithm.crc16, 32, 16) next_hops;
    table selector_table {
        key = {
            hdr.ipv4.dst_addr : lpm;
            hdr.ipv4.src_addr : selector;
            hdr.ipv4.protocol : selector;
        }
        actions = { rewrite; forward; NoAction; }
        implementation = next_hops;
    }

    apply {
        if (std.ingress_port == 500) {
            forward(501);  // a copy of the action with a bound argument, which control planes must not meet
        }
        port_counter.count((bit<32>)std.ingress_port);
        port_meter.execute_meter<bit<2>>((bit<32>)std.ingress_port, meta.color);
        if (hdr.packet_out.isValid()) {
            std.egress_spec = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
        } else {
            exact_table.apply();
            timeout_table.apply();
            keyless_table.apply();
            if (hdr.ipv4.isValid()) {
                bit<32> word;
                bit<128> more;
                int<16> little;
                words.read(word, 0);
                words.write(0, word + 1);
                wide.read(more, 0);
                wide.write(0, more + 1);
                signed.read(little, 0);
                signed.write(0, little - 1);
                lpm_table.apply();
                exact_lpm_table.apply();
                ternary_table.apply();
                range_table.apply();
                optional_table.apply();
                constant_table.apply();
                constant_ternary_table.apply();
                initial_table.apply();
                profile_table.apply();
                selector_table.apply();
            }
        }
    }
}

control egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply { }
}

control no_compute(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
    }
}

V1Switch(parse(), no_verify(), ingress(), egress(), no_compute(), deparse()) main;
