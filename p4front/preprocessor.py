"""The C preprocessor as P4 programs use it: includes, macros, conditionals.

The result is a `SourceText`: comments become blanks and directives become nothing, so a column in the text is the
column in the file unless a macro was expanded earlier on that line.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from p4front.diagnostics import CompileError, Diagnostic, FileError, Location, SourceText
from p4front.preprocessor_if import IfExpressionError, evaluate_condition

STANDARD_INCLUDE_DIR = Path(__file__).parent / "include"
STANDARD_PREFIX = "p4include/"  # of the names by which messages show its files
MAX_INCLUDE_DEPTH = 64
_OTHER_ARCHITECTURES = ("psa.p4", "bmv2/psa.p4", "dpdk/psa.p4", "pna.p4", "dpdk/pna.p4", "tna.p4", "t2na.p4")
MAX_EXPANSION = 1 << 20

_PIECE = re.compile(r'[A-Za-z_]\w*|"(?:[^"\\\n]|\\.)*"|\d\w*|##|#|\s+|.', re.DOTALL)
_COMMENT = re.compile(r'//[^\n]*|/\*.*?(?:\*/|\Z)|"(?:[^"\\]|\\.)*"', re.DOTALL)
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_DIRECTIVE = re.compile(r"\s*#\s*(\w*)(.*)", re.DOTALL)


@dataclass(slots=True)
class Macro:
    """`parameters` is None for an object-like macro."""

    body: list[str]
    parameters: list[str] | None = None


@dataclass(slots=True)
class _Conditional:
    """One open `#if`: whether this branch is live, whether any branch was, and whether the outside is."""

    live: bool
    taken: bool
    outer: bool
    line: int


class Preprocessor:
    """Runs over one file and what it includes; `-D` and `-U` seed `macros`."""

    def __init__(
        self, include_dirs: Sequence[Path] = (), defines: Iterable[str] = (), undefines: Iterable[str] = ()
    ) -> None:
        self.include_dirs = [*include_dirs, STANDARD_INCLUDE_DIR]
        self.macros: dict[str, Macro] = {"__p4c__": Macro(["1"])}
        for define in defines:
            name, equals, value = define.partition("=")
            if not _IDENTIFIER.fullmatch(name):
                raise CompileError([Diagnostic("error", f"-D{define}: {name!r} is not an identifier")])
            self.macros[name] = Macro(_pieces(value) if equals else ["1"])
        for name in undefines:
            self.macros.pop(name, None)
        self.files: dict[str, list[str]] = {}
        self._out: list[str] = []
        self._origins: list[tuple[str, int]] = []

    def run(self, path: Path) -> SourceText:
        """Preprocess `path`; raises `CompileError` if a file is missing or a directive is wrong."""
        self._file(path, str(path), depth=0, includer=None)
        return SourceText("\n".join(self._out), self._origins, self.files)

    def run_text(self, text: str, name: str = "<text>") -> SourceText:
        """Preprocess a text that is in no file."""
        self._text(text, name, Path("."), depth=0)
        return SourceText("\n".join(self._out), self._origins, self.files)

    # files and lines

    def _file(self, path: Path, shown: str, depth: int, includer: Location | None) -> None:
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise self._error(f"cannot read {shown}: {error.strerror or error}", includer) from None
        if "\0" in text:
            raise self._error(f"cannot read {shown}: not a text file", includer)
        self._text(text, shown, path.parent, depth)

    def _text(self, text: str, shown: str, folder: Path, depth: int) -> None:
        text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\f", " ").replace("\v", " ")
        self.files[shown] = text.split("\n")
        stack: list[_Conditional] = []
        lines = enumerate(_blank_comments(text).split("\n"), start=1)
        for number, line in lines:
            match = _DIRECTIVE.fullmatch(line) if "#" in line else None
            if match:
                while line.endswith("\\"):
                    _, more = next(lines, (0, ""))
                    line = line[:-1] + " " + more
                match = _DIRECTIVE.fullmatch(line)
                assert match is not None
                at = Location(shown, number, line.index("#") + 1)
                self._directive(match[1], match[2].strip(), at, folder, stack, depth)
            elif not stack or stack[-1].live:
                self._emit(line, shown, number, lines)
        if stack:
            raise self._error("unterminated conditional directive", Location(shown, stack[-1].line, 1))

    def _emit(self, line: str, shown: str, number: int, lines: Iterator[tuple[int, str]]) -> None:
        if any(name in self.macros for name in _IDENTIFIER.findall(line)):
            consumed = 0
            expanded = self._expand_line(line)
            while expanded is None:  # the arguments of a call go on in the next line
                following = next(lines, None)
                if following is None:
                    raise self._error("unterminated argument list invoking macro", Location(shown, number, 1))
                line = f"{line} {following[1]}"
                consumed += 1
                expanded = self._expand_line(line)
            line = expanded.replace("\n", " ")
        self._out.append(line)
        self._origins.append((shown, number))

    # directives

    def _directive(
        self, name: str, rest: str, at: Location, folder: Path, stack: list[_Conditional], depth: int
    ) -> None:
        live = not stack or stack[-1].live
        if name in ("if", "ifdef", "ifndef"):
            value = live and self._condition(name, rest, at)
            stack.append(_Conditional(value, value, live, at.line))
        elif name in ("elif", "else", "endif"):
            if not stack:
                raise self._error(f"#{name} without #if", at)
            top = stack[-1]
            if name == "endif":
                stack.pop()
            else:
                top.live = top.outer and not top.taken and (name == "else" or self._condition("if", rest, at))
                top.taken = top.taken or top.live
        elif not live or name in ("", "line", "pragma", "ident"):
            return
        elif name == "define":
            self._define(rest, at)
        elif name == "undef":
            self.macros.pop(rest, None)
        elif name == "include":
            self._include(rest, at, folder, depth)
        elif name == "error":
            raise self._error(f"#error {rest}", at)
        elif name != "warning" and not name.isdigit():
            raise self._error(f"invalid preprocessing directive #{name}", at)

    def _condition(self, name: str, rest: str, at: Location) -> bool:
        if name != "if":
            match = _IDENTIFIER.match(rest)
            if match is None:
                raise self._error(f"#{name} needs a macro name", at)
            return (match[0] in self.macros) == (name == "ifdef")

        def defined(match: re.Match[str]) -> str:
            return " 1 " if (match[1] or match[2]) in self.macros else " 0 "

        rest = re.sub(r"\bdefined\s*(?:\(\s*(\w+)\s*\)|(\w+))", defined, rest)
        expanded = self._expand_line(rest)
        try:
            return bool(evaluate_condition(expanded or ""))
        except IfExpressionError as error:
            raise self._error(f"in #if: {error}", at) from None

    def _define(self, rest: str, at: Location) -> None:
        match = _IDENTIFIER.match(rest)
        if match is None:
            raise self._error("macro names must be identifiers", at)
        body = rest[match.end() :]
        parameters = None
        if body.startswith("("):
            inside, close, body = body[1:].partition(")")
            if not close:
                raise self._error("missing ')' in macro parameter list", at)
            parameters = [part.strip() for part in inside.split(",")] if inside.strip() else []
            if not all(_IDENTIFIER.fullmatch(parameter) for parameter in parameters):
                raise self._error("macro parameters must be identifiers", at)
        self.macros[match[0]] = Macro(_pieces(body.strip()), parameters)

    def _include(self, rest: str, at: Location, folder: Path, depth: int) -> None:
        if rest[:1] not in ('"', "<"):
            rest = (self._expand_line(rest) or "").strip()
        close = {'"': '"', "<": ">"}.get(rest[:1])
        target, found, _ = rest[1:].partition(close) if close else ("", "", "")
        if not found or not target or "\0" in target:
            raise self._error('#include expects "FILENAME" or <FILENAME>', at)
        if depth >= MAX_INCLUDE_DEPTH:
            raise self._error("#include nested too deeply", at)
        folders = [folder, *self.include_dirs] if close == '"' else self.include_dirs
        for candidate in folders:
            path = candidate / target
            if not os.path.isfile(path):  # also False for names that no file can have
                continue
            shown = f"{STANDARD_PREFIX}{target}" if candidate == STANDARD_INCLUDE_DIR else str(path)
            self._file(path, shown, depth + 1, at)
            return
        known = "; the architecture is v1model, others are not supported" if target in _OTHER_ARCHITECTURES else ""
        raise self._error(f"{target}: no such file or directory{known}", at)

    # macro expansion

    def _expand_line(self, line: str) -> str | None:
        """The line with macros expanded, or None if a call's closing parenthesis is not on it."""
        result = self._expand(_pieces(line), frozenset())
        return None if result is None else "".join(result)

    def _expand(self, pieces: list[str], hidden: frozenset[str]) -> list[str] | None:
        out: list[str] = []
        index = 0
        while index < len(pieces):
            piece = pieces[index]
            index += 1
            macro = self.macros.get(piece) if piece not in hidden else None
            if macro is None:
                out.append(piece)
                continue
            arguments: dict[str, list[str]] = {}
            if macro.parameters is not None:
                call = _arguments(pieces, index)
                if call is None:
                    return None
                values, end = call
                if values is None:
                    out.append(piece)
                    continue
                index = end
                if not macro.parameters and values == [[]]:
                    values = []
                if len(values) != len(macro.parameters):
                    message = f'macro "{piece}" takes {len(macro.parameters)} arguments, {len(values)} given'
                    raise CompileError([Diagnostic("error", message)])
                arguments = dict(zip(macro.parameters, values, strict=True))
            body = self._substitute(macro.body, arguments, hidden)
            expanded = None if body is None else self._expand(body, hidden | {piece})
            if expanded is None:
                return None
            out.extend(expanded)
            if len(out) > MAX_EXPANSION:
                raise CompileError([Diagnostic("error", f'expansion of macro "{piece}" is too long')])
        return out

    def _substitute(
        self, body: list[str], arguments: dict[str, list[str]], hidden: frozenset[str]
    ) -> list[str] | None:
        out: list[str] = []
        index = 0
        while index < len(body):
            piece = body[index]
            following = _next_solid(body, index + 1)
            if piece == "##":
                while out and out[-1].isspace():
                    out.pop()
                left = out.pop() if out else ""
                right = arguments.get(body[following], [body[following]]) if following < len(body) else []
                out.extend(_pieces(left + "".join(right)))
                index = following + 1
            elif piece == "#" and following < len(body) and body[following] in arguments:
                out.append('"' + "".join(arguments[body[following]]).replace('"', '\\"') + '"')
                index = following + 1
            elif piece in arguments:
                pasted = following < len(body) and body[following] == "##"
                value = arguments[piece] if pasted else self._expand(list(arguments[piece]), hidden)
                if value is None:
                    return None
                out.extend(value)
                index += 1
            else:
                out.append(piece)
                index += 1
        return out

    def _error(self, message: str, at: Location | None) -> CompileError:
        excerpt: tuple[str, ...] = ()
        if at is not None:
            lines = self.files.get(at.file, [])
            if 0 < at.line <= len(lines):
                line = lines[at.line - 1]
                lead = line[: at.column - 1]
                excerpt = (line, lead + "^" * max(1, len(line.rstrip()) - len(lead)))
        kind = FileError if at is None else CompileError
        return kind([Diagnostic("error", message, at, excerpt)])


