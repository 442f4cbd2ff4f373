"""Runs targets in worker processes, watches them, and keeps what reproduces a fault."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from fuzz.process import environment, resident_bytes
from fuzz.targets import find
from fuzz.worker import PROGRESS

ROOT = Path(__file__).resolve().parents[1]
MEMORY_LIMIT = 6 << 30  # resident bytes of a worker; AddressSanitizer keeps what was freed for a while
_FOREVER = 1 << 62
_POLL = 0.05  # seconds


@dataclass
class Fault:
    """A case that failed: how, what the worker said, and the folder where that is kept beside the inputs."""

    case: int
    what: str
    report: str
    folder: Path


@dataclass
class Outcome:
    """What a run of one target came to."""

    target: str
    seed: int
    cases: int = 0
    inputs: int = 0
    seconds: float = 0.0
    faults: list[Fault] = field(default_factory=list)


def run(
    name: str,
    seed: int,
    out: Path,
    *,
    seconds: float = float(_FOREVER),
    cases: int = _FOREVER,
    first: int = 0,
    at_most: int = 10,
) -> Outcome:
    """Cases `first`, `first` + 1, ... until time, number or `at_most` faults are reached."""
    outcome = Outcome(name, seed)
    start = time.monotonic()
    following = first
    while len(outcome.faults) < at_most and following < first + cases:
        left = seconds - (time.monotonic() - start)
        if left <= 0:
            break
        worker = _Worker(name, seed, following, first + cases - following, left)
        what = worker.wait()
        outcome.cases += worker.case - following
        outcome.inputs += worker.inputs
        if what is None:
            break
        following = worker.case + 1
        outcome.faults.append(_keep(name, seed, worker, what, out))
    outcome.seconds = time.monotonic() - start
    return outcome


class _Worker:
    def __init__(self, name: str, seed: int, first: int, cases: int, seconds: float, keep: Path | None = None) -> None:
        self.target = find(name)
        self.case = first
        self.inputs = 0
        self._scratch = tempfile.TemporaryDirectory(prefix="plait-fuzz-")
        self._progress = Path(self._scratch.name) / "progress"
        self._progress.write_bytes(PROGRESS.pack(first, 0))
        arguments = [name, seed, first, cases, seconds, self._progress, *([keep] if keep else [])]
        with (Path(self._scratch.name) / "stderr").open("wb") as stderr:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "fuzz.worker", *map(str, arguments)],
                cwd=ROOT,
                env=environment(self.target.sanitized),
                stdin=subprocess.DEVNULL,
                stdout=stderr,
                stderr=stderr,
            )
        self.report = ""

    def wait(self) -> str | None:
        """Until the worker ends or must be ended; what went wrong, or None."""
        what = None
        moved = time.monotonic()
        while self._process.poll() is None:
            time.sleep(_POLL)
            if self._read_progress():
                moved = time.monotonic()
            if time.monotonic() - moved > self.target.patience:
                what = f"a hang: one case took more than {self.target.patience:.0f} s"
            elif resident_bytes(self._process.pid) > MEMORY_LIMIT:
                what = f"more than {MEMORY_LIMIT >> 20} MB of memory"
            if what is not None:
                self._process.send_signal(6)  # the fault handler prints where it is
                try:
                    self._process.wait(10)
                except subprocess.TimeoutExpired:
                    self._process.kill()
        self._read_progress()
        self.report = (Path(self._scratch.name) / "stderr").read_text(errors="replace")
        self._scratch.cleanup()
        if what is None and self._process.returncode:
            what = _summary(self.report) or f"the worker ended with {self._process.returncode}"
        return what

    def _read_progress(self) -> bool:
        case, inputs = PROGRESS.unpack(self._progress.read_bytes())
        moved = (case, inputs) != (self.case, self.inputs)
        self.case, self.inputs = case, inputs
        return moved


def _summary(report: str) -> str:
    """The line of a report that says most."""
    lines = [line.strip() for line in report.splitlines() if line.strip()]
    for mark in ("runtime error:", "ERROR: AddressSanitizer", "Fatal Python error"):
        for line in lines:
            if mark in line:
                return line[-400:]
    return lines[-1][:400] if lines else ""


def _keep(name: str, seed: int, worker: _Worker, what: str, out: Path) -> Fault:
    """Runs the case once more, alone, which saves its inputs; writes the report beside them."""
    folder = out / f"{name.rpartition(':')[2]}-seed{seed}-case{worker.case}"
    folder.mkdir(parents=True, exist_ok=True)
    again = _Worker(name, seed, worker.case, 1, _FOREVER, folder)
    repeated = again.wait()
    command = f"python -m fuzz {name} --seed {seed} --case {worker.case}"
    alone = repeated or "nothing: it takes the cases before it"
    (folder / "report.txt").write_text(f"{what}\n\n{command}\nalone: {alone}\n\n{worker.report}")
    return Fault(worker.case, what, worker.report, folder)
