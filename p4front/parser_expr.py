"""Expressions, types and annotations of the grammar."""

from __future__ import annotations

from p4front import syntax as ast
from p4front.diagnostics import Abort, Span
from p4front.lexer import int_value
from p4front.parser_base import BASE_TYPES, MAX_CHAIN, ParserBase

# Binding powers; P4's order is C's, but `&`, `^` and `|` bind tighter than comparisons.
_BINARY: dict[str, int] = {
    "||": 2, "&&": 3, "==": 5, "!=": 5, "<": 6, ">": 6, "<=": 6, ">=": 6,
    "|": 7, "^": 8, "&": 9, "<<": 10, ">>": 10, "++": 11, "+": 11, "-": 11, "|+|": 11, "|-|": 11,
    "*": 12, "/": 12, "%": 12,
}  # fmt: skip
_TERNARY = 1
_COMPARE = 6
_PREFIX = ("!", "~", "-", "+")


class ExpressionParser(ParserBase):
    """Pratt parser for expressions, recursive descent for types."""

    # BNF: expression : prefix (binary-operator expression | '?' expression ':' expression)*
    def expression(self, power: int = 0) -> ast.Expr:
        """An expression whose operators bind at least as tight as `power`."""
        self.enter()
        left = self.prefix()
        chain = 0
        while self.token.kind == "op":
            chain += 1
            if chain > MAX_CHAIN:
                raise self.diagnostics.fail("syntax error, the expression is too long", self.token.span)
            op = self.token.text
            if op == "?" and power <= _TERNARY:
                self.advance()
                then = self.expression()
                self.expect(":")
                otherwise = self.expression(_TERNARY)
                left = ast.Ternary(self.since(left.span[0]), left, then, otherwise)
                continue
            if op == ">" and self.peek().text == ">" and self.peek().start == self.token.end:
                op = ">>"
            binding = _BINARY.get(op)
            if binding is None or binding < power:
                break
            self.advance()
            if op == ">>":
                self.advance()
            right = self.expression(binding + 1)
            left = ast.Binary(self.since(left.span[0]), op, left, right)
        self.leave()
        return left

    # BNF: prefix : ('!' | '~' | '-' | '+') prefix | '(' type ')' prefix | primary postfix*
    def prefix(self) -> ast.Expr:
        """An operand."""
        start = self.token.start
        if self.token.kind == "op" and self.token.text in _PREFIX:
            self.enter()
            op = self.advance().text
            operand = self.prefix()
            self.leave()
            return ast.Unary(self.since(start), op, operand)
        if self.at("("):
            cast = self.try_cast()
            if cast is not None:
                return cast
        return self.postfix(self.primary())

    def try_cast(self) -> ast.Expr | None:
        """`(type) operand`, or None when the parenthesis holds an expression."""
        following = self.peek()
        if not (following.text in BASE_TYPES or following.text == "tuple" or self.is_type_name(following.text)):
            return None
        begin = self.index
        start = self.advance().start
        node = self.speculate_type()
        if node is None or not self.at(")"):
            self.reset(begin)
            return None
        self.advance()
        self.enter()
        operand = self.prefix()
        self.leave()
        return ast.Cast(self.since(start), node, operand)

    # BNF: primary : INTEGER | STRING | 'true' | 'false' | 'this' | name | '.' name | '(' expression ')' | type
    #              | '{' expressions '}' | '{' (name '=' expression) list '}' | '{#}' | '...'
    def primary(self) -> ast.Expr:
        """An operand without operators."""
        token = self.token
        if token.kind == "int":
            self.advance()
            value = int_value(token.text)
            if value is None:
                raise self.diagnostics.fail(f"{token.text}: not a number", token.span)
            return ast.IntLit(token.span, value.value, value.width, value.signed, value.base)
        if token.kind == "id":
            self.advance()
            if self.at("<") and self.is_type_name(token.text):
                self.reset(self.index - 1)
                return self.type_operand()
            return ast.Name(token.span, token.text)
        if token.kind == "str":
            return self.string()
        if token.text in ("true", "false"):
            self.advance()
            return ast.BoolLit(token.span, token.text == "true")
        if token.text == "this":
            self.advance()
            return ast.Name(token.span, "this")
        if token.text == ".":
            self.advance()
            name = self.name()
            return ast.Name(self.since(token.start), name.text, absolute=True)
        if token.text == "(":
            self.advance()
            inner = self.expression()
            self.expect(")")
            return inner
        if token.text == "{":
            return self.braces()
        if token.text == "...":
            self.advance()
            return ast.Dots(token.span)
        if token.text in BASE_TYPES or token.text in ("tuple", "list"):
            return self.type_operand()
        raise self.unexpected("expected an expression")

    def string(self) -> ast.StringLit:
        """A string literal without its quotes and escapes."""
        token = self.advance()
        value = token.text[1:-1].replace('\\"', '"').replace("\\n", "\n").replace("\\\\", "\\")
        return ast.StringLit(token.span, value)

    def type_operand(self) -> ast.Expr:
        """A type used as a value: `error.NoError`, `register<bit<8>>(16)`."""
        start = self.token.start
        node = self.type()
        return ast.TypeName(self.since(start), node)

    # BNF: postfix : '.' name | '[' expression (':' expression)? ']' | ('<' types '>')? '(' arguments ')'
    def postfix(self, left: ast.Expr) -> ast.Expr:
        """What may follow an operand."""
        start = left.span[0]
        chain = 0
        while self.token.kind == "op":
            chain += 1
            if chain > MAX_CHAIN:
                raise self.diagnostics.fail("syntax error, the expression is too long", self.token.span)
            text = self.token.text
            if text == ".":
                self.advance()
                name = self.name()
                left = ast.Member(self.since(start), left, name.text)
            elif text == "[":
                self.advance()
                first = self.expression()
                if self.accept("+:"):
                    count = self.expression()
                    self.expect("]")
                    left = self.counted_slice(self.since(start), left, first, count)
                elif self.accept(":"):
                    second = self.expression()
                    self.expect("]")
                    left = ast.Slice(self.since(start), left, first, second)
                else:
                    self.expect("]")
                    left = ast.Index(self.since(start), left, first)
            elif text == "(":
                arguments = self.arguments()
                left = ast.Call(self.since(start), left, [], arguments)
            elif text == "<" and isinstance(left, ast.Name | ast.Member):
                type_args = self.speculate_type_args()
                if type_args is None:
                    return left
                arguments = self.arguments()
                left = ast.Call(self.since(start), left, type_args, arguments)
            else:
                return left
        return left

    def counted_slice(self, span: Span, of: ast.Expr, low: ast.Expr, count: ast.Expr) -> ast.Expr:
        """`of[low +: count]`: `count` bits from `low` upwards."""
        one = ast.IntLit(count.span, 1)
        high = ast.Binary(span, "-", ast.Binary(span, "+", low, count), one)
        return ast.Slice(span, of, high, low)

    def speculate_type_args(self) -> list[ast.TypeNode] | None:
        """`<types>` if a call's `(` follows, else None with the cursor unmoved."""
        begin, depth = self.index, self.depth
        seen = len(self.diagnostics.items)
        try:
            types = self.type_args()
        except Abort:
            types = []
        if types and self.at("("):
            return types
        self.forget(seen)
        self.depth = depth
        self.reset(begin)
        return None

    def speculate_type(self) -> ast.TypeNode | None:
        """A type, or None without any message."""
        seen, depth = len(self.diagnostics.items), self.depth
        try:
            return self.type()
        except Abort:
            self.forget(seen)
            self.depth = depth
            return None

    def forget(self, count: int) -> None:
        """Drop the messages of a failed speculation."""
        for item in self.diagnostics.items[count:]:
            self.diagnostics._seen.discard((item.message, item.location))
        del self.diagnostics.items[count:]

    # BNF: arguments : '(' (argument (',' argument)* ','?)? ')'     argument : (name '=')? (expression | '_')
    def arguments(self) -> list[ast.Argument]:
        """The arguments of a call."""
        found: list[ast.Argument] = []
        self.expect("(")
        while not self.at(")"):
            start = self.token.start
            name = None
            if self.at_name() and self.peek().text == "=":
                name = self.advance().text
                self.advance()
            expr = None
            if self.at("_") and self.peek().text in (",", ")"):
                self.advance()
            else:
                expr = self.expression()
            found.append(ast.Argument(self.since(start), name, expr))
            if not self.accept(","):
                break
        self.expect(")")
        return found

    # BNF: braces : '{' '#' '}' | '{' '}' | '{' expression (',' expression)* ','? '}'
    #             | '{' name '=' expression (',' name '=' expression)* (',' '...')? ','? '}'
    def braces(self) -> ast.Expr:
        """A list, a structure initialiser, or the invalid header."""
        start = self.expect("{").start
        if self.accept("#"):
            self.expect("}")
            return ast.Invalid(self.since(start))
        if self.at_name() and self.peek().text == "=":
            fields: list[tuple[str, ast.Expr]] = []
            while not self.at("}"):
                if self.at("..."):
                    fields.append(("...", self.primary()))
                else:
                    name = self.name().text
                    self.expect("=")
                    fields.append((name, self.expression()))
                if not self.accept(","):
                    break
            self.expect("}")
            return ast.StructExpr(self.since(start), fields)
        items: list[ast.Expr] = []
        while not self.at("}"):
            items.append(self.expression())
            if not self.accept(","):
                break
        self.expect("}")
        return ast.ListExpr(self.since(start), items)

    # types

    # BNF: size : '[' expression ']'
    def array_suffix(self, node: ast.TypeNode) -> ast.TypeNode:
        """`type name[size]`, which means `type[size] name`."""
        start = node.span[0]
        sizes: list[ast.Expr] = []
        while self.accept("["):
            sizes.append(self.expression())
            self.expect("]")
        for size in reversed(sizes):
            node = ast.StackTypeNode(self.since(start), node, size)
        return node

    # BNF: type : 'bool' | 'error' | 'string' | 'match_kind' | 'void' | ('bit'|'int'|'varbit') ('<' width '>')?
    #           | ('tuple'|'list') '<' types '>' | '.'? name ('<' types '>')? | type '[' expression ']' | '_'
    def type(self) -> ast.TypeNode:
        """A type."""
        start = self.token.start
        node: ast.TypeNode
        if self.token.text in BASE_TYPES and self.token.kind == "kw":
            name = self.advance().text
            width = None
            if name in ("bit", "int", "varbit") and self.accept("<"):
                width = self.width()
                self.expect(">")
            node = ast.BaseType(self.since(start), name, width)
        elif self.at("tuple") or (self.at("list") and self.peek().text == "<"):
            name = self.advance().text
            node = ast.TupleTypeNode(self.since(start), name, self.type_args())
        elif self.at("_"):
            self.advance()
            return ast.DontCareType(self.since(start))
        else:
            absolute = self.accept(".") is not None
            name = self.name().text
            args = self.type_args() if self.at("<") else []
            node = ast.NamedType(self.since(start), name, args, absolute)
        while self.at("["):
            self.advance()
            size = self.expression()
            self.expect("]")
            node = ast.StackTypeNode(self.since(start), node, size)
        return node

    def width(self) -> ast.Expr:
        """A type's width: a number, a constant's name, or an expression in parentheses."""
        if self.at("("):
            self.advance()
            inner = self.expression()
            self.expect(")")
            return inner
        # Operators as tight as shifts, so that `>` ends the width.
        return self.expression(_COMPARE + 5)

    # BNF: types : '<' type (',' type)* '>'
    def type_args(self) -> list[ast.TypeNode]:
        """Type arguments."""
        self.enter()
        self.expect("<")
        args = [self.type()]
        while self.accept(","):
            args.append(self.type())
        self.expect(">")
        self.leave()
        return args

    # annotations

    def annotation(self) -> ast.Annotation:
        """One annotation; its body is kept as text and, where it has one, as structure."""
        start = self.expect("@").start
        name = self.advance()
        if name.kind not in ("id", "kw"):
            raise self.unexpected("expected the name of an annotation")
        if name.text == "pragma":
            return self.pragma(start)
        if self.at("["):
            return self.structured_annotation(start, name.text)
        if not self.at("("):
            return ast.Annotation(self.since(start), name.text)
        opening = self.advance()
        begin, depth = self.index, 1
        while depth and self.token.kind != "eof":
            depth += {"(": 1, ")": -1}.get(self.token.text, 0) if self.token.kind == "op" else 0
            self.advance()
        if depth:
            raise self.diagnostics.fail("syntax error, annotation is not closed", opening.span)
        closing = self.tokens[self.index - 1]
        end = self.index
        body = self.text[opening.end : closing.start]
        self.reset(begin)
        pairs = self.annotation_pairs(end - 1)
        args = [] if pairs else self.annotation_args(end - 1)
        self.reset(end)
        return ast.Annotation(self.since(start), name.text, body, args, pairs)

    def pragma(self, start: int) -> ast.Annotation:
        """`@pragma name arguments`, up to the end of the line: the older way to write `@name(arguments)`."""
        name = self.advance()
        if name.kind not in ("id", "kw"):
            raise self.unexpected("expected the name of a pragma")
        line_end = self.text.find("\n", name.end)
        begin = self.index
        while self.token.kind != "eof" and (line_end < 0 or self.token.start < line_end):
            self.advance()
        end = self.index
        if end == begin:
            return ast.Annotation(self.since(start), name.text)
        body = self.text[self.tokens[begin].start : self.tokens[end - 1].end]
        self.reset(begin)
        args = self.annotation_args(end)
        self.reset(end)
        return ast.Annotation(self.since(start), name.text, body, args)

    def annotation_args(self, end: int) -> list[ast.Expr]:
        """The body read as comma-separated expressions; empty where it is something else."""
        seen, depth = len(self.diagnostics.items), self.depth
        args: list[ast.Expr] = []
        try:
            while self.index < end:
                args.append(self.expression())
                if self.index < end:
                    self.expect(",")
        except Abort:
            self.forget(seen)
            self.depth = depth
            return []
        return args if self.index == end else []

    def annotation_pairs(self, end: int) -> dict[str, ast.Expr]:
        """The body read as `key = value, ...`; empty where it is something else."""
        pairs: dict[str, ast.Expr] = {}
        begin, seen, depth = self.index, len(self.diagnostics.items), self.depth
        try:
            while self.index < end and self.at_name() and self.peek().text == "=":
                key = self.advance().text
                self.advance()
                pairs[key] = self.expression()
                if self.index < end:
                    self.expect(",")
        except Abort:
            self.forget(seen)
            self.depth = depth
            pairs = {}
        if self.index != end:
            pairs = {}
        self.reset(begin)
        return pairs

    def structured_annotation(self, start: int, name: str) -> ast.Annotation:
        """`@name[a, b]` or `@name[k = v]`."""
        opening = self.expect("[")
        args: list[ast.Expr] = []
        pairs: dict[str, ast.Expr] = {}
        while not self.at("]"):
            if self.at_name() and self.peek().text == "=":
                key = self.advance().text
                self.advance()
                pairs[key] = self.expression()
            else:
                args.append(self.expression())
            if not self.accept(","):
                break
        closing = self.expect("]")
        body = self.text[opening.end : closing.start]
        return ast.Annotation(self.since(start), name, body, args, pairs, structured=True)
