"""C of the fuzzers under the sanitizers, built once for what goes into it."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

from fastswitch.codegen.build import FLAGS as GENERATED
from fastswitch.codegen.build import SANITIZE
from fuzz.target import BUILD

ROOT = Path(__file__).resolve().parents[1]
SUPPORT = ROOT / "fastswitch" / "codegen" / "support"
_FLAGS = ("-std=gnu11", "-D_GNU_SOURCE", "-O1", "-fno-omit-frame-pointer", "-Wall", "-Wextra", "-Werror", *SANITIZE)


def complaint_about(text: str) -> str:
    """What the compiler says of a program's C, warnings included, without compiling it; nothing if all is well."""
    command = ["gcc", *GENERATED, "-fsyntax-only", f"-I{ROOT / 'engine'}", f"-I{SUPPORT}", "-x", "c", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    return next((line for line in done.stderr.splitlines() if "error" in line), "") if done.returncode else ""


def build(name: str, sources: list[Path], *flags: str) -> Path:
    """The program or library that gcc makes of `sources`; `name` with its suffix."""
    all_flags = [*_FLAGS, f"-I{ROOT / 'engine'}", f"-I{ROOT / 'engine' / 'src'}", *flags]
    inputs = [*sources, *sorted((ROOT / "engine").rglob("*.h")), ROOT / "fastswitch" / "tests" / "codegen_harness.c"]
    mark = hashlib.sha256(b"".join(each.read_bytes() for each in inputs) + str(all_flags).encode()).hexdigest()
    target = BUILD / f"{mark[:16]}-{name}"
    if not target.exists():
        fresh = target.with_name(f"{target.name}.{os.getpid()}")
        subprocess.run(["gcc", *all_flags, "-o", str(fresh), *map(str, sources)], check=True)
        fresh.replace(target)
    return target
