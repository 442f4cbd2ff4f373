/* The shared buffer of a switch: dynamic thresholds for its queues, and accounts by ingress port and priority for those
 * priorities that lose nothing (priority flow control, pfc.h).
 *
 *     total = reserved of every queue + headroom of every linked port and lossless priority + the shared pool
 *
 * A packet that is queued is charged to one of two:
 * - its queue, first within the queue's reserve, then in the pool.  It is dropped unless the queue's part in the pool
 *   stays within alpha * (what is free in the pool): Choudhury and Hahne, "Dynamic queue length thresholds for
 *   shared-memory packet switches", IEEE/ACM Transactions on Networking 6(2), 1998.
 * - for a lossless priority, the account of the port where it came in: in the pool as long as the account's part there
 *   stays within XOFF (bytes, or alpha * what is free), else in the headroom.  Using headroom means that the peer is
 *   asked to pause.  The packet is dropped if the headroom is full.  When a packet leaves, headroom is given back first;
 *   with none in use and the pool's part down to XOFF - gap, or empty, the peer is told to go on.
 *
 * Packets that no peer can hold back (of the controller, generators and clones) are charged to their queue.
 *
 * Invariant: used = sum over queues of max(0, share.bytes - share.reserved) + sum over accounts of pool.
 */
#ifndef PLAIT_BUFFER_H
#define PLAIT_BUFFER_H

#include "tm.h"

#define PLAIT_BUFFER_LIMIT   (1ull << 40)
#define PLAIT_FRACTION_LIMIT (1u << 16) /* times PLAIT_BUFFER_LIMIT is below 2^64 */

struct plait_switch;

struct plait_account {
    byte_count pool, headroom, max_headroom;
    uint64_t xoffs; /* times that it began to ask for a pause */
};

/* What came in by one linked port and waits. */
struct plait_ingress {
    struct plait_buffer *buffer;
    struct plait_port *port; /* by which its peer is reached */
    struct plait_account accounts[PLAIT_QUEUES];
    uint32_t xoff; /* bit p: the peer was asked to pause priority p */
    struct plait_event refresh; /* scheduled while xoff != 0: a pause that is not repeated ends */
};

struct plait_buffer {
    struct plait_buffer_spec spec;
    byte_count size; /* of the pool */
    byte_count used, max_used;
    struct plait_ingress **ingress; /* by port, PLAIT_PORTS of them; NULL: no peer that can be paused */
};

/* 0, or an error without any change: parameters out of range, or reserves beyond the total. total_bytes 0: no buffer. */
int plait_buffer_configure(struct plait_switch *sw, const struct plait_buffer_spec *spec, struct plait_error *error);
/* A port was added, or a reserve is to change by `more` bytes: makes room in the total. */
int plait_buffer_grow(struct plait_switch *sw, int64_t more, struct plait_error *error);
int plait_buffer_add_port(struct plait_switch *sw, struct plait_port *port, struct plait_error *error);
void plait_buffer_remove_port(struct plait_switch *sw, struct plait_port *port);
/* Without telling anyone: the links are gone. */
void plait_buffer_free(struct plait_switch *sw);
/* Sets a queue's reserve and alpha, and charges what waits in it anew. */
void plait_buffer_set_share(struct plait_buffer *buffer, struct plait_queue *queue, byte_count reserved,
                            struct plait_fraction alpha);

/* The account to which a packet for queue `q` is charged, or NULL: to the queue. */
struct plait_ingress *plait_buffer_ingress(const struct plait_buffer *buffer, uint32_t q, const struct plait_pkt *pkt);
/* Charges queued_bytes to pkt->ingress or the queue. False: there is no room, and nothing changed. */
bool plait_buffer_charge(struct plait_buffer *buffer, struct plait_queue *queue, uint32_t q, struct plait_pkt *pkt);
void plait_buffer_release(struct plait_buffer *buffer, struct plait_queue *queue, uint32_t q, struct plait_pkt *pkt);

static inline byte_count plait_buffer_free_bytes(const struct plait_buffer *buffer)
{
    return buffer->used < buffer->size ? buffer->size - buffer->used : 0;
}
/* floor(alpha * bytes). */
static inline byte_count plait_fraction_of(struct plait_fraction alpha, byte_count bytes)
{
    return bytes * alpha.numerator / alpha.denominator;
}
/* How much of the pool an account may hold now before its peer is asked to pause. */
byte_count plait_buffer_xoff(const struct plait_buffer *buffer);

#endif
