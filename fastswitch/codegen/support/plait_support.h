/* Helpers that generated pipelines share: byte order, shifts without undefined behaviour, hashes, wide integers.
 *
 * Everything is static inline, so that a program links against nothing.  Values are host order; "be" in a name
 * means that the bytes it reads or writes are big-endian.  Shift amounts may be any number: P4 gives 0 (or the sign)
 * where C is undefined.
 */
#ifndef PLAIT_SUPPORT_H
#define PLAIT_SUPPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define PLAIT_UNUSED __attribute__((unused))
#define PLAIT_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define PLAIT_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

typedef unsigned __int128 plait_u128;
typedef __int128 plait_i128;
#define PLAIT_U128(high, low) (((plait_u128)(high) << 64) | (low))

/* ---------------------------------------------------------------------------------------------------------------
 * Big-endian bytes */

#define PLAIT_BE_ACCESS(bits)                                                      \
    static inline uint64_t plait_load##bits(const uint8_t *at)                     \
    {                                                                              \
        uint##bits##_t value;                                                      \
        memcpy(&value, at, sizeof value);                                          \
        return PLAIT_FROM_BE##bits(value);                                         \
    }                                                                              \
    static inline void plait_store##bits(uint8_t *at, uint64_t host)               \
    {                                                                              \
        uint##bits##_t value = PLAIT_FROM_BE##bits((uint##bits##_t)host);          \
        memcpy(at, &value, sizeof value);                                          \
    }

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define PLAIT_FROM_BE64(value) __builtin_bswap64(value)
#define PLAIT_FROM_BE32(value) __builtin_bswap32(value)
#define PLAIT_FROM_BE16(value) __builtin_bswap16(value)
#else
#define PLAIT_FROM_BE64(value) (value)
#define PLAIT_FROM_BE32(value) (value)
#define PLAIT_FROM_BE16(value) (value)
#endif
#define PLAIT_FROM_BE8(value) (value)

PLAIT_BE_ACCESS(64)
PLAIT_BE_ACCESS(32)
PLAIT_BE_ACCESS(16)
PLAIT_BE_ACCESS(8)

/* `width` (1 to 64) bits that start `offset` bits after `at`; touches only the bytes that hold them. */
static inline uint64_t plait_load_bits(const uint8_t *at, uint32_t offset, uint32_t width)
{
    uint64_t value = 0;
    uint32_t end = offset + width;
    for (uint32_t byte = offset / 8; byte < (end + 7) / 8; byte++) {
        uint32_t low = (byte + 1) * 8 > end ? (byte + 1) * 8 - end : 0; /* bits of this byte after the field */
        uint32_t bits = 8 - low;
        value = (value << bits) | (uint64_t)(at[byte] >> low);
    }
    return width == 64 ? value : value & ((UINT64_C(1) << width) - 1);
}

/* Appends `width` (0 to 64) bits at bit `*used` of `to`, whose bits from there on need not be zero. */
static inline void plait_append_bits(uint8_t *to, uint32_t *used, uint64_t value, uint32_t width)
{
    while (width > 0) {
        uint32_t room = 8 - *used % 8;
        uint32_t take = width < room ? width : room;
        uint32_t piece = (uint32_t)(value >> (width - take)) & ((1u << take) - 1);
        uint8_t *byte = to + *used / 8;
        uint8_t kept = room == 8 ? 0 : (uint8_t)(*byte & ~((1u << room) - 1));
        *byte = (uint8_t)(kept | (piece << (room - take)));
        *used += take;
        width -= take;
    }
}

