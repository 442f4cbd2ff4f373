"""IR expressions to BMv2's JSON.

BMv2 computes with unbounded signed numbers; the width exists only where a mask or `two_comp_mod` is put.  A node that
is exact already (a field, `&`, `|`, a comparison) gets none.
"""

from __future__ import annotations

from typing import Any

from p4front import fold, ir
from p4front import p4types as t

Json = dict[str, Any]

_PLAIN_OPS = {
    "&": "&", "|": "|", "^": "^", ">>": ">>", "/": "/", "%": "%",
    "==": "==", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">=", "&&": "and", "||": "or",
}  # fmt: skip
_WRAPPED_OPS = ("+", "-", "*", "<<")
_SATURATING = {"|+|": "+", "|-|": "-"}


def hexstr(value: int, width: int = 0) -> str:
    """A number as p4c writes it: hexadecimal, padded to whole bytes of its width."""
    if value < 0:
        return f"-0x{-value:x}"
    digits = (width + 7) // 8 * 2
    return f"0x{value:0{digits}x}"


def expression(op: str, left: Json | None, right: Json | None, cond: Json | None = None) -> Json:
    """One node of an expression tree."""
    value: Json = {"op": op, "left": left, "right": right}
    if cond is not None:
        value["cond"] = cond
    return {"type": "expression", "value": value}


def constant(value: int, type_: t.Type) -> Json:
    """A number of some type."""
    base = t.representation(type_)
    width = base.width if isinstance(base, t.BitType) else 0
    return {"type": "hexstr", "value": hexstr(value, width)}


def node(expr: ir.Expr) -> Json:
    """An expression as a node of an expression tree; booleans are booleans there."""
    if isinstance(expr, ir.BoolConst):
        return {"type": "bool", "value": expr.value}
    if isinstance(expr, ir.Const | ir.Symbol):
        return constant(expr.value, expr.type)
    if isinstance(expr, ir.StrConst):
        return {"type": "string", "value": expr.value}
    if isinstance(expr, ir.Op):
        return _operation(expr)
    plain = _leaf(expr, in_expression=True)
    if t.representation(expr.type) == t.BOOL:
        return expression("d2b", None, plain)
    return plain


def _leaf(expr: ir.Expr, in_expression: bool) -> Json:
    if isinstance(expr, ir.FieldRef):
        return {"type": "field", "value": [expr.header, expr.field]}
    if isinstance(expr, ir.RuntimeData):
        return {"type": "local" if in_expression else "runtime_data", "value": expr.index}
    if isinstance(expr, ir.StackFieldRef):
        if expr.member is not None:
            return {"type": "union_stack_field", "value": [expr.stack, expr.member, expr.field]}
        return {"type": "stack_field", "value": [expr.stack, expr.field]}
    if isinstance(expr, ir.ElementFieldRef):
        header = element(expr.stack, expr.index)
        return {"type": "expression", "value": {"op": "access_field", "left": header, "right": expr.offset}}
    if isinstance(expr, ir.LastIndex):
        return expression("last_stack_index", None, {"type": "header_stack", "value": expr.stack})
    if isinstance(expr, ir.Lookahead):
        width = t.bit_width(expr.type) or 0
        return {"type": "lookahead", "value": [expr.offset, width]}
    raise AssertionError(type(expr))


def element(stack: str, index: ir.Expr) -> Json:
    """`stack[index]` chosen at run time."""
    return expression("dereference_header_stack", {"type": "header_stack", "value": stack}, node(index))


def _operation(expr: ir.Op) -> Json:
    op, args = expr.op, expr.args
    if op == "cast":
        return _cast(args[0], expr.type)
    if op == "slice":
        return _slice(args)
    if op == "?":
        return expression("?", node(args[1]), node(args[2]), node(args[0]))
    if op == "valid":
        inner = args[0]
        assert isinstance(inner, ir.ElementFieldRef)
        return expression("valid", None, element(inner.stack, inner.index))
    if op == "!":
        return expression("not", None, node(args[0]))
    if op == "~":
        return wrapped(expression("~", None, node(args[0])), expr.type)
    if op == "-" and len(args) == 1:
        return wrapped(expression("-", constant(0, expr.type), node(args[0])), expr.type)
    if op == "++":
        return _concat(args, expr.type)
    left, right = node(args[0]), node(args[1])
    if op in _SATURATING:
        return _saturated(expression(_SATURATING[op], left, right), expr.type)
    if op in ("==", "!=") and t.representation(args[0].type) == t.BOOL:
        return expression(op, left, right)
    if op == "-":
        subtrahend = fold.known(args[1])
        base = t.representation(expr.type)
        if isinstance(subtrahend, int) and isinstance(base, t.BitType) and not base.signed:
            # x - c is x + (2^W - c): the intermediate stays positive, as p4c has it
            right = constant((1 << base.width) - subtrahend & ((1 << base.width) - 1), expr.type)
            return wrapped(expression("+", left, right), expr.type)
    if op in _WRAPPED_OPS:
        return wrapped(expression(op, left, right), expr.type)
    return expression(_PLAIN_OPS[op], left, right)


