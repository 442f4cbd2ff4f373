/* A pcap file with ns timestamps. Invariant: after a failed write the file is closed and `failed` holds the errno. */
#ifndef PLAIT_CAPTURE_H
#define PLAIT_CAPTURE_H

#include <stdio.h>

#include "api.h"
#include "units.h"

struct plait_capture {
    FILE *file;
    int failed;
};

/* `path` is created or truncated; a link is not followed, and what is no file is refused: a pipe might block. */
int plait_capture_open(struct plait_capture *capture, const char *path, struct plait_error *error);
void plait_capture_write(struct plait_capture *capture, uint64_t time_ns, const uint8_t *frame, uint32_t length);
/* What was written becomes visible to readers of the file. */
void plait_capture_flush(struct plait_capture *capture);
int plait_capture_close(struct plait_capture *capture, struct plait_error *error);

#endif
