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
    cell->configured = true;
    cell->counts_packets = counts_packets;
    cell->refilled_us = now_us;
    cell->committed = (struct plait_bucket){.per_second = cir, .burst = cburst, .tokens = cburst};
    cell->peak = (struct plait_bucket){.per_second = pir, .burst = pburst, .tokens = pburst};
    return 0;
}

void plait_meter_clear(struct plait_meter_cell *cell) { cell->configured = false; }

static void refill(struct plait_bucket *bucket, uint64_t elapsed_us)
{
    /* Any rate for any time fits into 128 bits. */
    unsigned __int128 product = (unsigned __int128)elapsed_us * bucket->per_second + bucket->carry;
    unsigned __int128 fresh = product / US_PER_SECOND;
    bucket->carry = (uint64_t)(product % US_PER_SECOND);
    bucket->tokens = fresh >= bucket->burst - bucket->tokens ? bucket->burst : bucket->tokens + (uint64_t)fresh;
}

static bool charge(struct plait_bucket *bucket, uint64_t amount)
{
    if (bucket->tokens < amount)
        return false;
    bucket->tokens -= amount;
    return true;
}

static enum plait_color mark(struct plait_meter_cell *cell, uint64_t now_us, byte_count bytes)
{
    if (!cell->configured)
        return PLAIT_GREEN;
    uint64_t amount = cell->counts_packets ? 1 : bytes, elapsed = now_us - cell->refilled_us;
    cell->refilled_us = now_us;
    refill(&cell->peak, elapsed);
    refill(&cell->committed, elapsed);
    if (!charge(&cell->peak, amount))
        return PLAIT_RED;
    return charge(&cell->committed, amount) ? PLAIT_GREEN : PLAIT_YELLOW;
}

enum plait_color plait_meter_execute(struct plait_meter_cell *cell, uint64_t now_us, byte_count bytes)
{
    if (!cell)
        return PLAIT_GREEN;
    enum plait_color color = mark(cell, now_us, bytes);
    cell->counts[color].packets++;
    cell->counts[color].bytes += bytes;
    return color;
}
