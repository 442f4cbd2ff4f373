/* Runs a generated pipeline without the engine: tables are naive lists, everything else the least that works.
 *
 * For tests of the code generator only. One instance a library handle; not for more than one thread.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pipeline.h"

#define LOG_BYTES 65536
#define DIGEST_BYTES 8192
#define METER_CELLS_MAX 4096

struct rule {
    struct rule *next;
    struct plait_entry entry;
    int64_t rank; /* larger wins, equal: the older */
    uint8_t *low, *mask, *high;
};

struct list {
    const struct plait_table_desc *desc;
    struct rule *rules;
};

struct harness {
    void *library;
    const struct plait_pipeline *pipeline;
    struct plait_instance instance;
    char log[LOG_BYTES];
    uint8_t digest[DIGEST_BYTES];
    uint32_t digest_length, digest_list, digest_count;
    uint8_t *buffer;
    void *phv;
    struct plait_packet packet;
};

static struct harness *current;

static bool field_matches(const struct rule *rule, const struct plait_key_desc *key, const uint8_t *at)
{
    uint32_t size = (key->width + 7) / 8, offset = key->offset;
    if (key->match == PLAIT_RANGE)
        return memcmp(at + offset, rule->low + offset, size) >= 0 && memcmp(at + offset, rule->high + offset, size) <= 0;
    for (uint32_t i = offset; i < offset + size; i++)
        if ((at[i] & rule->mask[i]) != rule->low[i])
            return false;
    return true;
}

static struct plait_entry *lookup(const struct plait_table *table, const uint8_t *key)
{
    const struct list *list = table->impl;
    struct rule *best = NULL;
    for (struct rule *rule = list->rules; rule; rule = rule->next) {
        bool hit = true;
        for (uint32_t i = 0; hit && i < list->desc->n_keys; i++)
            hit = field_matches(rule, &list->desc->keys[i], key);
        if (hit && (!best || rule->rank > best->rank))
            best = rule;
    }
    return best ? &best->entry : NULL;
}

static uint64_t random_low(struct plait_instance *instance, uint64_t low, uint64_t high)
{
    (void)instance, (void)high;
    return low;
}

static uint32_t meter_execute(struct plait_instance *instance, void *cell, const struct plait_packet *packet)
{
    (void)instance, (void)packet;
    return cell ? *(uint8_t *)cell : 0;
}

static void take_digest(struct plait_instance *instance, uint32_t list, const uint8_t *fields, uint32_t length)
{
    (void)instance;
    current->digest_list = list;
    current->digest_count++;
    current->digest_length = length < DIGEST_BYTES ? length : DIGEST_BYTES;
    memcpy(current->digest, fields, current->digest_length);
}

static void take_log(struct plait_instance *instance, const char *text)
{
    (void)instance;
    size_t used = strlen(current->log);
    snprintf(current->log + used, LOG_BYTES - used, "%s\n", text);
}

static const struct plait_runtime runtime = {lookup, random_low, meter_execute, take_digest, take_log};

struct harness *harness_open(const char *path)
{
    struct harness *h = calloc(1, sizeof *h);
    h->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!h->library) {
        fprintf(stderr, "%s\n", dlerror());
        free(h);
        return NULL;
    }
    const struct plait_pipeline *p = h->pipeline = dlsym(h->library, "plait_pipeline");
    h->instance = (struct plait_instance){.pipeline = p, .runtime = &runtime, .drop_port = PLAIT_DROP_PORT};
    h->instance.tables = calloc(p->n_tables + 1, sizeof *h->instance.tables);
    for (uint32_t i = 0; i < p->n_tables; i++) {
        struct list *list = calloc(1, sizeof *list);
        list->desc = &p->tables[i];
        h->instance.tables[i] = calloc(1, sizeof **h->instance.tables);
        h->instance.tables[i]->impl = list;
        h->instance.tables[i]->default_entry = calloc(1, sizeof(struct plait_entry));
    }
    h->instance.counters = calloc(p->n_counters + 1, sizeof *h->instance.counters);
    for (uint32_t i = 0; i < p->n_counters; i++)
        h->instance.counters[i] =
            (struct plait_counter){calloc(p->counters[i].size + 1, sizeof(struct plait_counter_cell)), p->counters[i].size};
    h->instance.registers = calloc(p->n_registers + 1, sizeof *h->instance.registers);
    for (uint32_t i = 0; i < p->n_registers; i++) {
        uint32_t bytes = p->registers[i].width <= 64 ? 8 : (p->registers[i].width + 7) / 8;
        h->instance.registers[i] =
            (struct plait_register){calloc(p->registers[i].size + 1, bytes), p->registers[i].size, bytes};
    }
    h->instance.meters = calloc(p->n_meters + 1, sizeof *h->instance.meters);
    for (uint32_t i = 0; i < p->n_meters; i++)
        h->instance.meters[i] =
            (struct plait_meter){calloc(p->meters[i].size + 1, PLAIT_METER_CELL_BYTES), p->meters[i].size};
    h->phv = aligned_alloc(16, (p->phv_size + 15) / 16 * 16);
    return h;
}

