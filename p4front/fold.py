"""Constructors of IR expressions that compute what is known already."""

from __future__ import annotations

from p4front import consteval, ir
from p4front import p4types as t

_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")


def number(value: int, type_: t.Type) -> ir.Const:
    """A constant, reduced to its type's width."""
    return ir.Const(type_, consteval.wrap(value, type_))


def boolean(value: bool) -> ir.BoolConst:
    """`true` or `false`."""
    return ir.BoolConst(t.BOOL, value)


def known(expr: ir.Expr) -> consteval.Value | None:
    """The value of a constant, else None."""
    if isinstance(expr, ir.Const | ir.BoolConst | ir.StrConst | ir.Symbol):
        return expr.value
    return None


def _constant(value: consteval.Value, type_: t.Type) -> ir.Expr:
    if isinstance(value, bool):
        return boolean(value)
    if isinstance(value, str):
        return ir.StrConst(t.STRING, value)
    return ir.Const(type_, value)


def unary(op: str, arg: ir.Expr, type_: t.Type) -> ir.Expr:
    """`!`, `~`, `-` or `+`."""
    if op == "+":
        return arg
    value = known(arg)
    if value is not None:
        return _constant(consteval.fold_unary(op, value, type_), type_)
    if op == "!" and isinstance(arg, ir.Op) and arg.op == "!":
        return arg.args[0]
    return ir.Op(type_, op, (arg,))


def binary(op: str, left: ir.Expr, right: ir.Expr, type_: t.Type) -> ir.Expr:
    """A binary operator other than `++`."""
    one, other = known(left), known(right)
    if one is not None and other is not None:
        return _constant(consteval.fold_binary(op, one, other, left.type, type_), type_)
    if op in ("&&", "||"):
        absorbing = op == "||"
        if one is not None:
            return boolean(absorbing) if one is absorbing else right
        if other is not None and other is not absorbing:
            return left
    return ir.Op(type_, op, (left, right))


def concat(left: ir.Expr, right: ir.Expr, type_: t.Type) -> ir.Expr:
    """`left ++ right`."""
    one, other = known(left), known(right)
    if isinstance(one, int) and isinstance(other, int):
        return ir.Const(type_, consteval.concat(one, left.type, other, right.type, type_))
    return ir.Op(type_, "++", (left, right))


def slice_bits(arg: ir.Expr, high: int, low: int) -> ir.Expr:
    """`arg[high:low]`."""
    type_ = t.BitType(high - low + 1)
    value = known(arg)
    if isinstance(value, int):
        return ir.Const(type_, consteval.slice_bits(value, high, low))
    base = t.representation(arg.type)
    if isinstance(base, t.BitType) and not base.signed and low == 0 and high == base.width - 1:
        return arg
    if isinstance(arg, ir.Op) and arg.op == "slice":
        inner = known(arg.args[2])
        assert isinstance(inner, int)
        return slice_bits(arg.args[0], high + inner, low + inner)
    return ir.Op(type_, "slice", (arg, ir.Const(t.INT, high), ir.Const(t.INT, low)))


def cast(arg: ir.Expr, type_: t.Type) -> ir.Expr:
    """`(type)arg`."""
    value = known(arg)
    if value is not None and not isinstance(arg, ir.Symbol):
        return _constant(consteval.cast(value, type_), type_)
    have, want = t.representation(arg.type), t.representation(type_)
    if have == want:
        return arg
    return ir.Op(type_, "cast", (arg,))


def choice(cond: ir.Expr, then: ir.Expr, otherwise: ir.Expr) -> ir.Expr:
    """`cond ? then : otherwise`."""
    value = known(cond)
    if value is not None:
        return then if value else otherwise
    return ir.Op(then.type, "?", (cond, then, otherwise))


def conjunction(parts: list[ir.Expr]) -> ir.Expr:
    """All of `parts`."""
    result: ir.Expr = boolean(True)
    for part in parts:
        result = binary("&&", result, part, t.BOOL)
    return result
