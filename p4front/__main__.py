"""The command: `python -m p4front`, with the options of `p4c-bm2-ss`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from p4front.diagnostics import CompileError, Diagnostic, FileError
from p4front.driver import Compiled, compile_file
from p4front.preprocessor import Preprocessor

if TYPE_CHECKING:
    from google.protobuf.message import Message

EXIT_OK, EXIT_ERROR, EXIT_USAGE = 0, 1, 2
_SUFFIXES = (".txtpb", ".txt", ".bin", ".json")


def _arguments(prog: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=prog, description="Compile P4-16 for v1model to P4Info and BMv2 JSON.")
    files = "FILE[,FILE]"
    parser.add_argument("program", type=Path, help="the P4 program")
    parser.add_argument("--version", action="version", version=f"p4front {_version()}")
    parser.add_argument("-o", metavar="FILE", type=Path, help="write the BMv2 JSON here")
    parser.add_argument("--p4runtime-files", metavar=files, help="write the P4Info here (.txtpb, .bin, .json)")
    parser.add_argument("--p4runtime-entries-files", metavar=files, help="write the tables' entries here, likewise")
    parser.add_argument("-I", metavar="DIR", type=Path, action="append", default=[], help="search includes here")
    parser.add_argument("-D", metavar="NAME[=VALUE]", action="append", default=[], help="define a macro")
    parser.add_argument("-U", metavar="NAME", action="append", default=[], help="undefine a macro")
    parser.add_argument("-E", action="store_true", help="only preprocess, to stdout")
    parser.add_argument("--p4v", choices=["16", "1.2"], default="16", help="version of the language")
    parser.add_argument("--std", choices=["p4-16", "16"], default="p4-16", help="version of the language")
    parser.add_argument("--target", "-b", choices=["bmv2"], default="bmv2", help="the switch")
    parser.add_argument("--arch", "-a", choices=["v1model"], default="v1model", help="the architecture")
    kind = {"metavar": "KIND", "nargs": "?", "const": "", "action": "append", "default": []}
    parser.add_argument("--Wdisable", help="show no warnings, or none of this kind", **kind)  # type: ignore[arg-type]
    parser.add_argument("--Wwarn", help="show warnings, as it is without this option", **kind)  # type: ignore[arg-type]
    parser.add_argument("--Werror", help="treat warnings as errors, or those of this kind", **kind)  # type: ignore[arg-type]
    return parser


def _version() -> str:
    try:
        return version("plait")
    except PackageNotFoundError:
        return "(not installed)"


def main(argv: Sequence[str] | None = None, prog: str = "p4front") -> int:
    """Run the command and give its exit code; errors and warnings go to stderr."""
    options = _arguments(prog).parse_args(_glued(sys.argv[1:] if argv is None else argv))
    try:
        infos, entries = _outputs(options.p4runtime_files), _outputs(options.p4runtime_entries_files)
        if options.E:
            preprocessor = Preprocessor(options.I, options.D, options.U)
            sys.stdout.write(preprocessor.run(options.program).text)
            return EXIT_OK
        compiled = compile_file(options.program, include_dirs=options.I, defines=options.D, undefines=options.U)
        if _show_warnings(compiled, options.Wdisable, options.Werror):
            return EXIT_ERROR
        for path in infos:
            _write_message(path, compiled.p4info, compiled.p4info_text)
        for path in entries:
            _write_message(path, compiled.p4runtime_entries, compiled.p4runtime_entries_text)
        if options.o is not None:
            options.o.write_text(compiled.json_text, encoding="utf-8")
    except CompileError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except OSError as error:
        print(f"error: cannot write {error.filename}: {error.strerror}", file=sys.stderr)
        return EXIT_USAGE
    return EXIT_OK


def _glued(argv: Sequence[str]) -> list[str]:
    """A kind is given as `--Wdisable=KIND` only: what stands behind a plain `--Wdisable` is something else."""
    return [f"{arg}=" if arg in ("--Wdisable", "--Werror", "--Wwarn") else arg for arg in argv]


def _show_warnings(compiled: Compiled, disabled: list[str], errors: list[str]) -> bool:
    """Print the warnings; whether one of them is an error."""
    failed = False
    for warning in compiled.warnings:
        if "" in disabled or warning.kind in disabled:
            continue
        wrong = "" in errors or warning.kind in errors
        failed = failed or wrong
        shown = Diagnostic("error", warning.message, warning.location, warning.excerpt, warning.kind)
        print(shown if wrong else warning, file=sys.stderr)
    return failed


def _outputs(names: str | None) -> list[Path]:
    paths = [Path(name) for name in (names or "").split(",") if name]
    for path in paths:
        if path.suffix not in _SUFFIXES:
            raise FileError([Diagnostic("error", f"{path}: the suffix must be one of {', '.join(_SUFFIXES)}")])
    return paths


def _write_message(path: Path, message: Message, text: str) -> None:
    """In the format that the file's suffix asks for, as p4c does it."""
    if path.suffix == ".bin":
        path.write_bytes(message.SerializeToString())
    elif path.suffix == ".json":
        from google.protobuf import json_format

        path.write_text(json_format.MessageToJson(message), encoding="utf-8")
    else:
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
