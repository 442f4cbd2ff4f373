"""What a fuzzer is: it makes one input from a seeded generator, runs it, and raises if the answer is wrong."""

from __future__ import annotations

import random
from pathlib import Path

BUILD = Path(__file__).parent / "_build"
"""Compiled programs and libraries, shared by all runs."""


class Fault(Exception):
    """The code under test did what it must not do.  Any other exception that leaves a case is a fault as well."""


class Target:
    """One fuzzer.  A case depends on its generator alone, so that a seed and a number reproduce it.

    `sanitized`: the worker has AddressSanitizer preloaded.  `patience`: seconds that a case may take before it counts
    as a hang; far above what one takes, as machines are busy.  `share`: of the time that all targets get together.
    """

    name: str
    sanitized = True
    patience = 120.0
    share = 1.0

    def __init__(self, keep: Path | None = None) -> None:
        self.keep = keep
        BUILD.mkdir(exist_ok=True)

    def case(self, rng: random.Random) -> int:
        """Runs one case; returns how many inputs that were.  Raises Fault."""
        raise NotImplementedError

    def save(self, name: str, data: bytes | str) -> None:
        """Keeps an input, before it is used, if the case is being reproduced."""
        if self.keep is not None:
            (self.keep / name).write_bytes(data.encode() if isinstance(data, str) else data)

    def close(self) -> None:
        """After the last case."""


def generator(target: str, seed: int, case: int) -> random.Random:
    """The generator of one case: equal on every machine."""
    return random.Random(f"{target} {seed} {case}")
