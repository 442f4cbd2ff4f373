"""`plait switch …`: the switches of the running laboratory, and their failures."""

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from lab.arguments import JsonOption, known, show
from lab.completion import switches
from lab.errors import MissingFeatureError
from lab.running import LabRecord, running_lab

app = typer.Typer(no_args_is_help=True, help="List switches, take their power and give it back.")

Name = Annotated[str, typer.Argument(help="Switch of the running laboratory, such as s3.", autocompletion=switches)]


@dataclass(frozen=True, slots=True)
class SwitchRow:
    switch: str
    device_id: int
    address: str
    up: bool | None  # None: not known
    program: str


@app.command("list")
def list_switches(as_json: JsonOption = False) -> None:
    """All switches: P4Runtime address, whether they have power, and the program that runs.

    Example: plait switch list
    """
    lab = running_lab()
    told = _told() if lab.target == "plait" else {}
    rows = []
    for name, record in lab.switches.items():
        state = told.get(name, {})
        program = str(state.get("program") or "") if state.get("has_config") else ""
        rows.append(SwitchRow(name, record.device_id, record.address, state.get("up"), program))
    show(rows, as_json)


def _told() -> dict[str, dict[str, Any]]:
    from lab.links import fabric

    with fabric() as client:
        return {state["name"]: state for state in client.status()["switches"]}


@app.command("stop")
def stop(switch: Name, as_json: JsonOption = False) -> None:
    """Takes a switch's power: its links go down, its program and entries are lost.

    Example: plait switch stop s3
    """
    _set(switch, (False,), as_json)


@app.command("start")
def start(switch: Name, as_json: JsonOption = False) -> None:
    """Gives a switch its power back: its links come up when a controller has given it a program.

    Example: plait switch start s3
    """
    _set(switch, (True,), as_json)


@app.command("restart")
def restart(switch: Name, as_json: JsonOption = False) -> None:
    """Takes a switch's power and gives it back at once.

    Example: plait switch restart s3
    """
    _set(switch, (False, True), as_json)


@dataclass(frozen=True, slots=True)
class ChangeRow:
    switch: str
    up: bool


def _set(switch: str, powers: tuple[bool, ...], as_json: bool) -> None:
    from lab.links import fabric

    lab = running_lab()
    known("switch", switch, lab.switches)
    _need_fast_switch(lab)
    with fabric() as client:
        for up in powers:
            client.switch_set(switch, up=up)
    show([ChangeRow(switch, powers[-1])], as_json)


def _need_fast_switch(lab: LabRecord) -> None:
    if lab.target != "plait":
        raise MissingFeatureError("plait switch stop, start and restart need the fast switch (--target plait).")
