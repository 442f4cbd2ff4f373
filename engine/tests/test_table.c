/* Tables against a naive model: a list of rules, all of which every look-up tries. */
#include <errno.h>

#include "random.h"
#include "table.h"
#include "unit.h"

#define RULES     400
#define STEPS     6000
#define KEY_BYTES 7

static const struct plait_action_desc actions[] = {{"a", 1, 0, 0, NULL}};
static const struct plait_pipeline pipeline = {.abi = PLAIT_PIPELINE_ABI, .n_actions = 1, .actions = actions};
static const struct plait_target target = {PLAIT_TARGET_ACTION, 0, NULL, 0};

struct model_rule {
    bool used;
    uint8_t key[KEY_BYTES], mask[KEY_BYTES], high[KEY_BYTES];
    int prefix, priority;
    uint64_t serial, handle;
};

struct shape {
    const char *what;
    struct plait_key_desc keys[3];
    uint32_t n_keys, key_bytes;
    bool by_priority;
};

static const struct shape shapes[] = {
    {"exact", {{"a", PLAIT_EXACT, 12, 0}, {"b", PLAIT_EXACT, 8, 2}}, 2, 3, false},
    {"lpm", {{"a", PLAIT_LPM, 32, 0}}, 1, 4, false},
    {"exact + lpm of odd width", {{"a", PLAIT_EXACT, 2, 0}, {"b", PLAIT_LPM, 19, 1}}, 2, 4, false},
    {"ternary", {{"a", PLAIT_TERNARY, 16, 0}}, 1, 2, true},
    {"ternary + range + optional",
     {{"a", PLAIT_TERNARY, 12, 0}, {"b", PLAIT_RANGE, 16, 2}, {"c", PLAIT_OPTIONAL, 2, 4}},
     3,
     5,
     true},
    {"range", {{"a", PLAIT_RANGE, 8, 0}}, 1, 1, true},
    {"lpm beside ternary", {{"a", PLAIT_LPM, 16, 0}, {"b", PLAIT_TERNARY, 4, 2}}, 2, 3, true},
};

static bool field_matches(const struct plait_key_desc *field, const struct model_rule *rule, const uint8_t *key)
{
    uint32_t bytes = (field->width + 7) / 8;
    uint64_t value = 0, low = 0, high = 0, mask = 0;
    for (uint32_t i = 0; i < bytes; i++) {
        value = value << 8 | key[field->offset + i];
        low = low << 8 | rule->key[field->offset + i];
        high = high << 8 | rule->high[field->offset + i];
        mask = mask << 8 | rule->mask[field->offset + i];
    }
    uint64_t full = (1ull << field->width) - 1;
    switch (field->match) {
    case PLAIT_EXACT:
        return value == low;
    case PLAIT_LPM:
        mask = full & ~(full >> rule->prefix);
        return (value & mask) == (low & mask);
    case PLAIT_RANGE:
        return value >= low && value <= high;
    default:
        return (value & mask) == (low & mask);
    }
}

static const struct model_rule *model_lookup(const struct shape *shape, const struct model_rule *rules,
                                             const uint8_t *key)
{
    const struct model_rule *best = NULL;
    for (int i = 0; i < RULES; i++) {
        bool matches = rules[i].used;
        for (uint32_t f = 0; matches && f < shape->n_keys; f++)
            matches = field_matches(&shape->keys[f], &rules[i], key);
        if (!matches)
            continue;
        int rank = shape->by_priority ? rules[i].priority : rules[i].prefix;
        int best_rank = !best ? 0 : shape->by_priority ? best->priority : best->prefix;
        if (!best || rank > best_rank || (rank == best_rank && rules[i].serial < best->serial))
            best = &rules[i];
    }
    return best;
}

/* Few distinct values, so that rules overlap and keys hit. */
static void random_field(struct plait_random *random, const struct plait_key_desc *field, uint8_t *to, uint64_t spread)
{
    uint64_t top = (1ull << field->width) - 1;
    uint64_t value = plait_random_between(random, 0, 1)
                         ? plait_random_between(random, 0, top < spread ? top : spread)
                         : top - plait_random_between(random, 0, top < spread ? top : spread);
    for (uint32_t i = (field->width + 7) / 8; i-- > 0; value >>= 8)
        to[i] = (uint8_t)value;
}