def _pieces(text: str) -> list[str]:
    return _PIECE.findall(text)


def _next_solid(pieces: list[str], index: int) -> int:
    while index < len(pieces) and pieces[index].isspace():
        index += 1
    return index


def _arguments(pieces: list[str], index: int) -> tuple[list[list[str]] | None, int] | None:
    """The arguments of a macro call at `index`: None if unterminated, (None, _) if there is no call."""
    index = _next_solid(pieces, index)
    if index >= len(pieces) or pieces[index] != "(":
        return None, index
    values: list[list[str]] = [[]]
    depth = 1
    for position in range(index + 1, len(pieces)):
        piece = pieces[position]
        if piece == "(":
            depth += 1
        elif piece == ")":
            depth -= 1
            if depth == 0:
                return [_strip(value) for value in values], position + 1
        elif piece == "," and depth == 1:
            values.append([])
            continue
        values[-1].append(piece)
    return None


def _strip(pieces: list[str]) -> list[str]:
    while pieces and pieces[-1].isspace():
        pieces.pop()
    return pieces[_next_solid(pieces, 0) :]


def _blank_comments(text: str) -> str:
    """Comments as blanks of the same length, so that lines and columns stay; strings stay."""

    def blank(match: re.Match[str]) -> str:
        found = match[0]
        if found[0] == '"':
            return found
        if "\n" not in found:
            return " " * len(found)
        return re.sub(r"[^\n]", " ", found)

    return _COMMENT.sub(blank, text)
