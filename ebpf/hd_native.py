"""The hybrid-dynamic bitmap and its memory controller, the NIC's own C, in this process.

    host = HdHost(connections=20)
    host.reset(psn=0)
    results = host.run([(0, 5, RECEIVED)])      # connection, PSN, what
    host.memory()

One `HdHost` is one host's memory controller with that host's connections.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ebpf.build import NATIVE
from ebpf.c_module import CModule

MODULE = CModule(
    name="_hd_native",
    folder="ebpf",
    interface=("ebpf/native/hd_native.h",),
    sources=("ebpf/native/hd_native.c",),
    includes=("ebpf/native", "ebpf/core", "wire"),
    prelude=NATIVE.prelude,
)
ffi, lib = MODULE.load(Path(__file__).resolve().parent.parent)

# What a packet is to its message (enum nic_slot), and bits to add.
RECEIVED, TAIL, TAIL_COMPLETION = 1, 2, 3
LAST = lib.HD_STEP_LAST  # it is the connection's last packet, for now
ABANDON = lib.HD_STEP_ABANDON  # no packet: the connection ends, and one that expects the PSN takes its place
NO_BLOCK = 0xFFFF

Step = tuple[int, int, int]  # connection, PSN, what


@dataclass(frozen=True, slots=True)
class Memory:
    """What a controller has given out, and what became of it. Blocks are two bytes each."""

    metadata_blocks: int
    bitmap_blocks: int
    side_blocks: int  # message ends: Plait's addition to the paper
    connections: int  # with a bitmap now
    peak_blocks: int
    created: int
    collected: int
    reclaimed: int
    refused: int


@dataclass(frozen=True, slots=True)
class Usage:
    """Blocks in use, averaged over time."""

    metadata_blocks: float
    bitmap_blocks: float
    side_blocks: float


@dataclass(frozen=True, slots=True)
class Sizes:
    """Bytes, as the C structs have them."""

    idle: int  # of a connection that has no bitmap
    metadata: int  # of one that has
    bitmap: int  # at the cap
    alloc_bitmap: int  # of the controller
    start_index: int


class HdHost:
    def __init__(self, connections: int) -> None:
        self.connections = connections
        self.handle = ffi.gc(lib.hd_native_new(connections), lib.hd_native_free)
        if not self.handle:
            raise MemoryError

    def reset(self, psn: int, booked: int = 0) -> None:
        """Empties the controller but for `booked` blocks at its head; all connections expect `psn`."""
        lib.hd_native_reset(self.handle, psn, booked)

    def run(self, steps: Sequence[Step]) -> list[tuple[int, int, int, int]]:
        """Per step: enum nic_hd_outcome, then packets, message ends and completions that came into order."""
        made = ffi.new("struct hd_step[]", steps)
        results = ffi.new("struct hd_result[]", len(steps))
        lib.hd_native_run(self.handle, made, len(steps), results)
        words = memoryview(ffi.buffer(results)).cast("I").tolist()
        return list(zip(*(words[field::4] for field in range(4)), strict=True))

    def run_packed(self, steps: array[int]) -> None:
        """As `run`, without the results: three 32-bit words a step."""
        made = ffi.cast("struct hd_step *", ffi.from_buffer(steps))
        lib.hd_native_run(self.handle, made, len(steps) // 3, ffi.NULL)

    def expected(self, connection: int) -> int:
        return int(lib.hd_native_expected(self.handle, connection))

    def view(self, connection: int) -> Any:
        """A connection's state variables, as struct hd_view of hd_native.h."""
        return lib.hd_native_view(self.handle, connection)

    def used_blocks(self) -> bytearray:
        """A byte a block of the master array: 1 while it is in use."""
        used = bytearray(lib.hd_native_blocks())
        lib.hd_native_used(self.handle, ffi.from_buffer(used))
        return used

    def usage(self) -> Usage:
        """Since the last reset, the mean over all steps."""
        values = ffi.new("wire_u64[4]")
        lib.hd_native_usage(self.handle, values)
        steps, *blocks = values
        return Usage(*(count / max(1, steps) for count in blocks))

    def memory(self) -> Memory:
        values = ffi.new("wire_u32[9]")
        lib.hd_native_stats(self.handle, values)
        return Memory(*values)


def sizes() -> Sizes:
    values = [ffi.new("wire_u32 *") for _ in range(5)]
    lib.hd_native_sizes(*values)
    return Sizes(*(value[0] for value in values))
