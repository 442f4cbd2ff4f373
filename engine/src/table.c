#include "table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "tuple.h"

enum search { SEARCH_EXACT, SEARCH_LPM, SEARCH_PRIORITY };

struct match_table {
    const struct plait_table_desc *desc;
    enum search search;
    bool has_range;
    uint32_t words; /* of a padded key */
    uint32_t count, capacity;
    uint64_t hash_seed;
    uint64_t next_serial;
    struct plait_tuple **tuples;
    uint32_t n_tuples, tuples_capacity;
    struct plait_rule **rules; /* by the low half of the handle; NULL where free */
    uint32_t *generations;
    uint32_t *free_slots;
    uint32_t n_slots, n_free, slots_capacity;
    struct plait_entry default_entry;
    struct plait_bound default_bound;
};

static struct match_table *impl_of(const struct plait_table *table) { return table->impl; }

int plait_table_check(const struct plait_table_desc *desc, struct plait_error *error)
{
    uint32_t position = 0, n_lpm = 0;
    bool by_priority = false;
    if (!desc->name)
        return plait_fail(error, EINVAL, "a table has no name");
    if (desc->kind > PLAIT_TABLE_INDIRECT_SELECTOR)
        return plait_fail(error, EINVAL, "table %s: unknown kind %d", desc->name, (int)desc->kind);
    for (uint32_t i = 0; i < desc->n_keys; i++) {
        const struct plait_key_desc *key = &desc->keys[i];
        if (key->match > PLAIT_OPTIONAL)
            return plait_fail(error, EINVAL, "table %s, key %s: unknown match kind %d", desc->name, key->name,
                              (int)key->match);
        if (key->width == 0 || key->width > PLAIT_KEY_WORDS * 64 || key->offset != position)
            return plait_fail(error, EINVAL, "table %s, key %s: width %u at offset %u does not fit", desc->name,
                              key->name, key->width, key->offset);
        position += (key->width + 7) / 8;
        n_lpm += key->match == PLAIT_LPM;
        by_priority |= key->match == PLAIT_TERNARY || key->match == PLAIT_RANGE || key->match == PLAIT_OPTIONAL;
    }
    if (position != desc->key_bytes || position > PLAIT_KEY_WORDS * 8)
        return plait_fail(error, EINVAL, "table %s: key of %u bytes (declared %u, at most %u)", desc->name, position,
                          desc->key_bytes, PLAIT_KEY_WORDS * 8);
    if (n_lpm > 1 && !by_priority)
        return plait_fail(error, EINVAL, "table %s: %u lpm fields, one is allowed", desc->name, n_lpm);
    return 0;
}

int plait_table_create(struct plait_table *table, const struct plait_table_desc *desc, uint64_t seed,
                       struct plait_error *error)
{
    struct match_table *impl = calloc(1, sizeof *impl);
    if (!impl)
        return plait_fail(error, ENOMEM, "no memory for table %s", desc->name);
    impl->desc = desc;
    impl->words = (desc->key_bytes + 7) / 8;
    impl->hash_seed = seed | 1;
    impl->capacity = desc->size ? desc->size : 1;
    impl->search = SEARCH_EXACT;
    for (uint32_t i = 0; i < desc->n_keys; i++) {
        enum plait_match match = desc->keys[i].match;
        if (match == PLAIT_LPM && impl->search == SEARCH_EXACT)
            impl->search = SEARCH_LPM;
        else if (match == PLAIT_TERNARY || match == PLAIT_RANGE || match == PLAIT_OPTIONAL)
            impl->search = SEARCH_PRIORITY;
        impl->has_range |= match == PLAIT_RANGE;
    }
    table->impl = impl;
    table->default_entry = &impl->default_entry;
    return 0;
}

static void rule_free(struct plait_rule *rule)
{
    if (rule) {
        plait_unbind(&rule->bound);
        free(rule->entry.meter);
        free(rule);
    }
}

