"""Text to tokens: one regular expression over the preprocessed text."""

from __future__ import annotations

import re
from dataclasses import dataclass

from p4front.consteval import MAX_INT_BITS
from p4front.diagnostics import Span

KEYWORDS = frozenset((
    "abstract", "action", "bit", "bool", "break", "const", "continue", "control", "default", "else", "enum",
    "error", "exit", "extern", "false", "for", "header", "header_union", "if", "in", "inout", "int",
    "match_kind", "out", "package", "parser", "pragma", "return", "select", "state", "string", "struct",
    "switch", "table", "this", "transition", "true", "tuple", "typedef", "type", "value_set", "varbit",
    "void", "apply", "key", "actions", "entries", "list", "priority",
))  # fmt: skip
# Keywords that are names wherever the grammar does not want the keyword.
SOFT_KEYWORDS = frozenset(["apply", "key", "actions", "state", "entries", "type", "list", "priority"])

_TOKEN = re.compile(
    r"""
      (?P<space>\s+)
    | (?P<int>(?:\d+[ws])?(?:0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+|0[dD][0-9_]+|\d[\d_]*))
    | (?P<id>[A-Za-z_]\w*)
    | (?P<str>"(?:[^"\\]|\\.)*")
    | (?P<op>\.\.\.|\.\.|&&&|\|\+\|=|\|-\|=|\|\+\||\|-\||<<=|\+\+|&&|\|\||==|!=|<=|>=|<<
            |\+=|-=|\*=|/=|%=|&=|\|=|\^=|\+:|[-+*/%&|^~!<>=?:;,.(){}\[\]@\#])
    | (?P<bad>.)
    """,
    re.VERBOSE | re.ASCII | re.DOTALL,
)


@dataclass(slots=True)
class Token:
    """`kind` is id, kw, int, str, op, bad or eof; a soft keyword is an id."""

    kind: str
    text: str
    start: int
    end: int

    @property
    def span(self) -> Span:
        """Where the token stands."""
        return (self.start, self.end)


def tokenize(text: str) -> list[Token]:
    """All tokens of `text`, the last of kind eof.

    A character that starts no token is one of kind bad: the parser reports it, unless it is in a free-form annotation.
    """
    tokens: list[Token] = []
    append = tokens.append
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup
        if kind == "space":
            continue
        found = match.group()
        start, end = match.span()
        if kind == "id":
            hard = found in KEYWORDS and found not in SOFT_KEYWORDS
            append(Token("kw" if hard else "id", found, start, end))
        else:
            assert kind is not None
            append(Token(kind, found, start, end))
    append(Token("eof", "end of file", len(text), len(text)))
    return tokens


@dataclass(slots=True, frozen=True)
class IntValue:
    """A literal's value; `width` is None for an arbitrary-precision `int`, `base` is how it was written."""

    value: int
    width: int | None
    signed: bool
    base: int = 10


def int_value(text: str) -> IntValue | None:
    """`8w0xff` and its like; None where the digits are missing (`0x_`)."""
    match = re.fullmatch(r"(?:(\d+)([ws]))?(0[xXbBoOdD])?(\w+)", text)
    if match is None:
        return None
    digits = match[4].replace("_", "")
    base = {None: 10, "x": 16, "b": 2, "o": 8, "d": 10}[match[3][1].lower() if match[3] else None]
    try:
        value = int(digits, base)
    except ValueError:  # no digit, or more digits than Python converts
        return None
    if value.bit_length() > MAX_INT_BITS:
        return None
    if match[1] is None:
        return IntValue(value, None, False, base)
    if len(match[1]) > 5:
        return None
    return IntValue(value, int(match[1]), match[2] == "s", base)
