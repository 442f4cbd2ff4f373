// Shortest remaining processing time: a packet's strict priority follows from how much of its message is left
// (pFabric: Alizadeh et al., SIGCOMM 2013; eight queues instead of a sorted one).
//
// The NIC writes the remaining size into the DSCP, two steps an octave (REMAINING_CLASSES in codes.p4): like ECN it
// lies in a byte that the ICRC does not cover. Which class gets which of the eight queues is the table's to say.

#ifndef PLAIT_SRPT_P4
#define PLAIT_SRPT_P4

#include "../include/roce_parser.p4"

control srpt(in headers_t hdr, inout standard_metadata_t standard_metadata) {
    action set_priority(bit<3> priority) {
        standard_metadata.priority = priority;
    }

    table remaining_priority {
        key = { hdr.ipv4.dscp : exact; }
        actions = { set_priority; NoAction; }
        default_action = NoAction;
        size = 64;
    }

    apply {
        if (hdr.ipv4.isValid()) {
            remaining_priority.apply();
        }
    }
}  // control srpt

#endif