const struct plait_pipeline *harness_pipeline(struct harness *h)
{
    return h->pipeline;
}

/* `params`: words as struct plait_action_data holds them. */
static struct plait_action_data *action_data(uint32_t action, const uint8_t *params, uint32_t bytes)
{
    struct plait_action_data *data = calloc(1, sizeof *data + bytes);
    data->action = action;
    memcpy(data->params, params, bytes);
    return data;
}

void harness_default(struct harness *h, uint32_t table, uint32_t action, const uint8_t *params, uint32_t bytes)
{
    struct plait_entry *entry = h->instance.tables[table]->default_entry;
    free((void *)entry->data);
    entry->data = action_data(action, params, bytes);
}

struct rule *harness_entry(struct harness *h, uint32_t table, const uint8_t *low, const uint8_t *mask,
                           const uint8_t *high, int64_t rank, uint32_t action, const uint8_t *params, uint32_t bytes)
{
    struct list *list = h->instance.tables[table]->impl;
    struct rule *rule = calloc(1, sizeof *rule);
    uint32_t size = list->desc->key_bytes;
    rule->low = malloc(size + 1), rule->mask = malloc(size + 1), rule->high = malloc(size + 1);
    memcpy(rule->low, low, size);
    memcpy(rule->mask, mask, size);
    memcpy(rule->high, high, size);
    rule->rank = rank;
    rule->entry.data = action_data(action, params, bytes);
    struct rule **end = &list->rules;
    while (*end)
        end = &(*end)->next;
    *end = rule;
    return rule;
}

void harness_group_add(struct rule *rule, uint32_t action, const uint8_t *params, uint32_t bytes)
{
    struct plait_group *group = (struct plait_group *)rule->entry.group;
    group->members = realloc(group->members, (group->size + 1) * sizeof *group->members);
    group->members[group->size++] = action_data(action, params, bytes);
}

void harness_group(struct rule *rule)
{
    free((void *)rule->entry.data);
    rule->entry.data = NULL;
    rule->entry.group = calloc(1, sizeof *rule->entry.group);
}

void harness_rule_counter(const struct rule *rule, uint64_t counter[2])
{
    counter[0] = rule->entry.packets;
    counter[1] = rule->entry.bytes;
}

/* A frame before parse. The buffer is exactly as large as promised, so that a sanitizer sees every step beyond. */
void harness_start(struct harness *h, const uint8_t *frame, uint32_t length)
{
    free(h->buffer);
    h->buffer = malloc(PLAIT_HEADROOM + length);
    memset(h->buffer, 0xee, PLAIT_HEADROOM);
    memcpy(h->buffer + PLAIT_HEADROOM, frame, length);
    memset(h->phv, 0, h->pipeline->phv_size);
    h->packet = (struct plait_packet){
        .data = h->buffer + PLAIT_HEADROOM, .length = length, .arrival_length = length, .phv = h->phv};
    h->packet.std.packet_length = length;
    h->log[0] = 0;
    h->digest_count = h->digest_list = h->digest_length = 0;
}

struct plait_std *harness_std(struct harness *h)
{
    return &h->packet.std;
}

struct plait_instance *harness_instance(struct harness *h)
{
    return &h->instance;
}

