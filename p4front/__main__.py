"""The command: `python -m p4front`, with the options of `p4c-bm2-ss`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from p4front.diagnostics import CompileError
from p4front.driver import compile_file

EXIT_OK, EXIT_ERROR, EXIT_USAGE = 0, 1, 2


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="p4front", description="Compile P4-16 for v1model to P4Info and BMv2 JSON.")
    parser.add_argument("program", type=Path, help="the P4 program")
    parser.add_argument("-o", metavar="FILE", type=Path, help="write the BMv2 JSON here")
    parser.add_argument("--p4runtime-files", metavar="FILE[,FILE]", help="write the P4Info here (.txtpb, .bin, .json)")
    parser.add_argument("-I", metavar="DIR", type=Path, action="append", default=[], help="search includes here")
    parser.add_argument("-D", metavar="NAME[=VALUE]", action="append", default=[], help="define a macro")
    parser.add_argument("--p4v", choices=["16"], default="16", help="version of the language")
    parser.add_argument("--std", choices=["p4-16"], default="p4-16", help="version of the language")
    parser.add_argument("--target", "-b", choices=["bmv2"], default="bmv2", help="the switch")
    parser.add_argument("--arch", "-a", choices=["v1model"], default="v1model", help="the architecture")
    parser.add_argument("--Wdisable", action="store_true", help="show no warnings (--Wdisable=KIND: the same)")
    parser.add_argument("--Werror", action="store_true", help="treat warnings as errors (--Werror=KIND: the same)")
    return parser


def _without_kinds(argv: Sequence[str]) -> list[str]:
    """p4c's `--Wdisable=KIND` as `--Wdisable`: warnings have no kinds here; `--Wwarn` and `--Winfo` say nothing."""
    plain = [arg.partition("=")[0] if arg.startswith("--W") else arg for arg in argv]
    return [arg for arg in plain if arg not in ("--Wwarn", "--Winfo")]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and give its exit code; errors and warnings go to stderr."""
    options = _arguments().parse_args(_without_kinds(sys.argv[1:] if argv is None else argv))
    try:
        compiled = compile_file(options.program, include_dirs=options.I, defines=options.D)
        warnings = [] if options.Wdisable else compiled.warnings
        for warning in warnings:
            print(warning, file=sys.stderr)
        if warnings and options.Werror:
            return EXIT_ERROR
        for name in filter(None, (options.p4runtime_files or "").split(",")):
            _write_p4info(Path(name), compiled.p4info, compiled.p4info_text)
        if options.o is not None:
            options.o.write_text(compiled.json_text, encoding="utf-8")
    except CompileError as error:
        print(error, file=sys.stderr)
        return EXIT_ERROR
    except OSError as error:
        print(f"error: cannot write {error.filename}: {error.strerror}", file=sys.stderr)
        return EXIT_ERROR
    return EXIT_OK


def _write_p4info(path: Path, info: object, text: str) -> None:
    """In the format that the file's suffix asks for, as p4c does it."""
    if path.suffix == ".bin":
        path.write_bytes(info.SerializeToString())  # type: ignore[attr-defined]
    elif path.suffix == ".json":
        from google.protobuf import json_format

        path.write_text(json_format.MessageToJson(info), encoding="utf-8")  # type: ignore[arg-type]
    else:
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
