/*
 * What a received RoCEv2 packet says, and what the NIC decided about it: the core's input and output.
 * All values are in host order.
 */
#ifndef NIC_PACKET_H
#define NIC_PACKET_H

#include "wire.h"

/* Headers up to and including the BTH, at fixed offsets: IPv4 options are refused. */
#define NIC_IPV4_AT WIRE_ETHERNET_LEN
#define NIC_UDP_AT  (NIC_IPV4_AT + WIRE_IPV4_LEN)
#define NIC_BTH_AT  (NIC_UDP_AT + WIRE_UDP_LEN)
#define NIC_EXT_AT  (NIC_BTH_AT + WIRE_BTH_LEN)

/* Bits of nic_packet.flags, from xdata_t or xack_t. */
#define NIC_RETRANSMISSION 0x1
#define NIC_SYNCHRONISE    0x2
#define NIC_LAST           0x4
#define NIC_SACK_VALID     0x8
#define NIC_ECE            0x10
#define NIC_FLAGS_DATA     0x20 /* the packet has an xdata_t */
#define NIC_FLAGS_ACK      0x40 /* the packet has an xack_t */

/* Fields that the packet lacks are 0. */
struct nic_packet {
	wire_u64 dst_mac;
	wire_u64 va;              /* RETH, AtomicETH */
	wire_u64 swap_add;        /* AtomicETH; AtomicAckETH's original value */
	wire_u64 compare;         /* AtomicETH */
	wire_u32 rkey;            /* RETH, AtomicETH */
	wire_u32 dma_length;      /* RETH */
	wire_u32 immediate;       /* ImmDt; IETH's rkey */
	wire_u32 src_ip;
	wire_u32 dst_ip;
	wire_u32 dest_qpn;
	wire_u32 psn;
	wire_u32 host;            /* slot of the host that received it */
	wire_u32 msn;             /* xdata_t, AETH */
	wire_u32 ipsn;            /* xdata_t */
	wire_u32 wqe_sn;          /* xdata_t */
	wire_u32 head;            /* xdata_t */
	wire_u32 sack_psn;        /* xack_t */
	wire_u16 src_port;
	wire_u16 path;            /* xack_t */
	wire_u16 pkey;
	wire_u16 payload_at;      /* offset in the frame */
	wire_u16 payload_length;  /* without pad bytes */
	wire_u16 icrc_at;         /* offset in the frame */
	wire_u8 opcode;
	wire_u8 ack_req;
	wire_u8 becn;
	wire_u8 ecn;
	wire_u8 syndrome;         /* AETH */
	wire_u8 flags;            /* NIC_RETRANSMISSION ... */
};

/* Parts of an AETH syndrome: enum wire_aeth_kind, and a code. */
#define NIC_SYNDROME_KIND  0x60
#define NIC_SYNDROME_VALUE 0x1f

/* What a reply is; each has its own layout and checksum tables (reply.h). */
enum nic_reply {
	NIC_REPLY_NONE,
	NIC_REPLY_ACK,  /* BTH AETH */
	NIC_REPLY_XACK, /* BTH xack_t AETH */
	NIC_REPLY_CNP
};

/* At most one reply and one placement for a packet. */
struct nic_verdict {
	wire_u64 place_at;      /* arena offset of the payload */
	wire_u32 place_length;  /* 0: nothing to place */
	wire_u32 reply_psn;
	wire_u32 reply_msn;
	wire_u32 sack_psn;      /* xack_t */
	wire_u8 event;          /* enum wire_nic_event */
	wire_u8 reply;          /* enum nic_reply */
	wire_u8 reply_opcode;   /* RC_ACKNOWLEDGE or RC_READ_ACKNOWLEDGE */
	wire_u8 reply_flags;    /* NIC_RETRANSMISSION, NIC_SACK_VALID, NIC_ECE */
	wire_u8 syndrome;
	wire_u8 becn;           /* a congestion notification rides on the reply */
	wire_u8 doorbell;       /* 1: the agent must look at the queue pair */
	/*
	 * A packet held back at config.hold_at that goes to its place now, behind the payload: see nic_release().
	 * 0: there is none.
	 */
	wire_u16 release_length;
	wire_u32 release_rkey;
	wire_u64 release_va;
};

/*
 * Opcode properties as sets: bit N stands for opcode N, for all opcodes of the reliable connection service that Plait
 * knows.  A set is one constant, so no table has to be in an eBPF program's memory.
 */
#define NIC_OP(name) (1u << WIRE_BTH_OPCODE_##name)

#define NIC_OPS_SEND_START                                                                                             \
	(NIC_OP(RC_SEND_FIRST) | NIC_OP(RC_SEND_ONLY) | NIC_OP(RC_SEND_ONLY_IMM) | NIC_OP(RC_SEND_ONLY_INVALIDATE))