/* 'p'arse, 'i'ngress, 'e'gress, 'd'eparse */
void harness_run(struct harness *h, char step)
{
    current = h;
    if (step == 'p')
        h->pipeline->parse(&h->instance, &h->packet);
    else if (step == 'i')
        h->pipeline->ingress(&h->instance, &h->packet);
    else if (step == 'e')
        h->pipeline->egress(&h->instance, &h->packet);
    else
        h->pipeline->deparse(&h->instance, &h->packet);
}

/* A copy's life: a zeroed PHV into which a field list was copied. */
void harness_copy_field_list(struct harness *h, uint32_t list)
{
    void *to = aligned_alloc(16, (h->pipeline->phv_size + 15) / 16 * 16);
    memset(to, 0, h->pipeline->phv_size);
    h->pipeline->copy_field_list(list, to, h->phv);
    free(h->phv);
    h->phv = h->packet.phv = to;
}

void harness_reset_metadata(struct harness *h)
{
    h->pipeline->reset_metadata(h->phv);
}

uint32_t harness_frame(struct harness *h, uint8_t *to, uint32_t room)
{
    uint32_t length = h->packet.length < room ? h->packet.length : room;
    memcpy(to, h->packet.data, length);
    return h->packet.length;
}

const char *harness_log(struct harness *h)
{
    return h->log;
}

uint32_t harness_digest(struct harness *h, uint8_t *to, uint32_t *length)
{
    memcpy(to, h->digest, h->digest_length);
    *length = h->digest_length;
    return h->digest_count ? h->digest_list : 0;
}

void harness_meter_color(struct harness *h, uint32_t meter, uint32_t cell, uint8_t color)
{
    ((uint8_t *)h->instance.meters[meter].cells)[cell * PLAIT_METER_CELL_BYTES] = color;
}

/* Nanoseconds per packet of parse, ingress, egress and deparse (and zeroing the PHV), with lookups as they are here. */
double harness_bench(struct harness *h, const uint8_t *frame, uint32_t length, uint32_t port, uint32_t rounds)
{
    struct timespec begin, end;
    harness_start(h, frame, length);
    current = h;
    const struct plait_pipeline *p = h->pipeline;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (uint32_t i = 0; i < rounds; i++) {
        struct plait_packet *packet = &h->packet;
        memset(h->phv, 0, p->phv_size);
        memset(&packet->std, 0, sizeof packet->std);
        packet->data = h->buffer + PLAIT_HEADROOM;
        packet->length = length;
        packet->data[22] = 64; /* the TTL, which the program counts down */
        packet->data[37] = (uint8_t)i;
        packet->std.ingress_port = port;
        p->parse(&h->instance, packet);
        p->ingress(&h->instance, packet);
        packet->std.egress_port = packet->std.egress_spec;
        p->egress(&h->instance, packet);
        p->deparse(&h->instance, packet);
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    return ((double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec)) / rounds;
}

void harness_close(struct harness *h)
{
    for (uint32_t i = 0; i < h->pipeline->n_tables; i++) {
        struct list *list = h->instance.tables[i]->impl;
        while (list->rules) {
            struct rule *rule = list->rules;
            struct plait_group *group = (struct plait_group *)rule->entry.group;
            for (uint32_t m = 0; group && m < group->size; m++)
                free(group->members[m]);
            if (group)
                free(group->members);
            list->rules = rule->next;
            free(group);
            free((void *)rule->entry.data);
            free(rule->low), free(rule->mask), free(rule->high), free(rule);
        }
        free((void *)h->instance.tables[i]->default_entry->data);
        free(h->instance.tables[i]->default_entry);
        free(h->instance.tables[i]);
        free(list);
    }
    for (uint32_t i = 0; i < h->pipeline->n_counters; i++)
        free(h->instance.counters[i].cells);
    for (uint32_t i = 0; i < h->pipeline->n_registers; i++)
        free(h->instance.registers[i].cells);
    for (uint32_t i = 0; i < h->pipeline->n_meters; i++)
        free(h->instance.meters[i].cells);
    free(h->instance.tables), free(h->instance.counters), free(h->instance.registers), free(h->instance.meters);
    free(h->buffer), free(h->phv);
    dlclose(h->library);
    free(h);
}
