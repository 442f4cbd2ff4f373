"""Single parts of the transmit engine for tests; see units.h."""

from __future__ import annotations

from ebpf.c_module import CModule
from ebpf.loader import ROOT

UNITS = CModule(
    name="_rdma_units",
    folder="rdma",
    interface=("rdma/csrc/jobs.h", "rdma/tests/units.h"),
    sources=("rdma/tests/units.c", "rdma/csrc/jobs.c", "rdma/csrc/timers.c"),
    includes=("rdma/tests", "rdma/csrc", "ebpf/core", "wire"),
)
ffi, lib = UNITS.load(ROOT)
NEVER = (1 << 63) - 1
