/* What generated pipelines do to the engine's arrays.  An index outside an array touches nothing, as in a debug
 * build of BMv2; the destination of a read then keeps its value. */
#ifndef PLAIT_ACCESS_H
#define PLAIT_ACCESS_H

#include "pipeline.h"

#include "plait_support.h"

/* Between the parts of a large parser: where it reads, how many states it saw, its error so far. */
struct plait_cursor { const uint8_t *at; uint32_t visited, error; };
#define PLAIT_LEFT UINT32_MAX /* the position of no state or node: parser or pipeline are left */

static inline uint64_t plait_register_get(const struct plait_register *array, uint64_t index)
{
    uint64_t value = 0;
    if (PLAIT_LIKELY(index < array->size))
        memcpy(&value, array->cells + 8 * index, sizeof value);
    return value;
}

static inline void plait_register_set(const struct plait_register *array, uint64_t index, uint64_t value)
{
    if (PLAIT_LIKELY(index < array->size))
        memcpy(array->cells + 8 * index, &value, sizeof value);
}

/* A cell that is wider than 64 bits. */
static inline const uint8_t *plait_register_string(const struct plait_register *array, uint64_t index)
{
    static const uint8_t zeros[512];
    return PLAIT_LIKELY(index < array->size) ? array->cells + index * array->cell_bytes : zeros;
}

/* BMv2's "hash" that counts its calls. */
static inline uint64_t plait_count_calls(const struct plait_register *calls)
{
    uint64_t before = plait_register_get(calls, 0);
    plait_register_set(calls, 0, before + 1);
    return before;
}

static inline void plait_count(const struct plait_counter *array, uint64_t index, const struct plait_packet *packet)
{
    if (PLAIT_LIKELY(index < array->size)) {
        array->cells[index].packets++;
        array->cells[index].bytes += packet->arrival_length;
    }
}

static inline uint32_t plait_meter_color(struct plait_instance *instance, const struct plait_meter *array,
                                         uint64_t index, const struct plait_packet *packet)
{
    void *cell = (uint8_t *)array->cells + index * PLAIT_METER_CELL_BYTES;
    return instance->runtime->meter_execute(instance, cell, packet);
}

static inline void plait_varbit_copy(uint32_t *to_bytes, uint8_t *to, size_t room, uint32_t bytes, const uint8_t *from)
{
    *to_bytes = bytes < room ? bytes : (uint32_t)room;
    memmove(to, from, *to_bytes);
}

static inline bool plait_varbit_same(uint32_t left_bytes, const uint8_t *left, uint32_t right_bytes, const uint8_t *right)
{
    return left_bytes == right_bytes && memcmp(left, right, left_bytes) == 0;
}

/* hash() treats a size of 0 as 1. */
static inline uint64_t plait_hash_size(uint64_t size)
{
    return size ? size : 1;
}

/* The engine's form of a request that carries a field list: list + 1, or 0 for list 0, which asks for nothing. */
static inline uint32_t plait_list_request(uint64_t field_list)
{
    uint32_t list = (uint32_t)(field_list & 0xffff);
    return list ? list + 1 : 0;
}

static inline void plait_truncate(struct plait_packet *packet, uint64_t bytes)
{
    uint32_t limit = bytes < PLAIT_MAX_FRAME ? (uint32_t)bytes : PLAIT_MAX_FRAME;
    if (packet->std.truncate_to == 0 || limit + 1 < packet->std.truncate_to)
        packet->std.truncate_to = limit + 1;
}

/* Text of log_msg, cut where the buffer ends. */
struct plait_text { char text[512]; uint32_t used; };

static inline void plait_text_append(struct plait_text *text, const char *more)
{
    while (*more && text->used < sizeof text->text - 1)
        text->text[text->used++] = *more++;
    text->text[text->used] = 0;
}

static inline void plait_text_number(struct plait_text *text, uint64_t value, bool is_signed)
{
    char digits[24];
    uint32_t at = sizeof digits - 1;
    bool negative = is_signed && (int64_t)value < 0;
    if (negative)
        value = 0 - value;
    digits[at] = 0;
    do
        digits[--at] = (char)('0' + value % 10);
    while (value /= 10);
    if (negative)
        digits[--at] = '-';
    plait_text_append(text, digits + at);
}

#endif
