/* Random operations on a match table of random shape against a plain model: a list of rules, all of which are tried.
 *
 * `tables SEED STEPS`: prints "ok" and ends with 0, or says what differs and ends with 1. Every pointer that is handed to
 * the table has its exact size on the heap, so that a sanitizer sees a step beyond.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "random.h"
#include "table.h"

#define FIELDS  5
#define POOL    6
#define RULES   300
#define MEMBERS 12
#define GROUPS  6
#define WEIGHTS 4

static struct plait_random dice;
static unsigned long step;
static const char *doing;

static void fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "step %lu, %s: ", step, doing);
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    exit(1);
}

static uint32_t pick(uint32_t below) { return (uint32_t)plait_random_between(&dice, 0, below - 1); }

/* ------------------------------------------------------------------------------------------------------------
 * The program: three actions */

static const struct plait_param_desc small[] = {{"port", 9, 0}};
static const struct plait_param_desc large[] = {{"mac", 48, 0}, {"key", 100, 8}, {"flag", 1, 24}};
static const struct plait_action_desc actions[] = {
    {"none", 1, 0, 0, NULL}, {"small", 2, 1, 8, small}, {"large", 3, 3, 32, large}};
static const struct plait_pipeline pipeline = {.abi = PLAIT_PIPELINE_ABI, .n_actions = 3, .actions = actions};
static const uint32_t wire_bytes[] = {0, 2, 6 + 13 + 1};

struct call {
    uint32_t action;
    uint8_t wire[20];
};

static struct call random_call(void)
{
    struct call call = {.action = pick(3)};
    for (uint32_t i = 0; i < wire_bytes[call.action]; i++)
        call.wire[i] = (uint8_t)pick(256);
    if (call.action == 1)
        call.wire[0] &= 1;
    if (call.action == 2)
        call.wire[6] &= 15, call.wire[19] &= 1;
    return call;
}

static bool same_call(const struct plait_action_data *data, const struct call *call)
{
    if (!data || data->action != call->action)
        return false;
    const uint8_t *wire = call->wire, *params = (const uint8_t *)data->params;
    uint64_t value = 0;
    if (call->action == 1)
        return data->params[0] == ((uint64_t)wire[0] << 8 | wire[1]);
    if (call->action == 2) {
        for (int i = 0; i < 6; i++)
            value = value << 8 | wire[i];
        return data->params[0] == value && memcmp(params + 8, wire + 6, 13) == 0 && data->params[3] == wire[19];
    }
    return true;
}

/* ------------------------------------------------------------------------------------------------------------
 * The model */

struct target_model {
    uint32_t kind, index; /* member or group: place in the model's arrays */
    struct call call;
};

struct rule_model {
    bool used;
    uint8_t *key, *mask, *low, *high; /* key under its effective mask; bounds of range fields */
    int32_t rank;
    uint64_t serial, handle;
    struct target_model target;
};

struct member_model {
    bool used;
    uint32_t handle;
    struct call call;
};

struct group_model {
    bool used;
    uint32_t handle, count, members[WEIGHTS], weights[WEIGHTS];
};

static struct plait_key_desc keys[FIELDS];
static struct plait_table_desc desc;
static bool by_priority;
static uint8_t *pool[FIELDS][POOL], *mask_pool[FIELDS][POOL];
static struct rule_model rules[RULES];
static struct member_model members[MEMBERS];
static struct group_model groups[GROUPS];
static uint32_t n_used;
static struct target_model default_target;
static bool has_default;

static uint32_t bytes_of(const struct plait_key_desc *field) { return (field->width + 7) / 8; }

static uint8_t *random_value(uint32_t width)
{
    uint32_t bytes = (width + 7) / 8;
    uint8_t *value = calloc(1, bytes);
    for (uint32_t i = 0, kind = pick(4); i < bytes; i++)
        value[i] = (uint8_t)(kind == 0 ? 0 : kind == 1 ? 255 : pick(256));
    if (width % 8)
        value[0] &= (uint8_t)((1u << width % 8) - 1);
    return value;
}