void plait_table_free(struct plait_table *table)
{
    struct match_table *impl = impl_of(table);
    if (!impl)
        return;
    for (uint32_t i = 0; i < impl->n_slots; i++)
        rule_free(impl->rules[i]);
    for (uint32_t i = 0; i < impl->n_tuples; i++)
        plait_tuple_free(impl->tuples[i]);
    plait_unbind(&impl->default_bound);
    free(impl->tuples);
    free(impl->rules);
    free(impl->generations);
    free(impl->free_slots);
    free(impl);
    table->impl = NULL;
}

uint32_t plait_table_count(const struct plait_table *table) { return impl_of(table)->count; }

/* ------------------------------------------------------------------------------------------------------------
 * Look-up */

static inline bool in_range(const struct plait_table_desc *desc, const struct plait_rule *rule, uint32_t words,
                            const uint8_t *key)
{
    const uint8_t *low = (const uint8_t *)(rule->words + words), *high = (const uint8_t *)(rule->words + 2 * words);
    for (uint32_t i = 0; i < desc->n_keys; i++) {
        const struct plait_key_desc *field = &desc->keys[i];
        if (field->match != PLAIT_RANGE)
            continue;
        uint32_t bytes = (field->width + 7) / 8;
        if (memcmp(key + field->offset, low + field->offset, bytes) < 0 ||
            memcmp(key + field->offset, high + field->offset, bytes) > 0)
            return false;
    }
    return true;
}

static inline bool beats(const struct plait_rule *a, const struct plait_rule *b)
{
    return a->priority > b->priority || (a->priority == b->priority && a->serial < b->serial);
}

/* Head of the chain of the key under a tuple's mask, or NULL. */
static inline struct plait_rule *find_masked(const struct match_table *impl, const struct plait_tuple *tuple,
                                             const uint64_t *words, uint32_t count)
{
    uint64_t masked[PLAIT_KEY_WORDS];
    for (uint32_t w = 0; w < count; w++)
        masked[w] = words[w] & tuple->mask[w];
    uint64_t hash = plait_key_hash(masked, count, impl->hash_seed);
    return plait_tuple_may_have(tuple, hash) ? plait_tuple_find(tuple, masked, hash) : NULL;
}

static inline struct plait_rule *lookup_lpm(const struct match_table *impl, const uint64_t *words, uint32_t count)
{
    struct plait_rule *rule = NULL;
    for (uint32_t t = 0; t < impl->n_tuples && !rule; t++)
        rule = find_masked(impl, impl->tuples[t], words, count);
    return rule;
}

static inline struct plait_rule *lookup_priority(const struct match_table *impl, const uint64_t *words, uint32_t count,
                                                 const uint8_t *key)
{
    struct plait_rule *best = NULL;
    for (uint32_t t = 0; t < impl->n_tuples; t++) {
        const struct plait_tuple *tuple = impl->tuples[t];
        if (best && tuple->rank < best->priority)
            break;
        struct plait_rule *rule = find_masked(impl, tuple, words, count);
        for (; rule; rule = rule->next) {
            if (impl->has_range && !in_range(impl->desc, rule, impl->words, key))
                continue;
            if (!best || beats(rule, best))
                best = rule;
            break; /* the chain is ordered: the first that matches is its best */
        }
    }
    return best;
}

static inline struct plait_entry *lookup(const struct match_table *impl, const uint64_t *words, uint32_t count,
                                         const uint8_t *key)
{
    struct plait_rule *rule;
    if (impl->search == SEARCH_EXACT)
        rule = plait_tuple_find(impl->tuples[0], words, plait_key_hash(words, count, impl->hash_seed));
    else if (impl->search == SEARCH_LPM)
        rule = lookup_lpm(impl, words, count);
    else
        rule = lookup_priority(impl, words, count, key);
    return rule ? &rule->entry : NULL;
}

