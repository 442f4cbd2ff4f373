/*
 * Pause frames: PFC (IEEE 802.1Qbb; 802.3 annex 31D) and 802.3x's for the whole link (annex 31B).  A frame names times in
 * quanta of 512 bit times at the link's rate, one for each priority or one for all; 0 ends a pause.
 */
#ifndef NIC_PAUSE_H
#define NIC_PAUSE_H

#include "qp.h"

#define NIC_PAUSE_MAC      0x0180c2000001ull
#define NIC_PAUSE_OPCODE   0x0001
#define NIC_PFC_OPCODE     0x0101
#define NIC_PAUSE_AT       (WIRE_ETHERNET_LEN + 2) /* behind the opcode: 802.3x's time, PFC's priority enable vector */
#define NIC_PFC_TIMES_AT   (NIC_PAUSE_AT + 2)
#define NIC_PAUSE_LEN      (NIC_PFC_TIMES_AT + 2 * NIC_PFC_PRIORITIES)

/* Whether the frame is one that pauses; it has NIC_PAUSE_LEN bytes then (Ethernet pads to 60). */
WIRE_FN int nic_is_pause(const wire_u8 *frame, const wire_u8 *end)
{
	const struct wire_ethernet *eth = (const void *)frame;
	wire_u32 opcode;

	if (frame + NIC_PAUSE_LEN > end)
		return 0;
	opcode = (wire_u32)frame[WIRE_ETHERNET_LEN] << 8 | frame[WIRE_ETHERNET_LEN + 1];
	return wire_ethernet_get_ether_type(eth) == WIRE_ETHER_TYPE_MAC_CTRL &&
	       wire_ethernet_get_dst_addr(eth) == NIC_PAUSE_MAC && (opcode == NIC_PAUSE_OPCODE || opcode == NIC_PFC_OPCODE);
}

/* Of a frame that nic_is_pause(). */
WIRE_FN void nic_pause(struct nic_counters *c, const wire_u8 *frame, wire_u64 quantum_ps, wire_u64 now)
{
	int each = frame[WIRE_ETHERNET_LEN] == NIC_PFC_OPCODE >> 8;
	const wire_u8 *at = frame + (each ? NIC_PFC_TIMES_AT : NIC_PAUSE_AT);
	wire_u32 classes = each ? frame[NIC_PAUSE_AT + 1] : 0xff;

#pragma GCC unroll 8
	for (int i = 0; i < NIC_PFC_PRIORITIES; i++) {
		wire_u32 quanta = (wire_u32)at[each ? 2 * i : 0] << 8 | at[each ? 2 * i + 1 : 1];

		if (classes >> i & 1)
			*(volatile wire_u64 *)&c->pause_until[i] = now + quanta * quantum_ps / 1000;
	}
}

#endif
