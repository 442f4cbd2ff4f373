#include "meter.h"

#include <errno.h>

#include "error.h"

#define US_PER_SECOND 1000000u

int plait_meter_configure(struct plait_meter_cell *cell, bool counts_packets, uint64_t now_us, uint64_t cir,
                          uint64_t cburst, uint64_t pir, uint64_t pburst, struct plait_error *error)
{
    if (cir > pir)
        return plait_fail(error, EINVAL, "meter: cir %llu exceeds pir %llu", (unsigned long long)cir,
                          (unsigned long long)pir);
    *cell = (struct plait_meter_cell){
        .configured = true,
        .counts_packets = counts_packets,
        .start_us = now_us,
        .committed = {.per_second = cir, .burst = cburst, .tokens = cburst},
        .peak = {.per_second = pir, .burst = pburst, .tokens = pburst},
    };
    return 0;
}

static bool charge(struct plait_bucket *bucket, uint64_t elapsed_us, uint64_t amount)
{
    unsigned __int128 granted = (unsigned __int128)elapsed_us * bucket->per_second / US_PER_SECOND;
    unsigned __int128 fresh = granted - bucket->granted;
    bucket->granted = granted;
    bucket->tokens = fresh >= bucket->burst - bucket->tokens ? bucket->burst : bucket->tokens + (uint64_t)fresh;
    if (bucket->tokens < amount)
        return false;
    bucket->tokens -= amount;
    return true;
}

enum plait_color plait_meter_execute(struct plait_meter_cell *cell, uint64_t now_us, byte_count bytes)
{
    if (!cell || !cell->configured)
        return PLAIT_GREEN;
    uint64_t amount = cell->counts_packets ? 1 : bytes, elapsed = now_us - cell->start_us;
    if (!charge(&cell->peak, elapsed, amount))
        return PLAIT_RED;
    return charge(&cell->committed, elapsed, amount) ? PLAIT_GREEN : PLAIT_YELLOW;
}
