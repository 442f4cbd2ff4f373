/* Integers wider than 128 bits: two's complement in PLAIT_WIDE_LIMBS 64-bit limbs, least significant first.
 *
 * The generator defines PLAIT_WIDE_LIMBS so that every intermediate value of the program fits with its sign.
 * Such arithmetic is rare, so this is written to be obviously right rather than fast.
 */
#ifndef PLAIT_WIDE_H
#define PLAIT_WIDE_H

#include "plait_access.h"

#define PLAIT_WIDE_BITS (64u * PLAIT_WIDE_LIMBS)

struct plait_wide { uint64_t limb[PLAIT_WIDE_LIMBS]; };

static inline PLAIT_UNUSED struct plait_wide plait_wide_from(const uint64_t *limbs, uint32_t count)
{
    struct plait_wide result;
    for (uint32_t i = 0; i < PLAIT_WIDE_LIMBS; i++)
        result.limb[i] = i < count ? limbs[i] : 0;
    return result;
}
static inline PLAIT_UNUSED struct plait_wide plait_wide_u64(uint64_t value)
{
    return plait_wide_from(&value, 1);
}
static inline PLAIT_UNUSED struct plait_wide plait_wide_u128(plait_u128 value)
{
    uint64_t limbs[2] = {(uint64_t)value, (uint64_t)(value >> 64)};
    return plait_wide_from(limbs, 2);
}
static inline PLAIT_UNUSED struct plait_wide plait_wide_i128(plait_u128 value)
{
    struct plait_wide result = plait_wide_u128(value);
    for (uint32_t i = 2; i < PLAIT_WIDE_LIMBS; i++)
        result.limb[i] = (plait_i128)value < 0 ? UINT64_MAX : 0;
    return result;
}
static inline PLAIT_UNUSED struct plait_wide plait_wide_i64(uint64_t value)
{
    return plait_wide_i128((plait_u128)(plait_i128)(int64_t)value);
}
static inline PLAIT_UNUSED uint64_t plait_wide_low64(struct plait_wide value)
{
    return value.limb[0];
}
static inline PLAIT_UNUSED plait_u128 plait_wide_low128(struct plait_wide value)
{
    return PLAIT_U128(value.limb[1], value.limb[0]);
}
static inline PLAIT_UNUSED bool plait_wide_negative(struct plait_wide value)
{
    return value.limb[PLAIT_WIDE_LIMBS - 1] >> 63;
}

#define PLAIT_WIDE_BITWISE(name, operator)                                                                     \
    static inline PLAIT_UNUSED struct plait_wide plait_wide_##name(struct plait_wide left, struct plait_wide right) \
    {                                                                                                          \
        for (uint32_t i = 0; i < PLAIT_WIDE_LIMBS; i++)                                                        \
            left.limb[i] = left.limb[i] operator right.limb[i];                                                \
        return left;                                                                                           \
    }
PLAIT_WIDE_BITWISE(and, &)
PLAIT_WIDE_BITWISE(or, |)
PLAIT_WIDE_BITWISE(xor, ^)

