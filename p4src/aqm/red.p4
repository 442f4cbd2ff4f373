// Random early detection on the queue a packet finds on arrival, in bytes: certainly above Kmax, never up to Kmin, and
// with a probability that grows from 0 to Pmax between them (Floyd and Jacobson, 1993, on the instantaneous queue, as
// DCQCN and MP-RDMA configure it).
// DCTCP's step (RFC 8257, section 3.1) is Kmin = Kmax.

#ifndef PLAIT_RED_P4
#define PLAIT_RED_P4

#include "../include/live_state.p4"

// At the end of ingress, when the packet knows its port.
control red_arrival(inout metadata_t meta, in standard_metadata_t standard_metadata) {
    apply {
#ifndef PLAIT_FEEDBACK
        queue_bytes.read(meta.queue_bytes, (bit<32>)standard_metadata.egress_spec);
#endif
    }
}  // control red_arrival

control red_mark(inout headers_t hdr, inout metadata_t meta, in standard_metadata_t standard_metadata) {
    counter(512, CounterType.packets_and_bytes) ecn_marked;   // by port
    bit<32> kmin = 0xffffffff;
    bit<32> kmax = 0xffffffff;
    bit<32> slope = 0;

    // slope: Pmax * 2^32 / (kmax - kmin); bytes.
    action set_red(bit<32> kmin_bytes, bit<32> kmax_bytes, bit<32> slope_per_byte) {
        kmin = kmin_bytes;
        kmax = kmax_bytes;
        slope = slope_per_byte;
    }

    table red_curve {
        key = { standard_metadata.egress_port : exact; }
        actions = { set_red; NoAction; }
        default_action = NoAction;
        size = 512;
    }

    apply {
#ifdef PLAIT_FEEDBACK
        meta.queue_bytes = (bit<32>)standard_metadata.enq_qdepth * standard_metadata.packet_length;
#endif
        if (hdr.ipv4.isValid() && hdr.ipv4.ecn != ecn_t.NOT_ECT && red_curve.apply().hit && meta.queue_bytes > kmin) {
            bool mark = true;
            if (meta.queue_bytes <= kmax) {
                bit<32> drawn;
                random(drawn, 0, 32w0xffffffff);
                mark = (bit<64>)drawn < (bit<64>)(meta.queue_bytes - kmin) * (bit<64>)slope;
            }
            if (mark) {
                hdr.ipv4.ecn = ecn_t.CE;
                ecn_marked.count((bit<32>)standard_metadata.egress_port);
            }
        }
    }
}  // control red_mark

#endif
