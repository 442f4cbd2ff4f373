#include <errno.h>

#include "meter.h"
#include "unit.h"

static void buckets_start_full_and_peak_is_asked_first(void)
{
    struct plait_meter_cell cell = {0};
    struct plait_error error;
    /* 1000 and 2000 packets/s; bursts of 2 and 4. */
    CHECK_EQUAL(plait_meter_configure(&cell, true, 0, 1000, 2, 2000, 4, &error), 0);
    CHECK_EQUAL(plait_meter_execute(&cell, 0, 100), PLAIT_GREEN);
    CHECK_EQUAL(plait_meter_execute(&cell, 0, 100), PLAIT_GREEN);
    CHECK_EQUAL(plait_meter_execute(&cell, 0, 100), PLAIT_YELLOW);
    CHECK_EQUAL(plait_meter_execute(&cell, 0, 100), PLAIT_YELLOW);
    CHECK_EQUAL(plait_meter_execute(&cell, 0, 100), PLAIT_RED);
    CHECK_EQUAL(plait_meter_execute(&cell, 499, 100), PLAIT_RED);
    CHECK_EQUAL(plait_meter_execute(&cell, 500, 100), PLAIT_YELLOW); /* a peak token, no committed one */
    CHECK_EQUAL(plait_meter_execute(&cell, 1000, 100), PLAIT_GREEN);
    CHECK_EQUAL(plait_meter_execute(&cell, 1000, 100), PLAIT_RED);
}

static void red_charges_nothing(void)
{
    struct plait_meter_cell cell = {0};
    CHECK_EQUAL(plait_meter_configure(&cell, false, 0, 0, 1000, 0, 1000, NULL), 0);
    CHECK_EQUAL(plait_meter_execute(&cell, 0, 600), PLAIT_GREEN);
    CHECK_EQUAL(plait_meter_execute(&cell, 0, 600), PLAIT_RED);
    CHECK_EQUAL(plait_meter_execute(&cell, 0, 400), PLAIT_GREEN);
}

/* One byte a packet at 3 bytes a second over ten seconds: no rounding piles up. */
static void slow_rates_do_not_lose_tokens(void)
{
    struct plait_meter_cell cell = {0};
    uint32_t green = 0;
    CHECK_EQUAL(plait_meter_configure(&cell, false, 0, 3, 1, 3, 1, NULL), 0);
    for (uint64_t us = 0; us <= 10000000; us += 7)
        green += plait_meter_execute(&cell, us, 1) == PLAIT_GREEN;
    CHECK_EQUAL(green,
                1 + 30 - 1); /* the first from the full bucket; the last accrues at 10 s, after the last packet */
}

static void long_idle_and_large_rates_do_not_overflow(void)
{
    struct plait_meter_cell cell = {0};
    CHECK_EQUAL(plait_meter_configure(&cell, false, 0, 100000000000, 5000, UINT64_MAX / 2, 5000, NULL), 0);
    CHECK_EQUAL(plait_meter_execute(&cell, 1ull << 44, 5000), PLAIT_GREEN);
    CHECK_EQUAL(plait_meter_execute(&cell, (1ull << 44) + 1, 5000), PLAIT_GREEN);
}

static void colors_are_counted_over_configurations(void)
{
    struct plait_meter_cell cell = {0};
    plait_meter_execute(&cell, 0, 7);
    CHECK_EQUAL(plait_meter_configure(&cell, true, 0, 0, 1, 0, 2, NULL), 0);
    for (uint32_t bytes = 100; bytes <= 400; bytes += 100)
        plait_meter_execute(&cell, 0, bytes);
    plait_meter_clear(&cell);
    plait_meter_execute(&cell, 0, 1);
    const struct plait_counter_cell expected[] = {{3, 7 + 100 + 1}, {1, 200}, {2, 300 + 400}};
    for (int color = PLAIT_GREEN; color < PLAIT_COLORS; color++) {
        CHECK_EQUAL(cell.counts[color].packets, expected[color].packets);
        CHECK_EQUAL(cell.counts[color].bytes, expected[color].bytes);
    }
}

void test_meters(void)
{
    struct plait_meter_cell cell = {0};
    struct plait_error error;
    CHECK_EQUAL(plait_meter_execute(NULL, 0, 1), PLAIT_GREEN);
    CHECK_EQUAL(plait_meter_execute(&cell, 0, 1 << 20), PLAIT_GREEN);
    CHECK_EQUAL(plait_meter_configure(&cell, false, 0, 2, 1, 1, 1, &error), -EINVAL);
    CHECK(strstr(error.text, "cir 2 exceeds pir 1"));
    buckets_start_full_and_peak_is_asked_first();
    red_charges_nothing();
    slow_rates_do_not_lose_tokens();
    long_idle_and_large_rates_do_not_overflow();
    colors_are_counted_over_configurations();
}