static inline PLAIT_UNUSED struct plait_wide plait_wide_not(struct plait_wide value)
{
    for (uint32_t i = 0; i < PLAIT_WIDE_LIMBS; i++)
        value.limb[i] = ~value.limb[i];
    return value;
}
static inline PLAIT_UNUSED struct plait_wide plait_wide_add(struct plait_wide left, struct plait_wide right)
{
    plait_u128 carry = 0;
    for (uint32_t i = 0; i < PLAIT_WIDE_LIMBS; i++) {
        carry += (plait_u128)left.limb[i] + right.limb[i];
        left.limb[i] = (uint64_t)carry;
        carry >>= 64;
    }
    return left;
}
static inline PLAIT_UNUSED struct plait_wide plait_wide_sub(struct plait_wide left, struct plait_wide right)
{
    return plait_wide_add(plait_wide_add(left, plait_wide_not(right)), plait_wide_u64(1));
}
static inline PLAIT_UNUSED struct plait_wide plait_wide_mul(struct plait_wide left, struct plait_wide right)
{
    struct plait_wide result = {{0}};
    for (uint32_t i = 0; i < PLAIT_WIDE_LIMBS; i++) {
        plait_u128 carry = 0;
        for (uint32_t j = 0; i + j < PLAIT_WIDE_LIMBS; j++) {
            carry += (plait_u128)left.limb[i] * right.limb[j] + result.limb[i + j];
            result.limb[i + j] = (uint64_t)carry;
            carry >>= 64;
        }
    }
    return result;
}
static inline PLAIT_UNUSED struct plait_wide plait_wide_shl(struct plait_wide value, uint64_t by)
{
    struct plait_wide result = {{0}};
    if (by >= PLAIT_WIDE_BITS)
        return result;
    uint32_t limbs = (uint32_t)(by / 64), bits = (uint32_t)(by % 64);
    for (uint32_t i = limbs; i < PLAIT_WIDE_LIMBS; i++) {
        result.limb[i] = value.limb[i - limbs] << bits;
        if (bits && i > limbs)
            result.limb[i] |= value.limb[i - limbs - 1] >> (64 - bits);
    }
    return result;
}
static inline PLAIT_UNUSED struct plait_wide plait_wide_shr(struct plait_wide value, uint64_t by)
{
    struct plait_wide result = {{0}};
    if (by >= PLAIT_WIDE_BITS)
        return result;
    uint32_t limbs = (uint32_t)(by / 64), bits = (uint32_t)(by % 64);
    for (uint32_t i = 0; i + limbs < PLAIT_WIDE_LIMBS; i++) {
        result.limb[i] = value.limb[i + limbs] >> bits;
        if (bits && i + limbs + 1 < PLAIT_WIDE_LIMBS)
            result.limb[i] |= value.limb[i + limbs + 1] << (64 - bits);
    }
    return result;
}
static inline PLAIT_UNUSED struct plait_wide plait_wide_sar(struct plait_wide value, uint64_t by)
{
    if (!plait_wide_negative(value))
        return plait_wide_shr(value, by);
    return plait_wide_not(plait_wide_shr(plait_wide_not(value), by));
}
static inline PLAIT_UNUSED struct plait_wide plait_wide_mask(struct plait_wide value, uint32_t width)
{
    for (uint32_t i = 0; i < PLAIT_WIDE_LIMBS; i++) {
        if (64 * i >= width)
            value.limb[i] = 0;
        else if (width - 64 * i < 64)
            value.limb[i] &= (UINT64_C(1) << (width - 64 * i)) - 1;
    }
    return value;
}
static inline PLAIT_UNUSED struct plait_wide plait_wide_sext(struct plait_wide value, uint32_t width)
{
    return plait_wide_sar(plait_wide_shl(value, PLAIT_WIDE_BITS - width), PLAIT_WIDE_BITS - width);
}
/* -1, 0 or 1 */
static inline PLAIT_UNUSED int plait_wide_compare(struct plait_wide left, struct plait_wide right)
{
    if (plait_wide_negative(left) != plait_wide_negative(right))
        return plait_wide_negative(left) ? -1 : 1;
    for (uint32_t i = PLAIT_WIDE_LIMBS; i-- > 0;)
        if (left.limb[i] != right.limb[i])
            return left.limb[i] < right.limb[i] ? -1 : 1;
    return 0;
}
static inline PLAIT_UNUSED struct plait_wide plait_wide_clamp(struct plait_wide value, struct plait_wide low,
                                                              struct plait_wide high)
{
    if (plait_wide_compare(value, low) < 0)
        return low;
    return plait_wide_compare(value, high) > 0 ? high : value;
}
/* Quotient of non-negative numbers; 0 when the divisor is 0, and then the remainder is 0 as well. */
static inline PLAIT_UNUSED struct plait_wide plait_wide_divide(struct plait_wide left, struct plait_wide right,
                                                               bool want_remainder)
{
    struct plait_wide quotient = {{0}}, remainder = {{0}}, zero = {{0}};
    if (plait_wide_compare(right, zero) == 0)
        return zero;
    for (uint32_t bit = PLAIT_WIDE_BITS; bit-- > 0;) {
        remainder = plait_wide_shl(remainder, 1);
        remainder.limb[0] |= (left.limb[bit / 64] >> (bit % 64)) & 1;
        if (plait_wide_compare(remainder, right) >= 0) {
            remainder = plait_wide_sub(remainder, right);
            quotient.limb[bit / 64] |= UINT64_C(1) << (bit % 64);
        }
    }
    return want_remainder ? remainder : quotient;
}
/* The low `width` bits, into the limbs of a field. */
static inline PLAIT_UNUSED void plait_wide_store(uint64_t *limbs, uint32_t count, uint32_t width,
                                                 struct plait_wide value)
{
    value = plait_wide_mask(value, width);
    for (uint32_t i = 0; i < count; i++)
        limbs[i] = i < PLAIT_WIDE_LIMBS ? value.limb[i] : 0;
}
static inline PLAIT_UNUSED void plait_wide_register_set(const struct plait_register *array, uint64_t index,
                                                        struct plait_wide value)
{
    if (index >= array->size)
        return;
    uint8_t *cell = array->cells + index * array->cell_bytes;
    for (uint32_t i = 0; i < array->cell_bytes; i++)
        cell[array->cell_bytes - 1 - i] = i / 8 < PLAIT_WIDE_LIMBS ? (uint8_t)(value.limb[i / 8] >> (8 * (i % 8))) : 0;
}
static inline PLAIT_UNUSED uint64_t plait_wide_count(struct plait_wide value)
{
    for (uint32_t i = 1; i < PLAIT_WIDE_LIMBS; i++)
        if (value.limb[i])
            return UINT64_MAX;
    return value.limb[0];
}

#endif