/* Up to 8 bytes as memcpy would put them into a zeroed word, without a call of it. */
static inline uint64_t load_word(const uint8_t *key, uint32_t bytes)
{
    uint64_t word = 0;
    switch (bytes) {
    case 8:
        memcpy(&word, key, 8);
        break;
    case 4:
        memcpy(&word, key, 4);
        break;
    case 2:
        memcpy(&word, key, 2);
        break;
    default:
        for (uint32_t i = 0; i < bytes; i++)
            ((uint8_t *)&word)[i] = key[i];
    }
    return word;
}

struct plait_entry *plait_table_lookup(const struct plait_table *table, const uint8_t *key)
{
    const struct match_table *impl = table->impl;
    if (impl->count == 0)
        return NULL;
    if (impl->words == 1) { /* most tables: the compiler unrolls what loops over words */
        uint64_t word = load_word(key, impl->desc->key_bytes);
        return lookup(impl, &word, 1, key);
    }
    uint64_t words[PLAIT_KEY_WORDS];
    words[impl->words - 1] = 0;
    memcpy(words, key, impl->desc->key_bytes);
    return lookup(impl, words, impl->words, key);
}

/* ------------------------------------------------------------------------------------------------------------
 * What the control plane asks for, checked and brought into one form: key, mask and range bounds */

struct normal_match {
    uint64_t mask[PLAIT_KEY_WORDS], key[PLAIT_KEY_WORDS], low[PLAIT_KEY_WORDS], high[PLAIT_KEY_WORDS];
    int32_t rank;
};

static int check_shape(const struct plait_table_desc *desc, const char *what, const uint8_t *bytes, uint32_t length,
                       struct plait_error *error)
{
    if (length != desc->key_bytes)
        return plait_fail(error, EINVAL, "%s for table %s: %u bytes given, %u expected", what, desc->name, length,
                          desc->key_bytes);
    for (uint32_t i = 0; i < desc->n_keys; i++) {
        uint32_t width = desc->keys[i].width;
        if (width % 8 && bytes[desc->keys[i].offset] >> (width % 8))
            return plait_fail(error, EINVAL, "%s for table %s: field %s exceeds %u bits", what, desc->name,
                              desc->keys[i].name, width);
    }
    return 0;
}

static void prefix_mask(uint8_t *mask, uint32_t width, uint32_t prefix)
{
    uint32_t pad = (8 - width % 8) % 8;
    for (uint32_t bit = 0; bit < prefix; bit++)
        mask[(pad + bit) / 8] |= (uint8_t)(0x80 >> ((pad + bit) % 8));
}

