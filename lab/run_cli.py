"""`plait run`: what it is called with, and what it prints."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table


def run(
    file: Annotated[Path, typer.Argument(help="The experiment, a TOML file; docs/experiments.md has its keys.")],
    out: Annotated[
        Path | None, typer.Option(help="Folder in which the results folder is made.  [default: out]")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout.")] = False,
) -> None:
    """Runs an experiment: load balancers under workloads; prints a table, writes records, pictures and a page.

    Example: plait run experiments/lb_compare.toml
    """
    from lab import experiment_report

    experiment, outcome, folder = experiment_report.run_and_report(file, out, _talk)
    if as_json:
        print(json.dumps(experiment_report.as_json(outcome, folder)))
        return
    rows = experiment_report.rows(outcome.runs)
    # Wide enough for every column where stdout is a file or a pipe.
    console = Console(width=None if sys.stdout.isatty() else 200)
    for workload in experiment.workloads:
        table = Table(title=experiment_report.describe(workload), title_justify="left", title_style="bold")
        for index, name in enumerate(list(rows[0])[1:]):
            table.add_column(name, justify="left" if index == 0 else "right")
        for row in rows:
            if row["workload"] == workload.name:
                table.add_row(*list(row.values())[1:])
        console.print(table)
    print(experiment_report.conditions(experiment))
    for meaning in experiment_report.MEANINGS:
        print(f"{meaning}.")
    print(f"{experiment_report.headroom(outcome.runs).text}.\n")
    print(experiment_report.finding(outcome.runs))
    print(f"results: {folder}  (open {folder}/report.html)")


def _talk(text: str) -> None:
    print(text, file=sys.stderr)
