"""The few bpf(2) commands that BCC's Python has no words for: XDP links and test runs."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from dataclasses import dataclass

_libc = ctypes.CDLL(None, use_errno=True)
_SYSCALL = {"x86_64": 321, "aarch64": 280, "riscv64": 280, "ppc64le": 361, "s390x": 351}
_PROG_TEST_RUN, _LINK_CREATE = 10, 28  # enum bpf_cmd
_ATTACH_XDP = 37  # enum bpf_attach_type
_XDP_FLAGS_DRV_MODE = 1 << 2


def _bpf(command: int, attributes: bytes | ctypes.Array) -> int:
    number = _SYSCALL.get(platform.machine())
    if number is None:
        raise OSError(errno.ENOSYS, f"the bpf system call's number on {platform.machine()} is not known")
    buffer = attributes if isinstance(attributes, ctypes.Array) else ctypes.create_string_buffer(attributes)
    result = _libc.syscall(number, command, buffer, ctypes.sizeof(buffer))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def attach_xdp(program_fd: int, ifindex: int) -> int:
    """Attaches natively to an interface of the current namespace.

    Returns a link: the program stays until its file descriptor is closed, so a killed process leaves nothing behind.
    """
    return _bpf(_LINK_CREATE, struct.pack("<IIII", program_fd, ifindex, _ATTACH_XDP, _XDP_FLAGS_DRV_MODE) + bytes(32))


@dataclass(frozen=True, slots=True)
class TestRun:
    """What BPF_PROG_RUN gave back: the verdict (XDP_*), the frame afterwards, and the mean time a repetition took."""

    verdict: int
    frame: bytes
    nanoseconds: int


class Runner:
    """Runs an XDP program on frames without an interface; buffers are kept, so that many short runs are cheap."""

    ROOM = 8192

    def __init__(self, program_fd: int) -> None:
        self._in = ctypes.create_string_buffer(self.ROOM)
        self._out = ctypes.create_string_buffer(self.ROOM)
        self._program_fd = program_fd

    def run(self, frame: bytes, repeat: int = 1) -> TestRun:
        ctypes.memmove(self._in, frame, len(frame))
        # struct { prog_fd, retval, data_size_in, data_size_out, data_in, data_out, repeat, duration, ctx..., flags }
        attributes = ctypes.create_string_buffer(
            struct.pack(
                "<IIIIQQIIIIQQIII",
                *(self._program_fd, 0, len(frame), self.ROOM),
                *(ctypes.addressof(self._in), ctypes.addressof(self._out), repeat, 0),
                *(0, 0, 0, 0, 0, 0, 0),
            ),
            80,
        )
        _bpf(_PROG_TEST_RUN, attributes)
        verdict, _, size = struct.unpack_from("<III", attributes, 4)
        (duration,) = struct.unpack_from("<I", attributes, 36)
        return TestRun(verdict, self._out.raw[:size], duration)
