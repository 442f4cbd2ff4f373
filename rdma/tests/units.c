/* Single parts of the transmit engine for tests. */
#include "units.h"

#include <stdlib.h>

#include "private.h"

static void take(struct rdma_engine *e, const struct rdma_qp *all, struct unit_timer_step *step)
{
	const struct rdma_qp *found = rdma_timer_take(e, step->time);

	step->taken = found ? found - all : -1;
}

int unit_timers(uint32_t qps, struct unit_timer_step *steps, uint32_t count)
{
	struct rdma_engine *e = calloc(1, sizeof(*e));
	struct rdma_qp *all = calloc(qps, sizeof(*all));
	int error = -1;

	if (e)
		e->heap = calloc(qps + 1ul, sizeof(struct rdma_qp *));
	if (e && all && e->heap) {
		error = 0;
		for (uint32_t i = 0; i < count; i++) {
			steps[i].taken = -1;
			if (steps[i].op == UNIT_AT)
				rdma_timer_at(e, &all[steps[i].qp], steps[i].time);
			else if (steps[i].op == UNIT_CANCEL)
				rdma_timer_cancel(e, &all[steps[i].qp]);
			else
				take(e, all, &steps[i]);
			steps[i].next = rdma_timer_next(e);
		}
	}
	if (e)
		free(e->heap);
	free(all);
	free(e);
	return error;
}
