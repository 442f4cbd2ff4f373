/* How long a look-up takes: the figure behind the choice of tuple-space search. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "error.h"
#include "random.h"
#include "table.h"

static const struct plait_action_desc no_action[] = {{"none", 1, 0, 0, NULL}};
static const struct plait_pipeline no_program = {.abi = PLAIT_PIPELINE_ABI, .n_actions = 1, .actions = no_action};

/* Of this thread's own time, so that a machine that others use too says nearly the same. */
static double now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* Masks of /1 to /32, so that a ternary table has as many tuples as an LPM table may. */
static int insert_random(struct plait_table *table, struct plait_actions *actions, enum plait_match kind, uint32_t key,
                         struct plait_random *random, struct plait_error *error)
{
    struct plait_target target = {PLAIT_TARGET_ACTION, 0, NULL, 0};
    uint32_t mask = __builtin_bswap32(UINT32_MAX << plait_random_between(random, 0, 31));
    struct plait_match_spec match = {.key = (uint8_t *)&key, .key_length = 4, .prefix_length = -1};
    uint64_t handle;
    if (kind == PLAIT_LPM)
        match.prefix_length = (int32_t)plait_random_between(random, 8, 32);
    if (kind == PLAIT_TERNARY) {
        match.mask = (uint8_t *)&mask;
        match.mask_length = 4;
        match.priority = (int32_t)plait_random_between(random, 1, 64);
    }
    int result = plait_table_prepare(table, &match, error);
    if (!result)
        result = plait_table_insert(table, actions, &match, &target, &handle, error);
    return result == -EEXIST ? 0 : result;
}

double plait_bench_lookup(uint32_t match, uint32_t entries, uint32_t lookups, struct plait_error *error)
{
    if (match > PLAIT_TERNARY || entries == 0 || lookups == 0)
        return plait_fail(error, EINVAL, "lookup bench: exact, lpm or ternary, and at least one entry and look-up");
    struct plait_key_desc key = {"key", (enum plait_match)match, 32, 0};
    struct plait_table_desc desc = {"bench", PLAIT_TABLE_SIMPLE, entries, 1, 4, &key, false, false, -1};
    struct plait_table table = {0};
    struct plait_actions actions;
    struct plait_random random;
    plait_random_seed(&random, 1);
    plait_actions_init(&actions, &no_program);
    uint32_t *keys = calloc(entries, sizeof *keys);
    double result =
        keys ? plait_table_create(&table, &desc, 1, error) : plait_fail(error, ENOMEM, "no memory for keys");
    for (uint32_t i = 0; i < entries && result == 0; i++) {
        keys[i] = (uint32_t)plait_random_next(&random);
        result = insert_random(&table, &actions, key.match, keys[i], &random, error);
    }
    if (result == 0) {
        uint32_t missed = 0;
        double start = now_ns();
        for (uint32_t i = 0; i < lookups; i++)
            missed += !plait_table_lookup(&table, (uint8_t *)&keys[plait_random_next(&random) % entries]);
        result = (now_ns() - start) / lookups;
        if (missed)
            result = plait_fail(error, EIO, "lookup bench: %u look-ups missed", missed);
    }
    plait_table_free(&table);
    plait_actions_free(&actions);
    free(keys);
    return result;
}
