/* Traffic manager of one output port: strict-priority queues with tail drop, emptied at the port's rate.
 *
 * Invariants: packets = sum over queues of packets waiting, likewise bytes; a packet that is being serialised no longer
 * counts.  Conservation: offered = enqueued + drops, and enqueued = sent + consumed by `depart` + waiting.  A packet
 * occupies the port for exactly bits / rate: fractions of a nanosecond are carried over within a busy period, so N
 * packets take floor(total bits / rate).  Bytes are those of the frame, without preamble, gap and FCS.
 *
 * A queue is served if its bit is in `waiting` and not in `blocked`: held by the control plane, paused by the peer
 * (pfc.h) or throttled by its own rate.  While packets that may go wait for a busy port, `ready` is scheduled at
 * busy_until; an idle port has no such event.  `wake` is scheduled at the earliest end of a pause or throttling.
 *
 * `depart` runs when a packet leaves its queue, and may change or consume it (egress processing); `send` takes it with
 * the time at which its last bit leaves.  A program may clone in egress without end: so ports are never served within
 * one another, and one event serves PLAIT_SERVE_BATCH packets at the most.
 */
#ifndef PLAIT_TM_H
#define PLAIT_TM_H

#include "api.h"
#include "event.h"
#include "packet.h"

#define PLAIT_QUEUES                8u /* and classes of priority flow control */
#define PLAIT_DEFAULT_QUEUE_PACKETS 1024u
#define PLAIT_UNLIMITED             UINT64_MAX
#define PLAIT_SERVE_BATCH           64u

struct plait_buffer;

/* The most that a queue sends, one packet at a time: the next may start when this one would have been sent at `rate`. */
struct plait_shaper {
    uint64_t rate; /* bits or packets a second; 0: none */
    bool counts_packets;
    sim_time start; /* of the last packet, and its size: a change of rate holds for it as well */
    byte_count last_bytes;
    sim_time next;
    uint64_t carry; /* of units * 1e9, what the last division left over */
};

/* A queue's part in the shared buffer (buffer.h). */
struct plait_share {
    byte_count bytes; /* charged to the queue: all but those charged to an ingress account */
    byte_count reserved;
    struct plait_fraction alpha;
};

struct plait_queue {
    struct plait_list list;
    uint64_t packets;
    byte_count bytes;
    uint64_t limit_packets;
    byte_count limit_bytes;
    uint64_t enqueued_packets;
    uint64_t drops[PLAIT_DROP_REASONS];
    struct plait_share share;
    struct plait_shaper shaper;
};

/* Received pauses, by class. */
struct plait_pauses {
    uint32_t classes; /* bit c: class c is paused */
    sim_time until[PLAIT_QUEUES], since[PLAIT_QUEUES], total_ns[PLAIT_QUEUES];
    uint64_t frames_received, frames_sent, frames_lost, frames_ignored;
    uint8_t source[6]; /* of the frames we send: the interface's address; zeros: one made up from the port's number */
};

/* What every packet touches comes first. */
struct plait_port {
    uint32_t n_queues;
    uint32_t waiting; /* bit q: queue q is not empty */
    uint32_t blocked; /* bit q: queue q is not to be served: held | throttled | paused */
    uint32_t shaped;  /* bit q: queue q has a rate of its own */
    uint64_t packets, max_packets;
    byte_count bytes, max_bytes;
    bits_per_second rate;
    sim_time busy_until;
    uint64_t carry; /* of bits * 1e9, what the last division left over */
    bool *serving;  /* a port that shares this flag is on the stack; what egress clones waits for an event */
    struct plait_buffer *buffer; /* NULL: each queue has its own limits only */
    struct plait_event_queue *events;
    uint64_t *live_packets, *live_bytes; /* mirrors for programs; the port never reads them. NULL: none */
    bool (*depart)(void *owner, struct plait_port *port, struct plait_pkt *pkt); /* NULL: nothing to do */
    void *owner;
    uint32_t number;
    void (*send)(void *to, struct plait_pkt *pkt, sim_time last_bit);
    void *to;
    uint64_t sent_packets;
    byte_count sent_bytes;
    struct plait_event ready;
    struct plait_queue queues[PLAIT_QUEUES];

    uint64_t drops;
    struct plait_event wake;
    uint32_t held, throttled; /* as `blocked`, the reasons */
    bool serving_alone;       /* what `serving` points to unless ports of a switch share one */
    bool one_class;           /* its queue holds packets of all classes: the pause of any of them stops it */
    struct plait_pauses pauses;
    struct plait_pool *pool;
    /* What is being serialised takes old / new times as long from now on. NULL: nobody waits for it. */
    void (*retime)(void *to, bits_per_second old_rate, bits_per_second new_rate);
};

int plait_port_init(struct plait_port *port, struct plait_event_queue *events, struct plait_pool *pool,
                    uint32_t n_queues);
void plait_port_free(struct plait_port *port); /* frees what waits; PHVs must be gone */
/* Takes the packet. False: it was dropped by a limit, and is still the caller's. Precondition: queue < n_queues. */
bool plait_port_enqueue(struct plait_port *port, uint32_t queue, struct plait_pkt *pkt);
/* Takes a waiting packet out without sending it, or NULL: for flushing. */
struct plait_pkt *plait_port_discard(struct plait_port *port);
/* Sends a frame of MAC control: before all that waits, and also while queues are blocked. */
void plait_port_send_control(struct plait_port *port, struct plait_pkt *pkt);
sim_time plait_port_serialisation(struct plait_port *port, byte_count bytes);

/* Changes. Each holds at once, also for the packet in service or the pause under way; what may go now goes by an event,
 * not within the call. */
void plait_port_set_rate(struct plait_port *port, bits_per_second rate);
void plait_port_set_shaper(struct plait_port *port, uint32_t queue, uint64_t rate, bool counts_packets);
void plait_port_hold(struct plait_port *port, uint32_t queues, bool hold); /* queues: a mask */
/* Class `c` is paused until then; a time that is not later than now resumes it. */
void plait_port_pause(struct plait_port *port, uint32_t c, sim_time until);

/* How long what has `remaining` ns left at one rate takes at another. */
static inline sim_time plait_rescale(sim_time remaining, bits_per_second old_rate, bits_per_second new_rate)
{
    return new_rate ? (sim_time)((unsigned __int128)remaining * old_rate / new_rate) : 0;
}

#endif
