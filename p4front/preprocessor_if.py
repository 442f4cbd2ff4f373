"""The expressions of `#if` and `#elif`: C integer arithmetic over literals; any identifier left is 0."""

from __future__ import annotations

import re
from collections.abc import Callable

_TOKEN = re.compile(r"\s*(0[xX][0-9a-fA-F]+|0[bB][01]+|\d+|[A-Za-z_]\w*|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%()!~<>&|^?:])")
MAX_DEPTH = 40

_LEVELS: list[dict[str, Callable[[int, int], int]]] = [
    {"||": lambda a, b: int(bool(a) or bool(b))},
    {"&&": lambda a, b: int(bool(a) and bool(b))},
    {"|": lambda a, b: a | b},
    {"^": lambda a, b: a ^ b},
    {"&": lambda a, b: a & b},
    {"==": lambda a, b: int(a == b), "!=": lambda a, b: int(a != b)},
    {
        "<": lambda a, b: int(a < b),
        ">": lambda a, b: int(a > b),
        "<=": lambda a, b: int(a <= b),
        ">=": lambda a, b: int(a >= b),
    },
    {"<<": lambda a, b: a << min(max(b, 0), 63), ">>": lambda a, b: a >> min(max(b, 0), 63)},
    {"+": lambda a, b: a + b, "-": lambda a, b: a - b},
    {"*": lambda a, b: a * b, "/": lambda a, b: _divided(a, b), "%": lambda a, b: a - b * _divided(a, b)},
]


class IfExpressionError(Exception):
    """The condition is not an expression, or has no value."""


def _divided(left: int, right: int) -> int:
    """C's division, which goes towards zero."""
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def evaluate_condition(text: str) -> int:
    """The value of a condition whose macros are already expanded."""
    tokens: list[str] = []
    position = 0
    text = text.rstrip()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise IfExpressionError(f"unexpected {text[position:].strip()[:1]!r}")
        tokens.append(match[1])
        position = match.end()
    reader = _Reader(tokens)
    value = reader.ternary()
    if reader.peek():
        raise IfExpressionError(f"unexpected {reader.peek()!r}")
    if value is None:
        raise IfExpressionError("division by zero")
    return value


def _applied(op: str, apply: Callable[[int, int], int], left: int | None, right: int | None) -> int | None:
    """`left op right`, where None is the quotient of a division by zero: wrong only if its value is needed."""
    if op == "&&" and left == 0:
        return 0
    if op == "||" and left:
        return 1
    if left is None or right is None or (op in ("/", "%") and right == 0):
        return None
    return apply(left, right)


class _Reader:
    def __init__(self, tokens: list[str]) -> None:
        self.tokens = tokens
        self.index = 0
        self.depth = 0

    def peek(self) -> str:
        return self.tokens[self.index] if self.index < len(self.tokens) else ""

    def take(self) -> str:
        token = self.peek()
        self.index += 1
        return token

    # BNF: ternary : binary ('?' ternary ':' ternary)?
    def ternary(self) -> int | None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise IfExpressionError("nested too deeply")
        value = self.binary(0)
        if self.peek() == "?":
            self.take()
            then = self.ternary()
            if self.take() != ":":
                raise IfExpressionError("expected ':'")
            otherwise = self.ternary()
            value = None if value is None else then if value else otherwise
        self.depth -= 1
        return value

    # BNF: binary[n] : binary[n+1] (operator[n] binary[n+1])*
    def binary(self, level: int) -> int | None:
        if level == len(_LEVELS):
            return self.unary()
        value = self.binary(level + 1)
        while self.peek() in _LEVELS[level]:
            op = self.take()
            value = _applied(op, _LEVELS[level][op], value, self.binary(level + 1))
        return value

    # BNF: unary : ('!' | '~' | '-' | '+')* (number | identifier | '(' ternary ')')
    def unary(self) -> int | None:
        token = self.take()
        if token in ("!", "~", "-", "+"):
            self.depth += 1
            if self.depth > MAX_DEPTH:
                raise IfExpressionError("nested too deeply")
            value = self.unary()
            self.depth -= 1
            if value is None:
                return None
            return {"!": int(not value), "~": ~value, "-": -value, "+": value}[token]
        if token == "(":
            value = self.ternary()
            if self.take() != ")":
                raise IfExpressionError("expected ')'")
            return value
        if not token or not (token[0].isalnum() or token[0] == "_"):
            raise IfExpressionError(f"unexpected {token or 'end of line'!r}")
        if not token[0].isdigit():
            return 0
        if token.isdigit():
            return int(token, 8 if len(token) > 1 and token[0] == "0" and set(token) <= set("01234567") else 10)
        return int(token, 0)
