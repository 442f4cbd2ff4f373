"""`plait table …`: the tables of any program on any running switch, over P4Runtime."""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from controller.targets import Target
from lab import arguments
from lab.arguments import (
    Action,
    DryRun,
    JsonOption,
    Match,
    Priority,
    Switch,
    Table,
    names_for,
    run,
    show,
    target_of,
    write,
)
from lab.completion import switches, tables
from lab.errors import UsageError
from lab.running import running_lab

app = typer.Typer(
    no_args_is_help=True, help="List, dump, add, change and delete table entries; load and restore files."
)

OptionalTable = Annotated[
    str | None,
    typer.Argument(
        help="Table, by any unique end of its name.  [default: all]", show_default=False, autocompletion=tables
    ),
]
OptionalSwitch = Annotated[
    str | None, typer.Argument(help="Switch, such as s1.", show_default=False, autocompletion=switches)
]
File = Annotated[Path, typer.Argument(help="Path of the file, or `-` for stdin.", allow_dash=True)]


@app.command("list")
def list_tables(switch: Switch, as_json: JsonOption = False) -> None:
    """The switch's tables: keys, actions, size and number of entries.

    Example: plait table list s1
    """
    from controller import tables

    show(run(tables.table_list(target_of(switch))), as_json)


@app.command("show")
def show_table(switch: Switch, table: Table, as_json: JsonOption = False) -> None:
    """All that the program says of a table: keys, actions with their parameters, default, counter and meter.

    Example: plait table show s1 ipv4_lpm
    """
    from controller import tables

    found = asdict(run(tables.table_show(target_of(switch), table)))
    if as_json:
        print(json.dumps(found))
        return
    for name, value in found.items():
        lines = [f"{field}  {kind}/{bits}" for field, kind, bits in value] if name == "keys" else value
        for position, line in enumerate(lines if isinstance(lines, list) and lines else [_word(lines)]):
            print(f"{'' if position else name.replace('_', ' '):16}{line}")


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "-" if value is None or value == [] else str(value)


@app.command("dump")
def dump(
    switch: OptionalSwitch = None,
    table: OptionalTable = None,
    everything: Annotated[
        bool, typer.Option("--all", help="All that the switch holds, or all switches do, as a file for `restore`.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """The entries of one table, or of all; with --all the whole state of switches, to be restored later.

    Example: plait table dump s1 ipv4_lpm
    """
    if everything:
        if table is not None:
            raise UsageError("--all is for whole switches: leave the table out.")
        from controller import snapshot

        print(json.dumps(run(snapshot.dump_all(_targets(switch))), indent=1))
        return
    if switch is None:
        raise UsageError("name a switch, such as s1, or give --all.")
    from controller import tables

    show(run(tables.table_dump(target_of(switch), table)), as_json)


def _targets(switch: str | None) -> list[Target]:
    return [target_of(name) for name in ([switch] if switch is not None else running_lab().switches)]


@app.command("add")
def add(
    switch: Switch, table: Table, match: Match = None, action: Action = "", priority: Priority = None,
    dry_run: DryRun = False, as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Adds an entry.

    Example: plait table add s1 neighbor standard_metadata.egress_spec=9 -a NoAction
    """
    from controller import tables

    _write_entry(switch, tables.table_add, table, match or [], action, priority, dry_run=dry_run, as_json=as_json)


@app.command("set")
def change(
    switch: Switch, table: Table, match: Match = None, action: Action = "", priority: Priority = None,
    dry_run: DryRun = False, as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Changes the action of an entry.

    Example: plait table set s1 neighbor egress_spec=h1 -a 'set_macs(s1-eth1, h1)'
    """
    from controller import tables

    _write_entry(switch, tables.table_set, table, match or [], action, priority, dry_run=dry_run, as_json=as_json)


@app.command("del")
def delete(
    switch: Switch, table: Table, match: Match = None, priority: Priority = None, dry_run: DryRun = False,
    as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Deletes an entry.

    Example: plait table del s1 neighbor standard_metadata.egress_spec=9
    """
    from controller import tables

    _write_entry(switch, tables.table_del, table, match or [], priority, dry_run=dry_run, as_json=as_json)


@app.command("default")
def default(
    switch: Switch, table: Table, action: Action = "",
    reset: Annotated[bool, typer.Option("--reset", help="Back to the default of the program.")] = False,
    dry_run: DryRun = False, as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Changes the default action of a table.

    Example: plait table default s1 switch_seed -a 'set_seed(12345)'
    """
    from controller import tables

    if bool(action) == reset:
        raise UsageError("give the new default action with --action, or --reset for the program's.")
    chosen = None if reset else action
    _write_entry(switch, tables.table_default, table, chosen, dry_run=dry_run, as_json=as_json)


def _write_entry(switch: str, verb: Any, *words: Any, dry_run: bool, as_json: bool) -> None:
    write(switch, verb, *words, names=names_for(switch), dry_run=dry_run, as_json=as_json)


@app.command("clear")
def clear(
    switch: Switch,
    table: OptionalTable = None,
    everything: Annotated[bool, typer.Option("--all", help="All tables of the switch.")] = False,
    dry_run: DryRun = False,
    as_json: JsonOption = False,
) -> None:
    """Deletes all entries of a table; its default action stays, and so do entries that the program fixes.

    Example: plait table clear s1 trace
    """
    if (table is None) != everything:
        raise UsageError("name a table, or give --all for every table.")
    from controller import tables

    write(switch, tables.table_clear, table, dry_run=dry_run, as_json=as_json)


@app.command("load")
def load(switch: Switch, file: File, dry_run: DryRun = False, as_json: JsonOption = False) -> None:
    """Writes what a file of other tools says: sN-runtime.json of p4lang's tutorials, or commands of simple_switch_CLI.

    Example: plait table load s1 s1-commands.txt --dry-run
    """
    from controller import loading

    write(switch, loading.load_file, str(file), _text(file), dry_run=dry_run, as_json=as_json)


@app.command("restore")
def restore(file: File, dry_run: DryRun = False, as_json: JsonOption = False) -> None:
    """Brings switches back to the state of a file that `dump --all` wrote; only what differs is written.

    Example: plait table restore state.json
    """
    from controller import snapshot

    try:
        document = json.loads(_text(file))
    except ValueError as error:
        raise UsageError(f"{file} is no JSON: {error}") from None
    named = document.get("switches") if isinstance(document, dict) else None
    targets = [target_of(name) for name in named] if isinstance(named, dict) else []
    arguments.tell(run(snapshot.restore(targets, document, dry_run)), dry_run, as_json)


def _text(file: Path) -> str:
    try:
        return sys.stdin.read() if str(file) == "-" else file.read_text()
    except UnicodeDecodeError:
        raise UsageError(f"{file} is no text.") from None
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror or error}.") from None
