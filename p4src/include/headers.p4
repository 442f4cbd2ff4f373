// Wire formats of Plait: the only home of header layouts, EtherTypes, ports, BTH opcodes and ECN codepoints.
//
// Only `const`, `typedef`, `enum bit<N>` and `header` appear here: wire/generate.py turns this file into
// wire.h (C), scapy layers and Python constants.  Names follow the InfiniBand specification vol. 1 ("IBTA"),
// its Annex A17 (RoCEv2), RFC 791, RFC 768 and RFC 3168.  Wire constants that no switch reads are in codes.p4.

#ifndef PLAIT_HEADERS_P4
#define PLAIT_HEADERS_P4

typedef bit<48> mac_addr_t;
typedef bit<32> ipv4_addr_t;
typedef bit<16> l4_port_t;
typedef bit<24> psn_t;
typedef bit<24> qpn_t;

enum bit<16> ether_type_t {
    IPV4      = 0x0800,
    ARP       = 0x0806,
    MAC_CTRL  = 0x8808,  // IEEE 802.3x / 802.1Qbb pause frames
    LLDP      = 0x88cc   // IEEE 802.1AB
}

enum bit<8> ip_proto_t {
    ICMP = 1,
    TCP  = 6,
    UDP  = 17
}

// RFC 3168, section 5.
enum bit<2> ecn_t {
    NOT_ECT = 0,
    ECT_1   = 1,
    ECT_0   = 2,
    CE      = 3
}

const l4_port_t ROCEV2_UDP_PORT = 4791;      // IBTA Annex A17.9.2

// IBTA vol. 1, table 38: service type in the upper three bits (000 = reliable connection).
enum bit<8> bth_opcode_t {
    RC_SEND_FIRST              = 0x00,
    RC_SEND_MIDDLE             = 0x01,
    RC_SEND_LAST               = 0x02,
    RC_SEND_LAST_IMM           = 0x03,
    RC_SEND_ONLY               = 0x04,
    RC_SEND_ONLY_IMM           = 0x05,
    RC_WRITE_FIRST             = 0x06,
    RC_WRITE_MIDDLE            = 0x07,
    RC_WRITE_LAST              = 0x08,
    RC_WRITE_LAST_IMM          = 0x09,
    RC_WRITE_ONLY              = 0x0a,
    RC_WRITE_ONLY_IMM          = 0x0b,
    RC_READ_REQUEST            = 0x0c,
    RC_READ_RESPONSE_FIRST     = 0x0d,
    RC_READ_RESPONSE_MIDDLE    = 0x0e,
    RC_READ_RESPONSE_LAST      = 0x0f,
    RC_READ_RESPONSE_ONLY      = 0x10,
    RC_ACKNOWLEDGE             = 0x11,
    RC_ATOMIC_ACKNOWLEDGE      = 0x12,
    RC_COMPARE_SWAP            = 0x13,
    RC_FETCH_ADD               = 0x14,
    RC_SEND_LAST_INVALIDATE    = 0x16,
    RC_SEND_ONLY_INVALIDATE    = 0x17,
    RC_READ_ACKNOWLEDGE        = 0x18,   // Plait: IRN's read (N)ACK, on an opcode that IBTA reserves
    CNP                        = 0x81    // IBTA Annex A17.9.3
}

// Which of Plait's headers stands between the BTH and the headers of its opcode.  IBTA reserves the bits and sends 0.
enum bit<7> bth_extension_t {
    NONE = 0,
    DATA = 1,    // xdata_t: in every data packet, request and READ response of a transport that takes them out of order
    ACK  = 2     // xack_t: in every acknowledgement of such a transport
}

// IBTA vol. 1, table 43: AETH syndrome, bits 6:5 of the syndrome byte.
enum bit<8> aeth_kind_t {
    ACK     = 0x00,
    RNR_NAK = 0x20,
    NAK     = 0x60
}

