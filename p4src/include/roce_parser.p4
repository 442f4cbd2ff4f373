// Headers, metadata, parser, checksums and deparser shared by Plait's programs.

#ifndef PLAIT_ROCE_PARSER_P4
#define PLAIT_ROCE_PARSER_P4

#include "headers.p4"

typedef bit<9> port_t;

const port_t CPU_PORT = 510;   // packets from and for the controller; the switch is started with it

const bit<8> TRACE_FIELDS = 1;

// What one switch did with a traced packet.
struct trace_t {
    bit<15> session;         // clone session of the copy; 0: not traced
    psn_t   psn;             // 0 where the packet has no BTH
    port_t  ingress_port;
    port_t  egress_port;
    bit<19> queue_packets;   // found in the queue
    bit<32> queued_us;       // spent there
}

@controller_header("packet_in")
header packet_in_t {
    port_t  ingress_port;
    port_t  egress_port;
    bit<19> queue_packets;
    bit<32> queued_us;
    bit<3>  padding;
}

@controller_header("packet_out")
header packet_out_t {
    port_t egress_port;
    bit<7> padding;
}

struct headers_t {
    packet_in_t packet_in;     // of packets to the controller only
    packet_out_t packet_out;   // of packets from it
    ethernet_t ethernet;
    ipv4_t     ipv4;
    udp_t      udp;
    bth_t      bth;
}

struct metadata_t {
    l4_port_t l4_src_port;   // 0 where the packet has no UDP header: hashing an invalid header is undefined
    l4_port_t l4_dst_port;
    bit<16>   flow_hash;
    bit<24>   path_label;    // ksp: name of the packet's path; 0 none
    bit<32>   queue_bytes;   // red: what the packet found in its queue
#ifdef PLAIT_FEEDBACK
    bit<256>  dead_ports;
#endif
    // What a traced packet's copy tells: see path_trace.p4.
    @field_list(TRACE_FIELDS)
    trace_t   trace;
}

parser roce_parser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    state start {
        transition select(standard_metadata.ingress_port) {
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
            ether_type_t.IPV4: parse_ipv4;
            default: accept;
        }
    }

    // Options and fragments other than the first carry no UDP header where we would look for it.
    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.ihl, hdr.ipv4.frag_offset, hdr.ipv4.protocol) {
            (5, 0, ip_proto_t.UDP): parse_udp;
            default: accept;
        }
    }

    state parse_udp {
        packet.extract(hdr.udp);
        meta.l4_src_port = hdr.udp.src_port;
        meta.l4_dst_port = hdr.udp.dst_port;
        transition select(hdr.udp.dst_port) {
            ROCEV2_UDP_PORT: parse_bth;
            default: accept;
        }
    }

    state parse_bth {
        packet.extract(hdr.bth);
        transition accept;
    }
}  // parser roce_parser

control roce_verify_checksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.total_len,
              hdr.ipv4.identification, hdr.ipv4.reserved, hdr.ipv4.do_not_fragment, hdr.ipv4.more_fragments,
              hdr.ipv4.frag_offset, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src_addr, hdr.ipv4.dst_addr },
            hdr.ipv4.hdr_checksum, HashAlgorithm.csum16);
    }
}  // control roce_verify_checksum

control roce_compute_checksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.total_len,
              hdr.ipv4.identification, hdr.ipv4.reserved, hdr.ipv4.do_not_fragment, hdr.ipv4.more_fragments,
              hdr.ipv4.frag_offset, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src_addr, hdr.ipv4.dst_addr },
            hdr.ipv4.hdr_checksum, HashAlgorithm.csum16);
    }
}  // control roce_compute_checksum

control roce_deparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.udp);
        packet.emit(hdr.bth);
    }
}  // control roce_deparser

#endif
