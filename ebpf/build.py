"""Builds the NIC core natively (tests and tools drive it from Python) into `ebpf/_build/`."""

from __future__ import annotations

import sys
from pathlib import Path

from ebpf.c_module import CModule

NATIVE = CModule(
    name="_nic_native",
    folder="ebpf",
    interface=(
        *(f"ebpf/core/{transport}_state.h" for transport in ("eunomia", "gbn", "irn", "mprdma")),
        *("ebpf/core/state.h", "ebpf/core/qp.h", "ebpf/native/native.h"),
    ),
    sources=("ebpf/native/native.c",),
    includes=("ebpf/native", "ebpf/core", "wire"),
    prelude="""
        typedef unsigned char wire_u8;
        typedef unsigned short wire_u16;
        typedef unsigned int wire_u32;
        typedef unsigned long long wire_u64;
    """,
)


def build(root: Path, sanitize: bool = False) -> None:
    NATIVE.build(root, sanitize)


if __name__ == "__main__":
    build(Path(__file__).resolve().parent.parent, sanitize="--sanitize" in sys.argv)
