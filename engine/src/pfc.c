#include "pfc.h"

#include <string.h>

#define OPCODE_PFC 0x0101u
#define QUANTUM_BITS 512u

enum { POS_SOURCE = 6, POS_TYPE = 12, POS_OPCODE = 14, POS_VECTOR = 16, POS_TIMES = 18, FRAME_END = 34 };

static const uint8_t destination[6] = {0x01, 0x80, 0xc2, 0x00, 0x00, 0x01};
static const uint8_t no_address[6];

static void put16(uint8_t *at, uint32_t value)
{
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
}

static uint32_t get16(const uint8_t *at) { return (uint32_t)at[0] << 8 | at[1]; }

sim_time plait_pause_time(const struct plait_port *port, uint32_t quanta)
{
    /* 2^16 * 2^9 * 1e9 < 2^55 */
    return (uint64_t)quanta * QUANTUM_BITS * NS_PER_SECOND / (port->rate ? port->rate : PLAIT_NOMINAL_RATE);
}

void plait_pause_send(struct plait_port *port, uint32_t classes, uint32_t quanta)
{
    struct plait_pkt *pkt = plait_pool_get(port->pool);
    if (!pkt) { /* a pause is repeated; a resume is replaced by the pause's end */
        port->pauses.frames_lost++;
        return;
    }
    uint8_t *frame = pkt->packet.data;
    memset(frame, 0, PLAIT_PAUSE_BYTES);
    memcpy(frame, destination, sizeof destination);
    memcpy(frame + POS_SOURCE, port->pauses.source, sizeof port->pauses.source);
    if (!memcmp(frame + POS_SOURCE, no_address, sizeof no_address)) {
        frame[POS_SOURCE] = 0x02; /* locally administered; the rest tells ports apart in a capture */
        put16(frame + POS_SOURCE + 4, port->number);
    }
    put16(frame + POS_TYPE, 0x8808);
    put16(frame + POS_OPCODE, OPCODE_PFC);
    put16(frame + POS_VECTOR, classes);
    for (uint32_t c = 0; c < PLAIT_QUEUES; c++)
        if (classes >> c & 1)
            put16(frame + POS_TIMES + 2 * c, quanta);
    pkt->packet.length = PLAIT_PAUSE_BYTES;
    plait_port_send_control(port, pkt);
}

void plait_pause_obey(struct plait_port *port, const struct plait_pkt *pkt, uint32_t enabled)
{
    const uint8_t *frame = pkt->packet.data;
    if (pkt->packet.length < FRAME_END || get16(frame + POS_OPCODE) != OPCODE_PFC) {
        port->pauses.frames_ignored++;
        return;
    }
    port->pauses.frames_received++;
    uint32_t classes = get16(frame + POS_VECTOR) & enabled;
    for (uint32_t c = 0; c < PLAIT_QUEUES; c++)
        if (classes >> c & 1)
            plait_port_pause(port, c, port->events->now + plait_pause_time(port, get16(frame + POS_TIMES + 2 * c)));
}
