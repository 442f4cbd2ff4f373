/* One thread runs packets, one reads, one changes everything: built with -fsanitize=thread, which reports what the
 * locks do not cover.  race <pipeline_echo.so> */
#include <pthread.h>
#include <stdatomic.h>

#include "api.h"
#include "unit.h"

#define ENTRIES 5000u
#define ROUNDS  3

const char *echo_program;

static struct plait_fabric *fabric;
static struct plait_switch *switches[2];
static struct plait_link *cable;
static atomic_bool quit;

static const uint8_t frame[64] = {2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 1, 8, 1};

static void *run_packets(void *unused)
{
    int done;
    (void)unused;
    for (uint64_t until = 0; !quit; until += 100000)
        plait_fabric_run_until(fabric, until, UINT64_MAX, &done);
    return NULL;
}

static void *read_state(void *unused)
{
    struct plait_direction_stats direction;
    struct plait_switch_stats stats;
    struct plait_counter_cell cells[4];
    struct plait_error error;
    uint8_t depth[4];
    (void)unused;
    while (!quit) {
        plait_link_stats(cable, 0, &direction);
        plait_switch_stats(switches[0], &stats);
        plait_control_counter_read(switches[0], 0, 0, 4, cells, &error);
        plait_control_register_read(switches[0], 1, 1, 1, depth, &error);
        plait_notice_free(plait_switch_poll(switches[1], 100000));
    }
    return NULL;
}

static void forward(struct plait_switch *sw, uint8_t high, uint8_t low)
{
    uint64_t handle;
    struct plait_error error;
    uint8_t port[2] = {high, low};
    struct plait_target target = {PLAIT_TARGET_ACTION, 0, port, 2};
    struct plait_match_spec match = {.key = frame, .key_length = 6, .prefix_length = -1};
    CHECK_EQUAL(plait_control_entry_insert(sw, 0, &match, &target, &handle, &error), 0);
}

/* Enough routes that the hash grows several times while packets are looked up. */
static void change_everything(void)
{
    static uint64_t handles[ENTRIES];
    struct plait_error error;
    struct plait_target drop = {PLAIT_TARGET_ACTION, 1, NULL, 0};
    for (uint32_t i = 0; i < ENTRIES; i++) {
        uint8_t key[4] = {11, (uint8_t)(i >> 16), (uint8_t)(i >> 8), (uint8_t)i};
        struct plait_match_spec match = {.key = key, .key_length = 4, .prefix_length = 32};
        CHECK_EQUAL(plait_control_entry_insert(switches[0], 1, &match, &drop, &handles[i], &error), 0);
        if (i % 100 == 0)
            CHECK_EQUAL(plait_switch_inject(switches[0], 3, 0, frame, sizeof frame, &error), 0);
    }
    for (uint32_t i = 0; i < ENTRIES; i++)
        CHECK_EQUAL(plait_control_entry_delete(switches[0], 1, handles[i], &error), 0);
    plait_link_set(cable, 2000000000, 1000, 0.01, &error);
    CHECK_EQUAL(plait_switch_load(switches[0], echo_program, &error), 0);
    forward(switches[0], 0, 1);
}

int main(int argc, char **argv)
{
    struct plait_error error;
    struct plait_port_spec spec = {1000000000, 2000, 0, -1, -1};
    pthread_t runner, reader;
    if (argc != 2)
        return 2;
    echo_program = argv[1];
    fabric = plait_fabric_create(0, 1, &error);
    for (int i = 0; i < 2; i++) {
        switches[i] = plait_fabric_add_switch(fabric, "s", 511, 510, 1, &error);
        CHECK_EQUAL(plait_switch_load(switches[i], echo_program, &error), 0);
    }
    cable = plait_fabric_connect(fabric, "cable", switches[0], 1, switches[1], 1, &spec, &error);
    CHECK_EQUAL(plait_link_record_flows(cable, 100, &error), 0);
    forward(switches[0], 0, 1);
    forward(switches[1], 1, 254);
    CHECK_EQUAL(plait_switch_generate(switches[0], 3, frame, sizeof frame, UINT64_MAX, 0, 1000, &error), 0);
    CHECK_EQUAL(pthread_create(&runner, NULL, run_packets, NULL), 0);
    CHECK_EQUAL(pthread_create(&reader, NULL, read_state, NULL), 0);
    for (int round = 0; round < ROUNDS; round++)
        change_everything();
    quit = true;
    pthread_join(runner, NULL);
    pthread_join(reader, NULL);
    CHECK(plait_fabric_hops(fabric) > 0);
    plait_fabric_destroy(fabric);
    puts("ok");
    return 0;
}
