"""Builds the C core, its cffi binding and the C tests into engine/_build.

The binding's declarations are the headers themselves (pipeline.h and src/api.h without their preprocessor lines), so
they cannot drift apart.  A build happens only if a source, a flag or the compiler's version changed.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCES = HERE / "src"
MODULE = "engine._build._engine"
LIBRARY = "_engine.abi3.so"

WARNINGS = ["-Wall", "-Wextra", "-Werror", "-Wshadow", "-Wmissing-prototypes", "-Wstrict-prototypes"]
COMMON = ["-std=gnu11", "-D_GNU_SOURCE", "-fPIC", "-pthread", "-g"]
OPTIMISED = ["-O3", "-fvisibility=hidden", "-flto=auto", "-fno-semantic-interposition"]
THREADS_CHECKED = ["-O1", "-fsanitize=thread"]
SANITIZED = ["-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"]


def compiler() -> str:
    return os.environ.get("CC", "cc")


def declarations() -> str:
    """What cffi parses: both public headers, without preprocessor lines."""
    text = [(HERE / "pipeline.h").read_text(), (SOURCES / "api.h").read_text()]
    return "\n".join(line for part in text for line in part.splitlines() if not line.startswith("#"))


def run(command: list[str]) -> None:
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        raise RuntimeError(f"{' '.join(command)}\n{result.stdout}{result.stderr}")


def sources() -> list[Path]:
    return sorted(SOURCES.glob("*.c"))


def fingerprint(files: list[Path], flags: list[str]) -> str:
    """Changes whenever the result of compiling `files` with `flags` would."""
    digest = hashlib.sha256()
    version = subprocess.run([compiler(), "--version"], capture_output=True, text=True, check=True).stdout
    digest.update(repr((version, flags, sys.version_info[:2])).encode())
    for file in [Path(__file__), HERE / "pipeline.h", *sorted(SOURCES.glob("*.h")), *files]:
        digest.update(file.name.encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()


def is_fresh(target: Path, mark: str) -> bool:
    stamp = target.with_name(target.name + ".stamp")
    return target.exists() and stamp.exists() and stamp.read_text() == mark


def set_fresh(target: Path, mark: str) -> None:
    target.with_name(target.name + ".stamp").write_text(mark)


def compile_objects(files: list[Path], flags: list[str], where: Path) -> list[str]:
    where.mkdir(parents=True, exist_ok=True)
    objects = [where / (file.stem + ".o") for file in files]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        commands = [[compiler(), *flags, "-c", str(s), "-o", str(o)] for s, o in zip(files, objects, strict=True)]
        list(pool.map(run, commands))
    return [str(o) for o in objects]


def build_binding(out: Path, sanitize: bool = False) -> None:
    out.mkdir(parents=True, exist_ok=True)
    flags = COMMON + (SANITIZED if sanitize else OPTIMISED)
    target = out / LIBRARY
    mark = fingerprint(sources(), flags + WARNINGS)
    if is_fresh(target, mark):
        return
    import cffi
    import cffi.recompiler

    ffi = cffi.FFI()
    ffi.cdef(declarations())
    glue = out / "_engine.c"
    cffi.recompiler.make_c_source(ffi, MODULE, '#include "api.h"', str(glue), verbose=False)
    objects = compile_objects(sources(), flags + WARNINGS, out / "objects")
    python = [f"-I{sysconfig.get_path('include')}", f"-I{SOURCES}", "-Wno-error"]
    objects += compile_objects([glue], flags + python, out / "objects")
    fresh = target.with_suffix(".new")
    run([compiler(), *flags, "-shared", *objects, "-o", str(fresh), "-ldl"])
    fresh.replace(target)  # a running process keeps the library that it has mapped
    set_fresh(target, mark)


def build_program(target: Path, files: list[Path], flags: list[str]) -> None:
    """An executable from the core and `files`."""
    files = sources() + files
    mark = fingerprint(files, flags + WARNINGS)
    if is_fresh(target, mark):
        return
    objects = compile_objects(files, [*flags, *WARNINGS, f"-I{SOURCES}"], target.with_name(target.name + "-objects"))
    run([compiler(), *flags, *objects, "-o", str(target), "-ldl"])
    set_fresh(target, mark)


def build_tests(out: Path, sanitize: bool) -> None:
    """The C unit tests (one program) and the hand-written pipelines (one shared object each)."""
    flags = COMMON + (SANITIZED if sanitize else ["-O2"])
    suffix = "-sanitized" if sanitize else ""
    build_program(out / f"unit{suffix}", sorted((HERE / "tests").glob("test_*.c")), flags)
    if sanitize:
        build_program(out / "race", [HERE / "tests" / "race_control.c"], COMMON + THREADS_CHECKED)
    for pipeline in sorted((HERE / "tests").glob("pipeline_*.c")):
        target = out / f"{pipeline.stem}{suffix}.so"
        mark = fingerprint([pipeline], flags + WARNINGS)
        if not is_fresh(target, mark):
            run([compiler(), *flags, *WARNINGS, f"-I{HERE}", "-shared", str(pipeline), "-o", str(target)])
            set_fresh(target, mark)


def build(root: Path, sanitize: bool = False) -> None:
    """Builds the binding in `root`/engine/_build if it is out of date; `sanitize`: the one under ASan and UBSan."""
    with _locked(root) as out:
        build_binding(out / "sanitized" if sanitize else out, sanitize)


def build_with_tests(root: Path, sanitize: bool = False) -> None:
    """Builds the binding and the C tests; `sanitize` adds both with ASan and UBSan, and a test with TSan."""
    with _locked(root) as out:
        build_binding(out)
        build_tests(out, sanitize=False)
        if sanitize:
            build_binding(out / "sanitized", sanitize=True)
            build_tests(out, sanitize=True)


@contextmanager
def _locked(root: Path) -> Iterator[Path]:
    """The folder of built files, held by one build at a time: two at once would mix their objects."""
    out = root / "engine" / "_build"
    out.mkdir(parents=True, exist_ok=True)
    with (out / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield out


if __name__ == "__main__":
    build(HERE.parent)
