"""Compiles P4 programs: with a compiler by name, or with the one that goes with a laboratory's target."""

import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import p4front
from lab.errors import MissingFeatureError, PlaitError, UsageError

_P4C = "p4c-bm2-ss"

# What a program is told of its target: BMv2 cannot bind registers to its queues, see p4src/include/live_state.p4.
DEFINES: dict[str, tuple[str, ...]] = {"plait": (), "bmv2": ("PLAIT_FEEDBACK",)}


@dataclass(frozen=True, slots=True)
class CompiledProgram:
    p4info: Path
    json: Path


@dataclass(frozen=True, slots=True)
class CompiledText:
    """What a compiler wrote, before it has a place."""

    name: str
    p4info: str
    json: str
    seconds: float

    def write(self, folder: Path) -> CompiledProgram:
        written = CompiledProgram(folder / f"{self.name}.p4info.txtpb", folder / f"{self.name}.json")
        written.p4info.write_text(self.p4info)
        written.json.write_text(self.json)
        return written


def compile_text(source: Path, target: str) -> CompiledText:
    """P4Info and BMv2 JSON: by p4front, or by p4c where BMv2 is to run them.

    p4front.CompileError or PlaitError carries the compiler's own messages.
    """
    return compile_with(source, "p4c" if target == "bmv2" else "p4front", DEFINES[target])


def compile_with(source: Path, compiler: str, defines: Sequence[str] = ()) -> CompiledText:
    """As `compile_text`, by one of COMPILERS, with macros defined."""
    started = time.monotonic()
    p4info, json = COMPILERS[compiler](source, defines)
    return CompiledText(source.stem, p4info, json, time.monotonic() - started)


def check_compiler(compiler: str) -> None:
    """UsageError for an unknown compiler, MissingFeatureError for one that this machine lacks."""
    if compiler not in COMPILERS:
        raise UsageError(f"--compiler {compiler!r}: known are {', '.join(COMPILERS)}.")
    if compiler == "p4c" and shutil.which(_P4C) is None:
        raise MissingFeatureError(f"--compiler p4c: {_P4C} is not on PATH.")


def compile_program(source: Path, target: str, folder: Path) -> CompiledProgram:
    """As `compile_text`, written into `folder`."""
    return compile_text(source, target).write(folder)


def _by_p4front(source: Path, defines: Sequence[str]) -> tuple[str, str]:
    compiled = p4front.compile_file(source, defines=defines)
    return compiled.p4info_text, compiled.json_text


def _by_p4c(source: Path, defines: Sequence[str]) -> tuple[str, str]:
    with tempfile.TemporaryDirectory(prefix="plait-p4c-") as folder:
        p4info, json = Path(folder, "out.p4info.txtpb"), Path(folder, "out.json")
        command = [_P4C, "--p4v", "16", *(f"-D{each}" for each in defines)]
        command += ["--p4runtime-files", str(p4info), "-o", str(json), str(source)]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            raise PlaitError(f"{_P4C} refused {source}:\n{result.stderr.rstrip()}")
        return p4info.read_text(), json.read_text()


COMPILERS = {"p4front": _by_p4front, "p4c": _by_p4c}
