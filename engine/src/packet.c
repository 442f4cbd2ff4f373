#include "packet.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* A slab of packets is one huge page, where the kernel gives them: packets that wait are far apart, and with small pages
 * reading them back costs more in page walks than in data. */
#define SLAB_BYTES   (2u << 20)
#define PKT_STRIDE   ((sizeof(struct plait_pkt) + 63) & ~(size_t)63)
#define SLAB_PACKETS ((uint32_t)((SLAB_BYTES - sizeof(struct slab)) / PKT_STRIDE))
#define SLAB_PHVS    64u

struct slab {
    void *next;
    _Alignas(64) uint8_t bytes[];
};

void plait_pool_init(struct plait_pool *pool) { memset(pool, 0, sizeof *pool); }

static void free_slabs(void *slabs)
{
    while (slabs) {
        struct slab *slab = slabs;
        slabs = slab->next;
        free(slab);
    }
}

void plait_pool_free(struct plait_pool *pool)
{
    free_slabs(pool->slabs);
    memset(pool, 0, sizeof *pool);
}

static bool pool_grow(struct plait_pool *pool)
{
    if (pool->allocated + SLAB_PACKETS > PLAIT_POOL_LIMIT)
        return false;
    struct slab *slab = aligned_alloc(SLAB_BYTES, SLAB_BYTES);
    if (!slab)
        return false;
    madvise(slab, SLAB_BYTES, MADV_HUGEPAGE); /* no harm where it fails */
    slab->next = pool->slabs;
    pool->slabs = slab;
    for (uint32_t i = SLAB_PACKETS; i-- > 0;) {
        struct plait_pkt *pkt = (void *)(slab->bytes + i * PKT_STRIDE);
        pkt->next = pool->free;
        pool->free = pkt;
    }
    pool->allocated += SLAB_PACKETS;
    return true;
}

struct plait_pkt *plait_pool_get(struct plait_pool *pool)
{
    if (!pool->free && !pool_grow(pool))
        return NULL;
    struct plait_pkt *pkt = pool->free;
    pool->free = pkt->next;
    pool->alive++;
    pkt->next = NULL;
    pkt->packet.data = pkt->buffer + PLAIT_HEADROOM;
    pkt->packet.length = 0;
    pkt->packet.phv = NULL;
    pkt->tag = 0;
    return pkt;
}

void plait_pool_put(struct plait_pool *pool, struct plait_pkt *pkt)
{
    assert(!pkt->packet.phv);
    pkt->next = pool->free;
    pool->free = pkt;
    pool->alive--;
}

struct plait_pkt *plait_pool_copy(struct plait_pool *pool, const uint8_t *data, uint32_t length)
{
    assert(length <= PLAIT_MAX_FRAME + 512);
    struct plait_pkt *pkt = plait_pool_get(pool);
    if (pkt) {
        memcpy(pkt->packet.data, data, length);
        pkt->packet.length = length;
    }
    return pkt;
}

void plait_pkt_restore_headroom(struct plait_pkt *pkt)
{
    uint8_t *home = pkt->buffer + PLAIT_HEADROOM;
    if (pkt->packet.data < home) {
        memmove(home, pkt->packet.data, pkt->packet.length);
        pkt->packet.data = home;
    }
}

void plait_list_free(struct plait_list *list, struct plait_pool *pool)
{
    struct plait_pkt *pkt;
    while ((pkt = plait_list_take(list)))
        plait_pool_put(pool, pkt);
}

void plait_phv_pool_init(struct plait_phv_pool *pool, size_t phv_size)
{
    *pool = (struct plait_phv_pool){.size = phv_size < 64 ? 64 : (phv_size + 63) & ~(size_t)63};
}

void plait_phv_pool_free(struct plait_phv_pool *pool)
{
    free_slabs(pool->slabs);
    memset(pool, 0, sizeof *pool);
}

void *plait_phv_get(struct plait_phv_pool *pool)
{
    if (!pool->free) {
        struct slab *slab = aligned_alloc(64, sizeof *slab + SLAB_PHVS * pool->size);
        if (!slab)
            return NULL;
        slab->next = pool->slabs;
        pool->slabs = slab;
        for (uint32_t i = SLAB_PHVS; i-- > 0;)
            plait_phv_put(pool, slab->bytes + i * pool->size);
    }
    void *phv = pool->free;
    pool->free = *(void **)phv;
    return phv;
}
