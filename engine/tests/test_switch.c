/* Random frames, entries and control calls against a small fabric: nothing leaks, and every packet is accounted for. */
#include "api.h"
#include "random.h"
#include "unit.h"

#define SWITCHES 3
#define ACTIONS  12

struct fuzz {
    struct plait_fabric *fabric;
    struct plait_switch *switches[SWITCHES];
    struct plait_link *links[SWITCHES];
    struct plait_random random;
};

static uint64_t pick(struct fuzz *fuzz, uint64_t low, uint64_t high)
{
    return plait_random_between(&fuzz->random, low, high);
}

static void build(struct fuzz *fuzz, uint64_t seed)
{
    struct plait_error error;
    plait_random_seed(&fuzz->random, seed);
    fuzz->fabric = plait_fabric_create(0, seed, &error);
    CHECK(fuzz->fabric);
    for (int i = 0; i < SWITCHES; i++) {
        fuzz->switches[i] = plait_fabric_add_switch(fuzz->fabric, "s", 511, 510, 2, &error);
        CHECK(fuzz->switches[i]);
        CHECK_EQUAL(plait_switch_load(fuzz->switches[i], echo_program, &error), 0);
    }
    struct plait_port_spec spec = {1000000000, 2000, 0.05, 8, 9000};
    for (int i = 0; i < SWITCHES; i++) {
        fuzz->links[i] = plait_fabric_connect(fuzz->fabric, "l", fuzz->switches[i], 1,
                                              fuzz->switches[(i + 1) % SWITCHES], 2, &spec, &error);
        CHECK(fuzz->links[i]);
        CHECK_EQUAL(plait_link_record_flows(fuzz->links[i], 16, &error), 0);
    }
    CHECK(!plait_fabric_connect(fuzz->fabric, "l", fuzz->switches[0], 1, fuzz->switches[1], 9, &spec, &error));
    CHECK(strstr(error.text, "connected"));
}

static void random_entry(struct fuzz *fuzz, struct plait_switch *sw)
{
    static const uint8_t lengths[ACTIONS] = {2, 0, 2, 4, 2, 4, 4, 13, 2, 4, 2, 4};
    struct plait_error error;
    uint64_t handle;
    uint32_t action = (uint32_t)pick(fuzz, 0, ACTIONS - 1);
    uint8_t params[13] = {0}, key[6] = {2, 0, 0, 0, 0, (uint8_t)pick(fuzz, 0, 15)};
    static const uint8_t ports[][2] = {{0, 1}, {0, 2}, {0, 7}, {1, 254}};
    memcpy(params, ports[pick(fuzz, 0, 3)], 2);
    params[3] = (uint8_t)pick(fuzz, 0, 3);
    struct plait_match_spec match = {.key = key, .key_length = 6, .prefix_length = -1};
    struct plait_target target = {PLAIT_TARGET_ACTION, action, params, lengths[action]};
    int result = plait_control_entry_insert(sw, 0, &match, &target, &handle, &error);
    if (result == 0 && pick(fuzz, 0, 3) == 0)
        CHECK_EQUAL(plait_control_entry_delete(sw, 0, handle, &error), 0);
    if (result == 0 && pick(fuzz, 0, 3) == 0)
        plait_control_entry_meter_set(sw, 0, handle, 1000, 2000, 5000, 5000, &error);
    struct plait_replica replicas[] = {{1, 1}, {2, 2}, {7, 3}, {510, 4}};
    uint32_t group = (uint32_t)pick(fuzz, 1, 3);
    CHECK_EQUAL(plait_control_multicast_set(sw, group, replicas, (uint32_t)pick(fuzz, 0, 4), &error), 0);
    CHECK_EQUAL(plait_control_clone_session_set(sw, group, replicas, (uint32_t)pick(fuzz, 0, 4),
                                                (uint32_t)pick(fuzz, 0, 80), 0, &error),
                0);
    if (pick(fuzz, 0, 9) == 0)
        plait_control_multicast_delete(sw, group, &error);
}

