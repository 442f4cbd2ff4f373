"""`plait table …`: tables of a switch of the running laboratory, over P4Runtime.

Values are written as people write them: `10.0.0.0/24`, `02:00:00:00:00:01`, `1..5`, `0x800&&&0xff00`, `7`.
"""

import asyncio
import json
from collections.abc import Coroutine
from typing import Annotated, Any, TypeVar

import typer

from controller import render
from controller.targets import Target
from lab.errors import UsageError
from lab.running import running_lab

app = typer.Typer(no_args_is_help=True, help="List, dump, add, change and delete table entries.")

Switch = Annotated[str, typer.Argument(help="Switch of the running laboratory, such as s1.")]
TableName = Annotated[str, typer.Argument(help="Table, by any unique end of its name, such as ipv4_lpm.")]
Match = Annotated[list[str] | None, typer.Argument(help="FIELD=VALUE for each key field.")]
Action = Annotated[str, typer.Option("--action", "-a", help="Such as 'forward(port=3)'.")]
Priority = Annotated[int | None, typer.Option(help="Larger wins; for ternary, range and optional keys only.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout.")]

Result = TypeVar("Result")


def _target(switch: str) -> Target:
    lab = running_lab()
    if switch not in lab.switches:
        raise UsageError(f"no switch {switch!r} in the running laboratory; it has {', '.join(lab.switches)}.")
    record = lab.switches[switch]
    return Target(switch, record.address, record.device_id)


def _run(work: Coroutine[Any, Any, Result]) -> Result:
    return asyncio.run(work)


@app.command("list")
def list_tables(switch: Switch, as_json: JsonOption = False) -> None:
    """The switch's tables: keys, actions, size and number of entries.

    Example: plait table list s1
    """
    from controller import tables

    rows = _run(tables.table_list(_target(switch)))
    print(json.dumps(render.as_json(rows)) if as_json else render.as_text(rows))


@app.command("dump")
def dump(switch: Switch, table: Annotated[str | None, typer.Argument()] = None, as_json: JsonOption = False) -> None:
    """The entries of one table, or of all.

    Example: plait table dump s1 ipv4_lpm
    """
    from controller import tables

    rows = _run(tables.table_dump(_target(switch), table))
    print(json.dumps(render.as_json(rows)) if as_json else render.as_text(rows))


@app.command("add")
def add(switch: Switch, table: TableName, match: Match = None, action: Action = "", priority: Priority = None) -> None:
    """Adds an entry.

    Example: plait table add s1 neighbor standard_metadata.egress_spec=9 -a NoAction
    """
    from controller import tables

    _run(tables.table_add(_target(switch), table, match or [], action, priority))


@app.command("set")
def change(
    switch: Switch, table: TableName, match: Match = None, action: Action = "", priority: Priority = None
) -> None:
    """Changes the action of an entry; without FIELD=VALUE, the table's default.

    Example: plait table set s1 neighbor standard_metadata.egress_spec=9 -a 'set_macs(0x0a, 0x0b)'
    """
    from controller import tables

    _run(tables.table_set(_target(switch), table, match or [], action, priority))


@app.command("del")
def delete(switch: Switch, table: TableName, match: Match = None, priority: Priority = None) -> None:
    """Deletes an entry.

    Example: plait table del s1 neighbor standard_metadata.egress_spec=9
    """
    from controller import tables

    _run(tables.table_del(_target(switch), table, match or [], priority))