#define NIC_OPS_SEND_END                                                                                               \
	(NIC_OP(RC_SEND_LAST) | NIC_OP(RC_SEND_LAST_IMM) | NIC_OP(RC_SEND_LAST_INVALIDATE) | NIC_OP(RC_SEND_ONLY) |    \
	 NIC_OP(RC_SEND_ONLY_IMM) | NIC_OP(RC_SEND_ONLY_INVALIDATE))
#define NIC_OPS_SEND (NIC_OPS_SEND_START | NIC_OPS_SEND_END | NIC_OP(RC_SEND_MIDDLE))

#define NIC_OPS_WRITE_START (NIC_OP(RC_WRITE_FIRST) | NIC_OP(RC_WRITE_ONLY) | NIC_OP(RC_WRITE_ONLY_IMM))
#define NIC_OPS_WRITE_IMM   (NIC_OP(RC_WRITE_LAST_IMM) | NIC_OP(RC_WRITE_ONLY_IMM))
#define NIC_OPS_WRITE_END   (NIC_OP(RC_WRITE_LAST) | NIC_OP(RC_WRITE_ONLY) | NIC_OPS_WRITE_IMM)
#define NIC_OPS_WRITE       (NIC_OPS_WRITE_START | NIC_OPS_WRITE_END | NIC_OP(RC_WRITE_MIDDLE))

#define NIC_OPS_ATOMIC (NIC_OP(RC_COMPARE_SWAP) | NIC_OP(RC_FETCH_ADD))
#define NIC_OPS_FETCH  (NIC_OP(RC_READ_REQUEST) | NIC_OPS_ATOMIC)

#define NIC_OPS_START (NIC_OPS_SEND_START | NIC_OPS_WRITE_START)
#define NIC_OPS_END   (NIC_OPS_SEND_END | NIC_OPS_WRITE_END)

/* Requests that a responder must answer, even if only with "invalid request". */
#define NIC_OPS_REQUEST (NIC_OPS_WRITE | NIC_OPS_SEND | NIC_OPS_FETCH)

#define NIC_OPS_READ_RESPONSE                                                                                          \
	(NIC_OP(RC_READ_RESPONSE_FIRST) | NIC_OP(RC_READ_RESPONSE_MIDDLE) | NIC_OP(RC_READ_RESPONSE_LAST) |            \
	 NIC_OP(RC_READ_RESPONSE_ONLY))
#define NIC_OPS_RESPONSE_END                                                                                           \
	(NIC_OP(RC_READ_RESPONSE_LAST) | NIC_OP(RC_READ_RESPONSE_ONLY) | NIC_OP(RC_ATOMIC_ACKNOWLEDGE))
#define NIC_OPS_RESPONSE    (NIC_OPS_READ_RESPONSE | NIC_OP(RC_ATOMIC_ACKNOWLEDGE))
#define NIC_OPS_ACKNOWLEDGE (NIC_OP(RC_ACKNOWLEDGE) | NIC_OP(RC_READ_ACKNOWLEDGE))

/* Messages that consume a receive and complete it. */
#define NIC_OPS_COMPLETION (NIC_OPS_SEND_END | NIC_OPS_WRITE_IMM)

/* Extended transport headers (IBTA vol. 1, table 39). */
#define NIC_OPS_RETH                                                                                                   \
	(NIC_OP(RC_WRITE_FIRST) | NIC_OP(RC_WRITE_ONLY) | NIC_OP(RC_WRITE_ONLY_IMM) | NIC_OP(RC_READ_REQUEST))
#define NIC_OPS_AETH                                                                                                   \
	(NIC_OPS_ACKNOWLEDGE | NIC_OP(RC_ATOMIC_ACKNOWLEDGE) |                                                         \
	 (NIC_OPS_READ_RESPONSE & ~NIC_OP(RC_READ_RESPONSE_MIDDLE)))
#define NIC_OPS_IMMDT (NIC_OPS_WRITE_IMM | NIC_OP(RC_SEND_LAST_IMM) | NIC_OP(RC_SEND_ONLY_IMM))
#define NIC_OPS_IETH  (NIC_OP(RC_SEND_LAST_INVALIDATE) | NIC_OP(RC_SEND_ONLY_INVALIDATE))

WIRE_FN int nic_opcode_in(wire_u32 set, wire_u8 opcode)
{
	return opcode < 32 && ((set >> opcode) & 1);
}

/*
 * The RETH stands in every WRITE packet of a transport that takes packets out of order (IRN, "First packet issues");
 * it is always that of the message: address of its first byte, length of all.  The packet's own place is behind ipsn
 * full packets.
 */
WIRE_FN int nic_has_reth(wire_u8 opcode, wire_u8 extension)
{
	return nic_opcode_in(NIC_OPS_RETH, opcode) ||
	       (extension == WIRE_BTH_EXTENSION_DATA && nic_opcode_in(NIC_OPS_WRITE, opcode));
}

#endif
