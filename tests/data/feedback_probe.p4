// What a program compiled with PLAIT_FEEDBACK knows of a queue, and what that queue was: both written into the packet.
// Everything that comes in leaves by port 2. Run by tests/feedback_staleness.py.

#include <core.p4>
#include <v1model.p4>

#define PLAIT_FEEDBACK
#include "../../p4src/include/live_state.p4"

const port_t OUT = 2;

header probe_t {
    bit<32> fed_bytes;       // what ingress read
    bit<32> found_packets;   // what was in the queue a moment later, when the packet joined it
    bit<32> age_us;          // from when the value was written to when the packet joined the queue
    bit<32> age_packets;     // that joined the queue since
}

struct probe_headers_t {
    ethernet_t ethernet;
    probe_t    probe;
}

struct probe_metadata_t { }

parser probe_parser(packet_in packet, out probe_headers_t hdr, inout probe_metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        packet.extract(hdr.probe);
        transition accept;
    }
}  // parser probe_parser

register<bit<32>>(1) written_us;
register<bit<32>>(1) joined;            // packets, ever
register<bit<32>>(1) joined_at_write;

control ingress(inout probe_headers_t hdr, inout probe_metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        bit<32> now_joined;
        bit<32> then_joined;
        standard_metadata.egress_spec = OUT;
        queue_bytes.read(hdr.probe.fed_bytes, (bit<32>)OUT);
        written_us.read(hdr.probe.age_us, 0);
        joined.read(now_joined, 0);
        joined_at_write.read(then_joined, 0);
        hdr.probe.age_packets = now_joined - then_joined;
        joined.write(0, now_joined + 1);
    }
}  // control ingress

control egress(inout probe_headers_t hdr, inout probe_metadata_t meta, inout standard_metadata_t standard_metadata) {
    queue_feedback() feedback;

    apply {
        bit<32> now_joined;
        hdr.probe.age_us = standard_metadata.enq_timestamp - hdr.probe.age_us;
        hdr.probe.found_packets = (bit<32>)standard_metadata.enq_qdepth;
        feedback.apply(standard_metadata);
        joined.read(now_joined, 0);
        joined_at_write.write(0, now_joined);
        written_us.write(0, standard_metadata.egress_global_timestamp[31:0]);
    }
}  // control egress

control no_checksum(inout probe_headers_t hdr, inout probe_metadata_t meta) {
    apply { }
}  // control no_checksum

control probe_deparser(packet_out packet, in probe_headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.probe);
    }
}  // control probe_deparser

V1Switch(probe_parser(), no_checksum(), ingress(), egress(), no_checksum(), probe_deparser()) main;
