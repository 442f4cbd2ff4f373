#include "error.h"

#include <stdarg.h>
#include <stdio.h>

#include "api.h"

static void fill(struct plait_error *error, int code, const char *format, va_list arguments)
{
    if (error) {
        error->code = code;
        vsnprintf(error->text, sizeof error->text, format, arguments);
    }
}

int plait_fail(struct plait_error *error, int code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fill(error, code, format, arguments);
    va_end(arguments);
    return -code;
}

int plait_fail_system(struct plait_error *error, int code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fill(error, code | PLAIT_SYSTEM_ERROR, format, arguments);
    va_end(arguments);
    return -code;
}