static void random_rule(struct plait_random *random, const struct shape *shape, struct model_rule *rule)
{
    memset(rule, 0, sizeof *rule);
    rule->priority = (int)plait_random_between(random, 1, 6);
    for (uint32_t f = 0; f < shape->n_keys; f++) {
        const struct plait_key_desc *field = &shape->keys[f];
        uint32_t bytes = (field->width + 7) / 8;
        uint8_t *key = rule->key + field->offset, *mask = rule->mask + field->offset,
                *high = rule->high + field->offset;
        random_field(random, field, key, 20);
        random_field(random, field, high, 20);
        if (field->match == PLAIT_RANGE && memcmp(key, high, bytes) > 0)
            memcpy(high, key, bytes);
        if (field->match == PLAIT_LPM)
            rule->prefix = (int)plait_random_between(random, 0, field->width);
        if (field->match == PLAIT_TERNARY)
            random_field(random, field, mask, 3);
        if (field->match == PLAIT_OPTIONAL && plait_random_between(random, 0, 1)) {
            uint64_t full = (1ull << field->width) - 1;
            for (uint32_t i = bytes; i-- > 0; full >>= 8)
                mask[i] = (uint8_t)full;
        }
    }
}

static bool same_match(const struct shape *shape, const struct model_rule *a, const struct model_rule *b)
{
    if (shape->by_priority && a->priority != b->priority)
        return false;
    for (uint32_t f = 0; f < shape->n_keys; f++) {
        const struct plait_key_desc *field = &shape->keys[f];
        uint32_t bytes = (field->width + 7) / 8, at = field->offset;
        uint64_t full = (1ull << field->width) - 1, mask_a = full, mask_b = full, key_a = 0, key_b = 0, given_a = 0,
                 given_b = 0;
        for (uint32_t i = 0; i < bytes; i++) {
            key_a = key_a << 8 | a->key[at + i];
            key_b = key_b << 8 | b->key[at + i];
            given_a = given_a << 8 | a->mask[at + i];
            given_b = given_b << 8 | b->mask[at + i];
        }
        if (field->match == PLAIT_LPM) {
            mask_a = full & ~(full >> a->prefix);
            mask_b = full & ~(full >> b->prefix);
        } else if (field->match == PLAIT_TERNARY || field->match == PLAIT_OPTIONAL) {
            mask_a = given_a;
            mask_b = given_b;
        } else if (field->match == PLAIT_RANGE && memcmp(a->high + at, b->high + at, bytes) != 0) {
            return false;
        }
        if (mask_a != mask_b || (key_a & mask_a) != (key_b & mask_b))
            return false;
    }
    return true;
}

static void against_model(const struct shape *shape, uint64_t seed)
{
    static struct model_rule rules[RULES];
    struct plait_table_desc desc = {
        "t", PLAIT_TABLE_SIMPLE, RULES, shape->n_keys, shape->key_bytes, shape->keys, false, false, -1};
    struct plait_table table;
    struct plait_actions store;
    struct plait_random random;
    struct plait_error error;
    uint64_t serial = 0;
    memset(rules, 0, sizeof rules);
    plait_random_seed(&random, seed);
    plait_actions_init(&store, &pipeline);
    CHECK_EQUAL(plait_table_check(&desc, &error), 0);
    CHECK_EQUAL(plait_table_create(&table, &desc, seed, &error), 0);
    for (int step = 0; step < STEPS; step++) {
        struct model_rule *rule = &rules[plait_random_between(&random, 0, RULES - 1)];
        if (rule->used && plait_random_between(&random, 0, 1)) {
            CHECK_EQUAL(plait_table_delete(&table, rule->handle, &error), 0);
            CHECK_EQUAL(plait_table_delete(&table, rule->handle, &error), -ENOENT); /* the handle is stale */
            rule->used = false;
        } else if (!rule->used) {
            struct model_rule fresh;
            random_rule(&random, shape, &fresh);
            bool exists = false;
            for (int i = 0; i < RULES; i++)
                exists |= rules[i].used && same_match(shape, &rules[i], &fresh);
            struct plait_match_spec match = {fresh.key,  shape->key_bytes, fresh.mask,   shape->key_bytes,
                                             fresh.high, shape->key_bytes, fresh.prefix, fresh.priority};
            int result = plait_table_insert(&table, &store, &match, &target, &fresh.handle, &error);
            CHECK_EQUAL(result, exists ? -EEXIST : 0);
            if (!exists) {
                *rule = fresh;
                rule->used = true;
                rule->serial = serial++;
            }
        }
        uint8_t key[KEY_BYTES];
        for (uint32_t f = 0; f < shape->n_keys; f++)
            random_field(&random, &shape->keys[f], key + shape->keys[f].offset, 20);
        const struct model_rule *expected = model_lookup(shape, rules, key);
        struct plait_entry *found = plait_table_lookup(&table, key);
        CHECK(found == (expected ? plait_table_entry(&table, expected->handle, &error) : NULL));
    }
    plait_table_free(&table);
    plait_actions_free(&store);
}

