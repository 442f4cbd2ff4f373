/* Meters: two-rate three-color, color-blind, as BMv2's (trTCM of RFC 2698 with separate unit handling).
 *
 * Tokens accrue per whole microsecond, and fractions of a token are carried over, so that no rounding piles up;
 * buckets start full.  The peak bucket is asked first: red charges nothing.  Then the committed one: yellow has charged
 * the peak bucket only.  A cell that was never configured is green.
 *
 * Every cell counts what it marked, per color (P4Runtime's MeterCounterData); a new configuration leaves the counts.
 */
#ifndef PLAIT_METER_H
#define PLAIT_METER_H

#include "../pipeline.h"
#include "api.h"
#include "units.h"

enum plait_color { PLAIT_GREEN, PLAIT_YELLOW, PLAIT_RED };

struct plait_bucket {
    uint64_t per_second, burst; /* bytes or packets */
    uint64_t tokens;            /* <= burst */
    uint64_t carry;             /* of rate * us, what the last division left over: < 1,000,000 */
};

struct plait_meter_cell {
    bool configured, counts_packets;
    uint64_t refilled_us;
    struct plait_bucket committed, peak;
    struct plait_counter_cell counts[PLAIT_COLORS];
};
_Static_assert(sizeof(struct plait_meter_cell) <= PLAIT_METER_CELL_BYTES, "a meter cell outgrew its ABI size");

int plait_meter_configure(struct plait_meter_cell *cell, bool counts_packets, uint64_t now_us, uint64_t cir,
                          uint64_t cburst, uint64_t pir, uint64_t pburst, struct plait_error *error);
/* Always green again. */
void plait_meter_clear(struct plait_meter_cell *cell);
enum plait_color plait_meter_execute(struct plait_meter_cell *cell, uint64_t now_us, byte_count bytes);

#endif