static int normalise(const struct match_table *impl, const struct plait_match_spec *match, struct normal_match *out,
                     struct plait_error *error)
{
    const struct plait_table_desc *desc = impl->desc;
    if (desc->key_bytes == 0)
        return plait_fail(error, EINVAL, "table %s has no key, so it takes no entries", desc->name);
    int result = check_shape(desc, "key", match->key, match->key_length, error);
    if (!result && match->mask)
        result = check_shape(desc, "mask", match->mask, match->mask_length, error);
    if (!result && match->high)
        result = check_shape(desc, "range_high", match->high, match->high_length, error);
    if (result)
        return result;
    size_t used = impl->words * sizeof(uint64_t);
    memset(out->mask, 0, used);
    memset(out->key, 0, used);
    memset(out->low, 0, used);
    memset(out->high, 0, used);
    out->rank = impl->search == SEARCH_PRIORITY ? match->priority : 0;
    for (uint32_t i = 0; i < desc->n_keys; i++) {
        const struct plait_key_desc *field = &desc->keys[i];
        uint32_t bytes = (field->width + 7) / 8;
        uint8_t *mask = (uint8_t *)out->mask + field->offset;
        const uint8_t *given = match->mask ? match->mask + field->offset : NULL;
        switch (field->match) {
        case PLAIT_EXACT:
            prefix_mask(mask, field->width, field->width);
            break;
        case PLAIT_LPM:
            if (match->prefix_length < 0 && given && impl->search == SEARCH_PRIORITY) {
                memcpy(mask, given, bytes);
                break;
            }
            if (match->prefix_length < 0 || (uint32_t)match->prefix_length > field->width)
                return plait_fail(error, EINVAL, "prefix_len for table %s, field %s: %d is not in 0..%u", desc->name,
                                  field->name, match->prefix_length, field->width);
            prefix_mask(mask, field->width, (uint32_t)match->prefix_length);
            if (impl->search == SEARCH_LPM)
                out->rank = match->prefix_length;
            break;
        case PLAIT_TERNARY:
        case PLAIT_OPTIONAL:
            if (!given)
                return plait_fail(error, EINVAL, "mask for table %s: field %s needs one", desc->name, field->name);
            memcpy(mask, given, bytes);
            if (field->match == PLAIT_OPTIONAL) {
                uint8_t full[PLAIT_KEY_WORDS * 8] = {0}, none[PLAIT_KEY_WORDS * 8] = {0};
                prefix_mask(full, field->width, field->width);
                if (memcmp(given, full, bytes) != 0 && memcmp(given, none, bytes) != 0)
                    return plait_fail(error, EINVAL, "mask for table %s: optional field %s takes all ones or all zeros",
                                      desc->name, field->name);
            }
            break;
        case PLAIT_RANGE:
            if (!match->high)
                return plait_fail(error, EINVAL, "range_high for table %s: field %s needs one", desc->name,
                                  field->name);
            if (memcmp(match->key + field->offset, match->high + field->offset, bytes) > 0)
                return plait_fail(error, EINVAL, "range for table %s, field %s: low exceeds high", desc->name,
                                  field->name);
            memcpy((uint8_t *)out->low + field->offset, match->key + field->offset, bytes);
            memcpy((uint8_t *)out->high + field->offset, match->high + field->offset, bytes);
            break;
        }
    }
    memcpy(out->key, match->key, desc->key_bytes);
    for (uint32_t w = 0; w < impl->words; w++)
        out->key[w] &= out->mask[w];
    return 0;
}

/* ------------------------------------------------------------------------------------------------------------
 * Tuples of the table, kept in search order: by rank, highest first; equal ranks by age */

static struct plait_tuple *tuple_of_mask(const struct match_table *impl, const uint64_t *mask)
{
    for (uint32_t t = 0; t < impl->n_tuples; t++)
        if (memcmp(impl->tuples[t]->mask, mask, impl->words * sizeof *mask) == 0)
            return impl->tuples[t];
    return NULL;
}

static void tuple_sort_in(struct match_table *impl, struct plait_tuple *tuple, uint32_t position)
{
    while (position > 0 && impl->tuples[position - 1]->rank < tuple->rank) {
        impl->tuples[position] = impl->tuples[position - 1];
        position--;
    }
    impl->tuples[position] = tuple;
}

static uint32_t tuple_position(const struct match_table *impl, const struct plait_tuple *tuple)
{
    uint32_t position = 0;
    while (impl->tuples[position] != tuple)
        position++;
    return position;
}

static void tuple_drop_if_empty(struct match_table *impl, struct plait_tuple *tuple)
{
    if (tuple->count)
        return;
    uint32_t position = tuple_position(impl, tuple);
    memmove(impl->tuples + position, impl->tuples + position + 1,
            (impl->n_tuples - position - 1) * sizeof *impl->tuples);
    impl->n_tuples--;
    plait_tuple_free(tuple);
}

