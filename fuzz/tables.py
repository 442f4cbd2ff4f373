"""Match tables, members and groups of the engine against a plain model: see tables.c."""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path

from fuzz.build import ROOT, build
from fuzz.target import Fault, Target

_STEPS = 20_000
_SOURCES = [ROOT / "engine" / "src" / name for name in ("table.c", "tuple.c", "actions.c", "error.c")]


class Tables(Target):
    """One table of random shape, thousands of operations, right and wrong ones."""

    name = "tables"
    sanitized = False  # the program is, and needs nothing preloaded

    def __init__(self, keep: Path | None = None) -> None:
        super().__init__(keep)
        self._program = build("tables", [ROOT / "fuzz" / "tables.c", *_SOURCES])

    def case(self, rng: random.Random) -> int:
        command = [str(self._program), str(rng.getrandbits(63)), str(_STEPS)]
        self.save("command.txt", " ".join(command))
        done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ})
        if (done.returncode, done.stdout) != (0, "ok\n"):
            raise Fault(done.stderr[-6000:] or f"ended with {done.returncode}")
        return _STEPS
