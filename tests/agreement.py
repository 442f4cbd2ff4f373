"""Whether {p4front, p4c} x {plait-switch, BMv2} and the reference interpreter agree on programs, packet by packet.

    python -m tests.agreement [--packets N] [--pairs reference|all] [PROGRAM.p4 ...]

Draws table entries from each program's P4Info and packets from a grammar and from the program's own parser, runs both
through every pair, and compares the frames that leave with their ports, what was refused, and the counters. Prints
what was compared and, for each difference, the smallest scenario that still shows it.  Without PROGRAM: all of p4src/.
`--pairs all` takes p4c-bm2-ss and simple_switch_grpc from PATH; with one of them only, the pairs that need the other
are left out. p4c's own test programs (`testdata/p4_16_samples/*-bmv2.p4`) are a wide choice of PROGRAMs.
"""

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from finsy.proto import p4i
from google.protobuf import text_format

import p4front
from lab.compiling import DEFINES
from tests.agreement_reference import EndlessError
from tests.agreement_scenarios import (
    Drawer,
    Outcome,
    Scenario,
    Subject,
    Tally,
    difference,
    referred,
    shrunk,
    through,
    within_chance,
)
from tests.agreement_switches import Bmv2, Plait, Switch, SwitchDiedError

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = sorted((ROOT / "p4src").glob("*.p4"))
P4C, BMV2 = "p4c-bm2-ss", "simple_switch_grpc"
FEEDBACK = DEFINES["bmv2"]
"""How p4src's programs are compiled where BMv2 takes part: it cannot bind the registers of its queues' state."""
_PACKETS_A_SCENARIO = 24
_MOST_DIFFERENCES = 3  # of one pair and program that are shrunk and printed


class RefusedError(Exception):
    """A compiler does not take a program; its message."""


def by_p4front(source: Path, defines: Sequence[str] = ()) -> Subject:
    try:
        compiled = p4front.compile_file(source, defines=defines)
        return Subject(f"{source.stem} by p4front", compiled.p4info, compiled.bmv2_json, compiled.json_text.encode())
    except p4front.CompileError as error:
        raise RefusedError(str(error)) from None