static struct plait_tuple *tuple_obtain(struct match_table *impl, const struct normal_match *normal)
{
    struct plait_tuple *tuple = tuple_of_mask(impl, normal->mask);
    if (tuple) {
        if (tuple->rank < normal->rank) {
            uint32_t position = tuple_position(impl, tuple);
            tuple->rank = normal->rank;
            tuple_sort_in(impl, tuple, position);
        }
        return tuple;
    }
    if (impl->n_tuples == impl->tuples_capacity) {
        uint32_t capacity = impl->tuples_capacity ? impl->tuples_capacity * 2 : 8;
        void *grown = realloc(impl->tuples, capacity * sizeof *impl->tuples);
        if (!grown)
            return NULL;
        impl->tuples = grown;
        impl->tuples_capacity = capacity;
    }
    tuple = plait_tuple_create(normal->mask, impl->words, normal->rank);
    if (tuple)
        tuple_sort_in(impl, tuple, impl->n_tuples++);
    return tuple;
}

/* ------------------------------------------------------------------------------------------------------------
 * Handles: generation in the high half, slot in the low */

static int slot_reserve(struct match_table *impl)
{
    if (impl->n_free || impl->n_slots < impl->slots_capacity)
        return 0;
    uint32_t capacity = impl->slots_capacity ? impl->slots_capacity * 2 : 64;
    void *rules = realloc(impl->rules, capacity * sizeof *impl->rules);
    if (rules)
        impl->rules = rules;
    void *generations = realloc(impl->generations, capacity * sizeof *impl->generations);
    if (generations)
        impl->generations = generations;
    void *free_slots = realloc(impl->free_slots, capacity * sizeof *impl->free_slots);
    if (free_slots)
        impl->free_slots = free_slots;
    if (!rules || !generations || !free_slots)
        return -ENOMEM;
    impl->slots_capacity = capacity;
    return 0;
}

static struct plait_rule *rule_of(struct match_table *impl, uint64_t handle, struct plait_error *error)
{
    uint32_t slot = (uint32_t)handle;
    if (slot < impl->n_slots && impl->rules[slot] && impl->generations[slot] == handle >> 32)
        return impl->rules[slot];
    plait_fail(error, ENOENT, "entry handle %llu: no such entry in table %s", (unsigned long long)handle,
               impl->desc->name);
    return NULL;
}

int plait_table_prepare(struct plait_table *table, const struct plait_match_spec *match, struct plait_error *error)
{
    struct match_table *impl = impl_of(table);
    struct normal_match normal;
    int result = normalise(impl, match, &normal, error);
    if (result)
        return result;
    struct plait_tuple *tuple = tuple_of_mask(impl, normal.mask);
    if (slot_reserve(impl) || (tuple && plait_tuple_prepare(tuple)))
        return plait_fail(error, ENOMEM, "no memory for an entry of table %s", impl->desc->name);
    return 0;
}

