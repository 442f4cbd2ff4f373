// Per-flow hash over the 5-tuple, different at every switch.
//
// CRCs are linear: crc(flow, seed) = crc(flow) ^ c(seed), so a seeded CRC alone makes switches of consecutive
// stages choose alike (polarisation).  Multiplying by a per-switch odd number carries between bits and is not
// linear over GF(2); the upper half of the product is the part that every input bit reaches.

#ifndef PLAIT_FLOW_HASH_P4
#define PLAIT_FLOW_HASH_P4

control flow_hash(in headers_t hdr, inout metadata_t meta) {
    bit<32> five_tuple_crc;
    bit<32> multiplier = 1;

    // `odd_multiplier` is the switch's seed; the controller draws one per switch and keeps it odd.
    action set_seed(bit<32> odd_multiplier) {
        multiplier = odd_multiplier;
    }

    table switch_seed {
        actions = { set_seed; }
        default_action = set_seed(0x9e3779b1);
    }

    apply {
        switch_seed.apply();
        hash(five_tuple_crc, HashAlgorithm.crc32, 32w0,
             { hdr.ipv4.src_addr, hdr.ipv4.dst_addr, hdr.ipv4.protocol, meta.l4_src_port, meta.l4_dst_port },
             33w0x100000000);
        bit<32> mixed = five_tuple_crc * multiplier;
        meta.flow_hash = mixed[31:16];
    }
}  // control flow_hash

#endif