def wrapped(json: Json, type_: t.Type) -> Json:
    """A result reduced to its type's width."""
    base = t.representation(type_)
    if not isinstance(base, t.BitType):
        return json
    if base.signed:
        return expression("two_comp_mod", json, {"type": "hexstr", "value": hexstr(base.width)})
    mask = {"type": "hexstr", "value": hexstr((1 << base.width) - 1)}
    return expression("&", json, mask)


def _saturated(json: Json, type_: t.Type) -> Json:
    base = t.representation(type_)
    assert isinstance(base, t.BitType)
    op = "sat_cast" if base.signed else "usat_cast"
    return expression(op, json, {"type": "hexstr", "value": hexstr(base.width)})


def _cast(arg: ir.Expr, type_: t.Type) -> Json:
    have, want = t.representation(arg.type), t.representation(type_)
    inner = node(arg)
    if want == t.BOOL:
        return inner if have == t.BOOL else expression("d2b", None, inner)
    if have == t.BOOL:
        return expression("b2d", None, inner)
    if isinstance(have, t.BitType) and isinstance(want, t.BitType):
        if want.width > have.width and (not have.signed or want.signed):
            return inner
        if want.width == have.width and want.signed == have.signed:
            return inner
    return wrapped(inner, want)


def _slice(args: tuple[ir.Expr, ...]) -> Json:
    high, low = fold.known(args[1]), fold.known(args[2])
    assert isinstance(high, int) and isinstance(low, int)
    inner = node(args[0])
    if low:
        inner = expression(">>", inner, {"type": "hexstr", "value": hexstr(low)})
    mask = (1 << (high - low + 1)) - 1
    return expression("&", inner, {"type": "hexstr", "value": hexstr(mask)})


def _concat(args: tuple[ir.Expr, ...], type_: t.Type) -> Json:
    right_type = t.representation(args[1].type)
    left_type = t.representation(args[0].type)
    assert isinstance(right_type, t.BitType) and isinstance(left_type, t.BitType)
    left, right = node(args[0]), node(args[1])
    if right_type.signed:
        right = wrapped(right, t.BitType(right_type.width))
    shifted = expression("<<", left, {"type": "hexstr", "value": hexstr(right_type.width)})
    joined = expression("|", wrapped(shifted, t.BitType(left_type.width + right_type.width)), right)
    return wrapped(joined, type_) if left_type.signed else joined


def parameter(param: ir.PrimParam) -> Json:
    """A primitive's parameter: like a node, but values of bool become numbers and trees are wrapped once more."""
    if isinstance(param, ir.HeaderParam):
        if param.kind in ("next", "last"):
            return {"type": "expression", "value": _stack_end(param)}
        if param.kind == "union_stack":
            return {"type": "union_stack", "value": param.name.rsplit(".", 1)}
        return {"type": param.kind, "value": param.name}
    if isinstance(param, ir.ElementParam):
        return {"type": "expression", "value": element(param.stack, param.index)}
    if isinstance(param, ir.NamedParam):
        return {"type": param.kind, "value": param.name}
    if isinstance(param, ir.VectorParam):
        return {"type": "parameters_vector", "value": [parameter(item) for item in param.items]}
    if isinstance(param, ir.StrConst):
        return {"type": "string", "value": param.value}
    if isinstance(param, ir.Const | ir.Symbol):
        return constant(param.value, param.type)
    if isinstance(param, ir.Op | ir.BoolConst):
        json = node(param)
        if t.representation(param.type) == t.BOOL:
            json = expression("b2d", None, json)
        return {"type": "expression", "value": json}
    leaf = _leaf(param, in_expression=False)
    if leaf["type"] in ("expression", "stack_field", "union_stack_field"):
        return {"type": "expression", "value": leaf}
    return leaf


def _stack_end(param: ir.HeaderParam) -> Json:
    """`stack.last` or `stack.next` as a header."""
    stack = {"type": "header_stack", "value": param.name}
    index = expression("last_stack_index", None, stack)
    if param.kind == "next":
        index = expression("+", index, {"type": "hexstr", "value": "0x1"})
    return expression("dereference_header_stack", stack, index)


def condition(expr: ir.Expr) -> Json:
    """An expression whose value is a boolean."""
    json = node(expr)
    if json["type"] != "expression":
        return {"type": "expression", "value": {"op": "==", "left": json, "right": {"type": "bool", "value": True}}}
    return json
