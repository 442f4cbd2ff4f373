"""What a laboratory could leave on a machine, asked of the kernel itself."""

import ctypes
import os
from dataclasses import dataclass
from pathlib import Path

_SYS_BPF = {"x86_64": 321, "aarch64": 280}[os.uname().machine]
_BPF_PROG_GET_NEXT_ID, _BPF_MAP_GET_NEXT_ID = 11, 12


def _bpf_ids(command: int) -> set[int]:
    """Ids of all loaded programs or maps (bpf(2)): what is attached or pinned stays loaded."""
    libc = ctypes.CDLL(None, use_errno=True)
    found: set[int] = set()
    attributes = (ctypes.c_uint32 * 16)()
    while libc.syscall(_SYS_BPF, command, ctypes.byref(attributes), ctypes.sizeof(attributes)) == 0:
        found.add(attributes[1])  # next_id
        attributes[0] = attributes[1]  # start_id
    return found


def _namespaces() -> set[str]:
    """Network namespaces held by any process or by a mount."""
    found = set(os.listdir("/run/netns")) if Path("/run/netns").is_dir() else set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                found.add(os.readlink(entry / "ns" / "net"))
            except OSError:
                continue
    return found


def _lab_processes() -> set[str]:
    found = set()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if b"PLAIT_LAB=" in (entry / "environ").read_bytes():
                found.add((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found


@dataclass(frozen=True)
class Snapshot:
    """State of the machine; `after - before` lists what was added."""

    things: frozenset[str]

    @classmethod
    def take(cls) -> "Snapshot":
        run = Path("/run/plait")
        files = {str(path) for path in run.rglob("*") if path.name != "lock"} if run.is_dir() else set()
        return cls(
            frozenset(
                {f"namespace {name}" for name in _namespaces()}
                | {f"interface {name}" for name in os.listdir("/sys/class/net")}
                | {f"XDP program or other BPF program {number}" for number in _bpf_ids(_BPF_PROG_GET_NEXT_ID)}
                | {f"BPF map {number}" for number in _bpf_ids(_BPF_MAP_GET_NEXT_ID)}
                | {f"process {line}" for line in _lab_processes()}
                | {f"file {path}" for path in files}
            )
        )

    def __sub__(self, before: "Snapshot") -> list[str]:
        return sorted(self.things - before.things)
