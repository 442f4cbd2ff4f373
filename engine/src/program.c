#include "program.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "fabric.h"
#include "switch.h"

#define ARRAY_LIMIT (1ull << 30) /* bytes of one counter, meter or register array */
#define COUNT_LIMIT 65536u       /* tables, actions, arrays of a program */
#define PHV_LIMIT   (1u << 20)

/* ------------------------------------------------------------------------------------------------------------
 * Services to generated code */

static uint64_t service_random(struct plait_instance *instance, uint64_t low, uint64_t high)
{
    return plait_random_between(&plait_program_of(instance)->sw->fabric->random, low, high);
}

static uint32_t service_meter(struct plait_instance *instance, void *cell, const struct plait_packet *packet)
{
    return plait_meter_execute(cell, instance->now_us, packet->arrival_length);
}

static void service_digest(struct plait_instance *instance, uint32_t list, const uint8_t *fields, uint32_t length)
{
    struct plait_program *program = plait_program_of(instance);
    if (length > sizeof program->digest_fields) {
        program->sw->stats.drops_event++;
        return;
    }
    program->digest_pending = true;
    program->digest_list = list;
    program->digest_length = length;
    memcpy(program->digest_fields, fields, length);
}

static void service_log(struct plait_instance *instance, const char *text)
{
    plait_switch_notify(plait_program_of(instance)->sw, PLAIT_NOTICE_LOG, 0, 0, (const uint8_t *)text,
                        (uint32_t)strnlen(text, 4096));
}

static const struct plait_runtime runtime = {
    .lookup = plait_table_lookup,
    .random = service_random,
    .meter_execute = service_meter,
    .digest = service_digest,
    .log = service_log,
};

/* ------------------------------------------------------------------------------------------------------------
 * Descriptors are checked before state is built from them */

static int check_actions(const struct plait_pipeline *pipeline, struct plait_error *error)
{
    for (uint32_t a = 0; a < pipeline->n_actions; a++) {
        const struct plait_action_desc *action = &pipeline->actions[a];
        for (uint32_t p = 0; p < action->n_params; p++) {
            const struct plait_param_desc *param = &action->params[p];
            uint32_t bytes = param->width <= 64 ? 8 : (param->width + 7) / 8;
            if (param->width == 0 || param->offset % 8 || param->offset > action->params_bytes ||
                bytes > action->params_bytes - param->offset)
                return plait_fail(error, EINVAL, "action %s, parameter %s: width %u at offset %u does not fit",
                                  action->name, param->name, param->width, param->offset);
        }
    }
    return 0;
}

static int check_pipeline(const struct plait_pipeline *pipeline, const char *path, struct plait_error *error)
{
    if (pipeline->abi != PLAIT_PIPELINE_ABI)
        return plait_fail(error, EINVAL, "%s: pipeline ABI %u, this engine has %d", path, pipeline->abi,
                          PLAIT_PIPELINE_ABI);
    if (!pipeline->parse || !pipeline->ingress || !pipeline->egress || !pipeline->deparse)
        return plait_fail(error, EINVAL, "%s: parse, ingress, egress or deparse is missing", path);
    if (pipeline->phv_size > PHV_LIMIT || pipeline->n_tables > COUNT_LIMIT || pipeline->n_actions > COUNT_LIMIT ||
        pipeline->n_counters > COUNT_LIMIT || pipeline->n_registers > COUNT_LIMIT || pipeline->n_meters > COUNT_LIMIT)
        return plait_fail(error, EINVAL, "%s: a count in its description is beyond %u", path, COUNT_LIMIT);
    for (uint32_t t = 0; t < pipeline->n_tables; t++) {
        int result = plait_table_check(&pipeline->tables[t], error);
        if (result)
            return result;
        if (pipeline->tables[t].direct_meter >= (int64_t)pipeline->n_meters)
            return plait_fail(error, EINVAL, "table %s: direct meter %d of %u", pipeline->tables[t].name,
                              pipeline->tables[t].direct_meter, pipeline->n_meters);
    }
    return check_actions(pipeline, error);
}

static void *array_of(const char *kind, const struct plait_array_desc *desc, uint64_t cell_bytes,
                      struct plait_error *error)
{
    uint64_t bytes = desc->size * cell_bytes;
    if (bytes > ARRAY_LIMIT) {
        plait_fail(error, EINVAL, "%s %s: %llu bytes exceed the limit of %llu", kind, desc->name,
                   (unsigned long long)bytes, ARRAY_LIMIT);
        return NULL;
    }
    void *cells = calloc(desc->size ? desc->size : 1, cell_bytes);
    if (!cells)
        plait_fail(error, ENOMEM, "no memory for %s %s", kind, desc->name);
    return cells;
}

/* What a register in the namespace `plait` is called there, NULL for others. A register that a control declares has the
 * control's name before: ingress.plait.port_up. */
static const char *live_name(const char *name)
{
    static const char space[] = ".plait.";
    const char *found = strncmp(name, space + 1, sizeof space - 2) == 0 ? name + sizeof space - 2 : NULL;
    for (const char *at = name; (at = strstr(at, space)); at++)
        found = at + sizeof space - 1;
    return found;
}

static uint64_t *bound_cells(struct plait_switch *sw, const char *live)
{
    if (strcmp(live, "queue_bytes") == 0)
        return sw->live_bytes;
    if (strcmp(live, "queue_packets") == 0)
        return sw->live_packets;
    if (strcmp(live, "port_up") == 0)
        return sw->live_up;
    return NULL;
}

