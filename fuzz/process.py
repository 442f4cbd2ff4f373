"""What processes under the sanitizers need, and how large they are."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from ebpf.c_module import SANITIZE_VARIABLE


def environment(sanitized: bool) -> dict[str, str]:
    """A child's: a sanitized one needs the runtime of AddressSanitizer before anything else."""
    made = {**os.environ, "PYTHONHASHSEED": "0"}
    if sanitized:
        libraries = [_library("libasan.so"), _library("libubsan.so"), _library("libstdc++.so")]
        made |= {
            "LD_PRELOAD": " ".join(libraries),
            "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:quarantine_size_mb=64",  # leaks: CPython's
            "UBSAN_OPTIONS": "print_stacktrace=1",
            "PLAIT_ENGINE_SANITIZED": "1",
            SANITIZE_VARIABLE: "1",
        }
    return made


def _library(name: str) -> str:
    command = ["gcc", f"-print-file-name={name}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def resident_bytes(pid: int) -> int:
    """Memory of a process; 0 if it has ended."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0  # it has ended
