#include "capture.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "error.h"

#define PCAP_MAGIC_NS     0xa1b23c4du
#define LINKTYPE_ETHERNET 1u
#define SNAP_LENGTH       65535u

struct pcap_header {
    uint32_t magic;
    uint16_t major, minor;
    int32_t zone;
    uint32_t accuracy, snap, link;
};
struct pcap_record {
    uint32_t seconds, nanoseconds, captured, length;
};

int plait_capture_open(struct plait_capture *capture, const char *path, struct plait_error *error)
{
    if (capture->file)
        return plait_fail(error, EBUSY, "capture: one is running already on this link");
    int fd = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0644);
    struct stat status;
    if (fd >= 0 && fstat(fd, &status) == 0 && !S_ISREG(status.st_mode)) {
        close(fd);
        return plait_fail(error, EINVAL, "capture path %s: it is no regular file", path);
    }
    FILE *file = fd < 0 || ftruncate(fd, 0) ? NULL : fdopen(fd, "wb");
    if (!file) {
        int code = errno;
        if (fd >= 0)
            close(fd);
        return plait_fail_system(error, code, "capture path %s: %s", path, strerror(code));
    }
    struct pcap_header header = {PCAP_MAGIC_NS, 2, 4, 0, 0, SNAP_LENGTH, LINKTYPE_ETHERNET};
    if (fwrite(&header, sizeof header, 1, file) != 1 || fflush(file)) {
        int code = errno;
        fclose(file);
        return plait_fail_system(error, code, "capture path %s: %s", path, strerror(code));
    }
    capture->file = file;
    capture->failed = 0;
    return 0;
}

void plait_capture_write(struct plait_capture *capture, uint64_t time_ns, const uint8_t *frame, uint32_t length)
{
    struct pcap_record record = {(uint32_t)(time_ns / NS_PER_SECOND), (uint32_t)(time_ns % NS_PER_SECOND), length,
                                 length};
    if (fwrite(&record, sizeof record, 1, capture->file) != 1 || fwrite(frame, length, 1, capture->file) != 1) {
        capture->failed = errno ? errno : EIO;
        fclose(capture->file);
        capture->file = NULL;
    }
}

void plait_capture_flush(struct plait_capture *capture)
{
    if (capture->file && fflush(capture->file)) {
        capture->failed = errno ? errno : EIO;
        fclose(capture->file);
        capture->file = NULL;
    }
}

int plait_capture_close(struct plait_capture *capture, struct plait_error *error)
{
    int code = capture->failed;
    capture->failed = 0;
    if (capture->file) {
        if (fclose(capture->file) && !code)
            code = errno;
        capture->file = NULL;
    }
    return code ? plait_fail_system(error, code, "capture: writing stopped: %s", strerror(code)) : 0;
}
