/* What the cases share: one header of 8 bytes, and a packet goes where ingress says. A case defines `control ingress`,
 * with EGRESS its own `control egress`, between the two includes. */
#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<8>  kind;
    bit<8>  hops;
    bit<16> key;
    bit<32> value;
}

struct headers_t {
    h_t h;
    h_t inner; /* there if kind is 2 */
}

struct metadata_t {
    @field_list(1)
    bit<16> mark;
}

parser Parse(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.h);
        transition select(hdr.h.kind) {
            2: inner;
            default: accept;
        }
    }
    state inner {
        packet.extract(hdr.inner);
        transition accept;
    }
}
