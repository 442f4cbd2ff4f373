/* A minimal harness: a test is a function, a failed CHECK ends the program with its place. */
#ifndef UNIT_H
#define UNIT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s: not true: %s\n", __FILE__, __LINE__, __func__, #condition);                    \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

#define CHECK_EQUAL(a, b)                                                                                              \
    do {                                                                                                               \
        long long left = (long long)(a), right = (long long)(b);                                                       \
        if (left != right) {                                                                                           \
            fprintf(stderr, "%s:%d: %s: %s is %lld, %s is %lld\n", __FILE__, __LINE__, __func__, #a, left, #b, right); \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

extern const char *echo_program; /* path of pipeline_echo.so */

void test_events(void);
void test_tables(void);
void test_traffic_manager(void);
void test_meters(void);
void test_links(void);
void test_switch(void);
void test_control(void);

#endif
