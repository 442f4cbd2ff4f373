/* Single parts of the transmit engine for tests. */
#ifndef RDMA_UNITS_H
#define RDMA_UNITS_H

#include "jobs.h"

enum unit_timer_op { UNIT_AT = 0, UNIT_CANCEL = 1, UNIT_TAKE = 2 };

struct unit_timer_step {
	uint32_t op;
	uint32_t qp;
	int64_t time;
	/* After the step: the queue pair that was taken, or -1, and when the next timer is due. */
	int64_t taken, next;
};

/* `qps` queue pairs without timers, through all steps; fills in the results.  -1: no memory. */
int unit_timers(uint32_t qps, struct unit_timer_step *steps, uint32_t count);

#endif
