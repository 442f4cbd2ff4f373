"""How p4front does on p4c's own test programs: `python -m p4front.conformance TESTDATA` (p4c's `testdata` folder).

For each v1model program of `p4_16_samples`: does it compile, is its P4Info equal to the golden file, are its entries;
and for each of `p4_16_errors` and `p4_16_bmv_errors`: is it rejected, without a crash.  A program without golden
P4Info, or one that p4c's backend refuses (`REFUSED_BY_P4C`), need not compile: refusing it agrees with p4c.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from finsy.proto import p4i, p4r
from google.protobuf import text_format

from p4front.diagnostics import CompileError
from p4front.driver import check_file, compile_file, elaborate_checked

_INCLUDES_V1MODEL = re.compile(r'#\s*include\s*[<"](?:[^<">]*/)?v1model\.p4[>"]')
_MAIN = re.compile(r"\bmain\s*;")
_INCLUDE = re.compile(r'#\s*include\s*"([^"]+)"')
# What p4c's own backend refuses: its list of expected failures (backends/bmv2/CMakeLists.txt), and programs that its
# tests give to the front-end only: headers of no whole number of bytes, statements in a deparser, Checksum16, a table
# with two followers, an extern function (for one of them p4c's driver gives --emit-externs), headers that are no
# struct.
_REFUSED = """
hashing-non-tuple-bmv2 issue1062-bmv2 issue584-1-bmv2 issue692-bmv2 issue1765-1-bmv2 issue1765-bmv2 issue907-bmv2
issue986-bmv2 issue1193-bmv2 issue1882-1-bmv2 issue1882-bmv2 issue2664-bmv2 issue1205-bmv2
issue3225 parser-unroll-test3 parser-unroll-test4 parser-unroll-test5 issue887 issue841 issue2344 issue3091 issue3394
extern-funcs-bmv2
"""
REFUSED_BY_P4C = frozenset(_REFUSED.split())


@dataclass(slots=True)
class Outcome:
    """One bar of one program; `reason` says why it is not met."""

    name: str
    bar: str
    passed: bool
    reason: str = ""


def v1model_samples(testdata: Path) -> list[Path]:
    """The programs for v1model, whether they include it themselves or by a file of their own."""
    found = sorted((testdata / "p4_16_samples").rglob("*.p4"))
    return [path for path in found if path.is_file() and _is_v1model_program(path)]


def _is_v1model_program(path: Path) -> bool:
    text = _with_includes(path, 0)
    if _INCLUDES_V1MODEL.search(text) is None:
        return False
    return _MAIN.search(text) is not None or _golden(path, "p4info").exists()


def _golden(path: Path, kind: str) -> Path:
    testdata = next(parent for parent in path.parents if parent.name == "p4_16_samples").parent
    inner = path.relative_to(testdata / "p4_16_samples")
    return testdata / "p4_16_samples_outputs" / inner.with_name(f"{inner.name}.{kind}.txtpb")


def _with_includes(path: Path, depth: int) -> str:
    text = path.read_text(encoding="utf-8", errors="replace")
    inner = (path.parent / name for name in _INCLUDE.findall(text))
    return text + "".join(_with_includes(item, depth + 1) for item in inner if depth < 3 and item.is_file())


def run_sample(path: Path, samples: Path) -> list[Outcome]:
    """The bars of one program."""
    name = path.relative_to(samples).with_suffix("").as_posix()
    info_file, entries_file = _golden(path, "p4info"), _golden(path, "entries")
    without_main = _MAIN.search(_with_includes(path, 0)) is None
    refusable = without_main or not info_file.exists() or name in REFUSED_BY_P4C
    outcomes: list[Outcome] = []
    compiled = None
    try:
        compiled = elaborate_checked(path, check_file(path))
        if info_file.exists():
            outcomes.append(_compare(name, "p4info", info_file, p4i.P4Info(), compiled))
        if entries_file.exists() and "updates" in entries_file.read_text():
            outcomes.append(_compare(name, "entries", entries_file, p4r.WriteRequest(), compiled))
        json.dumps(compiled.bmv2_json)
        outcomes.append(Outcome(name, "compile", True))
    except CompileError as error:
        outcomes.append(Outcome(name, "compile", refusable, _first_line(error)))
    except Exception as error:
        outcomes.append(Outcome(name, "compile", False, f"crash: {error!r}"))
    if compiled is None and info_file.exists():
        # p4c writes an empty P4Info where there is no main
        outcomes.append(Outcome(name, "p4info", without_main, "does not compile"))
    return outcomes


def _compare(name: str, bar: str, golden: Path, message: object, compiled: object) -> Outcome:
    expected = text_format.Parse(golden.read_text(), message)  # type: ignore[type-var]
    try:
        made = compiled.p4info if bar == "p4info" else compiled.p4runtime_entries  # type: ignore[attr-defined]
    except CompileError as error:
        return Outcome(name, bar, False, _first_line(error))
    except Exception as error:
        return Outcome(name, bar, False, f"crash: {error!r}")
    one, other = without_empty(expected), without_empty(made)
    if one == other:
        return Outcome(name, bar, True)
    return Outcome(name, bar, False, _difference(text_format.MessageToString(one), text_format.MessageToString(other)))


def without_empty(message: object) -> object:
    """A copy without submessages that say nothing: whether they are present is an accident of the writer."""
    copy = type(message)()
    copy.CopyFrom(message)  # type: ignore[attr-defined]
    _drop_empty(copy)
    return copy


def _drop_empty(message: object) -> None:
    for field, value in message.ListFields():  # type: ignore[attr-defined]
        if field.message_type is None:
            continue
        if hasattr(value, "items"):
            values: Iterable[object] = value.values() if field.message_type.fields_by_name["value"].message_type else ()
        elif hasattr(value, "ListFields"):
            values = [value]
        else:
            values = value
        for item in values:
            _drop_empty(item)
        if hasattr(value, "ListFields") and not value.ListFields() and field.containing_oneof is None:
            message.ClearField(field.name)  # type: ignore[attr-defined]


def _difference(expected: str, made: str) -> str:
    import difflib

    lines = difflib.unified_diff(expected.splitlines(), made.splitlines(), "golden", "p4front", lineterm="", n=1)
    return "\n".join(list(lines)[2:20])


def run_negative(path: Path) -> list[Outcome]:
    """Whether a wrong program is rejected with an error that names a place."""
    name = path.stem
    try:
        compile_file(path)
    except CompileError as error:
        located = any(item.location is not None for item in error.diagnostics)
        return [Outcome(name, "rejected", True, "" if located else _first_line(error))]
    except Exception as error:
        return [Outcome(name, "rejected", False, f"crash: {error!r}")]
    return [Outcome(name, "rejected", False, "accepted")]


def negatives(testdata: Path) -> tuple[list[Path], list[Path]]:
    """The wrong programs that must be rejected, and those that only must not crash (of other architectures)."""
    errors = sorted((testdata / "p4_16_errors").glob("*.p4"))
    wrong = [path for path in errors if _INCLUDES_V1MODEL.search(path.read_text(encoding="utf-8", errors="replace"))]
    others = [path for path in errors if path not in set(wrong)]
    return wrong + sorted((testdata / "p4_16_bmv_errors").glob("*.p4")), others


def _first_line(error: CompileError) -> str:
    errors = [item for item in error.diagnostics if item.severity == "error"]
    return str(errors[0] if errors else error).splitlines()[0]


def _sample_task(arguments: tuple[Path, Path]) -> list[Outcome]:
    return run_sample(*arguments)


def run(testdata: Path, names: frozenset[str] | None = None, jobs: int = 1) -> list[Outcome]:
    """All bars of all programs, or of those that are named."""
    samples = testdata / "p4_16_samples"
    wanted = v1model_samples(testdata)
    if names is not None:
        wanted = [path for path in wanted if path.relative_to(samples).with_suffix("").as_posix() in names]
    wrong, others = negatives(testdata)
    if names is not None:
        wrong = [path for path in wrong if path.stem in names]
        others = [path for path in others if path.stem in names]
    outcomes: list[Outcome] = []
    with ProcessPoolExecutor(jobs) as pool:
        for made in pool.map(_sample_task, [(path, samples) for path in wanted], chunksize=4):
            outcomes += made
        for made in pool.map(run_negative, wrong, chunksize=4):
            outcomes += made
        for made in pool.map(run_negative, others, chunksize=4):
            crashed = made[0].reason.startswith("crash")
            outcomes.append(Outcome(made[0].name, "no crash", not crashed, made[0].reason if crashed else ""))
    return outcomes


def table(outcomes: list[Outcome], tiers: dict[str, str]) -> Iterator[str]:
    """The counts, then the failures by name."""
    passed: Counter[tuple[str, str]] = Counter()
    total: Counter[tuple[str, str]] = Counter()
    for item in outcomes:
        row = (item.bar, tiers.get(item.name, ""))
        total[row] += 1
        passed[row] += item.passed
    for bar, tier in sorted(total):
        yield f"{bar:10} {tier:4} {passed[bar, tier]:4}/{total[bar, tier]}"
    for item in outcomes:
        if not item.passed:
            yield f"FAIL {item.bar:8} {tiers.get(item.name, ''):3} {item.name}: {item.reason}"


def _tiers(path: Path | None) -> dict[str, str]:
    """A list of cases: tab-separated, name first, tier second; lines that have only a name have no tier."""
    if path is None:
        return {}
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    return {row[0]: row[1] if len(row) > 1 else "" for row in rows if row[0] != "name"}


def main() -> int:
    """Print the table; the exit code is 0 if every bar is met."""
    parser = argparse.ArgumentParser(prog="python -m p4front.conformance", description=__doc__.splitlines()[0])
    parser.add_argument("testdata", type=Path, help="p4c's testdata folder")
    parser.add_argument("--list", type=Path, metavar="TSV", help="names and tiers of cases, to count by tier")
    parser.add_argument("--only", metavar="NAME,...", help="only these programs")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--json", action="store_true", help="print the outcomes as JSON")
    options = parser.parse_args()
    names = frozenset(options.only.split(",")) if options.only else None
    outcomes = run(options.testdata, names, options.jobs)
    if options.json:
        print(json.dumps([asdict(item) for item in outcomes], indent=2))
    else:
        for line in table(outcomes, _tiers(options.list)):
            print(line)
    return 0 if all(item.passed for item in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
