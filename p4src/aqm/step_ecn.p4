// DCTCP's step marking: CE once the packet found more than K packets in its queue (RFC 8257, section 3.1).

#ifndef PLAIT_STEP_ECN_P4
#define PLAIT_STEP_ECN_P4

control step_ecn(inout headers_t hdr, in standard_metadata_t standard_metadata) {
    bit<19> threshold_packets = 0x7ffff;

    action set_threshold(bit<19> packets) {
        threshold_packets = packets;
    }

    table ecn_threshold {
        key = { standard_metadata.egress_port : exact; }
        actions = { set_threshold; NoAction; }
        size = 512;
        default_action = NoAction;
    }

    apply {
        ecn_threshold.apply();
        if (hdr.ipv4.isValid() && hdr.ipv4.ecn != ecn_t.NOT_ECT && standard_metadata.enq_qdepth > threshold_packets) {
            hdr.ipv4.ecn = ecn_t.CE;
        }
    }
}  // control step_ecn

#endif
