/* Control of tables, actions and arrays: every call takes the fabric's lock for one short operation. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "fabric.h"
#include "switch.h"

/* Takes the control lock and returns the loaded program; or NULL, unlocked, with the error filled. Packets flow on. */
static struct plait_program *prepare(struct plait_switch *sw, struct plait_error *error)
{
    pthread_mutex_lock(&sw->control_lock);
    if (sw->program)
        return sw->program;
    pthread_mutex_unlock(&sw->control_lock);
    plait_fail(error, EINVAL, "switch %s has no program", sw->name);
    return NULL;
}

/* The same with the fabric's lock as well: between two packets. */
static struct plait_program *begin(struct plait_switch *sw, struct plait_error *error)
{
    struct plait_program *program = prepare(sw, error);
    if (program)
        plait_fabric_lock(sw->fabric);
    return program;
}

static int end(struct plait_switch *sw, int result)
{
    plait_fabric_unlock(sw->fabric);
    pthread_mutex_unlock(&sw->control_lock);
    return result;
}

static struct plait_table *table_of(struct plait_program *program, uint32_t table, struct plait_error *error)
{
    if (table < program->pipeline->n_tables)
        return &program->tables[table];
    plait_fail(error, ERANGE, "table index %u: the program has %u tables", table, program->pipeline->n_tables);
    return NULL;
}

int plait_control_entry_insert(struct plait_switch *sw, uint32_t index, const struct plait_match_spec *match,
                               const struct plait_target *target, uint64_t *handle, struct plait_error *error)
{
    struct plait_program *program = prepare(sw, error);
    if (!program)
        return -EINVAL;
    struct plait_table *table = table_of(program, index, error);
    int result = table ? plait_table_prepare(table, match, error) : -ERANGE;
    plait_fabric_lock(sw->fabric);
    if (!result)
        result = plait_table_insert(table, &program->actions, match, target, handle, error);
    return end(sw, result);
}

int plait_control_entry_insert_flat(struct plait_switch *sw, uint32_t table, const uint8_t *key, uint32_t key_length,
                                    const uint8_t *mask, uint32_t mask_length, const uint8_t *high,
                                    uint32_t high_length, int32_t prefix_length, int32_t priority,
                                    uint32_t target_kind, uint32_t target_index, const uint8_t *params,
                                    uint32_t params_length, uint64_t *handle, struct plait_error *error)
{
    struct plait_match_spec match = {key,         key_length,    mask,    mask_length, high,
                                     high_length, prefix_length, priority};
    struct plait_target target = {target_kind, target_index, params, params_length};
    return plait_control_entry_insert(sw, table, &match, &target, handle, error);
}

int plait_control_entry_modify(struct plait_switch *sw, uint32_t index, uint64_t handle,
                               const struct plait_target *target, struct plait_error *error)
{
    struct plait_program *program = begin(sw, error);
    if (!program)
        return -EINVAL;
    struct plait_table *table = table_of(program, index, error);
    return end(sw, table ? plait_table_modify(table, &program->actions, handle, target, error) : -ERANGE);
}

int plait_control_entry_delete(struct plait_switch *sw, uint32_t index, uint64_t handle, struct plait_error *error)
{
    struct plait_program *program = begin(sw, error);
    if (!program)
        return -EINVAL;
    struct plait_table *table = table_of(program, index, error);
    return end(sw, table ? plait_table_delete(table, handle, error) : -ERANGE);
}

int plait_control_entry_count(struct plait_switch *sw, uint32_t index, struct plait_error *error)
{
    struct plait_program *program = begin(sw, error);
    if (!program)
        return -EINVAL;
    struct plait_table *table = table_of(program, index, error);
    return end(sw, table ? (int)plait_table_count(table) : -ERANGE);
}

static struct plait_entry *entry_of(struct plait_program *program, uint32_t index, uint64_t handle,
                                    struct plait_error *error)
{
    struct plait_table *table = table_of(program, index, error);
    return table ? plait_table_entry(table, handle, error) : NULL;
}

int plait_control_entry_counter(struct plait_switch *sw, uint32_t index, uint64_t handle, uint64_t *packets,
                                uint64_t *bytes, uint64_t *last_hit_ns, struct plait_error *error)
{
    struct plait_program *program = begin(sw, error);
    if (!program)
        return -EINVAL;
    struct plait_entry *entry = entry_of(program, index, handle, error);
    if (entry) {
        *packets = entry->packets;
        *bytes = entry->bytes;
        *last_hit_ns = entry->last_hit_ns;
    }
    return end(sw, entry ? 0 : -ENOENT);
}