int plait_table_insert(struct plait_table *table, struct plait_actions *actions, const struct plait_match_spec *match,
                       const struct plait_target *target, uint64_t *handle, struct plait_error *error)
{
    struct match_table *impl = impl_of(table);
    struct normal_match normal;
    int result = normalise(impl, match, &normal, error);
    if (result)
        return result;
    size_t key_size = impl->words * sizeof(uint64_t);
    uint64_t hash = plait_key_hash(normal.key, impl->words, impl->hash_seed);
    struct plait_tuple *tuple = tuple_of_mask(impl, normal.mask);
    int32_t priority = impl->search == SEARCH_PRIORITY ? match->priority : 0;
    for (struct plait_rule *rule = tuple ? plait_tuple_find(tuple, normal.key, hash) : NULL; rule; rule = rule->next)
        if (rule->priority == priority &&
            (!impl->has_range || (memcmp(rule->words + impl->words, normal.low, key_size) == 0 &&
                                  memcmp(rule->words + 2 * impl->words, normal.high, key_size) == 0)))
            return plait_fail(error, EEXIST, "table %s: an entry with this match exists", impl->desc->name);
    if (impl->count >= impl->capacity)
        return plait_fail(error, ENOSPC, "table %s is full: %u entries", impl->desc->name, impl->capacity);

    struct plait_rule *rule = calloc(1, sizeof *rule + key_size * (impl->has_range ? 3 : 1));
    if (!rule || slot_reserve(impl)) {
        free(rule);
        return plait_fail(error, ENOMEM, "no memory for an entry of table %s", impl->desc->name);
    }
    if (impl->desc->direct_meter >= 0) {
        rule->entry.meter = aligned_alloc(64, PLAIT_METER_CELL_BYTES);
        if (!rule->entry.meter) {
            free(rule);
            return plait_fail(error, ENOMEM, "no memory for an entry of table %s", impl->desc->name);
        }
        memset(rule->entry.meter, 0, PLAIT_METER_CELL_BYTES);
    }
    result = plait_bind(actions, target, impl->desc->kind, &rule->bound, error);
    if (result) {
        rule_free(rule);
        return result;
    }
    plait_bound_show(&rule->bound, &rule->entry);
    memcpy(rule->words, normal.key, key_size);
    if (impl->has_range) {
        memcpy(rule->words + impl->words, normal.low, key_size);
        memcpy(rule->words + 2 * impl->words, normal.high, key_size);
    }
    rule->hash = hash;
    rule->priority = priority;
    rule->serial = impl->next_serial++;
    rule->tuple = tuple_obtain(impl, &normal);
    if (!rule->tuple || plait_tuple_insert(rule->tuple, rule)) {
        if (rule->tuple)
            tuple_drop_if_empty(impl, rule->tuple);
        rule_free(rule);
        return plait_fail(error, ENOMEM, "no memory for an entry of table %s", impl->desc->name);
    }
    uint32_t slot;
    if (impl->n_free) {
        slot = impl->free_slots[--impl->n_free];
    } else {
        slot = impl->n_slots++;
        impl->generations[slot] = 0;
    }
    impl->rules[slot] = rule;
    impl->count++;
    *handle = (uint64_t)impl->generations[slot] << 32 | slot;
    return 0;
}

int plait_table_modify(struct plait_table *table, struct plait_actions *actions, uint64_t handle,
                       const struct plait_target *target, struct plait_error *error)
{
    struct match_table *impl = impl_of(table);
    struct plait_rule *rule = rule_of(impl, handle, error);
    if (!rule)
        return -ENOENT;
    struct plait_bound bound;
    int result = plait_bind(actions, target, impl->desc->kind, &bound, error);
    if (result)
        return result;
    plait_unbind(&rule->bound);
    rule->bound = bound;
    plait_bound_show(&rule->bound, &rule->entry);
    return 0;
}

int plait_table_delete(struct plait_table *table, uint64_t handle, struct plait_error *error)
{
    struct match_table *impl = impl_of(table);
    struct plait_rule *rule = rule_of(impl, handle, error);
    if (!rule)
        return -ENOENT;
    uint32_t slot = (uint32_t)handle;
    plait_tuple_remove(rule->tuple, rule);
    tuple_drop_if_empty(impl, rule->tuple);
    rule_free(rule);
    impl->rules[slot] = NULL;
    impl->generations[slot]++;
    impl->free_slots[impl->n_free++] = slot;
    impl->count--;
    return 0;
}

struct plait_entry *plait_table_entry(struct plait_table *table, uint64_t handle, struct plait_error *error)
{
    struct plait_rule *rule = rule_of(impl_of(table), handle, error);
    return rule ? &rule->entry : NULL;
}

int plait_table_default_set(struct plait_table *table, struct plait_actions *actions, const struct plait_target *target,
                            struct plait_error *error)
{
    struct match_table *impl = impl_of(table);
    struct plait_bound bound = {0};
    if (target) {
        int result = plait_bind(actions, target, impl->desc->kind, &bound, error);
        if (result)
            return result;
    }
    plait_unbind(&impl->default_bound);
    impl->default_bound = bound;
    plait_bound_show(&bound, &impl->default_entry);
    return 0;
}
