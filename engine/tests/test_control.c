/* Indexes and lengths from the control plane, right and wrong. */
#include <errno.h>

#include "api.h"
#include "unit.h"

static struct plait_fabric *fabric;
static struct plait_switch *sw;
static struct plait_error error;

static void registers_are_bounded(void)
{
    uint8_t value[16] = {0}, out[16 * 4];
    memcpy(value, (uint8_t[]){0x3f, 1, 2, 3}, 4);
    CHECK_EQUAL(plait_control_register_write(sw, 0, 15, value, 4, &error), 0);
    CHECK_EQUAL(plait_control_register_read(sw, 0, 15, 1, out, &error), 0);
    CHECK(memcmp(out, value, 4) == 0);
    CHECK_EQUAL(plait_control_register_write(sw, 0, 16, value, 4, &error), -ERANGE);
    CHECK_EQUAL(plait_control_register_write(sw, 5, 0, value, 4, &error), -ERANGE);
    CHECK_EQUAL(plait_control_register_write(sw, UINT32_MAX, 0, value, 4, &error), -ERANGE);
    CHECK_EQUAL(plait_control_register_write(sw, 0, 0, value, 3, &error), -EINVAL);
    value[0] = 0x40; /* bit 30 of a 30-bit cell */
    CHECK_EQUAL(plait_control_register_write(sw, 0, 0, value, 4, &error), -EINVAL);
    CHECK_EQUAL(plait_control_register_read(sw, 0, 0, 17, out, &error), -ERANGE);
    CHECK_EQUAL(plait_control_register_read(sw, 0, UINT32_MAX, 2, out, &error), -ERANGE);
    CHECK_EQUAL(plait_control_register_size(sw, 0), 16);
    CHECK_EQUAL(plait_control_register_size(sw, 99), 0);
    memset(value, 0x0a, sizeof value); /* 100 bits */
    CHECK_EQUAL(plait_control_register_write(sw, 4, 3, value, 13, &error), 0);
    CHECK_EQUAL(plait_control_register_read(sw, 4, 3, 1, out, &error), 0);
    CHECK(memcmp(out, value, 13) == 0);
    CHECK_EQUAL(plait_control_register_write(sw, 1, 0, value, 4, &error), -EINVAL); /* bound */
}

static void counters_and_meters_are_bounded(void)
{
    struct plait_counter_cell cells[2];
    CHECK_EQUAL(plait_control_counter_write(sw, 0, 511, 7, 8, &error), 0);
    CHECK_EQUAL(plait_control_counter_read(sw, 0, 510, 2, cells, &error), 0);
    CHECK(cells[1].packets == 7 && cells[1].bytes == 8);
    CHECK_EQUAL(plait_control_counter_write(sw, 0, 512, 7, 8, &error), -ERANGE);
    CHECK_EQUAL(plait_control_counter_read(sw, 1, 0, 1, cells, &error), -ERANGE);
    CHECK_EQUAL(plait_control_meter_set(sw, 0, 15, 1, 1, 2, 2, &error), 0);
    CHECK_EQUAL(plait_control_meter_set(sw, 0, 16, 1, 1, 2, 2, &error), -ERANGE);
    CHECK_EQUAL(plait_control_meter_set(sw, 0, 1, 3, 1, 2, 2, &error), -EINVAL);
    CHECK_EQUAL(plait_control_meter_set(sw, 9, 1, 3, 1, 2, 2, &error), -ERANGE);
    CHECK_EQUAL(plait_control_meter_clear(sw, 0, 15, &error), 0);
}

static void members_and_groups_are_counted(void)
{
    uint8_t port[2] = {0, 1}, wide[2] = {2, 0};
    uint32_t a, b, group, handles[2], weights[2] = {1, 3};
    uint64_t handle;
    CHECK_EQUAL(plait_control_member_create(sw, 0, port, 2, &a, &error), 0);
    CHECK_EQUAL(plait_control_member_create(sw, 1, NULL, 0, &b, &error), 0);
    CHECK_EQUAL(plait_control_member_create(sw, 0, wide, 2, &b, &error), -EINVAL); /* 9 bits */
    CHECK_EQUAL(plait_control_member_create(sw, 0, port, 1, &b, &error), -EINVAL);
    CHECK_EQUAL(plait_control_member_create(sw, 99, port, 2, &b, &error), -ENOENT);
    CHECK_EQUAL(plait_control_group_create(sw, &group, &error), 0);
    handles[0] = a;
    handles[1] = 77;
    CHECK_EQUAL(plait_control_group_set(sw, group, handles, weights, 2, &error), -ENOENT);
    handles[1] = b;
    CHECK_EQUAL(plait_control_group_set(sw, group, handles, weights, 2, &error), 0);
    CHECK_EQUAL(plait_control_member_delete(sw, a, &error), -EBUSY);
    weights[1] = 0;
    CHECK_EQUAL(plait_control_group_set(sw, group, handles, weights, 2, &error), -EINVAL);
    weights[1] = UINT32_MAX;
    CHECK_EQUAL(plait_control_group_set(sw, group, handles, weights, 2, &error), -EINVAL);
    uint8_t key[4] = {10, 0, 0, 0};
    struct plait_match_spec match = {.key = key, .key_length = 4, .prefix_length = 8};
    struct plait_target target = {PLAIT_TARGET_GROUP, group, NULL, 0};
    CHECK_EQUAL(plait_control_entry_insert(sw, 1, &match, &target, &handle, &error), 0);
    CHECK_EQUAL(plait_control_group_delete(sw, group, &error), -EBUSY);
    target = (struct plait_target){PLAIT_TARGET_MEMBER, a, NULL, 0};
    CHECK_EQUAL(plait_control_entry_modify(sw, 1, handle, &target, &error), 0);
    CHECK_EQUAL(plait_control_group_delete(sw, group, &error), 0);
    CHECK_EQUAL(plait_control_member_modify(sw, a, 0, wide, 2, &error), -EINVAL);
    CHECK_EQUAL(plait_control_member_delete(sw, a, &error), -EBUSY);
    CHECK_EQUAL(plait_control_entry_delete(sw, 1, handle, &error), 0);
    CHECK_EQUAL(plait_control_member_delete(sw, a, &error), 0);
    CHECK_EQUAL(plait_control_member_delete(sw, a, &error), -ENOENT);
    CHECK_EQUAL(plait_control_member_delete(sw, b, &error), 0);
    target.kind = 9;
    CHECK_EQUAL(plait_control_entry_insert(sw, 1, &match, &target, &handle, &error), -EINVAL);
    target = (struct plait_target){PLAIT_TARGET_GROUP, 0, NULL, 0};
    CHECK_EQUAL(plait_control_default_set(sw, 0, &target, &error), -EINVAL); /* a simple table has no groups */
}

