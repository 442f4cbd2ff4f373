"""The few bpf(2) commands that BCC's Python has no words for: XDP links, test runs, maps for reading only."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from dataclasses import dataclass

_libc = ctypes.CDLL(None, use_errno=True)
_SYSCALL = {"x86_64": 321, "aarch64": 280, "riscv64": 280, "ppc64le": 361, "s390x": 351}
# enum bpf_cmd
_MAP_LOOKUP_ELEM, _PROG_TEST_RUN, _MAP_GET_FD_BY_ID, _OBJ_GET_INFO_BY_FD, _LINK_CREATE = 1, 10, 14, 15, 28
_F_RDONLY = 1 << 3
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


def read_only_map(map_fd: int) -> int:
    """Another file descriptor of a map, by which its elements can be read and nothing else (it cannot be mapped)."""
    info = ctypes.create_string_buffer(8)  # struct bpf_map_info begins with type and id
    attributes = ctypes.create_string_buffer(struct.pack("<IIQ", map_fd, len(info), ctypes.addressof(info)), 16)
    _bpf(_OBJ_GET_INFO_BY_FD, attributes)
    _, map_id = struct.unpack("<II", info.raw)
    return _bpf(_MAP_GET_FD_BY_ID, struct.pack("<III", map_id, 0, _F_RDONLY))


def read_element(map_fd: int, key: int, length: int) -> bytes:
    """Element `key` of an array map whose values have `length` bytes."""
    number, value = ctypes.c_uint32(key), ctypes.create_string_buffer(length)
    _bpf(_MAP_LOOKUP_ELEM, struct.pack("<IxxxxQQQ", map_fd, ctypes.addressof(number), ctypes.addressof(value), 0))
    return value.raw


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
