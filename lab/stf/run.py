"""Runs cases: compile, push, inject, compare."""

import operator
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from finsy.proto import p4i
from google.protobuf import text_format

import p4front
from lab.compiling import CompiledText, compile_with
from lab.errors import PlaitError
from lab.stf.cases import Case
from lab.stf.compare import PortPacket, difference
from lab.stf.device import Device, SwitchError
from lab.stf.mapping import Mapper, MappingError, UnmappedError
from lab.stf.names import UnresolvedName
from lab.stf.switches import TestSwitch
from lab.stf.syntax import CheckCounter, Expect, Packet, Statement, StfError, parse

_RELATIONS: dict[str, Callable[[int, int], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_COMPILERS = 2  # processes


class Outcome(StrEnum):
    PASS = "PASS"
    FAIL = "FAIL"
    COMPILE_FAIL = "COMPILE_FAIL"
    UNMAPPED = "UNMAPPED"


@dataclass(frozen=True, slots=True)
class Result:
    """How a case went; `reason` is "" for one that passed."""

    name: str
    tier: str
    outcome: Outcome
    reason: str


def run_cases(cases: Sequence[Case], target: str, compiler: str) -> Iterator[Result]:
    """The result of each case, in order. One switch runs them all; programs are compiled ahead, two at a time."""
    with ProcessPoolExecutor(_COMPILERS) as pool, TestSwitch(target) as switch:
        compiled = _compile_ahead(pool, cases, compiler)
        try:
            for case in cases:
                yield _run_case(case, compiled[case.program], switch)
        finally:
            pool.shutdown(cancel_futures=True)


def totals(results: Sequence[Result]) -> Counter[Outcome]:
    """How many cases had each outcome."""
    return Counter(result.outcome for result in results)


def _compile_ahead(pool: Executor, cases: Sequence[Case], compiler: str) -> dict[Path, Future[CompiledText | str]]:
    """Each program once."""
    return {program: pool.submit(_compile, program, compiler) for program in dict.fromkeys(c.program for c in cases)}


def _compile(program: Path, compiler: str) -> CompiledText | str:
    """What a compiler wrote, or what it said."""
    try:
        return compile_with(program, compiler)
    except (p4front.CompileError, PlaitError, OSError, UnicodeDecodeError) as error:
        return str(error)
    except RecursionError:
        return "the program is nested too deeply for p4front"
    except Exception as error:  # one program that trips the compiler must not end the run
        return f"internal error of the compiler: {type(error).__name__}: {error}"


def _run_case(case: Case, compiled: Future[CompiledText | str], switch: TestSwitch) -> Result:
    outcome, reason = _outcome(case, compiled.result(), switch)
    return Result(case.name, case.tier, outcome, reason)


def _outcome(case: Case, program: CompiledText | str, switch: TestSwitch) -> tuple[Outcome, str]:
    if isinstance(program, str):
        return Outcome.COMPILE_FAIL, program
    try:
        statements = parse(case.stf.read_text(), str(case.stf))
    except (OSError, UnicodeDecodeError) as error:
        return Outcome.FAIL, f"{case.stf}: {getattr(error, 'strerror', None) or 'not text'}"
    except StfError as error:
        return Outcome.FAIL, str(error)
    p4info = text_format.Parse(program.p4info, p4i.P4Info())
    try:
        device = switch.device()
        device.push(p4info, program.json.encode())
        reason = _Execution(case, device, Mapper(p4info)).run(statements)
    except UnmappedError as error:
        return Outcome.UNMAPPED, str(error)
    except SwitchError as error:
        if error.unimplemented:
            return Outcome.UNMAPPED, str(error)
        return Outcome.FAIL, switch.died(wait=error.lost) or str(error)
    return (Outcome.FAIL, reason) if reason else (Outcome.PASS, "")


class _Execution:
    """The statements of one case on a switch that runs its program.

    Packets between two commands share a stream; a command comes when the switch has drained.
    """

    def __init__(self, case: Case, device: Device, mapper: Mapper) -> None:
        self._case = case
        self._device = device
        self._mapper = mapper
        self._waiting: list[PortPacket] = []
        self._received: list[PortPacket] = []

    def run(self, statements: Sequence[Statement]) -> str:
        """The difference to what the case expects, "" for none; UnmappedError or SwitchError."""
        try:
            failure = self._execute(statements)
        finally:
            with suppress(SwitchError):
                self._clean_up()
        return failure or difference([s for s in statements if isinstance(s, Expect)], self._received)

    def _execute(self, statements: Sequence[Statement]) -> str:
        for statement in statements:
            if isinstance(statement, Packet):
                self._waiting.append((statement.port, statement.data))
            elif not isinstance(statement, Expect):
                self._drain()
                failure = self._command(statement)
                if failure:
                    return f"line {statement.line}: {failure}"
        self._drain()
        return ""

    def _drain(self) -> None:
        if self._waiting:
            self._received += self._device.send(self._waiting)
            self._waiting.clear()

    def _command(self, statement: Statement) -> str:
        try:
            updates, wanted = self._mapper.writes(statement), self._mapper.reads(statement)
        except (UnresolvedName, MappingError) as error:
            return str(error)
        except UnmappedError as error:
            raise UnmappedError(f"line {statement.line}: {statement.verb}: {error}") from None
        try:
            if updates:
                self._device.write(updates)
            found = self._device.read(wanted) if wanted is not None else []
        except SwitchError as error:
            error.args = (f"line {statement.line}: {statement.verb}: {error}",)
            raise
        if isinstance(statement, CheckCounter) and statement.relation is not None:
            return _check(statement, found)
        return ""

    def _clean_up(self) -> None:
        leftovers = self._mapper.leftovers()
        if leftovers:
            self._device.write(leftovers)


def _check(statement: CheckCounter, found: Sequence[Any]) -> str:
    if len(found) != 1:
        return f"counter {statement.counter}: the switch told {len(found)} values, not one"
    entry = found[0].counter_entry if found[0].HasField("counter_entry") else found[0].direct_counter_entry
    have = entry.data.packet_count if statement.unit == "packets" else entry.data.byte_count
    assert statement.relation is not None
    if _RELATIONS[statement.relation](have, statement.value):
        return ""
    return f"counter {statement.counter}: {have} {statement.unit}, expected {statement.relation} {statement.value}"
