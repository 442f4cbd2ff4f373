#include "unit.h"

const char *echo_program;

static const struct {
    const char *name;
    void (*run)(void);
} tests[] = {
    {"events", test_events},   {"tables", test_tables}, {"traffic_manager", test_traffic_manager},
    {"meters", test_meters},   {"links", test_links},   {"switch", test_switch},
    {"control", test_control},
};

/* unit <pipeline_echo.so> [test]: runs one group or all, prints each that passed. */
int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    echo_program = argv[1];
    int run = 0;
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        if (argc > 2 && strcmp(argv[2], tests[i].name) != 0)
            continue;
        tests[i].run();
        printf("ok %s\n", tests[i].name);
        run++;
    }
    return run ? 0 : 2;
}
