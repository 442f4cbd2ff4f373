"""`plait ptf`: what it is called with, and what it prints.

The tests and their runner are in ptf_tests/ and run as a process, since no package imports its tests.
"""

import difflib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated

import typer

from lab.errors import MissingFeatureError, PlaitError, UsageError
from lab.results import ROOT

ProgramsArgument = Annotated[
    list[str] | None, typer.Argument(help="Programs, such as drill.  [default: all of p4src/]")
]
TargetOption = Annotated[str, typer.Option(help="What runs the program: `plait` (the fast switch) or `bmv2`.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout.")]

# Per target, the programs it needs on PATH.
_NEEDED = {"plait": (), "bmv2": ("simple_switch_grpc", "p4c-bm2-ss")}
# What ptf (unittest) prints of a test.
_RESULT = re.compile(r"(?P<name>\w+\.\w+) \.\.\. (?P<outcome>ok|FAIL|ERROR)$")
_OUTCOMES = {"ok": "PASS", "FAIL": "FAIL", "ERROR": "ERROR"}


@dataclass(frozen=True, slots=True)
class TestResult:
    """name: program.Test. outcome: PASS; FAIL: an assertion did not hold; ERROR: the test could not be run."""

    name: str
    outcome: str


def ptf(programs: ProgramsArgument = None, target: TargetOption = "plait", as_json: JsonOption = False) -> None:
    """Runs the packet tests of programs in p4src/ on a switch, in a network namespace of their own.

    Example: plait ptf drill flowlet --target bmv2
    """
    chosen = check_programs(programs or [])
    check_target(target)
    started = time.monotonic()
    results: list[TestResult] = []
    for program in chosen:
        for result in run_program(program, target):
            results.append(result)
            print(f"{result.outcome:5} {result.name}", file=sys.stderr if as_json else sys.stdout, flush=True)
    passed = sum(result.outcome == "PASS" for result in results)
    if as_json:
        tests = [asdict(result) for result in results]
        print(json.dumps({"target": target, "total": len(results), "pass": passed, "tests": tests}))
    else:
        print(f"{passed} of {len(results)} passed on {target} in {time.monotonic() - started:.1f} s")
    if passed != len(results):
        raise typer.Exit(1)


def check_programs(names: Sequence[str]) -> list[str]:
    """The programs to test, in the order asked for, all where none is named; UsageError for one that is not there."""
    known = sorted(path.stem for path in (ROOT / "p4src").glob("*.p4"))
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}."
            raise UsageError(f"no program {name!r} in p4src/: {hint}")
    return list(dict.fromkeys(names)) or known


def check_target(target: str) -> None:
    """UsageError for an unknown target, MissingFeatureError for one that this machine lacks."""
    if target not in _NEEDED:
        raise UsageError(f"--target {target!r}: known are {', '.join(_NEEDED)}.")
    for program in _NEEDED[target]:
        if shutil.which(program) is None:
            raise MissingFeatureError(f"--target {target}: {program} is not on PATH.")
    if os.geteuid() != 0:
        raise MissingFeatureError("packet tests need root, for a network namespace and its interfaces.")


def run_program(program: str, target: str) -> Iterator[TestResult]:
    """The results of a program's tests as they come; what a failure says goes to stderr after them.

    PlaitError with the runner's last words where it ended otherwise than by its tests.
    """
    command = [sys.executable, "-m", "ptf_tests.runner", program, "--target", target]
    text: list[str] = []
    passed = found = 0
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as runner:
        assert runner.stdout is not None
        for line in runner.stdout:
            if result := parse(line):
                found += 1
                passed += result.outcome == "PASS"
                yield result
            else:
                text.append(line)
    said = "".join(text).strip()
    if found and passed < found:
        print(said, file=sys.stderr)
    elif runner.returncode or not found:
        raise PlaitError(f"the tests of {program} did not run to their end (exit code {runner.returncode}):\n{said}")


def parse(line: str) -> TestResult | None:
    """The result that a line of ptf tells, if it tells one."""
    match = _RESULT.match(line.rstrip())
    return TestResult(match["name"], _OUTCOMES[match["outcome"]]) if match else None
