"""`plait topo`: look at topologies, draw, convert and check them, without a laboratory."""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from lab.errors import UsageError
from lab.topology_options import topology_command
from mininet_topos.catalogue import GENERATORS, Choice, find_generator
from mininet_topos.quantities import parse_rate, parse_time

app = typer.Typer(no_args_is_help=True, help="Topologies without a laboratory: properties, pictures, files.")

JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout.")]


def show(
    chosen: Choice,
    ksp: Annotated[
        int, typer.Option(min=1, max=64, help="How many shortest paths of each pair of switches are looked at.")
    ] = 8,
    nodes: Annotated[bool, typer.Option("--nodes", help="Also every node: place, addresses, neighbours.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Properties of a topology: size, distances, bisection bandwidth, diversity of paths.

    Example: plait topo show jellyfish --like fattree:k=8
    """
    from lab import topo_report

    found = topo_report.collect(chosen, ksp, nodes)
    print(json.dumps(found) if as_json else topo_report.text(found), end="\n" if as_json else "")


def draw(
    chosen: Choice,
    out: Annotated[Path | None, typer.Option(help=r"File: .svg, .png or .pdf.  \[default: <name>.svg]")] = None,
    layout: Annotated[
        str, typer.Option(help=r"`layers`, `circle` or `spring`.  \[default: layers for trees, else circle]")
    ] = "",
    title: Annotated[str, typer.Option(help=r"Text above the picture.  \[default: size and rates]")] = "",
    as_json: JsonOption = False,
) -> None:
    """A picture of a topology.

    Example: plait topo draw fattree --k 4 --out fattree.svg
    """
    from lab import drawing
    from lab.drawing_layout import LAYOUTS, default_layout

    topology = chosen.build()
    path = out or Path(f"{topology.name or 'topology'}.svg")
    if path.suffix not in drawing.FORMATS:
        raise UsageError(f"--out {path}: the name must end in {', '.join(drawing.FORMATS)}.")
    if layout and layout not in LAYOUTS:
        raise UsageError(f"--layout {layout!r}: known are {', '.join(LAYOUTS)}.")
    try:
        place = drawing.draw(topology, path, title=title, layout=layout)
    except OSError as error:
        raise UsageError(f"--out {path}: {error.strerror}.") from None
    if as_json:
        used = layout or default_layout(topology)
        print(json.dumps({"file": str(path), "layout": used, "places": {n: list(xy) for n, xy in place.items()}}))
    else:
        print(path)


def export(
    chosen: Choice,
    format: Annotated[  # noqa: A002 - the option users type
        str, typer.Option(help="json, conweave (and HPCC), htsim, p4lang, dot or graphml.")
    ] = "json",
    out: Annotated[Path | None, typer.Option(help=r"File.  \[default: stdout]")] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON object: the format, what it leaves out, and file or text.")
    ] = False,
) -> None:
    """A topology as a file of another tool, or as Plait's own JSON.

    Example: plait topo export leafspine --spines 4 --leaves 8 --format conweave --out net.txt
    """
    from mininet_topos.files import FORMATS

    if format not in FORMATS:
        raise UsageError(f"--format {format!r}: known are {', '.join(FORMATS)}.")
    text, leaves_out = FORMATS[format].render(chosen.build()), FORMATS[format].leaves_out
    if out is not None:
        try:
            out.write_text(text)
        except OSError as error:
            raise UsageError(f"--out {out}: {error.strerror}.") from None
    if as_json:
        where = {"text": text} if out is None else {"file": str(out)}
        print(json.dumps({"format": format, "leaves_out": leaves_out, **where}))
        return
    if out is None:
        print(text, end="")
    if leaves_out:
        print(f"note: {format} has no {leaves_out}", file=sys.stderr)


app.add_typer(topology_command(show), name="show")
app.add_typer(topology_command(draw), name="draw")
app.add_typer(topology_command(export), name="export")


@app.command()
def check(
    file: Annotated[Path, typer.Argument(help="A topology in any format that `plait topo export` writes, but graphs.")],
    as_json: JsonOption = False,
) -> None:
    """Reads a topology file and says what it holds, or what is wrong with it and where.

    Example: plait topo check net.json
    """
    from mininet_topos import files
    from mininet_topos.properties import properties
    from mininet_topos.topology import TopologyError

    # Values that stand in where the format has none change nothing of what is checked.
    try:
        format_name, topology = files.load(file, parse_rate("100M"), parse_time("50us"))
    except TopologyError as error:
        if not as_json:
            raise
        print(json.dumps({"ok": False, "field": error.field, "reason": error.reason}))
        raise typer.Exit(UsageError.exit_code) from None
    found = properties(topology)
    if as_json:
        print(json.dumps({"ok": True, "format": format_name, **asdict(found)}))
    else:
        print(f"{file}: {format_name}, {found.hosts} hosts, {found.switches} switches, {found.links} links")


@app.command("list")
def list_topologies(
    name: Annotated[str | None, typer.Argument(help="One of them, with its parameters.")] = None,
    as_json: JsonOption = False,
) -> None:
    """The topologies that there are, or the parameters of one.

    Example: plait topo list jellyfish
    """
    rows: list[dict[str, Any]]
    if name is None:
        rows = [{"name": each.name, "what": each.summary} for each in GENERATORS.values()]
    else:
        parameters = find_generator(name).parameters
        rows = [{"name": p.name, "kind": p.kind, "default": p.default, "what": p.help} for p in parameters]
    if as_json:
        print(json.dumps(rows))
        return
    table = Table()
    for column in rows[0]:
        table.add_column(column)
    for row in rows:
        # Brackets are not Rich's markup here.
        table.add_row(*("" if value is None else str(value).replace("[", r"\[") for value in row.values()))
    Console(width=None if sys.stdout.isatty() else 120).print(table)


