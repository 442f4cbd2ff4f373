"""What the parser's parts share: the token cursor, errors with recovery, and the scoped set of type names.

P4's grammar needs to know which names are types: `(a) - b` is a cast or a subtraction, `f<a>(b)` a call or two
comparisons.
"""

from __future__ import annotations

from p4front import syntax as ast
from p4front.diagnostics import Abort, Diagnostics, Span
from p4front.lexer import Token

BASE_TYPES = frozenset(("bool", "bit", "int", "varbit", "error", "string", "match_kind", "void"))
MAX_DEPTH = 200
MAX_CHAIN = 1000


class ParserBase:
    """A cursor over tokens."""

    def __init__(self, tokens: list[Token], text: str, diagnostics: Diagnostics) -> None:
        self.tokens = tokens
        self.text = text
        self.diagnostics = diagnostics
        self.index = 0
        self.token = tokens[0]
        self.depth = 0
        self.scopes: list[dict[str, bool]] = [{}]

    # cursor

    def advance(self) -> Token:
        """Take the current token."""
        token = self.token
        if self.index + 1 < len(self.tokens):
            self.index += 1
            self.token = self.tokens[self.index]
        return token

    def peek(self, ahead: int = 1) -> Token:
        """The token `ahead` of the current one."""
        return self.tokens[min(self.index + ahead, len(self.tokens) - 1)]

    def reset(self, index: int) -> None:
        """Go back to a token seen before."""
        self.index = index
        self.token = self.tokens[index]

    def at(self, text: str) -> bool:
        """Whether the current token is this keyword or symbol."""
        return self.token.text == text and self.token.kind != "str"

    def accept(self, text: str) -> Token | None:
        """Take the current token if it is this keyword or symbol."""
        return self.advance() if self.at(text) else None

    def expect(self, text: str) -> Token:
        """Take this keyword or symbol, or report what is there instead."""
        if self.at(text):
            return self.advance()
        raise self.unexpected(f"expected {text!r}")

    def unexpected(self, hint: str = "") -> Abort:
        """Report the current token."""
        what = "end of file" if self.token.kind == "eof" else repr(self.token.text)
        if self.token.kind == "bad":
            what, hint = ("unterminated string" if self.token.text == '"' else f"character {what}"), ""
        return self.diagnostics.fail(f"syntax error, unexpected {what}{', ' + hint if hint else ''}", self.token.span)

    def since(self, start: int) -> Span:
        """From `start` to the end of the token before the current one."""
        end = self.tokens[self.index - 1].end if self.index else start
        return (start, max(start, end))

    def enter(self) -> None:
        """Count one level of nesting; deep nesting is an error rather than a Python recursion error."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.diagnostics.fail("syntax error, nested too deeply", self.token.span)

    def leave(self) -> None:
        """End of a level of nesting."""
        self.depth -= 1

    def skip_to(self, begin: int, *ends: str) -> None:
        """Error recovery: go behind the next `;` or `}` of the construct that began at token `begin`.

        Stops before one of `ends` where the construct is not inside its own braces.
        """
        depth = 0
        for token in self.tokens[begin : self.index]:
            if token.kind == "op":
                depth += {"{": 1, "}": -1}.get(token.text, 0)
        depth = max(depth, 0)
        while self.token.kind != "eof":
            text = self.token.text if self.token.kind in ("op", "kw", "id") else ""
            if depth == 0 and text in ends:
                return
            self.advance()
            if text == "{":
                depth += 1
            elif text == "}":
                depth -= 1
                if depth < 0 or (depth == 0 and text == "}"):
                    return
            elif text == ";" and depth == 0:
                return

    # names

    def is_type_name(self, name: str) -> bool:
        """Whether the innermost declaration of `name` is a type."""
        return next((scope[name] for scope in reversed(self.scopes) if name in scope), False)

    def declare(self, name: str, is_type: bool) -> None:
        """Enter a name in the innermost scope."""
        self.scopes[-1][name] = is_type

    def at_name(self) -> bool:
        """Whether the current token can be a name."""
        return self.token.kind == "id"

    # BNF: name : IDENTIFIER | 'apply' | 'key' | 'actions' | 'state' | 'entries' | 'type' | 'list' | 'priority'
    def name(self) -> Token:
        """Take a name."""
        if self.token.kind != "id":
            raise self.unexpected("expected a name")
        return self.advance()

    # BNF: annotations : ('@' name ('(' body ')' | '[' expressions-or-pairs ']')?)*
    def annotations(self) -> list[ast.Annotation]:
        """The annotations before a declaration or statement."""
        found: list[ast.Annotation] = []
        while self.at("@"):
            found.append(self.annotation())
        return found

    def annotation(self) -> ast.Annotation:
        """One annotation; implemented with the expressions."""
        raise NotImplementedError
