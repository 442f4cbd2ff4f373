"""What the parts of the checker share: scopes, and constants."""

from __future__ import annotations

from typing import Any

from p4front import consteval
from p4front import syntax as ast
from p4front.diagnostics import Abort, Diagnostics, Span
from p4front.p4types import BOOL, EnumType, StackType, StructType, Type, representation

MAX_WIDTH = 1 << 16


class FunctionSet:
    """The functions of one name in one scope, told apart by their number of parameters or their names."""

    def __init__(self, functions: list[ast.FunctionDecl]) -> None:
        self.functions = functions


class CheckerBase:
    """Scopes map a name to its declaration, to a `FunctionSet` or to a `TypeVar`."""

    def __init__(self, diagnostics: Diagnostics) -> None:
        self.diagnostics = diagnostics
        self.scopes: list[dict[str, Any]] = [{}]
        self.used: set[Any] = set()  # what `lookup` found
        self.written: set[ast.VarDecl] = set()  # variables that something assigns to
        self.first_uses: dict[ast.VarDecl, Span] = {}
        self.errors: dict[str, int] = {}
        self.match_kinds: set[str] = set()
        self.error = diagnostics.error
        self.fail = diagnostics.fail
        # Where the code being checked stands: control, action, parser, function or "" outside.
        self.context = ""
        self.return_type: Type | None = None
        self.loops = 0  # around the statement being checked

    # scopes

    def lookup(self, name: str, absolute: bool = False) -> Any:
        """What `name` means here, or None."""
        scopes = self.scopes[:1] if absolute else reversed(self.scopes)
        for scope in scopes:
            if name in scope:
                found = scope[name]
                self.used.add(found)
                if isinstance(found, FunctionSet):
                    self.used.update(found.functions)
                return found
        return None

    def declare(self, decl: ast.Decl) -> None:
        """Enter a declaration in the innermost scope."""
        scope = self.scopes[-1]
        known = scope.get(decl.name)
        if isinstance(decl, ast.FunctionDecl):
            if isinstance(known, FunctionSet):
                known.functions.append(decl)
                return
            if known is None:
                scope[decl.name] = FunctionSet([decl])
                return
        elif known is None or (isinstance(known, ast.Param) and len(self.scopes) > 1 and known is decl):
            scope[decl.name] = decl
            return
        self.error(f"{decl.name}: duplicate declaration", decl.name_span)

    def suggestion(self, name: str) -> str:
        """`; did you mean ...?` where a name close to this one is known, else nothing."""
        import difflib

        known = {candidate for scope in self.scopes for candidate in scope}
        close = difflib.get_close_matches(name, known, 1)
        return f"; did you mean {close[0]!r}?" if close else ""

    # constants

    def constant(self, expr: ast.Expr) -> consteval.Value | None:
        """The value of a checked expression if it is known at compile time; wrong arithmetic is an error."""
        try:
            return self._constant(expr)
        except consteval.ConstError as error:
            raise self.fail(str(error), expr.span) from None

    def int_constant(self, expr: ast.Expr, what: str) -> int:
        """The value of an expression that must be a number known at compile time."""
        value = self.constant(expr)
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.fail(f"{what} must be a constant number", expr.span)
        return value

    def _constant(self, expr: ast.Expr) -> consteval.Value | None:
        if isinstance(expr, ast.IntLit | ast.BoolLit | ast.StringLit):
            return expr.value
        if isinstance(expr, ast.Name):
            return self._constant(expr.decl.value) if isinstance(expr.decl, ast.ConstDecl) else None
        if isinstance(expr, ast.Member):
            base = expr.type
            if isinstance(base, EnumType) and base.base is not None and _names_type(expr.expr):
                return base.members.get(expr.name)
            if isinstance(base, EnumType) and _names_type(expr.expr):
                return f"{base.name}.{expr.name}"
            part = self._part(expr.expr, expr.name)
            if part is not None:
                return self._constant(part)
            if expr.name == "size" and isinstance(expr.expr.type, StackType):
                return expr.expr.type.size
            return None
        if isinstance(expr, ast.Index):
            position = self._constant(expr.index)
            part = self._part(expr.expr, position)
            return None if part is None else self._constant(part)
        if isinstance(expr, ast.Cast):
            value = self._constant(expr.expr)
            return None if value is None or isinstance(value, str) else consteval.cast(value, expr.type)
        if isinstance(expr, ast.Unary):
            value = self._constant(expr.expr)
            return None if value is None or isinstance(value, str) else consteval.fold_unary(expr.op, value, expr.type)
        if isinstance(expr, ast.Binary):
            left, right = self._constant(expr.left), self._constant(expr.right)
            if left is None or right is None:
                return None
            if expr.op == "++":
                if isinstance(left, str) and isinstance(right, str):
                    return left + right
                if isinstance(left, str) or isinstance(right, str):
                    return None
                return consteval.concat(left, expr.left.type, right, expr.right.type, expr.type)
            if (isinstance(left, str) or isinstance(right, str)) and expr.op not in ("==", "!="):
                return None
            return consteval.fold_binary(expr.op, left, right, expr.left.type, expr.type)
        if isinstance(expr, ast.Ternary):
            cond = self._constant(expr.cond)
            if cond is None:
                return None
            return self._constant(expr.then if cond else expr.otherwise)
        if isinstance(expr, ast.Slice):
            value = self._constant(expr.expr)
            high, low = self._constant(expr.high), self._constant(expr.low)
            if isinstance(value, int) and isinstance(high, int) and isinstance(low, int):
                return consteval.slice_bits(value, high, low)
            return None
        if isinstance(expr, ast.Call) and expr.target is not None:
            return expr.target.constant
        return None

    def _part(self, of: ast.Expr, which: object) -> ast.Expr | None:
        """The initialiser of a constant structure's field or of a constant tuple's element, or None."""
        whole = self._initialiser(of)
        if isinstance(whole, ast.StructExpr):
            return dict(whole.fields).get(which)  # type: ignore[call-overload, no-any-return]
        if not isinstance(whole, ast.ListExpr):
            return None
        if isinstance(whole.type, StructType) and which in whole.type.fields:
            return whole.items[list(whole.type.fields).index(str(which))]
        return whole.items[which] if isinstance(which, int) and 0 <= which < len(whole.items) else None

    def _initialiser(self, expr: ast.Expr) -> ast.Expr | None:
        if isinstance(expr, ast.Name) and isinstance(expr.decl, ast.ConstDecl):
            return self._initialiser(expr.decl.value)
        if isinstance(expr, ast.Member):
            part = self._part(expr.expr, expr.name)
            return None if part is None else self._initialiser(part)
        if isinstance(expr, ast.Index):
            part = self._part(expr.expr, self._constant(expr.index))
            return None if part is None else self._initialiser(part)
        if isinstance(expr, ast.Cast):
            return self._initialiser(expr.expr)
        return expr

    def width(self, expr: ast.Expr, span: Span) -> int:
        """A type's width."""
        checked = self.expr(expr)
        value = self.int_constant(checked, "a width")
        if not 0 <= value <= MAX_WIDTH:
            raise self.fail(f"{value} is not a valid width", span)
        return value

    def expr(self, expr: ast.Expr) -> ast.Expr:
        """Check an expression; implemented with the expressions."""
        raise NotImplementedError

    def recover(self, action: Any, *args: Any) -> Any:
        """Run one check; if it gives up, go on with the next."""
        try:
            return action(*args)
        except Abort:
            return None


def _names_type(expr: ast.Expr) -> bool:
    return isinstance(expr, ast.Name | ast.TypeName)


def literal(value: consteval.Value, type_: Type, span: Span, base: int = 10) -> ast.Expr:
    """A checked literal of a scalar type."""
    result: ast.Expr
    if isinstance(value, str):
        result = ast.StringLit(span, value)
    elif representation(type_) == BOOL:
        result = ast.BoolLit(span, bool(value))
    else:
        result = ast.IntLit(span, int(value), base=base)
    result.type = type_
    return result