static void a_full_table_refuses(void)
{
    struct plait_table_desc desc = {"t", PLAIT_TABLE_SIMPLE, 2, 1, 4, shapes[1].keys, false, false, -1};
    struct plait_table table;
    struct plait_actions store;
    struct plait_error error;
    uint64_t handle;
    plait_actions_init(&store, &pipeline);
    CHECK_EQUAL(plait_table_create(&table, &desc, 1, &error), 0);
    for (uint8_t i = 0; i < 3; i++) {
        uint8_t key[4] = {i, 0, 0, 0};
        struct plait_match_spec match = {.key = key, .key_length = 4, .prefix_length = 8};
        CHECK_EQUAL(plait_table_insert(&table, &store, &match, &target, &handle, &error), i < 2 ? 0 : -ENOSPC);
    }
    CHECK_EQUAL(plait_table_delete(&table, handle, &error), 0);
    uint8_t key[4] = {9, 0, 0, 0};
    struct plait_match_spec match = {.key = key, .key_length = 4, .prefix_length = 33};
    CHECK_EQUAL(plait_table_insert(&table, &store, &match, &target, &handle, &error), -EINVAL);
    CHECK(strstr(error.text, "prefix_len"));
    match.prefix_length = 32;
    match.key_length = 3;
    CHECK_EQUAL(plait_table_insert(&table, &store, &match, &target, &handle, &error), -EINVAL);
    match.key_length = 4;
    CHECK_EQUAL(plait_table_insert(&table, &store, &match, &target, &handle, &error), 0);
    CHECK_EQUAL(plait_table_count(&table), 2);
    plait_table_free(&table);
    plait_actions_free(&store);
}

/* Room that was made for an insert that did not come must not bring back what the table was then. */
static void room_that_is_not_taken_goes_stale(void)
{
    struct plait_table_desc desc = {"t", PLAIT_TABLE_SIMPLE, 128, 1, 2, shapes[3].keys, false, false, -1};
    struct plait_table table;
    struct plait_actions store;
    struct plait_error error;
    uint64_t handle, best = 0;
    uint8_t key[2] = {0}, mask[2] = {0xff, 0xff};
    struct plait_match_spec match = {
        .key = key, .key_length = 2, .mask = mask, .mask_length = 2, .prefix_length = -1, .priority = 1};
    plait_actions_init(&store, &pipeline);
    CHECK_EQUAL(plait_table_create(&table, &desc, 1, &error), 0);
    /* The room doubles at an unknown size: every size is tried. */
    for (uint8_t i = 0; i < 40; i++) {
        key[1] = i;
        CHECK_EQUAL(plait_table_prepare(&table, &match, &error), 0);
        key[1] = 0;
        match.priority = i + 2;
        CHECK_EQUAL(plait_table_insert(&table, &store, &match, &target, &best, &error), 0);
        key[1] = i + 1;
        match.priority = 1;
        CHECK_EQUAL(plait_table_insert(&table, &store, &match, &target, &handle, &error), 0);
        key[1] = 0;
        CHECK(plait_table_lookup(&table, key) == plait_table_entry(&table, best, &error));
    }
    plait_table_free(&table);
    plait_actions_free(&store);
}

static void bad_descriptors_are_refused(void)
{
    struct plait_error error;
    struct plait_key_desc two_lpm[] = {{"a", PLAIT_LPM, 8, 0}, {"b", PLAIT_LPM, 8, 1}};
    struct plait_table_desc desc = {"t", PLAIT_TABLE_SIMPLE, 2, 2, 2, two_lpm, false, false, -1};
    CHECK_EQUAL(plait_table_check(&desc, &error), -EINVAL);
    struct plait_key_desc gap[] = {{"a", PLAIT_EXACT, 8, 1}};
    desc = (struct plait_table_desc){"t", PLAIT_TABLE_SIMPLE, 2, 1, 2, gap, false, false, -1};
    CHECK_EQUAL(plait_table_check(&desc, &error), -EINVAL);
    struct plait_key_desc wide[] = {{"a", PLAIT_EXACT, 8000, 0}};
    desc = (struct plait_table_desc){"t", PLAIT_TABLE_SIMPLE, 2, 1, 1000, wide, false, false, -1};
    CHECK_EQUAL(plait_table_check(&desc, &error), -EINVAL);
}

void test_tables(void)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (uint64_t seed = 1; seed <= 3; seed++)
            against_model(&shapes[i], seed);
    a_full_table_refuses();
    room_that_is_not_taken_goes_stale();
    bad_descriptors_are_refused();
}
