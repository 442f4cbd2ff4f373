/* Packets and the pools they come from.
 *
 * Invariants: buffer <= packet.data, and packet.data + packet.length <= buffer + PLAIT_BUFFER_BYTES.  A packet has
 * exactly one owner at a time: a queue, a link, an interface, or the code that works on it; the owner frees it.
 * packet.phv is NULL except between parse and deparse, and belongs to the switch's PHV pool.
 */
#ifndef PLAIT_PACKET_H
#define PLAIT_PACKET_H

#include "../pipeline.h"
#include "units.h"

#define PLAIT_BUFFER_BYTES (PLAIT_HEADROOM + PLAIT_MAX_FRAME + 512 + 64)
#define PLAIT_NO_PORT      UINT32_MAX
#define PLAIT_POOL_LIMIT   262144u /* packets alive in one fabric; beyond, packets are dropped and counted */

struct plait_ingress;

struct plait_pkt {
    struct plait_packet packet; /* first: the pipeline's view */
    struct plait_pkt *next;     /* in the one list that the packet is in */
    sim_time last_bit;          /* leaves the port that sent it */
    sim_time due;               /* arrival at the far end of a link */
    uint64_t order;
    uint32_t queued_bytes; /* what it counts for in its queue */
    uint32_t came_in;      /* port of the switch that it is in, or PLAIT_NO_PORT: of a clone */
    struct plait_ingress *ingress; /* in a queue of a switch with a shared buffer: to whose account, or NULL */
    uint64_t tag;          /* of who injected it, 0 for none; its copies have it too */
    _Alignas(16) uint8_t buffer[PLAIT_BUFFER_BYTES];
};

struct plait_list {
    struct plait_pkt *head, *tail;
};

/* What waits in a long queue has left the cache by the time it is its turn: fetched when what is before it is taken,
 * it is there again. Its PHV and the packet after it are two steps away, so they are fetched one turn later. */
static inline void plait_pkt_prefetch(const struct plait_pkt *pkt)
{
    const uint8_t *phv = pkt->packet.phv;
    if (phv)
        for (uint32_t line = 0; line < 4; line++)
            __builtin_prefetch(phv + 64 * line, 1);
    const struct plait_pkt *following = pkt->next;
    if (following) {
        for (uint32_t line = 0; line < 3; line++)
            __builtin_prefetch((const uint8_t *)following + 64 * line, 1);
        __builtin_prefetch(following->buffer + PLAIT_HEADROOM, 1);
        __builtin_prefetch(following->buffer + PLAIT_HEADROOM + 64, 1);
    }
}

struct plait_pool {
    struct plait_pkt *free;
    void *slabs;
    uint32_t allocated, alive;
};

void plait_pool_init(struct plait_pool *pool);
void plait_pool_free(struct plait_pool *pool);
/* A packet with data at PLAIT_HEADROOM, length 0 and undefined std, or NULL when the limit is reached. */
struct plait_pkt *plait_pool_get(struct plait_pool *pool);
void plait_pool_put(struct plait_pool *pool, struct plait_pkt *pkt);
/* As get, with a copy of `length` <= PLAIT_MAX_FRAME bytes. */
struct plait_pkt *plait_pool_copy(struct plait_pool *pool, const uint8_t *data, uint32_t length);
/* Makes PLAIT_HEADROOM bytes before data free again: headers may have grown into them on the last switch. */
void plait_pkt_restore_headroom(struct plait_pkt *pkt);

static inline void plait_list_append(struct plait_list *list, struct plait_pkt *pkt)
{
    pkt->next = NULL;
    if (list->tail)
        list->tail->next = pkt;
    else
        list->head = pkt;
    list->tail = pkt;
}

static inline struct plait_pkt *plait_list_take(struct plait_list *list)
{
    struct plait_pkt *pkt = list->head;
    if (pkt) {
        struct plait_pkt *following = pkt->next;
        list->head = following;
        if (!following)
            list->tail = NULL;
        else
            plait_pkt_prefetch(following);
    }
    return pkt;
}

void plait_list_free(struct plait_list *list, struct plait_pool *pool);

/* PHV blocks of one program on one switch. */
struct plait_phv_pool {
    void *free;
    void *slabs;
    size_t size;
};
void plait_phv_pool_init(struct plait_phv_pool *pool, size_t phv_size);
void plait_phv_pool_free(struct plait_phv_pool *pool);
void *plait_phv_get(struct plait_phv_pool *pool); /* not zeroed; NULL without memory */
static inline void plait_phv_put(struct plait_phv_pool *pool, void *phv)
{
    if (phv) {
        *(void **)phv = pool->free;
        pool->free = phv;
    }
}

#endif
