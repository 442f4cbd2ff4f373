"""Builds the transmit engine (csrc/) into `rdma/_build/`."""

from __future__ import annotations

import sys
from pathlib import Path

from ebpf.c_module import CModule

_SOURCES = (
    *("engine", "memory", "timers", "host", "packet", "news"),
    *("qp", "request", "response", "receive", "cq", "jobs", "frame"),
)

ENGINE = CModule(
    name="_rdma_engine",
    folder="rdma",
    interface=("rdma/csrc/api.h",),
    sources=tuple(f"rdma/csrc/{name}.c" for name in _SOURCES),
    includes=("rdma/csrc", "ebpf/core", "wire"),
    libraries=("z", "pthread"),
)


def build(root: Path, sanitize: bool = False) -> None:
    ENGINE.build(root, sanitize)


if __name__ == "__main__":
    build(Path(__file__).resolve().parent.parent, sanitize="--sanitize" in sys.argv)
