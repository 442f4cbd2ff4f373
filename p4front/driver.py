"""The phases in a row: file to P4Info and BMv2 JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from p4front import syntax as ast
from p4front.check import Checker, check
from p4front.diagnostics import CompileError, Diagnostic, Diagnostics, SourceText
from p4front.elaborate import Elaborated, elaborate
from p4front.parser import parse
from p4front.preprocessor import Preprocessor
from p4front.unused import warn_of_unset, warn_of_unused

if TYPE_CHECKING:
    from finsy.proto import p4i, p4r
    from google.protobuf.message import Message

# Enough for the deepest nesting the parser admits, through every phase.
RECURSION_LIMIT = 10_000


@dataclass(slots=True)
class Checked:
    """A program whose names and types are known."""

    source: SourceText
    program: ast.Program
    checker: Checker
    diagnostics: Diagnostics


@dataclass
class Compiled:
    """A compiled program; the outputs are made when they are first asked for."""

    source_path: Path
    checked: Checked
    elaborated: Elaborated
    warnings: list[Diagnostic] = field(default_factory=list)

    @cached_property
    def p4info(self) -> p4i.P4Info:
        """The control plane's view, as a `p4.config.v1.P4Info` message."""
        from p4front.p4info import make_p4info

        diagnostics = self.checked.diagnostics
        info = self.checked.checker.recover(make_p4info, self.elaborated, self.checked.source.text, diagnostics)
        diagnostics.check()
        return info  # type: ignore[no-any-return]

    @cached_property
    def p4info_text(self) -> str:
        """The P4Info in protobuf's text format, with the header p4c writes."""
        return _text("p4/config/v1/p4info.proto", self.p4info)

    @cached_property
    def p4runtime_entries(self) -> p4r.WriteRequest:
        """What would write the entries that tables start with, as a `p4.v1.WriteRequest` message."""
        from p4front.p4runtime_entries import make_entries

        diagnostics = self.checked.diagnostics
        made = self.checked.checker.recover(make_entries, self.elaborated, self.p4info, diagnostics)
        diagnostics.check()
        return made  # type: ignore[no-any-return]

    @cached_property
    def p4runtime_entries_text(self) -> str:
        """The entries in protobuf's text format, with the header p4c writes."""
        return _text("p4/v1/p4runtime.proto", self.p4runtime_entries)

    @cached_property
    def bmv2_json(self) -> dict[str, Any]:
        """What BMv2's simple_switch loads."""
        from p4front.bmv2_json import make_json

        diagnostics = self.checked.diagnostics
        diagnostics.show_limits()
        diagnostics.check()
        result = self.checked.checker.recover(
            make_json, self.elaborated, str(self.source_path), self.checked.source, diagnostics
        )
        diagnostics.check()
        return result  # type: ignore[no-any-return]

    @cached_property
    def json_text(self) -> str:
        """The JSON as it is written to disk."""
        return json.dumps(self.bmv2_json, indent=2) + "\n"


def _text(file: str, message: Message) -> str:
    from google.protobuf import text_format

    header = f"# proto-file: {file}\n# proto-message: {message.DESCRIPTOR.full_name}\n\n"
    return header + text_format.MessageToString(message)


@contextmanager
def _deep_recursion() -> Iterator[None]:
    """Room for deep nesting; nesting beyond it is an error of the program."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, RECURSION_LIMIT))
    try:
        yield
    except RecursionError:
        raise CompileError([Diagnostic("error", "the program is nested too deeply")]) from None
    finally:
        sys.setrecursionlimit(limit)


def check_file(
    path: Path, *, include_dirs: Sequence[Path] = (), defines: Iterable[str] = (), undefines: Iterable[str] = ()
) -> Checked:
    """Preprocess, parse and check a file."""
    with _deep_recursion():
        source = Preprocessor(include_dirs, defines, undefines).run(Path(path))
    return check_source(source)


def check_source(source: SourceText) -> Checked:
    """Parse and check a preprocessed text."""
    diagnostics = Diagnostics(source)
    with _deep_recursion():
        program = parse(source.text, diagnostics)
        diagnostics.check()
        checker = check(program, diagnostics)
    return Checked(source, program, checker, diagnostics)


def compile_file(
    path: Path, *, include_dirs: Sequence[Path] = (), defines: Iterable[str] = (), undefines: Iterable[str] = ()
) -> Compiled:
    """Compile a P4-16 v1model program; raises `CompileError` with every error of the phase that failed."""
    return compile_checked(
        Path(path), check_file(path, include_dirs=include_dirs, defines=defines, undefines=undefines)
    )


def compile_checked(path: Path, checked: Checked) -> Compiled:
    """Elaborate a checked program and make both outputs."""
    compiled = elaborate_checked(path, checked)
    with _deep_recursion():
        _ = compiled.p4info
        _ = compiled.bmv2_json
    warn_of_unset(checked.checker.first_uses, checked.checker.written, checked.diagnostics)
    warn_of_unused(checked.program, checked.checker.used, checked.diagnostics)
    compiled.warnings = checked.diagnostics.warnings
    return compiled


def elaborate_checked(path: Path, checked: Checked) -> Compiled:
    """Elaborate a checked program; the outputs are made, and may fail, when they are asked for."""
    with _deep_recursion():
        elaborated = elaborate(checked.program, checked.checker, checked.diagnostics)
    return Compiled(path, checked, elaborated)


def parse_declarations(path: Path, *, include_dirs: Sequence[Path] = (), defines: Iterable[str] = ()) -> list[ast.Decl]:
    """The declarations of a file and of what it includes, in order, with types resolved and constants folded.

    An enum has its values in `type.members`, a header its fields in `type.fields`; `p4types.bit_width` gives widths.
    The value of a `const` is `check_file(path).checker.constant(decl.value)`.
    """
    return check_file(path, include_dirs=include_dirs, defines=defines).program.declarations


__all__ = ["Checked", "CompileError", "Compiled", "check_file", "compile_file", "parse_declarations"]
