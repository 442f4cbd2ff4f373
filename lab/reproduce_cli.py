"""`plait reproduce`: figures of the papers, made again with the lab's own parts."""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from lab.errors import MissingFeatureError, UsageError

FIGURES = {"eunomia/memory": "memory of 20 connections against a static bitmap (Eunomia §4, figures 9(c), 9(d), 10)"}


def reproduce(
    figure: Annotated[str | None, typer.Argument(help="Which; without it, all are listed.")] = None,
    seed: Annotated[int, typer.Option(min=0, max=2**64 - 1, help="Seed of all that is drawn at random.")] = 1,
    out: Annotated[
        Path | None, typer.Option(help="Folder in which the results folder is made.  [default: out]")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout.")] = False,
) -> None:
    """Makes a paper's figure again, and sets what the paper says beside what comes out.

    Example: plait reproduce eunomia/memory
    """
    if figure is None:
        print(json.dumps(FIGURES) if as_json else "\n".join(f"{name}  {what}" for name, what in FIGURES.items()))
        return
    if figure not in FIGURES:
        raise UsageError(f"no figure named {figure!r}; there are: {', '.join(FIGURES)}.")
    from ebpf.c_module import BuildError

    try:
        from lab import reproduce_eunomia
    except BuildError as error:
        raise MissingFeatureError(str(error)) from error
    outcome = reproduce_eunomia.run(out, seed, lambda text: print(text, file=sys.stderr))
    if as_json:
        print(json.dumps({"statements": [asdict(found) for found in outcome.statements], "out": str(outcome.folder)}))
        return
    table = Table(title="The paper, and here", title_justify="left", title_style="bold")
    for name in ("source", "paper", "here", "holds"):
        table.add_column(name)
    for found in outcome.statements:
        table.add_row(found.source, found.paper, found.here, "yes" if found.holds else "NO")
    Console(width=None if sys.stdout.isatty() else 160).print(table)
    print(reproduce_eunomia.conditions())
    print(f"results: {outcome.folder}  (memory.png, memory.svg, memory.csv, units.json, summary.json)")