static void replicas_and_queues_are_bounded(void)
{
    struct plait_replica good = {1, 1}, bad = {512, 1};
    struct plait_port_stats stats;
    CHECK_EQUAL(plait_control_multicast_set(sw, 0, &good, 1, &error), -ERANGE);
    CHECK_EQUAL(plait_control_multicast_set(sw, 65536, &good, 1, &error), -ERANGE);
    CHECK_EQUAL(plait_control_multicast_set(sw, 65535, &good, 1, &error), 0);
    CHECK_EQUAL(plait_control_multicast_set(sw, 1, &bad, 1, &error), -ERANGE);
    CHECK_EQUAL(plait_control_multicast_delete(sw, 65535, &error), 0);
    CHECK_EQUAL(plait_control_multicast_delete(sw, 65535, &error), -ENOENT);
    CHECK_EQUAL(plait_control_clone_session_set(sw, 32768, &good, 1, 0, 0, &error), -ERANGE);
    CHECK_EQUAL(plait_control_clone_session_set(sw, 5, &good, 1, 0, 0, &error), 0);
    struct plait_queue_change change = {1000, -1, 1, 1, -1, {0, 0}};
    CHECK_EQUAL(plait_switch_set_queue(sw, 600, -1, &change, &error), -ERANGE);
    CHECK_EQUAL(plait_switch_set_queue(sw, 510, 1, &change, &error), -ERANGE);
    CHECK_EQUAL(plait_switch_set_queue(sw, 510, 0, &change, &error), 0);
    change.rate_bps = INT64_MAX;
    CHECK_EQUAL(plait_switch_set_queue(sw, 510, 0, &change, &error), -EINVAL);
    CHECK_EQUAL(plait_switch_port_stats(sw, 3, &stats, &error), -ERANGE);
}

static void frames_are_bounded(void)
{
    static uint8_t frame[PLAIT_MAX_FRAME + 1];
    CHECK_EQUAL(plait_switch_inject(sw, 512, 0, frame, 60, &error), -ERANGE);
    CHECK_EQUAL(plait_switch_inject(sw, 1, 0, frame, 0, &error), -EINVAL);
    CHECK_EQUAL(plait_switch_inject(sw, 1, 0, frame, PLAIT_MAX_FRAME + 1, &error), -EINVAL);
    CHECK_EQUAL(plait_switch_inject(sw, 1, 0, frame, PLAIT_MAX_FRAME, &error), 0);
}

void test_control(void)
{
    uint64_t handle;
    struct plait_target target = {PLAIT_TARGET_ACTION, 1, NULL, 0};
    struct plait_match_spec match = {.key = (uint8_t[]){1}, .key_length = 1, .prefix_length = -1};
    fabric = plait_fabric_create(0, 1, &error);
    CHECK(!plait_fabric_add_switch(fabric, "x", 511, 0, 9, &error));
    CHECK(!plait_fabric_add_switch(fabric, "x", 512, 0, 1, &error));
    CHECK(!plait_fabric_add_switch(fabric, "x", 511, 511, 1, &error));
    sw = plait_fabric_add_switch(fabric, "s", 511, 510, 1, &error);
    CHECK_EQUAL(plait_control_entry_insert(sw, 4, &match, &target, &handle, &error), -EINVAL);
    CHECK(strstr(error.text, "no program"));
    CHECK_EQUAL(plait_switch_load(sw, "/nonexistent.so", &error), -EINVAL);
    CHECK_EQUAL(plait_switch_load(sw, echo_program, &error), 0);
    CHECK_EQUAL(plait_control_entry_insert(sw, 4, &match, &target, &handle, &error), 0);
    CHECK_EQUAL(plait_control_entry_insert(sw, 5, &match, &target, &handle, &error), -ERANGE);
    registers_are_bounded();
    counters_and_meters_are_bounded();
    members_and_groups_are_counted();
    replicas_and_queues_are_bounded();
    frames_are_bounded();
    plait_fabric_destroy(fabric);
}
