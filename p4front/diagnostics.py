"""Source positions, errors and warnings.

Every phase works on one preprocessed text; an AST node remembers a `Span` of offsets into it.  `SourceText` turns an
offset back into the file, line and column the user wrote, and shows the line with carets under the token.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field

Span = tuple[int, int]

NOWHERE: Span = (-1, -1)


@dataclass(slots=True, frozen=True)
class Location:
    """A place in a file as a person counts it: line and column start at 1."""

    file: str
    line: int
    column: int


@dataclass(slots=True)
class SourceText:
    """The preprocessed text with, for each of its lines, the file and line it came from."""

    text: str
    origins: list[tuple[str, int]]
    files: dict[str, list[str]] = field(default_factory=dict)
    _starts: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        position = 0
        for line in self.text.split("\n"):
            self._starts.append(position)
            position += len(line) + 1

    def locate(self, offset: int) -> Location:
        """Where in the user's files the character at `offset` was written."""
        index = bisect_right(self._starts, max(offset, 0)) - 1
        file, line = self.origins[index] if index < len(self.origins) else ("", 0)
        return Location(file, line, offset - self._starts[index] + 1)

    def fragment(self, span: Span) -> str:
        """The text of `span`, cut at the end of its first line as p4c's `source_fragment` is."""
        text = self.text[span[0] : span[1]]
        first, newline, _ = text.partition("\n")
        return f"{first.rstrip()} ..." if newline else first

    def excerpt(self, span: Span) -> list[str]:
        """The source line of `span` and a line of carets beneath its part on that line."""
        where = self.locate(span[0])
        lines = self.files.get(where.file, [])
        if not 0 < where.line <= len(lines):
            return []
        line = lines[where.line - 1].rstrip("\n")
        index = bisect_right(self._starts, max(span[0], 0)) - 1
        line_end = self._starts[index + 1] - 1 if index + 1 < len(self._starts) else len(self.text)
        width = max(1, min(span[1], line_end) - span[0])
        column = min(where.column, len(line) + 1)
        lead = "".join("\t" if char == "\t" else " " for char in line[: column - 1])
        return [line, lead + "^" * min(width, max(1, len(line) + 1 - column))]


@dataclass(slots=True, frozen=True)
class Diagnostic:
    """One finished message: severity, place, text, the excerpt that shows the place; `kind` is p4c's of a warning."""

    severity: str
    message: str
    location: Location | None = None
    excerpt: tuple[str, ...] = ()
    kind: str = ""

    def __str__(self) -> str:
        prefix = ""
        if self.location is not None:
            prefix = f"{self.location.file}({self.location.line}:{self.location.column}): "
        if self.kind:
            prefix += f"[--W{'warn' if self.severity == 'warning' else 'error'}={self.kind}] "
        return "\n".join([f"{prefix}{self.severity}: {self.message}", *self.excerpt])


class CompileError(Exception):
    """The program cannot be compiled; `diagnostics` says why, errors and warnings in source order of discovery."""

    exit_code = 1

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = list(diagnostics)
        super().__init__("\n".join(str(diagnostic) for diagnostic in self.diagnostics))


class FileError(CompileError):
    """A file that was named to the compiler cannot be used."""

    exit_code = 2


class Abort(Exception):
    """Unwinds to the nearest point of recovery; the error itself is already in the `Diagnostics`."""


class Diagnostics:
    """Collects the messages of a compilation; a phase ends with `check()`."""

    LIMIT = 50

    def __init__(self, source: SourceText | None = None) -> None:
        self.source = source
        self.items: list[Diagnostic] = []
        # limits of the switch, which the P4Info does not know: they count from `show_limits` on
        self.limits: list[Diagnostic] = []
        self._seen: set[tuple[str, Location | None]] = set()

    def error(self, message: str, span: Span | None = None) -> None:
        """Record an error; the same message at the same place is recorded once."""
        self._add("error", message, span, self.items)
        if self.error_count >= self.LIMIT:
            raise CompileError(self.items)

    def warning(self, kind: str, message: str, span: Span | None = None) -> None:
        """Record a warning; `kind` is what `--Wdisable=` and `@noWarn` call it."""
        self._add("warning", message, span, self.items, kind)

    def fail(self, message: str, span: Span | None = None) -> Abort:
        """Record an error and give the exception to raise: `raise diagnostics.fail(...)`."""
        self.error(message, span)
        return Abort(message)

    def unsupported(self, construct: str, span: Span | None = None) -> Abort:
        """As `fail`, for a construct that the language has and this compiler has not yet."""
        return self.fail(f"{construct} are not supported yet", span)

    def limit(self, message: str, span: Span | None = None) -> Abort:
        """As `fail`, for what BMv2 cannot do though P4 and the control plane's view of the program can."""
        self._add("error", message, span, self.limits)
        return Abort(message)

    def show_limits(self) -> None:
        """From here on, what BMv2 cannot do is an error."""
        self.items += self.limits
        self.limits = []

    def check(self) -> None:
        """Raise `CompileError` if there was an error so far."""
        if self.error_count:
            raise CompileError(self.items)

    @property
    def error_count(self) -> int:
        """How many errors were recorded."""
        return sum(item.severity == "error" for item in self.items)

    @property
    def warnings(self) -> list[Diagnostic]:
        """The warnings, which do not stop a compilation."""
        return [item for item in self.items if item.severity == "warning"]

    def _add(
        self, severity: str, message: str, span: Span | None, to: list[Diagnostic], kind: str = ""
    ) -> None:
        location: Location | None = None
        excerpt: tuple[str, ...] = ()
        if self.source is not None and span is not None and span[0] >= 0:
            location = self.source.locate(span[0])
            excerpt = tuple(self.source.excerpt(span))
        if (message, location) not in self._seen:
            self._seen.add((message, location))
            to.append(Diagnostic(severity, message, location, excerpt, kind))
