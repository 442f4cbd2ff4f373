/* A source of equal frames at a switch port, on the fabric's clock. Invariant: scheduled while `left` > 0. */
#ifndef PLAIT_GENERATOR_H
#define PLAIT_GENERATOR_H

#include "switch.h"

int plait_generator_start(struct plait_switch *sw, uint32_t port, const uint8_t *frame, uint32_t length, uint64_t count,
                          sim_time start, sim_time interval, struct plait_error *error);
void plait_generators_free(struct plait_switch *sw);

#endif