int plait_control_entry_counter_set(struct plait_switch *sw, uint32_t index, uint64_t handle, uint64_t packets,
                                    uint64_t bytes, struct plait_error *error)
{
    struct plait_program *program = begin(sw, error);
    if (!program)
        return -EINVAL;
    struct plait_entry *entry = entry_of(program, index, handle, error);
    if (entry) {
        entry->packets = packets;
        entry->bytes = bytes;
    }
    return end(sw, entry ? 0 : -ENOENT);
}

int plait_control_default_counter(struct plait_switch *sw, uint32_t index, uint64_t *packets, uint64_t *bytes,
                                  struct plait_error *error)
{
    struct plait_program *program = begin(sw, error);
    if (!program)
        return -EINVAL;
    struct plait_table *table = table_of(program, index, error);
    if (table) {
        *packets = table->default_entry->packets;
        *bytes = table->default_entry->bytes;
    }
    return end(sw, table ? 0 : -ERANGE);
}

int plait_control_default_set(struct plait_switch *sw, uint32_t index, const struct plait_target *target,
                              struct plait_error *error)
{
    struct plait_program *program = begin(sw, error);
    if (!program)
        return -EINVAL;
    struct plait_table *table = table_of(program, index, error);
    return end(sw, table ? plait_table_default_set(table, &program->actions, target, error) : -ERANGE);
}

int plait_control_member_create(struct plait_switch *sw, uint32_t action, const uint8_t *params, uint32_t length,
                                uint32_t *handle, struct plait_error *error)
{
    struct plait_program *program = begin(sw, error);
    return program ? end(sw, plait_member_create(&program->actions, action, params, length, handle, error)) : -EINVAL;
}

int plait_control_member_modify(struct plait_switch *sw, uint32_t handle, uint32_t action, const uint8_t *params,
                                uint32_t length, struct plait_error *error)
{
    struct plait_program *program = begin(sw, error);
    return program ? end(sw, plait_member_modify(&program->actions, handle, action, params, length, error)) : -EINVAL;
}

int plait_control_member_delete(struct plait_switch *sw, uint32_t handle, struct plait_error *error)
{
    struct plait_program *program = begin(sw, error);
    return program ? end(sw, plait_member_delete(&program->actions, handle, error)) : -EINVAL;
}

int plait_control_group_create(struct plait_switch *sw, uint32_t *handle, struct plait_error *error)
{
    struct plait_program *program = begin(sw, error);
    return program ? end(sw, plait_group_create(&program->actions, handle, error)) : -EINVAL;
}

int plait_control_group_set(struct plait_switch *sw, uint32_t handle, const uint32_t *members, const uint32_t *weights,
                            uint32_t count, struct plait_error *error)
{
    struct plait_program *program = begin(sw, error);
    return program ? end(sw, plait_group_set(&program->actions, handle, members, weights, count, error)) : -EINVAL;
}

int plait_control_group_delete(struct plait_switch *sw, uint32_t handle, struct plait_error *error)
{
    struct plait_program *program = begin(sw, error);
    return program ? end(sw, plait_group_delete(&program->actions, handle, error)) : -EINVAL;
}

/* ------------------------------------------------------------------------------------------------------------
 * Arrays */

static int check_cells(const char *kind, uint32_t n_arrays, uint32_t index, uint32_t size, uint32_t first,
                       uint32_t count, struct plait_error *error)
{
    if (index >= n_arrays)
        return plait_fail(error, ERANGE, "%s index %u: the program has %u", kind, index, n_arrays);
    if (first > size || count > size - first)
        return plait_fail(error, ERANGE, "%s cell %u: the array has %u cells", kind, first + count - 1, size);
    return 0;
}

static int check_counter(const struct plait_program *program, uint32_t index, uint32_t first, uint32_t count,
                         struct plait_error *error)
{
    uint32_t size = index < program->pipeline->n_counters ? program->instance.counters[index].size : 0;
    return check_cells("counter", program->pipeline->n_counters, index, size, first, count, error);
}

int plait_control_counter_read(struct plait_switch *sw, uint32_t index, uint32_t first, uint32_t count,
                               struct plait_counter_cell *cells, struct plait_error *error)
{
    struct plait_program *program = begin(sw, error);
    if (!program)
        return -EINVAL;
    int result = check_counter(program, index, first, count, error);
    if (!result)
        memcpy(cells, program->instance.counters[index].cells + first, count * sizeof *cells);
    return end(sw, result);
}

