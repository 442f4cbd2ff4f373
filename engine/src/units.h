/* Quantities with types: nothing in the engine takes a bare integer for a time, a size or a rate. */
#ifndef PLAIT_UNITS_H
#define PLAIT_UNITS_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint64_t sim_time; /* ns since the fabric began */
typedef uint64_t byte_count;
typedef uint64_t bits_per_second; /* 0: unlimited */

#define SIM_TIME_NEVER UINT64_MAX
#define NS_PER_SECOND  1000000000ull

/* Asserts stay in release builds: a broken invariant must stop the fabric, not corrupt a measurement. */
#ifdef NDEBUG
#error "the engine is never built with NDEBUG"
#endif

#define plait_container_of(pointer, type, member) ((type *)(void *)((char *)(pointer) - offsetof(type, member)))

#endif
