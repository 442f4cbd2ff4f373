"""Random programs: what a grammar makes is compiled, run, and compared with the interpreter."""

from __future__ import annotations

import json
import random

from fastswitch.codegen import ProgramError, generate_c
from fuzz.grammar import Grammar
from fuzz.packets import exercise
from fuzz.target import Target

_TRIES = 20


class Programs(Target):
    """One random program, compiled with the sanitizers, random entries, frames through code and interpreter."""

    name = "programs"
    share = 2.0

    def case(self, rng: random.Random) -> int:
        for _ in range(_TRIES):
            document = Grammar(rng).program()
            self.save("program.json", json.dumps(document, indent=1))
            try:
                generate_c(document)
            except ProgramError:  # say, numbers of thousands of bits: what no compiler writes
                continue
            return exercise(self, rng, document, compared=40, mutations=2000, cached=False)
        return 0
