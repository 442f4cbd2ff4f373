"""Hostile BMv2 JSON: refused by name, or compiled into C that compiles and stays within its bounds."""

from __future__ import annotations

import functools
import json
import mmap
import random
from typing import Any

from fastswitch.codegen import ProgramError, generate_c, load_program
from fuzz.build import complaint_about
from fuzz.frames import Frames
from fuzz.grammar import Grammar
from fuzz.mutation import Mutator, mutated_bytes
from fuzz.packets import document, sources
from fuzz.pipelines import RECORD_BYTES, compiled, populate, run_frames
from fuzz.target import Fault, Target

_DOCUMENTS = 100
_COMPILED = 1


@functools.cache
def _known(index: int) -> Mutator:
    found = document(sources()[index])
    assert found is not None
    return Mutator(found)


class Documents(Target):
    """Mutations of one document, as text and as objects; some of those that are taken are compiled and run."""

    name = "json"
    share = 1.5

    def case(self, rng: random.Random) -> int:
        kind = rng.randrange(8)
        mutator = _known(kind) if kind < 2 else Mutator(Grammar(rng).program())
        compiles = _COMPILED
        for number in range(_DOCUMENTS):
            made = mutator.mutated(rng)
            self.save(f"document-{number}.json", json.dumps(made))
            if rng.random() < 0.1:
                self._text(rng, json.dumps(made).encode())
                continue
            if self._refused(made) or not compiles:
                continue
            compiles -= 1
            self._run(rng, made)
        return _DOCUMENTS

    @staticmethod
    def _refused(made: Any) -> bool:
        try:
            text = generate_c(made)
        except ProgramError as error:
            if not str(error) or "internal" in str(error):
                raise Fault(f"a refusal that names nothing: {error}") from error
            return True
        complaint = complaint_about(text)
        if complaint:
            raise Fault(f"C that does not compile: {complaint}")
        return False

    def _text(self, rng: random.Random, text: bytes) -> None:
        for _ in range(3):
            broken = mutated_bytes(rng, text)
            self.save("text.json", broken)
            try:
                load_program(broken)
            except ProgramError:
                continue

    @staticmethod
    def _run(rng: random.Random, made: dict[str, Any]) -> None:
        try:
            with compiled(made, cached=False) as code, mmap.mmap(-1, RECORD_BYTES) as record:
                populate(rng, code, None, 4)
                frames = Frames(code.program)
                run_frames(code, rng, [frames.make(rng) for _ in range(24)], 500, record)
        except ProgramError as error:
            if "internal" in str(error):
                raise Fault(str(error)) from error
