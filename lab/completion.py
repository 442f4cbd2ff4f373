"""What the shell is offered after a tab: switches, hosts, links, tables, fields, actions of the running laboratory.

Everything here reads a few small files of the laboratory and asks no switch: a tab must not be felt.
"""

import os
from collections.abc import Callable, Iterable
from typing import Any

import typer

from controller.defaults import RUN_DIR
from lab.errors import PlaitError
from lab.p4info import Message, find, name_of, read_p4info
from lab.running import LabRecord, running_lab, running_topology

_TABLE_WORD = 4  # plait table add s1 TABLE

Offer = Callable[[typer.Context, str], list[str]]


def _lab() -> LabRecord | None:
    try:
        return running_lab()
    except PlaitError:
        return None


def _program() -> Message:
    """P4Info of the program that the laboratory loaded last."""
    written = RUN_DIR.glob("*.p4info.txtpb") if _lab() else ()
    latest = max(written, key=lambda path: path.stat().st_mtime_ns, default=None)
    return read_p4info(latest) if latest else {}


def _fitting(names: Iterable[str], incomplete: str) -> list[str]:
    return sorted(name for name in set(names) if name.startswith(incomplete))


def _short(things: Iterable[Any]) -> list[str]:
    """Names without what stands before the last dot, where that is enough to tell them apart."""
    names = [name_of(thing) for thing in things]
    ends = [name.rpartition(".")[2] for name in names]
    return [end if ends.count(end) == 1 else name for name, end in zip(names, ends, strict=True)]


def switches(context: typer.Context, incomplete: str) -> list[str]:
    lab = _lab()
    return _fitting(lab.switches if lab else (), incomplete)


def hosts(context: typer.Context, incomplete: str) -> list[str]:
    lab = _lab()
    return _fitting(lab.hosts if lab else (), incomplete)


def nodes(context: typer.Context, incomplete: str) -> list[str]:
    return switches(context, incomplete) + hosts(context, incomplete)


def links(context: typer.Context, incomplete: str) -> list[str]:
    if _lab() is None:
        return []
    return _fitting((f"{link.a}-{link.b}" for link in running_topology().links), incomplete)


def named(*kinds: str) -> Offer:
    """The objects of these kinds in P4Info, such as "counters"."""

    def offer(context: typer.Context, incomplete: str) -> list[str]:
        program = _program()
        return _fitting(_short(thing for kind in kinds for thing in program.get(kind, [])), incomplete)

    return offer


tables = named("tables")


def fields(context: typer.Context, incomplete: str) -> list[str]:
    """`FIELD=` of the table on the command line, without those that are given."""
    given = {text.partition("=")[0] for text in context.params.get("match") or ()}
    names = (str(field["name"][0]) for field in _table(context).get("match_fields", []))
    return _fitting((f"{name}=" for name in names if name not in given), incomplete)


def actions(context: typer.Context, incomplete: str) -> list[str]:
    """`ACTION(` of the table on the command line, with the names of its parameters."""
    references = {str(reference["id"][0]) for reference in _table(context).get("action_refs", [])}
    return _fitting(_calls(references), incomplete)


def _calls(references: set[str]) -> list[str]:
    calls = []
    for action in _program().get("actions", []):
        if action["preamble"][0]["id"][0] in references:
            params = [str(param["name"][0]) for param in action.get("params", [])]
            calls.append(f"{_short([action])[0]}({', '.join(f'{param}=' for param in params)}" + ")" * (not params))
    return calls


def _table(context: typer.Context) -> Message:
    """The table on the line. While an option awaits its value, nothing is parsed yet, and the words must do."""
    name = context.params.get("table") or next(iter(_words()[_TABLE_WORD:]), "")
    return find(_program().get("tables", []), name) if name else {}


def _words() -> list[str]:
    """The line as the shells' completion scripts hand it over (zsh and fish by the second variable)."""
    return (os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS") or "").split()
