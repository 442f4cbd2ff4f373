/* One tuple of a match table: the rules whose keys are compared under the same mask, in an open-addressing hash set.
 *
 * Invariants: a slot holds the chain of all rules with one masked key, best first (priority, then age); probing is
 * linear, deletion shifts back, so there are no tombstones; at most half of the slots are used, since most probes of a
 * table with several tuples miss.  A key of one word hashes one to one, so that equal hashes are equal keys and a rule
 * need not be touched to compare it.  The filter has a bit for every key (and for keys that were deleted since the last
 * rehash): where it is 0, the key is not there.  It is an eighth of the slots' size, so it stays in the cache longer.
 */
#ifndef PLAIT_TUPLE_H
#define PLAIT_TUPLE_H

#include <string.h>

#include "actions.h"
#include "units.h"

struct plait_tuple;

struct plait_rule {
    struct plait_entry entry; /* first: what a look-up returns */
    struct plait_rule *next;
    struct plait_tuple *tuple;
    uint64_t hash;
    uint64_t serial; /* order of insertion */
    int32_t priority;
    struct plait_bound bound;
    uint64_t words[]; /* masked key; tables with ranges: then low, then high */
};

struct plait_tuple_slot {
    uint64_t hash;
    struct plait_rule *head;
};

struct plait_tuple {
    uint32_t words;
    int32_t rank;                    /* prefix length, or an upper bound of the priorities in it */
    uint32_t count, used, slot_mask; /* rules; slots in use; slots - 1 */
    struct plait_tuple_slot *slots; /* followed by the filter: PLAIT_FILTER_WORDS of it */
    struct plait_tuple_slot *larger;  /* a copy of slots, rehashed to twice the size, to take over at the next insert */
    struct plait_tuple_slot *retired; /* what `larger` took over from: freed when packets need not wait for it */
    uint64_t mask[];
};

struct plait_tuple *plait_tuple_create(const uint64_t *mask, uint32_t words, int32_t rank);
void plait_tuple_free(struct plait_tuple *tuple); /* not the rules */
/* Rehashes ahead of an insert that would have to; look-ups may go on. 0 or -ENOMEM. */
int plait_tuple_prepare(struct plait_tuple *tuple);
int plait_tuple_insert(struct plait_tuple *tuple, struct plait_rule *rule); /* 0 or -ENOMEM */
void plait_tuple_remove(struct plait_tuple *tuple, struct plait_rule *rule);

static inline uint64_t plait_hash_mix(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* One to one: xor, multiplication by an odd number and xor with the own upper half all are. */
static inline uint64_t plait_word_hash(uint64_t word, uint64_t seed)
{
    uint64_t hash = (word ^ seed) * (seed | 1);
    hash = (hash ^ hash >> 32) * 0xd6e8feb86659fd93ull;
    return hash ^ hash >> 32;
}

static inline uint64_t plait_key_hash(const uint64_t *words, uint32_t count, uint64_t seed)
{
    if (count == 1)
        return plait_word_hash(words[0], seed);
    uint64_t hash = seed;
    for (uint32_t i = 0; i < count; i++)
        hash = plait_hash_mix(hash ^ words[i], 0x9e3779b97f4a7c15ull) + seed;
    return plait_hash_mix(hash, 0xd6e8feb86659fd93ull);
}

/* The filter has 16 bits for each slot. */
#define PLAIT_FILTER_WORDS(slots) ((slots) / 4)
static inline uint64_t *plait_tuple_filter(struct plait_tuple_slot *slots, uint32_t slot_mask)
{
    return (uint64_t *)(slots + slot_mask + 1);
}
static inline uint32_t plait_filter_bit(uint64_t hash, uint32_t slot_mask)
{
    return (uint32_t)(hash >> 32) & (slot_mask << 4 | 15);
}
/* False: no rule has a key with this hash. */
static inline bool plait_tuple_may_have(const struct plait_tuple *tuple, uint64_t hash)
{
    uint32_t bit = plait_filter_bit(hash, tuple->slot_mask);
    return plait_tuple_filter(tuple->slots, tuple->slot_mask)[bit / 64] >> bit % 64 & 1;
}

/* Head of the chain of the masked key, or NULL. */
static inline struct plait_rule *plait_tuple_find(const struct plait_tuple *tuple, const uint64_t *key, uint64_t hash)
{
    for (uint32_t slot = (uint32_t)hash & tuple->slot_mask;; slot = (slot + 1) & tuple->slot_mask) {
        struct plait_rule *rule = tuple->slots[slot].head;
        if (!rule)
            return NULL;
        if (tuple->slots[slot].hash == hash) {
            if (tuple->words == 1)
                return rule;
            uint32_t w = 0;
            while (w < tuple->words && rule->words[w] == key[w])
                w++;
            if (w == tuple->words)
                return rule;
        }
    }
}

#endif