static int make_registers(struct plait_program *program, struct plait_error *error)
{
    const struct plait_pipeline *pipeline = program->pipeline;
    for (uint32_t i = 0; i < pipeline->n_registers; i++) {
        const struct plait_array_desc *desc = &pipeline->registers[i];
        struct plait_register *reg = &program->instance.registers[i];
        const char *live = live_name(desc->name);
        if (live) {
            uint64_t *bound = bound_cells(program->sw, live);
            if (!bound)
                return plait_fail(error, EINVAL,
                                  "register %s: live state is plait.queue_bytes, plait.queue_packets or plait.port_up",
                                  desc->name);
            if (desc->width > 64 || i >= 64)
                return plait_fail(error, EINVAL,
                                  "register %s: live state is for the first 64 registers, of 64 bits at most",
                                  desc->name);
            program->bound_registers |= 1ull << i;
            uint32_t size = desc->size < PLAIT_PORTS ? desc->size : PLAIT_PORTS;
            *reg = (struct plait_register){(uint8_t *)bound, size, sizeof *bound};
        } else {
            uint32_t cell_bytes = desc->width <= 64 ? 8 : (desc->width + 7) / 8;
            *reg = (struct plait_register){array_of("register", desc, cell_bytes, error), desc->size, cell_bytes};
        }
        if (!reg->cells)
            return -error->code;
    }
    return 0;
}

static int make_state(struct plait_program *program, struct plait_error *error)
{
    const struct plait_pipeline *pipeline = program->pipeline;
    struct plait_instance *instance = &program->instance;
    program->tables = calloc(pipeline->n_tables + 1, sizeof *program->tables);
    instance->tables = calloc(pipeline->n_tables + 1, sizeof *instance->tables);
    instance->counters = calloc(pipeline->n_counters + 1, sizeof *instance->counters);
    instance->registers = calloc(pipeline->n_registers + 1, sizeof *instance->registers);
    instance->meters = calloc(pipeline->n_meters + 1, sizeof *instance->meters);
    if (!program->tables || !instance->tables || !instance->counters || !instance->registers || !instance->meters)
        return plait_fail(error, ENOMEM, "no memory for the state of %s", pipeline->program);
    for (uint32_t i = 0; i < pipeline->n_tables; i++) {
        int result =
            plait_table_create(&program->tables[i], &pipeline->tables[i], program->sw->fabric->hash_seed, error);
        if (result)
            return result;
        instance->tables[i] = &program->tables[i];
    }
    for (uint32_t i = 0; i < pipeline->n_counters; i++) {
        instance->counters[i].size = pipeline->counters[i].size;
        instance->counters[i].cells =
            array_of("counter", &pipeline->counters[i], sizeof(struct plait_counter_cell), error);
        if (!instance->counters[i].cells)
            return -error->code;
    }
    for (uint32_t i = 0; i < pipeline->n_meters; i++) {
        instance->meters[i].size = pipeline->meters[i].size;
        instance->meters[i].cells = array_of("meter", &pipeline->meters[i], PLAIT_METER_CELL_BYTES, error);
        if (!instance->meters[i].cells)
            return -error->code;
    }
    return make_registers(program, error);
}

int plait_program_open(struct plait_switch *sw, const char *path, struct plait_program **opened,
                       struct plait_error *error)
{
    struct plait_program *program = calloc(1, sizeof *program);
    if (!program)
        return plait_fail(error, ENOMEM, "no memory for a program");
    program->sw = sw;
    int result;
    program->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!program->library) {
        result = plait_fail(error, EINVAL, "program: %s", dlerror());
        goto failed;
    }
    program->pipeline = dlsym(program->library, "plait_pipeline");
    if (!program->pipeline) {
        result = plait_fail(error, EINVAL, "program %s: it exports no plait_pipeline", path);
        goto failed;
    }
    result = check_pipeline(program->pipeline, path, error);
    if (result) {
        program->pipeline = NULL; /* its counts are not to be believed when closing */
        goto failed;
    }
    program->instance.pipeline = program->pipeline;
    program->instance.runtime = &runtime;
    program->instance.drop_port = sw->drop_port;
    plait_actions_init(&program->actions, program->pipeline);
    plait_phv_pool_init(&program->phvs, program->pipeline->phv_size);
    result = make_state(program, error);
    if (result)
        goto failed;
    *opened = program;
    return 0;
failed:
    plait_program_close(program);
    return result;
}

void plait_program_close(struct plait_program *program)
{
    if (!program)
        return;
    struct plait_instance *instance = &program->instance;
    const struct plait_pipeline *pipeline = program->pipeline;
    if (pipeline) {
        for (uint32_t i = 0; program->tables && i < pipeline->n_tables; i++)
            plait_table_free(&program->tables[i]);
        for (uint32_t i = 0; instance->counters && i < pipeline->n_counters; i++)
            free(instance->counters[i].cells);
        for (uint32_t i = 0; instance->registers && i < pipeline->n_registers; i++)
            if (i >= 64 || !(program->bound_registers >> i & 1))
                free(instance->registers[i].cells);
        for (uint32_t i = 0; instance->meters && i < pipeline->n_meters; i++)
            free(instance->meters[i].cells);
        plait_actions_free(&program->actions);
        plait_phv_pool_free(&program->phvs);
    }
    free(program->tables);
    free(instance->tables);
    free(instance->counters);
    free(instance->registers);
    free(instance->meters);
    if (program->library)
        dlclose(program->library);
    free(program);
}