static void random_shape(void)
{
    static const uint32_t widths[] = {1, 2, 3, 7, 8, 9, 12, 16, 19, 31, 32, 33, 48, 63, 64, 65, 128, 129, 500};
    uint32_t offset = 0, kinds = pick(3); /* exact; with an lpm; any */
    bool lpm = false;
    uint32_t n = 1 + pick(FIELDS);
    for (uint32_t i = 0; i < n; i++) {
        enum plait_match match = PLAIT_EXACT;
        if (kinds == 1 && !lpm)
            match = pick(n) == 0 || i == n - 1 ? PLAIT_LPM : PLAIT_EXACT;
        else if (kinds == 2)
            match = (enum plait_match)pick(5);
        if (match == PLAIT_LPM && lpm)
            match = PLAIT_EXACT;
        lpm |= match == PLAIT_LPM;
        by_priority |= match == PLAIT_TERNARY || match == PLAIT_RANGE || match == PLAIT_OPTIONAL;
        keys[i] = (struct plait_key_desc){"k", match, widths[pick(sizeof widths / sizeof *widths)], offset};
        offset += bytes_of(&keys[i]);
        for (int p = 0; p < POOL; p++) {
            pool[i][p] = random_value(keys[i].width);
            mask_pool[i][p] = random_value(keys[i].width);
        }
    }
    uint32_t size = pick(4) ? RULES : pick(40);
    desc = (struct plait_table_desc){"t",    (enum plait_table_kind)pick(3), size, n, offset, keys, pick(2) == 0,
                                     false, pick(2) ? 0 : -1};
}

