"""Arguments that many verbs share, and what they mean in the running laboratory; how what was written is told."""

import asyncio
import difflib
import json
import shutil
import sys
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Annotated, Any, TypeVar

import typer

from controller import render
from controller.names import NO_NAMES, Names, names_of
from controller.targets import Target
from lab import completion
from lab.errors import UsageError
from lab.running import LabRecord, SwitchRecord, running_lab, running_topology

Switch = Annotated[
    str,
    typer.Argument(
        help="Switch of the running laboratory, such as s1; or any P4Runtime server: HOST:PORT, HOST:PORT/DEVICE.",
        autocompletion=completion.switches,
    ),
]
Table = Annotated[
    str,
    typer.Argument(help="Table, by any unique end of its name, such as ipv4_lpm.", autocompletion=completion.tables),
]
Match = Annotated[
    list[str] | None,
    typer.Argument(
        help="FIELD=VALUE for each key field: 10.0.0.0/24, 0x800&&&0xff00, 10..20, h1, `*`.",
        autocompletion=completion.fields,
    ),
]
Action = Annotated[
    str,
    typer.Option("--action", "-a", help="Such as 'forward(port=3)'.", autocompletion=completion.actions),
]
Priority = Annotated[
    int | None, typer.Option("--priority", help="Larger wins; for ternary, range and optional keys only.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print what would be written, and write nothing.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout.")]

Result = TypeVar("Result")


def known(kind: str, name: str, names: Iterable[str]) -> str:
    """The name, if it is among `names`; UsageError says what was meant, or what there is."""
    names = list(names)
    if name in names:
        return name
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    some = ", ".join(names[:10]) + (f", … ({len(names)} in all)" if len(names) > 10 else "")
    hint = f"did you mean {near[0]!r}? It" if near else "it"
    raise UsageError(f"no {kind} {name!r} in the running laboratory; {hint} has {some}.")


def switch_record(lab: LabRecord, switch: str) -> SwitchRecord:
    return lab.switches[known("switch", switch, lab.switches)]


def target_of(switch: str) -> Target:
    """Where the switch's P4Runtime server is."""
    if ":" in switch:
        address, slash, device = switch.partition("/")
        if slash and not (device.isdecimal() and int(device) < 1 << 64):
            raise UsageError(f"switch {switch!r}: after / is a device id, a number below 2^64.")
        return Target(switch, address, int(device) if slash else 1)
    record = switch_record(running_lab(), switch)
    return Target(switch, record.address, record.device_id)


def names_for(switch: str) -> Names:
    """What names people may write for values on that switch."""
    return NO_NAMES if ":" in switch else names_of(running_topology(), switch)


def run(work: Coroutine[Any, Any, Result]) -> Result:
    return asyncio.run(work)


def show(rows: Sequence[Any], as_json: bool) -> None:
    """Prints dataclasses as aligned columns, or as a JSON list."""
    print(json.dumps(render.as_json(rows)) if as_json else render.as_text(rows, terminal_width()))


def terminal_width() -> int | None:
    """Columns of the terminal that stdout is; None where it is a file or a pipe, which has no width."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def write(
    switch: str, verb: Callable[..., Coroutine[Any, Any, list[str]]], *arguments: Any, dry_run: bool, as_json: bool,
    **more: Any,
) -> None:  # fmt: skip
    """Runs a verb that writes, and prints a line for each update that it wrote or would write."""
    texts = run(verb(target_of(switch), *arguments, dry_run=dry_run, **more))
    tell({switch: texts}, dry_run, as_json)


def tell(written: dict[str, list[str]], dry_run: bool, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"dry_run": dry_run, "written": written}))
        return
    for switch, texts in written.items():
        for text in texts:
            print(f"{switch}: {text}")
    if dry_run:
        print("dry run: nothing was written", file=sys.stderr)
    elif not any(written.values()):
        print("nothing to write", file=sys.stderr)
