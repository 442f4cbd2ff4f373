"""Random packets through the code of known programs: p4src/, the tests', and p4c's where a checkout is at hand."""

from __future__ import annotations

import contextlib
import functools
import mmap
import os
import random
from pathlib import Path
from typing import Any

import p4front
from fastswitch.codegen import ProgramError
from fastswitch.interpreter import EndlessError, Interpreter
from fuzz.frames import Frames
from fuzz.pipelines import RECORD_BYTES, agree, compiled, populate, run_frames, same_state
from fuzz.target import Target
from p4front.diagnostics import CompileError

ROOT = Path(__file__).resolve().parents[1]
CORPUS = "PLAIT_FUZZ_P4C"  # environment: folder of a p4c checkout
_MUTATIONS = 3000
_COMPARED = 60


def sources() -> list[Path]:
    """The programs, in a fixed order."""
    own = [*sorted((ROOT / "p4src").glob("*.p4")), ROOT / "fastswitch" / "tests" / "data" / "everything.p4"]
    samples = Path(os.environ.get(CORPUS, "/nonexistent")) / "testdata" / "p4_16_samples"
    return own + sorted(samples.glob("*bmv2.p4"))


@functools.lru_cache(64)
def document(source: Path) -> dict[str, Any] | None:
    """The program's BMv2 JSON; None for what the front-end refuses."""
    try:
        return p4front.compile_file(source).bmv2_json
    except CompileError:
        return None


class Packets(Target):
    """One program, random entries, thousands of mutated frames; some of them through the interpreter as well."""

    name = "packets"

    def __init__(self, keep: Path | None = None) -> None:
        super().__init__(keep)
        self._sources = sources()
        self._own = sum(ROOT in each.parents for each in self._sources)

    def case(self, rng: random.Random) -> int:
        others = len(self._sources) > self._own and rng.random() < 0.8
        source = rng.choice(self._sources[self._own :] if others else self._sources[: self._own])
        self.save("program.txt", str(source))
        program = document(source)
        if program is None:
            return 0
        try:
            return exercise(self, rng, program, _COMPARED, _MUTATIONS, cached=True)
        except ProgramError:  # a construct that the switch does not have
            return 0


def exercise(
    target: Target, rng: random.Random, program: dict[str, Any], compared: int, mutations: int, cached: bool
) -> int:
    """A program under random entries and frames; returns the number of frames.  ProgramError if it is refused."""
    with compiled(program, cached) as code:
        reference = Interpreter(program)
        populate(rng, code, reference, 12)
        frames = Frames(code.program)
        made = [frames.make(rng) for _ in range(max(compared, 24))]
        with contextlib.suppress(EndlessError):
            for number, frame in enumerate(made[:compared]):
                target.save("frame.bin", frame)
                standard = {"ingress_port": rng.randrange(512), "enq_qdepth": rng.randrange(1 << 19)}
                agree(code, reference, frame, standard)
                if number == compared // 2:
                    same_state(code, reference)
            same_state(code, reference)
        with _record(target) as record:
            run_frames(code, rng, made, mutations, record)
    return compared + mutations


def _record(target: Target) -> mmap.mmap:
    """Where the driver writes each frame: a file that outlives a crash, if the case is being reproduced."""
    target.save("record.bin", bytes(RECORD_BYTES))
    if target.keep is None:
        return mmap.mmap(-1, RECORD_BYTES)
    with (target.keep / "record.bin").open("r+b") as file:
        return mmap.mmap(file.fileno(), RECORD_BYTES)