static void random_frame(struct fuzz *fuzz, struct plait_switch *sw)
{
    static uint8_t frame[PLAIT_MAX_FRAME];
    static const uint8_t types[][2] = {{8, 0}, {0x88, 0xb5}, {8, 1}, {0x81, 0}};
    struct plait_error error;
    for (size_t i = 0; i < 64; i++)
        frame[i] = (uint8_t)pick(fuzz, 0, 255);
    memcpy(frame, (uint8_t[]){2, 0, 0, 0, 0, (uint8_t)pick(fuzz, 0, 15)}, 6);
    memcpy(frame + 12, types[pick(fuzz, 0, 3)], 2);
    uint32_t length = (uint32_t)(pick(fuzz, 0, 9) ? pick(fuzz, 1, 200) : pick(fuzz, 1, PLAIT_MAX_FRAME));
    CHECK_EQUAL(plait_switch_inject(sw, (uint32_t)pick(fuzz, 0, 511), 0, frame, length, &error), 0);
}

/* Holds, depths, rates, buffers and pauses: any of them, or what is refused. */
static void random_queues(struct fuzz *fuzz, struct plait_switch *sw)
{
    struct plait_error error;
    int32_t queue = (int32_t)pick(fuzz, 0, 2) - 1;
    uint32_t port = (uint32_t)pick(fuzz, 1, 2);
    struct plait_queue_change change = {-1, -1, -1, -1, -1, {0, 0}};
    struct plait_buffer_spec spec = {
        .total_bytes = pick(fuzz, 0, 60000),
        .reserved_bytes = pick(fuzz, 0, 600),
        .alpha = {(uint32_t)pick(fuzz, 0, 8), (uint32_t)pick(fuzz, 1, 8)},
        .lossless = (uint32_t)pick(fuzz, 0, 4),
        .xoff_bytes = pick(fuzz, 0, 6000),
        .xoff_alpha = {1, (uint32_t)pick(fuzz, 0, 2)},
        .xon_gap_bytes = pick(fuzz, 0, 3000),
        .headroom_bytes = pick(fuzz, 0, 9000),
        .pause_quanta = (uint32_t)pick(fuzz, 511, 65536),
    };
    switch (pick(fuzz, 0, 6)) {
    case 0:
        CHECK_EQUAL(plait_switch_hold_queue(sw, port, queue, (int)pick(fuzz, 0, 1), &error), 0);
        break;
    case 1:
        change.rate_bps = (int64_t)(pick(fuzz, 0, 3) ? pick(fuzz, 1000000, 2000000000) : pick(fuzz, 0, 2));
        break;
    case 2:
        change.rate_pps = (int64_t)pick(fuzz, 0, 1000000);
        break;
    case 3:
        change.depth_packets = (int64_t)pick(fuzz, 0, 20);
        change.depth_bytes = (int64_t)pick(fuzz, 0, 20000);
        break;
    case 4:
        change.reserved_bytes = (int64_t)pick(fuzz, 0, 3000);
        change.alpha = (struct plait_fraction){(uint32_t)pick(fuzz, 0, 3), (uint32_t)pick(fuzz, 0, 3)};
        break;
    default:
        plait_switch_set_buffer(sw, &spec, &error);
    }
    plait_switch_set_queue(sw, port, queue, &change, &error);
    struct plait_queue_state state;
    CHECK_EQUAL(plait_switch_queue_state(sw, port, (uint32_t)pick(fuzz, 0, 1), &state, &error), 0);
}

static void random_pause(struct fuzz *fuzz, struct plait_switch *sw)
{
    uint8_t frame[60] = {1, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0x88, 0x08, 1, (uint8_t)pick(fuzz, 0, 1), 0};
    struct plait_error error;
    for (size_t i = 16; i < 34; i++)
        frame[i] = pick(fuzz, 0, 1) ? 0 : (uint8_t)pick(fuzz, 0, 255);
    CHECK_EQUAL(plait_switch_inject(sw, (uint32_t)pick(fuzz, 0, 3), 0, frame, (uint32_t)pick(fuzz, 12, 60), &error), 0);
}

/* Ends what keeps packets waiting for ever. */
static void let_go(struct plait_switch *sw)
{
    struct plait_error error;
    struct plait_queue_change change = {-1, 0, -1, -1, -1, {0, 0}};
    for (uint32_t port = 1; port <= 2; port++) {
        CHECK_EQUAL(plait_switch_hold_queue(sw, port, -1, 0, &error), 0);
        CHECK_EQUAL(plait_switch_set_queue(sw, port, -1, &change, &error), 0);
        change.rate_bps = 1000000000;
        CHECK_EQUAL(plait_switch_set_queue(sw, port, -1, &change, &error), 0);
        change.rate_bps = -1;
    }
}