/* A field of a random rule or key: from the pool, at times off by one bit. */
static void field_value(uint32_t field, uint8_t *to)
{
    memcpy(to, pool[field][pick(POOL)], bytes_of(&keys[field]));
    if (pick(4) == 0) {
        uint32_t bit = pick(keys[field].width), bytes = bytes_of(&keys[field]);
        to[bytes - 1 - bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}

static bool fits(const uint8_t *bytes)
{
    for (uint32_t i = 0; i < desc.n_keys; i++)
        if (keys[i].width % 8 && bytes[keys[i].offset] >> keys[i].width % 8)
            return false;
    return true;
}

static void prefix(uint8_t *mask, uint32_t width, uint32_t length)
{
    uint32_t bytes = (width + 7) / 8;
    memset(mask, 0, bytes);
    for (uint32_t bit = width - length; bit < width; bit++)
        mask[bytes - 1 - bit / 8] |= (uint8_t)(1u << bit % 8);
}

/* What the table should make of a specification: false if it should refuse it. */
static bool effective(const struct plait_match_spec *spec, struct rule_model *rule)
{
    if (spec->key_length != desc.key_bytes || !fits(spec->key))
        return false;
    if (spec->mask && (spec->mask_length != desc.key_bytes || !fits(spec->mask)))
        return false;
    if (spec->high && (spec->high_length != desc.key_bytes || !fits(spec->high)))
        return false;
    rule->rank = by_priority ? spec->priority : 0;
    for (uint32_t i = 0; i < desc.n_keys; i++) {
        uint32_t at = keys[i].offset, bytes = bytes_of(&keys[i]);
        uint8_t full[64];
        prefix(full, keys[i].width, keys[i].width);
        switch (keys[i].match) {
        case PLAIT_EXACT:
            memcpy(rule->mask + at, full, bytes);
            break;
        case PLAIT_LPM:
            if (spec->prefix_length < 0 && spec->mask && by_priority) {
                memcpy(rule->mask + at, spec->mask + at, bytes);
                break;
            }
            if (spec->prefix_length < 0 || spec->prefix_length > (int32_t)keys[i].width)
                return false;
            prefix(rule->mask + at, keys[i].width, (uint32_t)spec->prefix_length);
            if (!by_priority)
                rule->rank = spec->prefix_length;
            break;
        case PLAIT_OPTIONAL:
            if (spec->mask) {
                bool none = true;
                for (uint32_t b = 0; b < bytes; b++)
                    none &= spec->mask[at + b] == 0;
                if (!none && memcmp(spec->mask + at, full, bytes) != 0)
                    return false;
            }
            /* fall through */
        case PLAIT_TERNARY:
            if (!spec->mask)
                return false;
            memcpy(rule->mask + at, spec->mask + at, bytes);
            break;
        case PLAIT_RANGE:
            if (!spec->high || memcmp(spec->key + at, spec->high + at, bytes) > 0)
                return false;
            memset(rule->mask + at, 0, bytes);
            memcpy(rule->low + at, spec->key + at, bytes);
            memcpy(rule->high + at, spec->high + at, bytes);
        }
    }
    for (uint32_t b = 0; b < desc.key_bytes; b++)
        rule->key[b] = spec->key[b] & rule->mask[b];
    return true;
}

static bool same_match(const struct rule_model *a, const struct rule_model *b)
{
    if (by_priority && a->rank != b->rank)
        return false;
    return !memcmp(a->key, b->key, desc.key_bytes) && !memcmp(a->mask, b->mask, desc.key_bytes) &&
           !memcmp(a->low, b->low, desc.key_bytes) && !memcmp(a->high, b->high, desc.key_bytes);
}

static bool matches(const struct rule_model *rule, const uint8_t *key)
{
    for (uint32_t b = 0; b < desc.key_bytes; b++)
        if ((key[b] & rule->mask[b]) != rule->key[b])
            return false;
    for (uint32_t i = 0; i < desc.n_keys; i++) {
        uint32_t at = keys[i].offset, bytes = bytes_of(&keys[i]);
        if (keys[i].match == PLAIT_RANGE &&
            (memcmp(key + at, rule->low + at, bytes) < 0 || memcmp(key + at, rule->high + at, bytes) > 0))
            return false;
    }
    return true;
}

/* ------------------------------------------------------------------------------------------------------------
 * Operations */

static struct plait_table table;
static struct plait_actions store;
static struct plait_error error;
static uint64_t serial;

static void expect(bool good, int result)
{
    if (good != (result == 0))
        fail("%s, but the table says %d (%s)", good ? "to be taken" : "to be refused", result, result ? error.text : "");
    if (result > 0 || (result && (error.code != -result || !error.text[0])))
        fail("a refusal without reason: %d, code %d", result, error.code);
}

/* A target, right or wrong. `wire` gets a block of exact size. */
static bool random_target(struct plait_target *target, struct target_model *model, uint8_t **wire)
{
    *model = (struct target_model){.kind = pick(desc.kind + 1u), .call = random_call()};
    *wire = NULL;
    bool good = true;
    if (model->kind == PLAIT_TARGET_ACTION) {
        uint32_t length = wire_bytes[model->call.action];
        if (pick(20) == 0) {
            length = length ? length - 1 : 1;
            good = false;
        }
        *wire = malloc(length + !length);
        memcpy(*wire, model->call.wire, length);
        if (good && length && pick(20) == 0 && model->call.action) {
            **wire |= 0x80; /* of 9 bits: too large; of 48: another value */
            good = model->call.action == 2;
            model->call.wire[0] |= 0x80;
        }
        *target = (struct plait_target){PLAIT_TARGET_ACTION, model->call.action, *wire, length};
        if (pick(40) == 0) {
            target->index = 3 + pick(1u << 31);
            good = false;
        }
    } else {
        bool member = model->kind == PLAIT_TARGET_MEMBER;
        model->index = pick(member ? MEMBERS : GROUPS);
        good = member ? members[model->index].used : groups[model->index].used;
        uint32_t handle = member ? members[model->index].handle : groups[model->index].handle;
        *target = (struct plait_target){model->kind, good ? handle : 1000000 + pick(1u << 31), NULL, 0};
    }
    if (pick(50) == 0) {
        /* a kind that the table does not take, or none at all */
        target->kind = pick(2) ? 3 + pick(1000) : desc.kind == PLAIT_TABLE_INDIRECT_SELECTOR ? 77 : PLAIT_TARGET_GROUP;
        good = false;
    }
    return good;
}

static void insert(void)
{
    struct rule_model *rule = &rules[pick(RULES)];
    if (rule->used)
        return;
    uint32_t size = desc.key_bytes;
    uint8_t *key = malloc(size), *mask = malloc(size), *high = malloc(size), *wire;
    struct plait_match_spec spec = {key, size, mask, size, high, size, -1, (int32_t)pick(6)};
    for (uint32_t i = 0; i < desc.n_keys; i++) {
        uint32_t at = keys[i].offset, bytes = bytes_of(&keys[i]);
        field_value(i, key + at);
        field_value(i, high + at);
        if (memcmp(key + at, high + at, bytes) > 0 && pick(20))
            memcpy(high + at, key + at, bytes);
        memcpy(mask + at, mask_pool[i][pick(POOL)], bytes);
        if (keys[i].match == PLAIT_OPTIONAL && pick(20))
            prefix(mask + at, keys[i].width, pick(2) ? keys[i].width : 0);
        if (keys[i].match == PLAIT_LPM && pick(8))
            spec.prefix_length = (int32_t)pick(keys[i].width + 1);
    }
    switch (pick(60)) { /* something wrong */
    case 0:
        spec.key_length = pick(size); /* shorter than promised: never read beyond */
        key = realloc(key, spec.key_length + 1);
        spec.key = key;
        break;
    case 1:
        spec.mask = NULL, spec.mask_length = 0;
        break;
    case 2:
        spec.high = NULL, spec.high_length = 0;
        break;
    case 3:
        spec.mask_length = size + 1 + pick(1000);
        break;
    case 4:
        key[keys[pick(desc.n_keys)].offset] |= 0x80;
        break;
    case 5:
        mask[keys[pick(desc.n_keys)].offset] |= 0x80;
        break;
    case 6:
        spec.prefix_length = (int32_t)(pick(2) ? pick(1000) : 0x7fffffff);
        break;
    case 7:
        spec.priority = pick(2) ? INT32_MIN : INT32_MAX;
        break;
    default:
        break;
    }
    struct plait_target target;
    bool good = random_target(&target, &rule->target, &wire);
    memset(rule->key, 0, size), memset(rule->mask, 0, size), memset(rule->low, 0, size), memset(rule->high, 0, size);
    bool clean = effective(&spec, rule);
    good &= clean;
    for (int i = 0; good && i < RULES; i++)
        good = !rules[i].used || !same_match(&rules[i], rule);
    good &= n_used < (desc.size ? desc.size : 1);
    if (pick(2)) {
        doing = "prepare";
        expect(clean, plait_table_prepare(&table, &spec, &error));
    }
    doing = "insert";
    expect(good, plait_table_insert(&table, &store, &spec, &target, &rule->handle, &error));
    if (good) {
        rule->used = true;
        rule->serial = serial++;
        n_used++;
    }
    free(key), free(mask), free(high), free(wire);
}

static void modify(void)
{
    struct rule_model *rule = &rules[pick(RULES)];
    struct plait_target target;
    struct target_model model;
    uint8_t *wire;
    bool good = random_target(&target, &model, &wire);
    if (pick(8) == 0) {
        doing = "default";
        bool none = pick(4) == 0;
        int result = plait_table_default_set(&table, &store, none ? NULL : &target, &error);
        expect(none || good, result);
        if (!result) {
            has_default = !none;
            default_target = model;
        }
    } else {
        doing = "modify";
        uint64_t handle = rule->used ? rule->handle : plait_random_next(&dice);
        good &= rule->used;
        expect(good, plait_table_modify(&table, &store, handle, &target, &error));
        if (good)
            rule->target = model;
    }
    free(wire);
}

static void erase(void)
{
    doing = "delete";
    struct rule_model *rule = &rules[pick(RULES)];
    uint64_t handle = rule->handle; /* of a deleted rule: stale */
    bool stale = !rule->used;
    for (int i = 0; stale && i < RULES; i++)
        if (rules[i].used && rules[i].handle == handle)
            return; /* never given out: a fresh model's 0 */
    expect(rule->used, plait_table_delete(&table, handle, &error));
    n_used -= rule->used;
    rule->used = false;
}

static bool in_use(uint32_t kind, uint32_t index)
{
    for (int i = 0; i < RULES; i++)
        if (rules[i].used && rules[i].target.kind == kind && rules[i].target.index == index)
            return true;
    if (has_default && default_target.kind == kind && default_target.index == index)
        return true;
    for (int g = 0; kind == PLAIT_TARGET_MEMBER && g < GROUPS; g++)
        for (uint32_t m = 0; groups[g].used && m < groups[g].count; m++)
            if (groups[g].members[m] == index)
                return true;
    return false;
}

static void member(void)
{
    uint32_t place = pick(MEMBERS);
    struct member_model *one = &members[place];
    struct call call = random_call();
    uint32_t length = wire_bytes[call.action], given = pick(30) ? length : length + 1;
    uint8_t *wire = calloc(1, given + !given);
    memcpy(wire, call.wire, length);
    doing = "member";
    if (!one->used) {
        int result = plait_member_create(&store, call.action, wire, given, &one->handle, &error);
        expect(given == length, result);
        one->used = !result;
        one->call = call;
    } else if (pick(2)) {
        int result = plait_member_modify(&store, one->handle, call.action, wire, given, &error);
        expect(given == length, result);
        if (!result)
            one->call = call;
    } else {
        bool good = !in_use(PLAIT_TARGET_MEMBER, place);
        expect(good, plait_member_delete(&store, one->handle, &error));
        one->used = !good;
        if (good)
            expect(false, plait_member_delete(&store, one->handle, &error));
    }
    free(wire);
}

static void group(void)
{
    uint32_t place = pick(GROUPS);
    struct group_model *one = &groups[place];
    doing = "group";
    if (!one->used) {
        expect(true, plait_group_create(&store, &one->handle, &error));
        one->used = true;
        one->count = 0;
        return;
    }
    if (pick(4) == 0) {
        bool good = !in_use(PLAIT_TARGET_GROUP, place);
        expect(good, plait_group_delete(&store, one->handle, &error));
        one->used = !good;
        return;
    }
    struct group_model made = *one;
    bool good = true;
    made.count = pick(WEIGHTS + 1);
    uint32_t *handles = malloc(made.count * 4 + !made.count), *weights = malloc(made.count * 4 + !made.count);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < made.count; i++) {
        made.members[i] = pick(MEMBERS);
        made.weights[i] = weights[i] = pick(40) ? 1 + pick(5) : pick(2) ? 0 : UINT32_MAX - pick(3);
        good &= members[made.members[i]].used && weights[i];
        handles[i] = members[made.members[i]].used ? members[made.members[i]].handle : 1u << 30;
        sum += weights[i];
    }
    good &= sum <= PLAIT_GROUP_LIMIT;
    expect(good, plait_group_set(&store, one->handle, handles, weights, made.count, &error));
    if (good)
        *one = made;
    free(handles), free(weights);
}

static void check_target(const struct plait_entry *entry, const struct target_model *model)
{
    if (model->kind != PLAIT_TARGET_GROUP) {
        const struct call *call = model->kind == PLAIT_TARGET_ACTION ? &model->call : &members[model->index].call;
        if (entry->group || !same_call(entry->data, call))
            fail("another action than was given");
        return;
    }
    const struct group_model *one = &groups[model->index];
    uint32_t size = 0, seen[MEMBERS] = {0};
    for (uint32_t i = 0; i < one->count; i++)
        size += one->weights[i], seen[one->members[i]] += one->weights[i];
    if (entry->data || !entry->group || entry->group->size != size)
        fail("a group of another size than was given");
    uint32_t slot = 0;
    while (slot < size) { /* ordered by handle */
        int lowest = -1;
        for (int m = 0; m < MEMBERS; m++)
            if (seen[m] && (lowest < 0 || members[m].handle < members[lowest].handle))
                lowest = m;
        for (; seen[lowest]; seen[lowest]--, slot++)
            if (!same_call(entry->group->members[slot], &members[lowest].call))
                fail("slot %u of a group has another member", slot);
    }
}

static void look_up(void)
{
    doing = "look-up";
    uint8_t *key = malloc(desc.key_bytes);
    for (uint32_t i = 0; i < desc.n_keys; i++)
        field_value(i, key + keys[i].offset);
    const struct rule_model *best = NULL;
    for (int i = 0; i < RULES; i++) {
        const struct rule_model *rule = &rules[i];
        if (rule->used && matches(rule, key) &&
            (!best || rule->rank > best->rank || (rule->rank == best->rank && rule->serial < best->serial)))
            best = rule;
    }
    struct plait_entry *found = plait_table_lookup(&table, key);
    if (found != (best ? plait_table_entry(&table, best->handle, &error) : NULL))
        fail("found %s, expected %s", found ? "an entry" : "none", best ? "another" : "none");
    if (best)
        check_target(found, &best->target);
    if (found && desc.direct_meter >= 0)
        memset(found->meter, 0, PLAIT_METER_CELL_BYTES);
    if (has_default)
        check_target(table.default_entry, &default_target);
    else if (table.default_entry->data || table.default_entry->group)
        fail("a default entry where none was set");
    if (plait_table_count(&table) != n_used)
        fail("%u entries, expected %u", plait_table_count(&table), n_used);
    free(key);
}

int main(int count, char **arguments)
{
    if (count != 3)
        return 2;
    plait_random_seed(&dice, strtoull(arguments[1], NULL, 10));
    doing = "create";
    random_shape();
    for (int i = 0; i < RULES; i++) {
        rules[i].key = malloc(desc.key_bytes), rules[i].mask = malloc(desc.key_bytes);
        rules[i].low = malloc(desc.key_bytes), rules[i].high = malloc(desc.key_bytes);
    }
    plait_actions_init(&store, &pipeline);
    expect(true, plait_table_check(&desc, &error));
    expect(true, plait_table_create(&table, &desc, plait_random_next(&dice), &error));
    for (step = strtoul(arguments[2], NULL, 10); step; step--) {
        uint32_t kind = pick(100);
        if (kind < 35)
            insert();
        else if (kind < 45)
            erase();
        else if (kind < 53)
            modify();
        else if (kind < 58)
            member();
        else if (kind < 62)
            group();
        else
            look_up();
    }
    plait_table_free(&table);
    plait_actions_free(&store);
    puts("ok");
    return 0;
}
