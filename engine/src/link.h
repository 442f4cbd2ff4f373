/* Links. A link is two wires; a wire is one direction: delay, loss, up or down, first in first out.
 *
 * Rate and queue are those of the port that feeds the wire (tm.h).  Invariants: packets arrive in the order in which
 * they were sent, also when the delay shrinks; of the packets in flight only the first has an event, scheduled with the
 * order number it drew when it was sent, so ties fall as if each had one.  A packet counts as delivered, in the capture
 * and in the flow table when it arrives; a wire that is down then loses it.
 */
#ifndef PLAIT_LINK_H
#define PLAIT_LINK_H

#include "capture.h"
#include "event.h"
#include "flows.h"
#include "packet.h"
#include "random.h"
#include "tm.h"

struct plait_link;

struct plait_wire {
    struct plait_event_queue *events;
    struct plait_pool *pool;
    struct plait_link *link;
    struct plait_port *from; /* the port that feeds it */
    struct plait_list flight;
    struct plait_event arrival;
    sim_time delay, last_due;
    uint64_t loss_threshold; /* a packet is lost if a 64-bit random number is below; UINT64_MAX: all are */
    struct plait_random random;
    void (*deliver)(void *to, uint32_t port, struct plait_pkt *pkt);
    void *to;
    uint32_t to_port;
    uint64_t packets, drops_loss, drops_down;
    byte_count bytes;
    struct plait_flows *flows; /* NULL: not recorded */
};

struct plait_link {
    struct plait_fabric *fabric;
    struct plait_link *next;
    char *name;
    struct plait_wire wires[2];
    bool up;
    uint64_t *live_up[2];              /* mirrors of the two ends for programs, or NULL */
    struct plait_interface *interface; /* end b, or NULL */
    struct plait_capture capture;
    uint64_t capture_epoch_ns; /* added to fabric time in captures: wall clock in real time, 0 in virtual */
};

int plait_wire_init(struct plait_wire *wire, struct plait_link *link, struct plait_event_queue *events,
                    struct plait_pool *pool, struct plait_port *from, uint64_t seed);
void plait_wire_free(struct plait_wire *wire);
/* As plait_port.send: `wire` takes the packet, whose last bit leaves at `last_bit`. */
void plait_wire_send(void *wire, struct plait_pkt *pkt, sim_time last_bit);
/* As plait_port.retime: what is still being serialised arrives as much earlier or later as it leaves; order is kept. */
void plait_wire_retime(void *wire, bits_per_second old_rate, bits_per_second new_rate);
void plait_wire_set_loss(struct plait_wire *wire, double probability);
void plait_link_show_up(struct plait_link *link);

#endif
