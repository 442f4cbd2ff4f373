/* Priority flow control (IEEE 802.1Qbb; IEEE 802.3 annex 31D): frames that pause or resume the classes of a peer.
 *
 * Frame: destination 01:80:c2:00:00:01, Ethertype 0x8808 (MAC control), opcode 0x0101, a vector that names the classes,
 * and for each class a time in quanta of 512 bit times at the port's rate; 0 resumes.  All numbers are big-endian.
 * Where a port's rate is unlimited a quantum is as long as at 10 Gb/s, what the kernel says of a veth.
 */
#ifndef PLAIT_PFC_H
#define PLAIT_PFC_H

#include "tm.h"

#define PLAIT_PAUSE_BYTES  60u
#define PLAIT_NOMINAL_RATE 10000000000ull

static inline bool plait_is_mac_control(const struct plait_pkt *pkt)
{
    return pkt->packet.length >= 14 && pkt->packet.data[12] == 0x88 && pkt->packet.data[13] == 0x08;
}

/* How long `quanta` last at the port's rate. */
sim_time plait_pause_time(const struct plait_port *port, uint32_t quanta);
/* Sends the peer of `port` one frame that pauses `classes` (a mask) for `quanta`. */
void plait_pause_send(struct plait_port *port, uint32_t classes, uint32_t quanta);
/* Does to `port` what a MAC control frame asks for, as far as `enabled` (a mask of classes) goes; counts it. The packet
 * stays the caller's. */
void plait_pause_obey(struct plait_port *port, const struct plait_pkt *pkt, uint32_t enabled);

#endif
