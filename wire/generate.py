"""`python -m wire.generate`: p4src/include/{headers,codes}.p4 -> wire.h, names.h, codes.py, layers.py, plait.lua.

With `--check` nothing is written; the exit code is 1 and a diff is printed if a committed file is stale.
"""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Callable
from pathlib import Path

from wire import c_header, c_names, lua_dissector, python_codes, scapy_layers
from wire.declarations import Source, WireError
from wire.read import read

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ("p4src/include/headers.p4", "p4src/include/codes.p4")
EMITTERS: dict[str, Callable[[list[Source]], str]] = {
    "wire.h": c_header.emit,
    "names.h": c_names.emit,
    "codes.py": python_codes.emit,
    "layers.py": scapy_layers.emit,
    "plait.lua": lua_dissector.emit,
}
_DIFF_LINES = 20


def generate(root: Path = ROOT) -> dict[Path, str]:
    """Path -> text of every generated file of the repository at `root`."""
    sources = read(root, SOURCES)
    return {root / "wire" / name: emit(sources) for name, emit in EMITTERS.items()}


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m wire.generate", description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a generated file is stale")
    parser.add_argument("--root", type=Path, default=ROOT, help="repository to work on (default: this one)")
    args = parser.parse_args(argv)
    try:
        generated = generate(args.root)
    except WireError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    stale = {path: text for path, text in generated.items() if not path.exists() or path.read_text() != text}
    for path, text in stale.items():
        name = path.relative_to(args.root)
        if args.check:
            print(f"{name} is stale; run: python -m wire.generate")
            print(_diff_summary(path, text))
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
            print(f"wrote {name}")
    return 1 if args.check and stale else 0


def _diff_summary(path: Path, text: str) -> str:
    old = path.read_text().splitlines() if path.exists() else []
    diff = list(difflib.unified_diff(old, text.splitlines(), "committed", "generated", lineterm="", n=0))
    changed = [line for line in diff if line.startswith(("+", "-"))][2:]
    rest = len(changed) - _DIFF_LINES
    return "\n".join([f"  {line}" for line in changed[:_DIFF_LINES]] + ([f"  … {rest} more lines"] if rest > 0 else []))


if __name__ == "__main__":
    sys.exit(main())
