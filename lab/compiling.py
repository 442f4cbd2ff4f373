"""Compiles a laboratory's P4 program with the compiler that goes with its target."""

import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import p4front
from lab.errors import PlaitError


@dataclass(frozen=True, slots=True)
class CompiledProgram:
    p4info: Path
    json: Path
    seconds: float


def compile_program(source: Path, target: str, folder: Path) -> CompiledProgram:
    """Writes P4Info and BMv2 JSON into `folder`: by p4front, or by p4c where BMv2 is to run them.

    p4front.CompileError or PlaitError carries the compiler's own messages.
    """
    started = time.monotonic()
    p4info, json = folder / f"{source.stem}.p4info.txtpb", folder / f"{source.stem}.json"
    if target == "bmv2":
        command = ["p4c-bm2-ss", "--p4v", "16", "--p4runtime-files", str(p4info), "-o", str(json), str(source)]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            raise PlaitError(f"p4c-bm2-ss refused {source}:\n{result.stderr.rstrip()}")
    else:
        compiled = p4front.compile_file(source)
        p4info.write_text(compiled.p4info_text)
        json.write_text(compiled.json_text)
    return CompiledProgram(p4info, json, time.monotonic() - started)
