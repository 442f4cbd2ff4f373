"""Single parts of the NIC core for tests; see units.h."""

from __future__ import annotations

from ebpf import build
from ebpf.c_module import CModule
from ebpf.loader import ROOT

UNITS = CModule(
    name="_nic_units",
    folder="ebpf",
    interface=("ebpf/core/dcqcn.h", "ebpf/tests/units.h"),
    sources=("ebpf/tests/units.c",),
    includes=("ebpf/tests", "ebpf/core", "wire"),
    prelude=build.NATIVE.prelude,
)
ffi, lib = UNITS.load(ROOT)
