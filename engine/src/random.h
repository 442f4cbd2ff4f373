/* The seeded generator (xoshiro256++ filled by splitmix64): same seed, same numbers, on every machine. */
#ifndef PLAIT_RANDOM_H
#define PLAIT_RANDOM_H

#include <stdint.h>

struct plait_random {
    uint64_t state[4];
};

static inline uint64_t plait_random_rotate(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }

static inline void plait_random_seed(struct plait_random *random, uint64_t seed)
{
    for (int i = 0; i < 4; i++) {
        uint64_t z = (seed += 0x9e3779b97f4a7c15ull);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
        random->state[i] = z ^ (z >> 31);
    }
}

static inline uint64_t plait_random_next(struct plait_random *random)
{
    uint64_t *s = random->state;
    uint64_t result = plait_random_rotate(s[0] + s[3], 23) + s[0];
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = plait_random_rotate(s[3], 45);
    return result;
}

/* Uniform in [low, high], without modulo bias. Precondition: low <= high. */
static inline uint64_t plait_random_between(struct plait_random *random, uint64_t low, uint64_t high)
{
    uint64_t span = high - low + 1;
    if (span == 0)
        return plait_random_next(random);
    uint64_t reject_below = -span % span;
    uint64_t value;
    do
        value = plait_random_next(random);
    while (value < reject_below);
    return low + value % span;
}

#endif