int plait_control_counter_write(struct plait_switch *sw, uint32_t index, uint32_t cell, uint64_t packets,
                                uint64_t bytes, struct plait_error *error)
{
    struct plait_program *program = begin(sw, error);
    if (!program)
        return -EINVAL;
    int result = check_counter(program, index, cell, 1, error);
    if (!result)
        program->instance.counters[index].cells[cell] = (struct plait_counter_cell){packets, bytes};
    return end(sw, result);
}

uint32_t plait_control_register_size(struct plait_switch *sw, uint32_t index)
{
    struct plait_program *program = begin(sw, NULL);
    if (!program)
        return 0;
    uint32_t size = index < program->pipeline->n_registers ? program->instance.registers[index].size : 0;
    end(sw, 0);
    return size;
}

static int check_register(const struct plait_program *program, uint32_t index, uint32_t first, uint32_t count,
                          struct plait_error *error)
{
    uint32_t size = index < program->pipeline->n_registers ? program->instance.registers[index].size : 0;
    return check_cells("register", program->pipeline->n_registers, index, size, first, count, error);
}

int plait_control_register_read(struct plait_switch *sw, uint32_t index, uint32_t first, uint32_t count, uint8_t *bytes,
                                struct plait_error *error)
{
    struct plait_program *program = begin(sw, error);
    if (!program)
        return -EINVAL;
    int result = check_register(program, index, first, count, error);
    if (result)
        return end(sw, result);
    const struct plait_register *reg = &program->instance.registers[index];
    uint32_t width = program->pipeline->registers[index].width, wire = (width + 7) / 8;
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *cell = reg->cells + (size_t)(first + i) * reg->cell_bytes;
        if (width > 64) {
            memcpy(bytes + (size_t)i * wire, cell, wire);
        } else {
            uint64_t value;
            memcpy(&value, cell, sizeof value);
            for (uint32_t b = wire; b-- > 0; value >>= 8)
                bytes[(size_t)i * wire + b] = (uint8_t)value;
        }
    }
    return end(sw, 0);
}

int plait_control_register_write(struct plait_switch *sw, uint32_t index, uint32_t first, const uint8_t *bytes,
                                 uint32_t length, struct plait_error *error)
{
    struct plait_program *program = begin(sw, error);
    if (!program)
        return -EINVAL;
    int result = check_register(program, index, first, 1, error);
    if (result)
        return end(sw, result);
    const struct plait_array_desc *desc = &program->pipeline->registers[index];
    const struct plait_register *reg = &program->instance.registers[index];
    if (index < 64 && program->bound_registers >> index & 1)
        result = plait_fail(error, EINVAL, "register %s: it shows live state and cannot be written", desc->name);
    else if (length != (desc->width + 7) / 8)
        result = plait_fail(error, EINVAL, "value for register %s: %u bytes given, %u expected", desc->name, length,
                            (desc->width + 7) / 8);
    else if (desc->width % 8 && bytes[0] >> (desc->width % 8))
        result = plait_fail(error, EINVAL, "value for register %s: exceeds %u bits", desc->name, desc->width);
    if (result)
        return end(sw, result);
    uint8_t *cell = reg->cells + (size_t)first * reg->cell_bytes;
    if (desc->width > 64) {
        memcpy(cell, bytes, length);
    } else {
        uint64_t value = 0;
        for (uint32_t b = 0; b < length; b++)
            value = value << 8 | bytes[b];
        memcpy(cell, &value, sizeof value);
    }
    return end(sw, 0);
}

static struct plait_meter_cell *meter_cell(struct plait_program *program, uint32_t index, uint32_t cell,
                                           struct plait_error *error)
{
    uint32_t size = index < program->pipeline->n_meters ? program->instance.meters[index].size : 0;
    if (check_cells("meter", program->pipeline->n_meters, index, size, cell, 1, error))
        return NULL;
    return (void *)((uint8_t *)program->instance.meters[index].cells + (size_t)cell * PLAIT_METER_CELL_BYTES);
}

int plait_control_meter_set(struct plait_switch *sw, uint32_t index, uint32_t cell, uint64_t cir, uint64_t cburst,
                            uint64_t pir, uint64_t pburst, struct plait_error *error)
{
    struct plait_program *program = begin(sw, error);
    if (!program)
        return -EINVAL;
    struct plait_meter_cell *meter = meter_cell(program, index, cell, error);
    plait_fabric_catch_up(sw->fabric);
    return end(sw, meter ? plait_meter_configure(meter, program->pipeline->meters[index].width == 1,
                                                 sw->fabric->events.now / 1000, cir, cburst, pir, pburst, error)
                         : -ERANGE);
}

