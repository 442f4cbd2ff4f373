#include "tuple.h"

#include <errno.h>
#include <stdlib.h>

#define FIRST_SLOTS 8u

/* Empty slots and filter. */
static struct plait_tuple_slot *slots_create(uint32_t size)
{
    return calloc(1, size * sizeof(struct plait_tuple_slot) + PLAIT_FILTER_WORDS(size) * sizeof(uint64_t));
}

struct plait_tuple *plait_tuple_create(const uint64_t *mask, uint32_t words, int32_t rank)
{
    struct plait_tuple *tuple = calloc(1, sizeof *tuple + words * sizeof *mask);
    struct plait_tuple_slot *slots = slots_create(FIRST_SLOTS);
    if (!tuple || !slots) {
        free(tuple);
        free(slots);
        return NULL;
    }
    tuple->words = words;
    tuple->rank = rank;
    tuple->slots = slots;
    tuple->slot_mask = FIRST_SLOTS - 1;
    memcpy(tuple->mask, mask, words * sizeof *mask);
    return tuple;
}

void plait_tuple_free(struct plait_tuple *tuple)
{
    if (tuple) {
        free(tuple->slots);
        free(tuple->larger);
        free(tuple->retired);
        free(tuple);
    }
}

static void put(struct plait_tuple_slot *slots, uint32_t slot_mask, struct plait_tuple_slot value)
{
    uint32_t slot = (uint32_t)value.hash & slot_mask;
    while (slots[slot].head)
        slot = (slot + 1) & slot_mask;
    slots[slot] = value;
    uint32_t bit = plait_filter_bit(value.hash, slot_mask);
    plait_tuple_filter(slots, slot_mask)[bit / 64] |= 1ull << bit % 64;
}

static bool must_grow(const struct plait_tuple *tuple) { return (tuple->used + 1) * 2 > tuple->slot_mask + 1; }

int plait_tuple_prepare(struct plait_tuple *tuple)
{
    free(tuple->retired);
    tuple->retired = NULL;
    /* Whatever was prepared before may be out of date: it is only used by the insert that follows at once. */
    free(tuple->larger);
    tuple->larger = NULL;
    if (!must_grow(tuple))
        return 0;
    uint32_t size = (tuple->slot_mask + 1) * 2;
    struct plait_tuple_slot *slots = slots_create(size);
    if (!slots)
        return -ENOMEM;
    for (uint32_t i = 0; i <= tuple->slot_mask; i++)
        if (tuple->slots[i].head)
            put(slots, size - 1, tuple->slots[i]);
    tuple->larger = slots;
    return 0;
}

static int grow(struct plait_tuple *tuple)
{
    if (!tuple->larger && plait_tuple_prepare(tuple))
        return -ENOMEM;
    tuple->retired = tuple->slots;
    tuple->slots = tuple->larger;
    tuple->larger = NULL;
    tuple->slot_mask = tuple->slot_mask * 2 + 1;
    return 0;
}

static uint32_t slot_of(const struct plait_tuple *tuple, const struct plait_rule *head)
{
    uint32_t slot = (uint32_t)head->hash & tuple->slot_mask;
    while (tuple->slots[slot].head != head)
        slot = (slot + 1) & tuple->slot_mask;
    return slot;
}

int plait_tuple_insert(struct plait_tuple *tuple, struct plait_rule *rule)
{
    struct plait_rule *head = plait_tuple_find(tuple, rule->words, rule->hash);
    if (head) {
        free(tuple->larger); /* it would miss a new head */
        tuple->larger = NULL;
        struct plait_rule **link = &tuple->slots[slot_of(tuple, head)].head;
        /* The newcomer has the largest serial, so it goes behind its equals. */
        while (*link && (*link)->priority >= rule->priority)
            link = &(*link)->next;
        rule->next = *link;
        *link = rule;
    } else {
        if (must_grow(tuple) && grow(tuple))
            return -ENOMEM;
        rule->next = NULL;
        put(tuple->slots, tuple->slot_mask, (struct plait_tuple_slot){rule->hash, rule});
        tuple->used++;
    }
    tuple->count++;
    return 0;
}

static void shift_back(struct plait_tuple *tuple, uint32_t hole)
{
    uint32_t slot = hole;
    for (;;) {
        slot = (slot + 1) & tuple->slot_mask;
        if (!tuple->slots[slot].head)
            break;
        uint32_t home = (uint32_t)tuple->slots[slot].hash & tuple->slot_mask;
        /* A key may move back to the hole unless its home lies cyclically in (hole, slot]. */
        if (((slot - home) & tuple->slot_mask) >= ((slot - hole) & tuple->slot_mask)) {
            tuple->slots[hole] = tuple->slots[slot];
            hole = slot;
        }
    }
    tuple->slots[hole] = (struct plait_tuple_slot){0, NULL};
}

void plait_tuple_remove(struct plait_tuple *tuple, struct plait_rule *rule)
{
    free(tuple->larger); /* of an insert that was refused after all; it would still hold the rule */
    tuple->larger = NULL;
    uint32_t slot = slot_of(tuple, plait_tuple_find(tuple, rule->words, rule->hash));
    struct plait_rule **link = &tuple->slots[slot].head;
    while (*link != rule)
        link = &(*link)->next;
    *link = rule->next;
    if (!tuple->slots[slot].head) {
        shift_back(tuple, slot);
        tuple->used--;
    }
    tuple->count--;
}
