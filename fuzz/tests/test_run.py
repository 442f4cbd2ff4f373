"""The watchman: what a worker can do wrong is seen, named, kept, and reproduced from its seed."""

from __future__ import annotations

import ctypes
import os
import random
import time
from pathlib import Path

import pytest

from fuzz.run import run
from fuzz.target import Fault, Target, generator

NAME = f"{__name__}:Bad"
WRONG = 3  # the case


class Bad(Target):
    """Its fourth case goes wrong in the way that $PLAIT_FUZZ_BAD says."""

    name = "bad"
    sanitized = False
    patience = 2.0

    def case(self, rng: random.Random) -> int:
        number = rng.random()
        self.save("input.txt", str(number))
        if number != wrong_number():
            return 5
        match os.environ["PLAIT_FUZZ_BAD"]:
            case "fault":
                raise Fault("two and two are five")
            case "crash":
                ctypes.string_at(0)
            case "hang":
                time.sleep(600)
            case "exit":
                os._exit(7)
        return 5


def wrong_number() -> float:
    return generator(NAME, 1, WRONG).random()


@pytest.mark.parametrize(
    ("way", "said"),
    [
        ("fault", "two and two are five"),
        ("crash", "Segmentation fault"),
        ("hang", "a hang: one case took more than 2 s"),
        ("exit", "the worker ended with 7"),
    ],
)
def test_a_wrong_case_is_reported_kept_and_skipped(
    way: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLAIT_FUZZ_BAD", way)
    outcome = run(NAME, seed=1, out=tmp_path, cases=6)
    (fault,) = outcome.faults
    assert fault.case == WRONG
    assert said in fault.what
    assert outcome.inputs == 5 * 5
    assert (fault.folder / "input.txt").read_text() == str(wrong_number())
    report = (fault.folder / "report.txt").read_text()
    assert f"--seed 1 --case {WRONG}\nalone: " in report
    assert said in report.split("alone: ")[1]


def test_nothing_wrong_is_nothing_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAIT_FUZZ_BAD", "no")
    outcome = run(NAME, seed=1, out=tmp_path, cases=6)
    assert (outcome.cases, outcome.inputs, outcome.faults) == (6, 30, [])
    assert not list(tmp_path.iterdir())