/* What a link carried is what the other end received: no packet appears or vanishes between the counters. */
static void check_links(struct fuzz *fuzz)
{
    struct plait_error error;
    for (int i = 0; i < SWITCHES; i++)
        for (uint32_t direction = 0; direction < 2; direction++) {
            struct plait_direction_stats stats;
            struct plait_port_stats from, to;
            struct plait_switch *a = fuzz->switches[i], *b = fuzz->switches[(i + 1) % SWITCHES];
            CHECK_EQUAL(plait_link_stats(fuzz->links[i], direction, &stats), 0);
            CHECK_EQUAL(plait_switch_port_stats(direction ? b : a, direction ? 2 : 1, &from, &error), 0);
            CHECK_EQUAL(plait_switch_port_stats(direction ? a : b, direction ? 1 : 2, &to, &error), 0);
            CHECK_EQUAL(from.sent_packets + from.pauses_sent, stats.packets + stats.drops_loss + stats.drops_down);
            CHECK(to.received_packets >= stats.packets);
            CHECK_EQUAL(from.queue_packets, 0);
        }
}

static void fuzz_one(uint64_t seed)
{
    struct fuzz fuzz;
    struct plait_error error;
    int done;
    build(&fuzz, seed);
    for (int step = 0; step < 3000; step++) {
        struct plait_switch *sw = fuzz.switches[pick(&fuzz, 0, SWITCHES - 1)];
        if (pick(&fuzz, 0, 9) == 0)
            random_entry(&fuzz, sw);
        random_frame(&fuzz, sw);
        if (pick(&fuzz, 0, 9) == 0)
            random_queues(&fuzz, sw);
        if (pick(&fuzz, 0, 9) == 0)
            random_pause(&fuzz, sw);
        if (pick(&fuzz, 0, 3) == 0)
            plait_fabric_run_until(fuzz.fabric, plait_fabric_now(fuzz.fabric) + pick(&fuzz, 0, 5000), UINT64_MAX,
                                   &done);
        if (pick(&fuzz, 0, 499) == 0)
            plait_link_set_up(fuzz.links[pick(&fuzz, 0, SWITCHES - 1)], (int)pick(&fuzz, 0, 1));
        if (pick(&fuzz, 0, 999) == 0)
            CHECK_EQUAL(plait_switch_load(sw, echo_program, &error), 0);
        struct plait_notice *notice = plait_switch_poll(sw, 0);
        plait_notice_free(notice);
    }
    /* Loops may go on for ever; without entries every packet soon meets the default, a drop. */
    for (int i = 0; i < SWITCHES; i++) {
        CHECK_EQUAL(plait_switch_load(fuzz.switches[i], echo_program, &error), 0);
        let_go(fuzz.switches[i]);
    }
    plait_fabric_run_until(fuzz.fabric, UINT64_MAX, UINT64_MAX, &done);
    CHECK(done);
    CHECK_EQUAL(plait_fabric_packets_alive(fuzz.fabric), 0);
    check_links(&fuzz);
    for (int i = 0; i < SWITCHES; i++) {
        struct plait_buffer_state state;
        plait_switch_buffer_state(fuzz.switches[i], &state);
        CHECK_EQUAL(state.used_bytes, 0);
    }
    plait_fabric_destroy(fuzz.fabric);
}

/* Destroyed in the middle of everything: packets in queues, on links, in loops. */
static void destroyed_while_busy(void)
{
    struct fuzz fuzz;
    build(&fuzz, 99);
    for (int step = 0; step < 500; step++) {
        random_entry(&fuzz, fuzz.switches[step % SWITCHES]);
        random_frame(&fuzz, fuzz.switches[step % SWITCHES]);
    }
    CHECK(plait_fabric_packets_alive(fuzz.fabric) > 0);
    plait_fabric_destroy(fuzz.fabric);
}

void test_switch(void)
{
    for (uint64_t seed = 1; seed <= 6; seed++)
        fuzz_one(seed);
    destroyed_while_busy();
}
