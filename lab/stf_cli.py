"""`plait stf`: what it is called with, and what it prints."""

import json
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from lab.errors import UsageError

FilesArgument = Annotated[list[Path] | None, typer.Argument(help="FILE.p4 and the FILE.stf to run on it; repeat.")]
FolderOption = Annotated[Path | None, typer.Option("--dir", help="Run every FILE.p4 that has a FILE.stf beside it.")]
ListOption = Annotated[
    Path | None, typer.Option("--list", help="Run these of --dir: a name a line, or a TSV with `name` and `tier`.")
]
TargetOption = Annotated[str, typer.Option(help="What runs the program: `plait` (the fast switch) or `bmv2`.")]
CompilerOption = Annotated[str, typer.Option(help="What compiles it: `p4front` or `p4c`.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout.")]


def stf(
    files: FilesArgument = None,
    folder: FolderOption = None,
    names: ListOption = None,
    target: TargetOption = "plait",
    compiler: CompilerOption = "p4front",
    as_json: JsonOption = False,
) -> None:
    """Runs cases of p4c's simple test framework on a switch: compile, push, inject, compare.

    Example: plait stf program.p4 program.stf
    """
    from lab.compiling import check_compiler
    from lab.stf import report
    from lab.stf.cases import from_files, from_folder
    from lab.stf.run import Result, run_cases
    from lab.stf.switches import check_target

    if (folder is None) == (not files):
        raise UsageError("give either FILE.p4 FILE.stf … or --dir.")
    if names is not None and folder is None:
        raise UsageError("--list needs --dir.")
    check_target(target)
    check_compiler(compiler)
    cases, without = from_folder(folder, names) if folder is not None else (from_files(files or []), 0)
    if without:
        print(f"{without} names of {names} have no .stf file", file=sys.stderr)
    started = time.monotonic()
    results: list[Result] = []
    for result in run_cases(cases, target, compiler):
        results.append(result)
        print(report.lines(result), file=sys.stderr if as_json else sys.stdout, flush=True)
    if as_json:
        print(json.dumps(report.as_json(results)))
    else:
        print(report.summary(results, time.monotonic() - started))
    if any(result.reason for result in results):
        raise typer.Exit(1)
