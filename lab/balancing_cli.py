"""`plait lb …` and `plait aqm …`: parameters of the load balancers and markers of a running laboratory."""

import asyncio
import dataclasses
import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from controller import render
from controller.targets import Target
from lab import completion, units
from lab.arguments import known
from lab.errors import UsageError
from lab.running import running_lab

if TYPE_CHECKING:  # P4Runtime's libraries are slow to load: only what talks to switches does
    from controller.parameters import PortCurve, Setting
    from controller.ports import RedCurve

lb = typer.Typer(no_args_is_help=True, help="Show and change the load balancer's parameters.")
aqm = typer.Typer(no_args_is_help=True, help="Show and change where queues are marked.")

SwitchOption = Annotated[
    list[str] | None,
    typer.Option(
        "--switch",
        "-s",
        help="Switch, such as s1; repeat for more.  [default: all]",
        autocompletion=completion.switches,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout.")]


def _targets(switches: list[str] | None) -> list[Target]:
    lab = running_lab()
    for name in switches or ():
        known("switch", name, lab.switches)
    chosen = switches or list(lab.switches)
    return [Target(name, lab.switches[name].address, lab.switches[name].device_id) for name in chosen]


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    """A parameter's value, and the switches that have it."""

    parameter: str
    value: str
    switches: str
    meaning: str


@lb.command("show")
def show(switch: SwitchOption = None, as_json: JsonOption = False) -> None:
    """The parameters of the running program and their values.

    Example: plait lb show
    """
    from controller.parameters import settings

    found = asyncio.run(settings(_targets(switch)))
    if as_json:
        print(json.dumps([dataclasses.asdict(setting) for setting in found]))
    elif not found:
        print("the running program has no parameters")
    else:
        print(render.as_text(_grouped(found)))


def _grouped(found: "list[Setting]") -> list[Row]:
    from controller.parameters import PARAMETERS

    switches: dict[tuple[str, str], list[str]] = {}
    for setting in found:
        switches.setdefault((setting.parameter, _text(setting.parameter, setting.value)), []).append(setting.switch)
    everyone = len({setting.switch for setting in found})
    return [
        Row(name, value, "all" if len(who) == everyone else " ".join(who), PARAMETERS[name].help)
        for (name, value), who in switches.items()
    ]


def _text(name: str, value: int | str | None) -> str:
    from controller.parameters import PARAMETERS

    if value is None:
        return "(differs by port)"
    return {"us": f"{value}us", "bytes": f"{value}B"}.get(PARAMETERS[name].unit, str(value))


@lb.command("set")
def set_parameters(
    values: Annotated[list[str], typer.Argument(help="NAME=VALUE, such as gap=100us, d=3, spray=round-robin.")],
    switch: SwitchOption = None,
    as_json: JsonOption = False,
) -> None:
    """Changes parameters, on all switches or on some, while packets flow.

    Example: plait lb set d=3 m=1
    """
    from controller.parameters import change, settings

    wanted: dict[str, int | str] = {}
    for text in values:
        name, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"{text!r}: write NAME=VALUE, such as gap=100us.")
        wanted[name] = _parsed(name, value)
    asyncio.run(change(_targets(switch), wanted))
    if as_json:
        found = asyncio.run(settings(_targets(switch)))
        print(json.dumps([dataclasses.asdict(each) for each in found if each.parameter in wanted]))


def _parsed(name: str, value: str) -> int | str:
    from controller.parameters import PARAMETERS

    unit = PARAMETERS[name].unit if name in PARAMETERS else "choice"
    if unit == "us":
        return round(units.parse_time(value) / 1000)
    if unit == "bytes":
        return units.parse_size(value)
    if unit == "number":
        try:
            return int(value, 0)
        except ValueError:
            raise UsageError(f"{name}: {value!r} is not a whole number.") from None
    return value


@aqm.command("show")
def show_curves(switch: SwitchOption = None, as_json: JsonOption = False) -> None:
    """Every port's marking curve: none below Kmin, Pmax at Kmax, all above.

    Example: plait aqm show --switch s1
    """
    from controller.parameters import curves

    found = asyncio.run(curves(_targets(switch)))
    rows: list[Any] = [_curve_row(each) for each in found]
    print(json.dumps([dataclasses.asdict(row) for row in rows]) if as_json else render.as_text(rows))


@dataclasses.dataclass(frozen=True, slots=True)
class CurveRow:
    switch: str
    port: int
    kmin_bytes: int
    kmax_bytes: int
    pmax: float


def _curve_row(each: "PortCurve") -> CurveRow:
    return CurveRow(each.switch, each.port, each.curve.kmin_bytes, each.curve.kmax_bytes, each.curve.pmax)


@aqm.command("set")
def set_curve(
    kmin: Annotated[str | None, typer.Option(help="Nothing is marked up to this depth, such as 20KB.")] = None,
    kmax: Annotated[str | None, typer.Option(help="Everything is marked above this depth; Kmin gives a step.")] = None,
    pmax: Annotated[float | None, typer.Option(help="Probability of marking at Kmax.")] = None,
    port: Annotated[int | None, typer.Option(help="Only this port.  [default: all]")] = None,
    switch: SwitchOption = None,
    as_json: JsonOption = False,
) -> None:
    """Changes marking curves, on all ports or on some, while packets flow.

    Example: plait aqm set --switch s1 --port 3 --kmin 20KB --kmax 200KB --pmax 0.2
    """
    from controller.parameters import set_curves

    given: dict[str, Any] = {}
    for field, size in (("kmin_bytes", kmin), ("kmax_bytes", kmax)):
        if size is not None:
            given[field] = units.parse_size(size)
    if pmax is not None:
        given["pmax"] = pmax
    if not given:
        raise UsageError("nothing to set: give --kmin, --kmax or --pmax.")

    def changed(curve: "RedCurve") -> "RedCurve":
        return dataclasses.replace(curve, **given)

    count = asyncio.run(set_curves(_targets(switch), changed, port))
    print(json.dumps({"ports": count}) if as_json else f"{count} ports")
