/* Traffic manager of one output port: strict-priority queues with tail drop, emptied at the port's rate.
 *
 * Invariants: packets = sum over queues of packets waiting, likewise bytes; a packet that is being serialised no longer
 * counts.  Conservation: offered = enqueued + drops, and enqueued = sent + consumed by `depart` + waiting.  A packet
 * occupies the port for exactly bits / rate: fractions of a nanosecond are carried over within a busy period, so N
 * packets take floor(total bits / rate).  Bytes are those of the frame, without preamble, gap and FCS.  While packets
 * wait for a busy port, `ready` is scheduled at busy_until; an idle port has no event.
 *
 * `depart` runs when a packet leaves its queue, and may change or consume it (egress processing); `send` takes it with
 * the time at which its last bit leaves.  A program may clone in egress without end: so ports are never served within
 * one another, and one event serves PLAIT_SERVE_BATCH packets at the most.
 */
#ifndef PLAIT_TM_H
#define PLAIT_TM_H

#include "event.h"
#include "packet.h"

#define PLAIT_QUEUES                8u
#define PLAIT_DEFAULT_QUEUE_PACKETS 1024u
#define PLAIT_UNLIMITED             UINT64_MAX
#define PLAIT_SERVE_BATCH           64u

struct plait_queue {
    struct plait_list list;
    uint64_t packets;
    byte_count bytes;
    uint64_t limit_packets;
    byte_count limit_bytes;
};

struct plait_port {
    struct plait_event_queue *events;
    struct plait_pool *pool;
    struct plait_queue queues[PLAIT_QUEUES];
    uint32_t n_queues;
    uint32_t waiting; /* bit q: queue q is not empty */
    uint64_t packets, max_packets;
    byte_count bytes, max_bytes;
    bits_per_second rate;
    sim_time busy_until;
    uint64_t carry; /* of bits * 1e9, what the last division left over */
    struct plait_event ready;
    bool *serving; /* a port that shares this flag is on the stack; what egress clones waits for an event */
    bool serving_alone; /* what `serving` points to unless ports of a switch share one */

    bool (*depart)(void *owner, struct plait_port *port, struct plait_pkt *pkt); /* NULL: nothing to do */
    void *owner;
    uint32_t number;
    void (*send)(void *to, struct plait_pkt *pkt, sim_time last_bit);
    void *to;

    uint64_t *live_packets, *live_bytes; /* mirrors for programs; the port never reads them. NULL: none */
    uint64_t enqueued_packets, sent_packets, drops;
    byte_count sent_bytes;
};

int plait_port_init(struct plait_port *port, struct plait_event_queue *events, struct plait_pool *pool,
                    uint32_t n_queues);
void plait_port_free(struct plait_port *port); /* frees what waits; PHVs must be gone */
/* Takes the packet. False: it was dropped by a limit, and is still the caller's. Precondition: queue < n_queues. */
bool plait_port_enqueue(struct plait_port *port, uint32_t queue, struct plait_pkt *pkt);
/* Takes a waiting packet out without sending it, or NULL: for flushing. */
struct plait_pkt *plait_port_discard(struct plait_port *port);
sim_time plait_port_serialisation(struct plait_port *port, byte_count bytes);

#endif