// IBTA vol. 1, table 45: NAK codes, bits 4:0 of the syndrome byte.
enum bit<8> nak_code_t {
    PSN_SEQUENCE_ERROR       = 0,
    INVALID_REQUEST          = 1,
    REMOTE_ACCESS_ERROR      = 2,
    REMOTE_OPERATIONAL_ERROR = 3,
    INVALID_RD_REQUEST       = 4
}

header ethernet_t {
    mac_addr_t   dst_addr;
    mac_addr_t   src_addr;
    ether_type_t ether_type;
}

header ipv4_t {
    bit<4>      version;
    bit<4>      ihl;
    bit<6>      dscp;
    ecn_t       ecn;
    bit<16>     total_len;
    bit<16>     identification;
    bit<1>      reserved;
    bit<1>      do_not_fragment;
    bit<1>      more_fragments;
    bit<13>     frag_offset;
    bit<8>      ttl;
    ip_proto_t  protocol;
    bit<16>     hdr_checksum;
    ipv4_addr_t src_addr;
    ipv4_addr_t dst_addr;
}

header udp_t {
    l4_port_t src_port;
    l4_port_t dst_port;
    bit<16>   len;
    bit<16>   checksum;
}

// Base transport header, IBTA vol. 1, section 9.2.
header bth_t {
    bth_opcode_t opcode;
    bit<1>       solicited;
    bit<1>       mig_req;
    bit<2>       pad_count;
    bit<4>       version;
    bit<16>      pkey;
    bit<1>       fecn;
    bit<1>       becn;
    bit<6>       reserved6;
    qpn_t        dest_qpn;
    bit<1>       ack_req;
    bth_extension_t extension;
    psn_t        psn;
}

// RDMA extended transport header, IBTA vol. 1, section 9.3.3.
header reth_t {
    bit<64> virtual_address;
    bit<32> rkey;
    bit<32> dma_length;
}

// ACK extended transport header, IBTA vol. 1, section 9.3.5.
header aeth_t {
    bit<8>  syndrome;
    bit<24> msn;
}

// Immediate data extended transport header, IBTA vol. 1, section 9.3.6.
header immdt_t {
    bit<32> immediate;
}

// Atomic extended transport header, IBTA vol. 1, section 9.3.4.
header atomic_eth_t {
    bit<64> virtual_address;
    bit<32> rkey;
    bit<64> swap_add;
    bit<64> compare;
}

// Atomic ACK extended transport header, IBTA vol. 1, section 9.3.5.3.
header atomic_ack_eth_t {
    bit<64> original_value;
}

// Invalidate extended transport header, IBTA vol. 1, section 9.3.7.
header ieth_t {
    bit<32> rkey;
}

// What the papers add to a data packet, so that it can be placed and judged whatever came before it.
header xdata_t {
    bit<1>  retransmission;  // MP-RDMA, section 3.3: ReTx
    bit<1>  synchronise;     // MP-RDMA, section 3.4
    bit<1>  last;            // Eunomia, section 3.2.1: nothing is posted behind this packet
    bit<5>  reserved_flags;
    bit<24> msn;             // MP-RDMA, section 3.1: message sequence number of the sender
    bit<8>  reserved_ipsn;
    bit<24> ipsn;            // MP-RDMA, section 3.1: number of the packet within its message
    bit<8>  reserved_wqe;
    bit<24> wqe_sn;          // IRN: recv_WQE_SN (SEND, WRITE with immediate), read_WQE_SN (READ, atomics, their responses)
    bit<32> head;            // Eunomia, section 3.2.1: first PSN of the connection
}

// What the papers add to an acknowledgement.  The BTH's PSN is the cumulative one (MP-RDMA's AACK).
header xack_t {
    bit<1>  sack_valid;      // sack_psn is a packet that was received
    bit<1>  ece;             // MP-RDMA, section 3.1: it was marked CE
    bit<1>  retransmission;  // MP-RDMA, section 3.3: ReTx, echoed
    bit<5>  reserved_flags;
    bit<24> sack_psn;        // the packet that caused this acknowledgement
    bit<16> path;            // MP-RDMA, section 3.1: its virtual path (UDP source port), echoed
    bit<16> reserved16;
}

#endif