static inline void plait_append_bytes(uint8_t *to, uint32_t *used, const uint8_t *bytes, uint32_t count)
{
    if (*used % 8 == 0) {
        memcpy(to + *used / 8, bytes, count);
        *used += 8 * count;
        return;
    }
    for (uint32_t i = 0; i < count; i++)
        plait_append_bits(to, used, bytes[i], 8);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Integers of 64 and 128 bits */

#define PLAIT_INTEGERS(name, unsigned_type, signed_type, bits)                                                    \
    static inline unsigned_type plait_sext##name(unsigned_type value, uint32_t width)                             \
    {                                                                                                             \
        uint32_t up = bits - width;                                                                               \
        return (unsigned_type)((signed_type)(value << up) >> up);                                                 \
    }                                                                                                             \
    static inline unsigned_type plait_shl##name(unsigned_type value, uint64_t by)                                 \
    {                                                                                                             \
        return by < bits ? value << by : 0;                                                                       \
    }                                                                                                             \
    static inline unsigned_type plait_shr##name(unsigned_type value, uint64_t by)                                 \
    {                                                                                                             \
        return by < bits ? value >> by : 0;                                                                       \
    }                                                                                                             \
    static inline unsigned_type plait_sar##name(unsigned_type value, uint64_t by)                                 \
    {                                                                                                             \
        return (unsigned_type)((signed_type)value >> (by < bits ? by : bits - 1));                                \
    }                                                                                                             \
    static inline unsigned_type plait_div##name(unsigned_type left, unsigned_type right)                          \
    {                                                                                                             \
        return right ? left / right : 0;                                                                          \
    }                                                                                                             \
    static inline unsigned_type plait_mod##name(unsigned_type left, unsigned_type right)                          \
    {                                                                                                             \
        return right ? left % right : 0;                                                                          \
    }                                                                                                             \
    static inline unsigned_type plait_min##name(unsigned_type value, unsigned_type high)                          \
    {                                                                                                             \
        return value < high ? value : high;                                                                       \
    }                                                                                                             \
    static inline unsigned_type plait_clamp##name(unsigned_type value, unsigned_type low, unsigned_type high)     \
    {                                                                                                             \
        if ((signed_type)value < (signed_type)low)                                                                \
            return low;                                                                                           \
        return (signed_type)value > (signed_type)high ? high : value;                                             \
    }                                                                                                             \
    /* A number as a count or an index: what is negative or too large becomes larger than any. */                 \
    static inline uint64_t plait_count##name(unsigned_type value, bool is_signed)                                 \
    {                                                                                                             \
        if (is_signed && (signed_type)value < 0)                                                                  \
            return UINT64_MAX;                                                                                    \
        return value > UINT64_MAX ? UINT64_MAX : (uint64_t)value;                                                 \
    }

PLAIT_INTEGERS(64, uint64_t, int64_t, 64)
PLAIT_INTEGERS(128, plait_u128, plait_i128, 128)

/* Element to read (`size` is one that is always zero) and element to write (`size + 1` is one that nobody reads). */
static inline uint32_t plait_readable(uint64_t index, uint32_t size)
{
    return index < size ? (uint32_t)index : size;
}
static inline uint32_t plait_writable(uint64_t index, uint32_t size)
{
    return index < size ? (uint32_t)index : size + 1;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Hashes */

/* Reflected CRCs of at most 32 bits, by slices: tables[k][b] is the remainder of byte b followed by k zero bytes. */
static inline uint32_t plait_crc_take8(const uint32_t tables[][256], uint32_t crc, uint64_t be)
{
    uint64_t v = __builtin_bswap64(be) ^ crc;
    return tables[7][v & 0xff] ^ tables[6][(v >> 8) & 0xff] ^ tables[5][(v >> 16) & 0xff] ^ tables[4][(v >> 24) & 0xff] ^
           tables[3][(v >> 32) & 0xff] ^ tables[2][(v >> 40) & 0xff] ^ tables[1][(v >> 48) & 0xff] ^ tables[0][v >> 56];
}
static inline uint32_t plait_crc_take4(const uint32_t tables[][256], uint32_t crc, uint64_t be)
{
    uint32_t v = __builtin_bswap32((uint32_t)be) ^ crc;
    return tables[3][v & 0xff] ^ tables[2][(v >> 8) & 0xff] ^ tables[1][(v >> 16) & 0xff] ^ tables[0][v >> 24];
}
static inline uint32_t plait_crc_take2(const uint32_t tables[][256], uint32_t crc, uint64_t be)
{
    uint32_t v = __builtin_bswap16((uint16_t)be) ^ (crc & 0xffff);
    return tables[1][v & 0xff] ^ tables[0][v >> 8] ^ (crc >> 16);
}
static inline uint32_t plait_crc_take1(const uint32_t tables[][256], uint32_t crc, uint64_t be)
{
    return tables[0][(crc ^ (uint32_t)be) & 0xff] ^ (crc >> 8);
}
static inline uint32_t plait_crc_sliced(const uint32_t tables[][256], uint32_t crc, const uint8_t *bytes, uint32_t count)
{
    for (; count >= 8; count -= 8, bytes += 8)
        crc = plait_crc_take8(tables, crc, plait_load64(bytes));
    for (; count > 0; count--, bytes++)
        crc = plait_crc_take1(tables, crc, *bytes);
    return crc;
}

/* Any CRC, a byte at a time. */
static inline uint64_t plait_crc_bytes(const uint64_t table[256], uint64_t crc, uint32_t width, bool reflected,
                                       const uint8_t *bytes, uint32_t count)
{
    uint64_t mask = width == 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1;
    for (uint32_t i = 0; i < count; i++) {
        if (reflected)
            crc = table[(crc ^ bytes[i]) & 0xff] ^ (crc >> 8);
        else
            crc = (table[((crc >> (width - 8)) ^ bytes[i]) & 0xff] ^ (crc << 8)) & mask;
    }
    return crc;
}

/* One's-complement sums: 2^16 = 1 modulo 0xffff, so whole 32-bit halves may be added and folded at the end. */
static inline uint64_t plait_csum_take8(uint64_t sum, uint64_t be)
{
    return sum + (be >> 32) + (be & 0xffffffff);
}
static inline uint64_t plait_csum_fold(uint64_t sum)
{
    sum = (sum >> 32) + (sum & 0xffffffff);
    sum = (sum >> 16) + (sum & 0xffff);
    sum = (sum >> 16) + (sum & 0xffff);
    sum = (sum >> 16) + (sum & 0xffff);
    return ~sum & 0xffff;
}
static inline uint64_t plait_csum16_bytes(const uint8_t *bytes, uint32_t count)
{
    uint64_t sum = 0;
    for (; count >= 4; count -= 4, bytes += 4)
        sum += plait_load32(bytes);
    if (count >= 2) {
        sum += plait_load16(bytes);
        bytes += 2;
        count -= 2;
    }
    if (count)
        sum += (uint64_t)*bytes << 8;
    return plait_csum_fold(sum);
}

static inline uint64_t plait_identity_bytes(const uint8_t *bytes, uint32_t count)
{
    uint64_t value = 0;
    for (uint32_t i = 0; i < count && i < 8; i++)
        value = (value << 8) | bytes[i];
    return value;
}

static inline uint64_t plait_xor_bytes(const uint8_t *bytes, uint32_t count, uint32_t word_bytes)
{
    uint64_t value = 0;
    for (uint32_t i = 0; i < count; i++)
        value ^= (uint64_t)bytes[i] << (8 * (word_bytes - 1 - i % word_bytes));
    return value;
}

/* XXH64 with seed 0, after the public description of the algorithm (its words are little-endian). */
#define PLAIT_XXH_1 UINT64_C(0x9E3779B185EBCA87)
#define PLAIT_XXH_2 UINT64_C(0xC2B2AE3D27D4EB4F)
#define PLAIT_XXH_3 UINT64_C(0x165667B19E3779F9)
#define PLAIT_XXH_4 UINT64_C(0x85EBCA77C2B2AE63)
#define PLAIT_XXH_5 UINT64_C(0x27D4EB2F165667C5)

static inline uint64_t plait_rotl64(uint64_t value, uint32_t by)
{
    return (value << by) | (value >> (64 - by));
}
static inline uint64_t plait_xxh_round(uint64_t lane, uint64_t word)
{
    return plait_rotl64(lane + word * PLAIT_XXH_2, 31) * PLAIT_XXH_1;
}
static inline uint64_t plait_xxh64_bytes(const uint8_t *bytes, uint32_t count)
{
    const uint8_t *at = bytes, *end = bytes + count;
    uint64_t hash = PLAIT_XXH_5;
    if (count >= 32) {
        uint64_t lanes[4] = {PLAIT_XXH_1 + PLAIT_XXH_2, PLAIT_XXH_2, 0, 0 - PLAIT_XXH_1};
        for (; end - at >= 32; at += 32)
            for (int i = 0; i < 4; i++)
                lanes[i] = plait_xxh_round(lanes[i], __builtin_bswap64(plait_load64(at + 8 * i)));
        hash = plait_rotl64(lanes[0], 1) + plait_rotl64(lanes[1], 7) + plait_rotl64(lanes[2], 12) +
               plait_rotl64(lanes[3], 18);
        for (int i = 0; i < 4; i++)
            hash = (hash ^ plait_xxh_round(0, lanes[i])) * PLAIT_XXH_1 + PLAIT_XXH_4;
    }
    hash += count;
    for (; end - at >= 8; at += 8) {
        hash ^= plait_xxh_round(0, __builtin_bswap64(plait_load64(at)));
        hash = plait_rotl64(hash, 27) * PLAIT_XXH_1 + PLAIT_XXH_4;
    }
    if (end - at >= 4) {
        hash ^= (uint64_t)__builtin_bswap32((uint32_t)plait_load32(at)) * PLAIT_XXH_1;
        hash = plait_rotl64(hash, 23) * PLAIT_XXH_2 + PLAIT_XXH_3;
        at += 4;
    }
    for (; at < end; at++) {
        hash ^= *at * PLAIT_XXH_5;
        hash = plait_rotl64(hash, 11) * PLAIT_XXH_1;
    }
    hash = (hash ^ (hash >> 33)) * PLAIT_XXH_2;
    hash = (hash ^ (hash >> 29)) * PLAIT_XXH_3;
    return hash ^ (hash >> 32);
}

#endif
