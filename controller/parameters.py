"""Parameters of the running load balancers and markers: read from the switches, and changed there, by name.

What a parameter is called by people stands here once, beside the table and action of p4src/ that hold it.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import finsy as fy

from controller import defaults, load_balancing, ports
from controller.connection import Reader, controlling, each, reading, write
from controller.errors import ControllerError, EntryTextError
from controller.policy import SEED
from controller.ports import RedCurve
from controller.targets import Target

Unit = Literal["number", "us", "bytes", "choice"]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of the program: an argument of a table's action, or, as a choice, which of its actions is taken.

    It is that of the default action where the table has no key, else that of every entry.
    """

    name: str
    table: str
    unit: Unit
    help: str
    argument: str = ""
    choices: Mapping[str, str] = dataclasses.field(default_factory=dict)  # what people say -> action
    low: int = 0
    high: int = (1 << 32) - 1
    odd: bool = False


_SPRAY = {"random": "at_random", "round-robin": "round_robin"}
_PATHS = {"per-flow": "per_flow_path", "per-packet": "per_packet_path", "two-choices": "two_choices"}

PARAMETERS = {
    parameter.name: parameter
    for parameter in (
        Parameter("spray", "spray_policy", "choice", "how spray chooses", choices=_SPRAY),
        Parameter("path", "path_policy", "choice", "how one of the k paths is chosen", choices=_PATHS),
        Parameter("d", "drill_parameters", "number", "DRILL: ports drawn for a packet", "d", low=1, high=4),
        Parameter("m", "drill_parameters", "number", "DRILL: ports remembered", "m", high=2),
        Parameter("gap", load_balancing.FLOWLET, "us", "pause that ends a flowlet", "us", high=(1 << 48) - 1),
        Parameter("deflect-above", load_balancing.DEFLECTION_LIMIT, "bytes", "DIBS: a deeper queue deflects", "bytes"),
        Parameter("min-ttl", load_balancing.DEFLECTION_PORTS, "number", "DIBS: no detour below", "min_ttl", high=255),
        Parameter("seed", SEED, "number", "odd multiplier of the flow hash", "odd_multiplier", low=1, odd=True),
    )
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Setting:
    """The value of a parameter on a switch: a number in the parameter's unit, or a choice; None where its entries
    differ."""

    switch: str
    parameter: str
    value: int | str | None


async def settings(targets: Sequence[Target]) -> list[Setting]:
    """All parameters that the switches' programs have, in the order of PARAMETERS."""
    found = await each(targets, _settings)
    return [setting for of_switch in found for setting in of_switch]


async def _settings(target: Target) -> list[Setting]:
    async with reading(target) as reader:
        known = _known(reader.schema)
        found = {table: await _entries(reader, table) for table in {parameter.table for parameter in known}}
    return [Setting(target.name, parameter.name, _value(parameter, found[parameter.table])) for parameter in known]


def _known(schema: fy.P4Schema) -> list[Parameter]:
    tables = {table.alias for table in schema.tables}
    return [parameter for parameter in PARAMETERS.values() if parameter.table in tables]


async def _entries(reader: Reader, table: str) -> list[fy.P4TableEntry]:
    """The entries that hold a table's parameters: its default where it has no key, else all others."""
    keyed = bool(list(reader.schema.tables[table].match_fields))
    asked = fy.P4TableEntry(table) if keyed else fy.P4TableEntry(table, is_default_action=True)
    return [fy.P4TableEntry.decode(entity, reader.schema) for entity in await reader.read([asked])]


def _value(parameter: Parameter, entries: Sequence[fy.P4TableEntry]) -> int | str | None:
    values = {_of_entry(parameter, entry) for entry in entries}
    return values.pop() if len(values) == 1 else None


def _of_entry(parameter: Parameter, entry: fy.P4TableEntry) -> int | str | None:
    action: Any = entry.action
    if parameter.unit != "choice":
        return action.args.get(parameter.argument) if action is not None else None
    return next((said for said, name in parameter.choices.items() if action and name == _name(action)), None)


async def change(targets: Sequence[Target], wanted: Mapping[str, int | str]) -> None:
    """Sets parameters on all these switches at once.

    EntryTextError for a parameter that is unknown, that a switch's program has not, or for a value out of range;
    then nothing is written anywhere.
    """
    for name, value in wanted.items():
        check(name, value)

    async def has_them(target: Target) -> None:
        async with reading(target) as reader:
            known = [parameter.name for parameter in _known(reader.schema)]
        for name in wanted:
            if name not in known:
                has = f"it has {', '.join(known)}" if known else "it has none"
                raise EntryTextError(f"{target.name}: its program has no parameter {name!r}; {has}")

    await each(targets, has_them)
    await each(targets, lambda target: _change(target, wanted))


def check(name: str, value: int | str) -> None:
    if name not in PARAMETERS:
        raise EntryTextError(f"no parameter {name!r}; there are {', '.join(PARAMETERS)}")
    parameter = PARAMETERS[name]
    if parameter.unit == "choice":
        if value not in parameter.choices:
            raise EntryTextError(f"{name}: {value!r}; it is one of {', '.join(parameter.choices)}")
    elif not isinstance(value, int) or not parameter.low <= value <= parameter.high:
        raise EntryTextError(f"{name}: {value}; {parameter.low} to {parameter.high} can be")
    elif parameter.odd and value % 2 == 0:
        raise EntryTextError(f"{name}: {value} is even; an even multiplier loses a bit of every hash")


async def _change(target: Target, wanted: Mapping[str, int | str]) -> None:
    async with reading(target) as reader:
        by_table: dict[str, list[Parameter]] = {}
        for name in wanted:
            by_table.setdefault(PARAMETERS[name].table, []).append(PARAMETERS[name])
        changed = []
        for table, parameters in by_table.items():
            for entry in await _entries(reader, table):
                for parameter in parameters:
                    entry.action = _with(entry.action, parameter, wanted[parameter.name])
                changed.append(~entry)
    await _write(target, changed)


def _with(action: Any, parameter: Parameter, value: int | str) -> fy.Action:
    if parameter.unit == "choice":
        return fy.Action(parameter.choices[str(value)])
    return fy.Action(action.name, **{**action.args, parameter.argument: value})


def _name(action: Any) -> str:
    return str(action.name).rpartition(".")[2]


async def _write(target: Target, updates: Sequence[Any]) -> None:
    options = fy.SwitchOptions(initial_election_id=defaults.personal_election_id())
    async with controlling(target, options) as switch:
        await write(target, switch, updates)


# --- marking ---


@dataclass(frozen=True, slots=True)
class PortCurve:
    switch: str
    port: int
    curve: RedCurve


async def curves(targets: Sequence[Target]) -> list[PortCurve]:
    """The marking curve of every port that has one; ControllerError where a program marks nothing."""

    async def of(target: Target) -> list[PortCurve]:
        found = (PortCurve(target.name, _port(entry), _curve(entry)) for entry in await _curve_entries(target))
        return sorted(found, key=lambda each: each.port)

    return [curve for of_switch in await each(targets, of) for curve in of_switch]


async def set_curves(targets: Sequence[Target], to: Callable[[RedCurve], RedCurve], port: int | None = None) -> int:
    """Replaces the curves of one port or of all, on all these switches; returns how many.

    `to` gives the new curve from the old one. ControllerError from it, or for a port without curve: then nothing is
    written anywhere.
    """

    async def plan(target: Target) -> list[Any]:
        entries = await _curve_entries(target)
        chosen = [entry for entry in entries if port is None or _port(entry) == port]
        if not chosen:
            raise ControllerError(f"{target.name}: port {port} has no marking curve")
        for entry in chosen:
            entry.action = to(_curve(entry)).action()
        return [~entry for entry in chosen]

    plans = await each(targets, plan)
    await asyncio.gather(*(_write(target, updates) for target, updates in zip(targets, plans, strict=True)))
    return sum(map(len, plans))


async def _curve_entries(target: Target) -> list[fy.P4TableEntry]:
    async with reading(target) as reader:
        if ports.RED not in {table.alias for table in reader.schema.tables}:
            raise ControllerError(f"{target.name}: its program has no table {ports.RED!r}, so it marks nothing")
        found = await _entries(reader, ports.RED)
    return [entry for entry in found if isinstance(entry.action, fy.Action) and _name(entry.action) == ports.SET_RED]


def _port(entry: fy.P4TableEntry) -> int:
    (port,) = dict(entry.match or {}).values()  # the table has one key
    return int(port)  # type: ignore[call-overload,no-any-return]


def _curve(entry: fy.P4TableEntry) -> RedCurve:
    args: dict[str, int] = entry.action.args  # type: ignore[union-attr,assignment]
    return RedCurve.from_action(**args)
