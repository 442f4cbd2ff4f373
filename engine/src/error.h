/* One failure convention: a function returns 0 or a negative errno; what it was and why is text in the error. */
#ifndef PLAIT_ERROR_H
#define PLAIT_ERROR_H

struct plait_error;

/* Fills `error` (which may be NULL) and returns -code. */
int plait_fail(struct plait_error *error, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The same for what the operating system refused: ENOENT of open() is not ENOENT of a handle. */
int plait_fail_system(struct plait_error *error, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