def by_p4c(source: Path, defines: Sequence[str] = ()) -> Subject:
    with tempfile.TemporaryDirectory(prefix="plait-p4c-") as folder:
        info_file, json_file = Path(folder, "p4info.txtpb"), Path(folder, "out.json")
        command = [P4C, "--p4v", "16", *(f"-D{each}" for each in defines)]
        command += ["--p4runtime-files", str(info_file), "-o", str(json_file), str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RefusedError(done.stderr.strip())
        text = json_file.read_bytes()
        p4info = text_format.Parse(info_file.read_text(), p4i.P4Info(), allow_unknown_field=True)
        return Subject(f"{source.stem} by p4c", p4info, json.loads(text), text)


@dataclass
class Report:
    """What one program's comparisons found."""

    program: str
    open_ends: list[str] = field(default_factory=list)
    tallies: dict[str, Tally] = field(default_factory=dict)
    differences: list[str] = field(default_factory=list)

    def tally(self, pair: str) -> Tally:
        return self.tallies.setdefault(pair, Tally())

    def __str__(self) -> str:
        lines = [self.program + (f" (open: {', '.join(self.open_ends)})" if self.open_ends else "")]
        for pair, tally in self.tallies.items():
            line = f"  {pair:<34} {tally.packets:9,} packets in {tally.scenarios:7,} scenarios, {tally.left:9,} left"
            if tally.by_chance:
                line += f", {tally.by_chance:,} of them compared up to what P4 leaves open"
            if tally.skipped:
                line += "; skipped: " + ", ".join(f"{reason} {count:,}" for reason, count in tally.skipped.items())
            lines.append(line)
        return "\n".join(lines + self.differences)


def scenarios(
    subject: Subject, packets: int, seed: int, for_bmv2: bool, other: Subject | None = None
) -> Iterator[Scenario]:
    """Scenarios with `packets` frames in all, from a seed."""
    drawer = Drawer(subject, other)
    draw = random.Random(f"{subject.name.split()[0]} {seed}")
    for start in range(0, packets, _PACKETS_A_SCENARIO):
        yield drawer.draw(draw, min(_PACKETS_A_SCENARIO, packets - start), for_bmv2)


def compare_with_reference(subject: Subject, packets: int, seed: int, report: Report) -> None:
    """plait-switch against the reference, with registers, time and random numbers as they are."""
    switch = Plait(subject.p4info, subject.json)
    pair = f"{subject.name.split()[-1]}/plait-switch, reference"
    tally = report.tally(pair)

    def differ(scenario: Scenario) -> str:
        outcome = through(switch, scenario)
        return difference(outcome, referred(subject, scenario, outcome.taken), scenario)

    found = 0
    for scenario in scenarios(subject, packets, seed, for_bmv2=False):
        try:
            outcome = through(switch, scenario)
            reference = referred(subject, scenario, outcome.taken)
        except EndlessError:
            tally.skipped["endless"] += len(scenario.frames)
            continue
        _count(tally, scenario, outcome)
        if text := difference(outcome, reference, scenario):
            found += 1
            if found <= _MOST_DIFFERENCES:
                _tell(report, pair, shrunk(scenario, lambda s: bool(differ(s))), differ, text)
    switch.close()


def has_bmv2() -> bool:
    return shutil.which(BMV2) is not None


def has_p4c() -> bool:
    return shutil.which(P4C) is not None


def compare_pairs(source: Path, defines: Sequence[str], packets: int, seed: int, report: Report) -> None:
    """The other pairs that this machine has against p4front on plait-switch; RefusedError."""
    ours = by_p4front(source, defines)
    theirs = by_p4c(source, defines) if has_p4c() else None
    with ExitStack() as stack:
        first = Plait(ours.p4info, ours.json)
        stack.callback(first.close)
        others: dict[str, tuple[Subject, Switch]] = {}
        if theirs is not None:
            second = Plait(theirs.p4info, theirs.json)
            stack.callback(second.close)
            others["p4c/plait-switch"] = (theirs, second)
        for name, each in (("p4front/BMv2", ours), ("p4c/BMv2", theirs)):
            if each is not None and has_bmv2():
                others[name] = (each, stack.enter_context(Bmv2(each.p4info, each.json)))
        one_by_one = any(each.is_sequential() for each in (ours, theirs) if each is not None)
        found = dict.fromkeys(others, 0)
        for scenario in scenarios(ours, packets, seed, for_bmv2=True, other=theirs):
            try:
                mine = through(first, scenario)
                referred(ours, scenario, mine.taken)
            except EndlessError:
                for pair in others:
                    report.tally(pair).skipped["endless"] += len(scenario.frames)
                continue
            for pair, (subject, switch) in others.items():
                tally = report.tally(pair)

                def differ(s: Scenario, switch: Switch = switch, subject: Subject = subject) -> tuple[str, int]:
                    return _differ(first, switch, subject, s, True)

                try:
                    text, chance = _differ(first, switch, subject, scenario, one_by_one, mine)
                    if text and not one_by_one:
                        text, chance = differ(scenario)
                except SwitchDiedError as error:
                    text, chance = f"the switch died: {error}", 0
                _count(tally, scenario, mine)
                tally.by_chance += chance
                if text:
                    found[pair] += 1
                    if found[pair] <= _MOST_DIFFERENCES:
                        small = shrunk(scenario, lambda s, d=differ: _died_or(d, s))
                        _tell(report, pair, small, lambda s, d=differ: d(s)[0], text)
        for pair, count in found.items():
            if count > _MOST_DIFFERENCES:
                report.differences.append(f"  {pair}: {count} scenarios differ in all")


def _died_or(differ: object, scenario: Scenario) -> bool:
    try:
        return bool(differ(scenario)[0])  # type: ignore[operator]
    except SwitchDiedError:
        return True


def _differ(
    first: Switch, switch: Switch, subject: Subject, scenario: Scenario, one_by_one: bool, mine: Outcome | None = None
) -> tuple[str, int]:
    mine = mine or through(first, scenario)
    theirs = through(switch, scenario, one_by_one)
    text = difference(mine, theirs, scenario)
    if text and one_by_one and mine.taken == theirs.taken:
        right, chance = within_chance(subject, scenario, theirs)
        if right:
            return "", chance
    return text, 0


def _count(tally: Tally, scenario: Scenario, outcome: Outcome) -> None:
    tally.scenarios += 1
    tally.packets += len(scenario.frames)
    tally.left += sum(map(len, outcome.sent))


def _tell(report: Report, pair: str, scenario: Scenario, differ: object, text: str) -> None:
    try:
        text = differ(scenario) or text  # type: ignore[operator]
    except SwitchDiedError as error:
        text = f"the switch died: {error}"
    told = f"  DIFFERENCE, {pair}: {text}\n" + "\n".join("    " + line for line in str(scenario).splitlines())
    report.differences.append(told)


def compare(source: Path, packets: int, pairs: str, seed: int, defines: Sequence[str]) -> Report:
    """All comparisons of a program; RefusedError if a compiler does not take it."""
    report = Report(source.stem)
    ours = by_p4front(source)
    report.open_ends = ours.open_ends()
    compare_with_reference(ours, packets, seed, report)
    if pairs == "all":
        compare_pairs(source, defines, packets, seed + 1, report)
    return report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", type=Path)
    parser.add_argument("--packets", type=int, default=2_400, help="of each program and pair [default: %(default)s]")
    parser.add_argument("--pairs", choices=("reference", "all"), default="reference")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.pairs == "all" and not (has_p4c() or has_bmv2()):
        parser.error(f"neither {P4C} nor {BMV2} is on PATH")
    total, differences, refused, started = Tally(), 0, 0, time.monotonic()
    for source in arguments.programs or PROGRAMS:
        try:
            defines = FEEDBACK if source.resolve() in PROGRAMS else ()
            report = compare(source, arguments.packets, arguments.pairs, arguments.seed, defines)
        except (RefusedError, NotImplementedError) as error:
            print(f"{source.stem}: {type(error).__name__}: {str(error).splitlines()[0]}", flush=True)
            refused += 1
            continue
        print(report, flush=True)
        for tally in report.tallies.values():
            total.add(tally)
        differences += len(report.differences)
    took = time.monotonic() - started
    print(
        f"{total.packets:,} comparisons of a packet ({total.left:,} left the switch) in {took:.0f} s; "
        f"{differences} differences; {refused} programs not compared"
    )
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
