"""Writes indented C, and turns untrusted text into identifiers, string literals and comments."""

from __future__ import annotations

from .errors import ProgramError
from .model import Source

MAX_LINES = 400_000
_SAFE_IN_STRING = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _.,:;+-=()<>[]{}$#@!&|^~*/'")


def identifier(prefix: str, index: int, original: str) -> str:
    """A C name that is unique by `prefix` and `index`; the original only decorates it.

    >>> identifier("h", 3, 'ipv4"; }')
    'h3_ipv4'
    """
    kept = "".join(c if c.isascii() and c.isalnum() else "_" for c in original)[:40].strip("_")
    return f"{prefix}{index}_{kept}" if kept else f"{prefix}{index}"


def string_literal(text: str) -> str:
    """A C string literal; whatever is not plainly harmless becomes an octal escape.

    >>> string_literal('a"b')
    '"a\\\\042b"'
    """
    out = []
    for char in text:
        if char in _SAFE_IN_STRING:
            out.append(char)
        else:
            out += [f"\\{byte:03o}" for byte in char.encode("utf-8", "backslashreplace")]
    return '"' + "".join(out) + '"'


def comment(text: str) -> str:
    """A one-line C comment.

    >>> comment("x = 1; */ evil /*")
    '/* x = 1; * / evil / * */'
    """
    out: list[str] = []
    for char in text[:160]:
        if char in "\\\n\r\t" or not char.isascii() or not char.isprintable():
            char = " "
        if out and out[-1] + char in ("/*", "*/", "??"):
            out.append(" ")
        out.append(char)
    return "/* " + "".join(out) + " */"


def source_comment(source: Source | None) -> str | None:
    return comment(f"{source.file}({source.line}): {' '.join(source.fragment.split())}") if source else None


class Emitter:
    """Lines of C.  A line that ends with `{` opens a block, one that starts with `}` closes it."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._depth = 0

    def line(self, text: str = "") -> None:
        if len(self._lines) >= MAX_LINES:
            raise ProgramError("document", f"needs more than {MAX_LINES} lines of C")
        if text.startswith("}"):
            self._depth -= 1
        self._lines.append(f"{'    ' * self._depth}{text}" if text else "")
        if text.endswith("{"):
            self._depth += 1

    def label(self, name: str) -> None:
        """A label, one step to the left of what it marks; nothing need go to it."""
        self._depth -= 1
        self.line(f"{name}: PLAIT_UNUSED;")
        self._depth += 1

    def lines(self, *texts: str) -> None:
        for text in texts:
            self.line(text)

    def source(self, source: Source | None) -> None:
        text = source_comment(source)
        if text is not None:
            self.line(text)

    def text(self) -> str:
        return "\n".join(self._lines) + "\n"