int plait_control_meter_clear(struct plait_switch *sw, uint32_t index, uint32_t cell, struct plait_error *error)
{
    struct plait_program *program = begin(sw, error);
    if (!program)
        return -EINVAL;
    struct plait_meter_cell *meter = meter_cell(program, index, cell, error);
    if (meter)
        plait_meter_clear(meter);
    return end(sw, meter ? 0 : -ERANGE);
}

static struct plait_meter_cell *entry_meter(struct plait_program *program, uint32_t table, uint64_t handle,
                                            struct plait_error *error)
{
    struct plait_entry *entry = entry_of(program, table, handle, error);
    if (entry && !entry->meter)
        plait_fail(error, EINVAL, "table %s has no direct meter", program->pipeline->tables[table].name);
    return entry ? entry->meter : NULL;
}

int plait_control_entry_meter_set(struct plait_switch *sw, uint32_t table, uint64_t handle, uint64_t cir,
                                  uint64_t cburst, uint64_t pir, uint64_t pburst, struct plait_error *error)
{
    struct plait_program *program = begin(sw, error);
    if (!program)
        return -EINVAL;
    struct plait_meter_cell *meter = entry_meter(program, table, handle, error);
    if (!meter)
        return end(sw, -EINVAL);
    const struct plait_array_desc *desc = &program->pipeline->meters[program->pipeline->tables[table].direct_meter];
    plait_fabric_catch_up(sw->fabric);
    return end(sw, plait_meter_configure(meter, desc->width == 1, sw->fabric->events.now / 1000, cir, cburst, pir,
                                         pburst, error));
}

int plait_control_entry_meter_clear(struct plait_switch *sw, uint32_t table, uint64_t handle, struct plait_error *error)
{
    struct plait_program *program = begin(sw, error);
    if (!program)
        return -EINVAL;
    struct plait_meter_cell *meter = entry_meter(program, table, handle, error);
    if (meter)
        plait_meter_clear(meter);
    return end(sw, meter ? 0 : -EINVAL);
}

static void get_counts(const struct plait_meter_cell *meter, struct plait_counter_cell *counts)
{
    memcpy(counts, meter->counts, sizeof meter->counts);
}

static void set_counts(struct plait_meter_cell *meter, const struct plait_counter_cell *counts)
{
    memcpy(meter->counts, counts, sizeof meter->counts);
}

int plait_control_meter_counts(struct plait_switch *sw, uint32_t index, uint32_t cell,
                               struct plait_counter_cell *counts, struct plait_error *error)
{
    struct plait_program *program = begin(sw, error);
    if (!program)
        return -EINVAL;
    const struct plait_meter_cell *meter = meter_cell(program, index, cell, error);
    if (meter)
        get_counts(meter, counts);
    return end(sw, meter ? 0 : -ERANGE);
}

int plait_control_meter_counts_set(struct plait_switch *sw, uint32_t index, uint32_t cell,
                                   const struct plait_counter_cell *counts, struct plait_error *error)
{
    struct plait_program *program = begin(sw, error);
    if (!program)
        return -EINVAL;
    struct plait_meter_cell *meter = meter_cell(program, index, cell, error);
    if (meter)
        set_counts(meter, counts);
    return end(sw, meter ? 0 : -ERANGE);
}

int plait_control_entry_meter_counts(struct plait_switch *sw, uint32_t table, uint64_t handle,
                                     struct plait_counter_cell *counts, struct plait_error *error)
{
    struct plait_program *program = begin(sw, error);
    if (!program)
        return -EINVAL;
    const struct plait_meter_cell *meter = entry_meter(program, table, handle, error);
    if (meter)
        get_counts(meter, counts);
    return end(sw, meter ? 0 : -EINVAL);
}

int plait_control_entry_meter_counts_set(struct plait_switch *sw, uint32_t table, uint64_t handle,
                                         const struct plait_counter_cell *counts, struct plait_error *error)
{
    struct plait_program *program = begin(sw, error);
    if (!program)
        return -EINVAL;
    struct plait_meter_cell *meter = entry_meter(program, table, handle, error);
    if (meter)
        set_counts(meter, counts);
    return end(sw, meter ? 0 : -EINVAL);
}
