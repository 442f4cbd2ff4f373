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

struct nic_packet {
	wire_u64 dst_mac;
	wire_u64 va;              /* RETH */
	wire_u32 rkey;            /* RETH */
	wire_u32 dma_length;      /* RETH */
	wire_u32 src_ip;
	wire_u32 dst_ip;
	wire_u32 dest_qpn;
	wire_u32 psn;
	wire_u32 host;            /* slot of the host that received it */
	wire_u16 src_port;
	wire_u16 pkey;
	wire_u16 payload_at;      /* offset in the frame */
	wire_u16 payload_length;  /* without pad bytes */
	wire_u8 opcode;
	wire_u8 ack_req;
	wire_u8 ecn;
	wire_u8 syndrome;         /* AETH */
};

/* At most one reply and one placement for a packet. */
struct nic_verdict {
	wire_u64 place_at;      /* arena offset of the payload */
	wire_u32 place_length;  /* 0: nothing to place */
	wire_u32 reply_psn;
	wire_u32 reply_msn;
	wire_u8 event;          /* enum wire_nic_event */
	wire_u8 reply;          /* 1: send an acknowledge packet with this syndrome */
	wire_u8 syndrome;
	wire_u8 doorbell;       /* 1: the agent must look at the queue pair */
};

/*
 * Opcode properties as sets: bit N stands for opcode N, for all opcodes of the reliable connection service that Plait
 * knows.  A set is one constant, so no table has to be in an eBPF program's memory.
 */
#define NIC_OP(name) (1u << WIRE_BTH_OPCODE_##name)

#define NIC_OPS_WRITE_START (NIC_OP(RC_WRITE_FIRST) | NIC_OP(RC_WRITE_ONLY))
#define NIC_OPS_WRITE_END   (NIC_OP(RC_WRITE_LAST) | NIC_OP(RC_WRITE_ONLY))
#define NIC_OPS_WRITE       (NIC_OPS_WRITE_START | NIC_OPS_WRITE_END | NIC_OP(RC_WRITE_MIDDLE))

#define NIC_OPS_SEND                                                                                                   \
	(NIC_OP(RC_SEND_FIRST) | NIC_OP(RC_SEND_MIDDLE) | NIC_OP(RC_SEND_LAST) | NIC_OP(RC_SEND_LAST_IMM) |            \
	 NIC_OP(RC_SEND_ONLY) | NIC_OP(RC_SEND_ONLY_IMM) | NIC_OP(RC_SEND_LAST_INVALIDATE) |                           \
	 NIC_OP(RC_SEND_ONLY_INVALIDATE))
#define NIC_OPS_WRITE_IMM (NIC_OP(RC_WRITE_LAST_IMM) | NIC_OP(RC_WRITE_ONLY_IMM))
#define NIC_OPS_FETCH     (NIC_OP(RC_READ_REQUEST) | NIC_OP(RC_COMPARE_SWAP) | NIC_OP(RC_FETCH_ADD))

/* Requests that a responder must answer, even if only with "invalid request". */
#define NIC_OPS_REQUEST (NIC_OPS_WRITE | NIC_OPS_SEND | NIC_OPS_WRITE_IMM | NIC_OPS_FETCH)
#define NIC_OPS_RESPONSE NIC_OP(RC_ACKNOWLEDGE)

/* Extended transport headers, for the opcodes whose contents the NIC reads (IBTA vol. 1, table 38). */
#define NIC_OPS_RETH (NIC_OPS_WRITE_START | NIC_OP(RC_WRITE_ONLY_IMM) | NIC_OP(RC_READ_REQUEST))
#define NIC_OPS_AETH NIC_OPS_RESPONSE

WIRE_FN int nic_opcode_in(wire_u32 set, wire_u8 opcode)
{
	return opcode < 32 && ((set >> opcode) & 1);
}

#endif
