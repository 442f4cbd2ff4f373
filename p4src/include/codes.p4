// Numbers that NICs, hosts and tools must agree on and that no switch reads.
//
// Only `const`, `typedef` and `enum bit<N>` appear here; wire/generate.py turns them into C enums with name
// tables and Python IntEnums.

#ifndef PLAIT_CODES_P4
#define PLAIT_CODES_P4

const bit<16> ROCEV2_DEFAULT_PKEY = 0xffff;
const bit<16> ICRC_BYTES = 4;   // trails every RoCEv2 packet (IBTA Annex A17.3); not a P4 header

// An ACK that grants no end-to-end credits (IBTA vol. 1, 9.7.7.2.1): "invalid" credit count.
const bit<8> AETH_CREDITS_INVALID = 0x1f;

// The 16 reserved bytes of a CNP (IBTA Annex A17.9.3).
const bit<16> CNP_RESERVED_BYTES = 16;

// What the RNIC did with a received frame: every verdict of the XDP program counts exactly one of these.
enum bit<8> nic_event_t {
    PASSED_TO_KERNEL      = 0,   // not RoCEv2: the host's own stack gets it
    REQUEST_PLACED        = 1,   // executed in order: payload placed, or READ/atomic handed to the agent
    REQUEST_DUPLICATE     = 2,   // came before: acknowledged again, not executed
    REQUEST_SEQ_ERROR     = 3,   // PSN beyond the expected one: first of a gap answered by NAK, the rest dropped
    ACK_RECEIVED          = 4,
    NAK_RECEIVED          = 5,
    ACK_STALE             = 6,   // acknowledges nothing outstanding
    DROP_TRUNCATED        = 7,   // shorter than its headers or lengths say
    DROP_BAD_HEADER       = 8,   // BTH version, pad count or P_Key not acceptable
    DROP_UNKNOWN_QP       = 9,
    DROP_WRONG_PEER       = 10,  // addresses are not those of the queue pair's path
    DROP_QP_STATE         = 11,  // the queue pair is not ready to receive
    DROP_BAD_OPCODE       = 12,  // reserved or unsupported opcode
    NAK_OPCODE_SEQ        = 13,  // First/Middle/Last/Only out of order: NAK invalid request
    NAK_LENGTH            = 14,  // payload does not fit the path MTU, DMA length or receive: NAK invalid request
    NAK_RKEY              = 15,  // no such region, or no such right: NAK remote access error
    NAK_BOUNDS            = 16,  // outside the region: NAK remote access error
    CNP_RECEIVED          = 17,
    REQUEST_OUT_OF_ORDER  = 18,  // placed ahead of its turn, and remembered in the bitmap
    REQUEST_BEYOND        = 19,  // beyond what the bitmap can hold: dropped, NACK
    REQUEST_NO_BITMAP     = 20,  // no memory for a bitmap: dropped, NACK
    REQUEST_EARLY_FAULT   = 21,  // ahead of its turn and not acceptable: dropped; in its turn it gets its NAK
    SYNCHRONISE_REFUSED   = 22,  // synchronise came before what it must follow: dropped, NACK
    RNR_NAK_SENT          = 23,  // no receive posted, or no room for a READ or atomic
    RESPONSE_PLACED       = 24,  // READ or atomic response, in order
    RESPONSE_OUT_OF_ORDER = 25,
    RESPONSE_DUPLICATE    = 26,
    RESPONSE_SEQ_ERROR    = 27,  // a response is missing before this one, or the bitmap cannot hold it
    SACK_RECEIVED         = 28,  // an acknowledgement that moves nothing but names a packet
    DROP_BAD_ICRC         = 29,  // only where the check is switched on
    PAUSE_RECEIVED        = 30   // a PFC frame: the transmit engine obeys it
}

// States of a queue pair (IBTA vol. 1, section 10.3.1), as the NIC core sees them.
enum bit<8> qp_state_t {
    RESET = 0,
    INIT  = 1,
    RTR   = 2,
    RTS   = 3,
    SQE   = 4,
    ERROR = 5
}

// SRPT: how much of its message is left, in a data packet's DSCP. Class 0 says nothing; class c from 1 means that the
// message has ceil(bytes / 256) = n units left with n in [u(c), u(c + 1)), u(c) = 1, 1.5, 2, 3, 4, 6, 8, ...: two
// classes an octave, c = 1 + 2 * floor(log2 n) + (the bit of n below its highest).
const bit<16> REMAINING_UNIT_BYTES = 256;
const bit<8> REMAINING_CLASSES = 64;

#endif
