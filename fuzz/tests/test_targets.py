"""Each fuzzer for a moment, with fixed seeds: the same inputs every time.  README.md says how to run them for long."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzz.run import run
from fuzz.targets import TARGETS

CASES = {
    "packets": 2,
    "programs": 3,
    "json": 1,
    "tables": 8,
    "switch": 3,
    "server": 3,
    "ports": 4,
    "control": 6,
    "p4": 3,
    "files": 6,
    "nic": 2,
}


def test_every_target_is_run() -> None:
    assert CASES.keys() == TARGETS.keys()


@pytest.mark.parametrize("name", TARGETS)
def test_nothing_is_found(name: str, tmp_path: Path) -> None:
    outcome = run(name, seed=1, out=tmp_path, cases=CASES[name], at_most=1)
    assert [(fault.case, fault.what, fault.report) for fault in outcome.faults] == []
    assert outcome.cases == CASES[name]
    assert outcome.inputs > CASES[name]
