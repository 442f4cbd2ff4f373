/* A loaded program on one switch: the shared object, and the state that its instance works on.
 *
 * Invariants: the instance's arrays have as many elements as the descriptors say; every PHV of the switch comes from
 * `phvs`, so a program is only closed when none is out.  A bound register (plait.*) points into the switch's mirrors.
 */
#ifndef PLAIT_PROGRAM_H
#define PLAIT_PROGRAM_H

#include "actions.h"
#include "meter.h"
#include "packet.h"
#include "table.h"

struct plait_switch;

struct plait_program {
    struct plait_instance instance;
    struct plait_switch *sw;
    void *library;
    const struct plait_pipeline *pipeline;
    struct plait_actions actions;
    struct plait_table *tables;
    struct plait_phv_pool phvs;
    uint64_t bound_registers; /* bit i: register i (of the first 64) is bound, its cells are not ours to free */
    /* The last digest() of the packet in ingress; sent at its end. */
    bool digest_pending;
    uint32_t digest_list, digest_length;
    uint8_t digest_fields[2048];
};

int plait_program_open(struct plait_switch *sw, const char *path, struct plait_program **program,
                       struct plait_error *error);
void plait_program_close(struct plait_program *program); /* accepts NULL */

static inline struct plait_program *plait_program_of(struct plait_instance *instance)
{
    return plait_container_of(instance, struct plait_program, instance);
}

#endif
