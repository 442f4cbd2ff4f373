/* Meters: two-rate three-color, color-blind, as BMv2's (trTCM of RFC 2698 with separate unit handling).
 *
 * Tokens accrue per whole microsecond since the configuration, computed from its start so that no rounding piles up;
 * buckets start full.  The peak bucket is asked first: red charges nothing.  Then the committed one: yellow has charged
 * the peak bucket only.  A cell that was never configured is green.
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
    unsigned __int128 granted;  /* what the rate has given since start: any rate for any time fits */
};

struct plait_meter_cell {
    bool configured, counts_packets;
    uint64_t start_us;
    struct plait_bucket committed, peak;
};
_Static_assert(sizeof(struct plait_meter_cell) <= PLAIT_METER_CELL_BYTES, "a meter cell outgrew its ABI size");

int plait_meter_configure(struct plait_meter_cell *cell, bool counts_packets, uint64_t now_us, uint64_t cir,
                          uint64_t cburst, uint64_t pir, uint64_t pburst, struct plait_error *error);
enum plait_color plait_meter_execute(struct plait_meter_cell *cell, uint64_t now_us, byte_count bytes);

#endif
