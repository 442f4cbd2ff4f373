"""Arithmetic on values known at compile time, with P4's widths.

A value is a Python int (also for bit and int types), a bool, or a str.  The checker folds widths and sizes with it, the
elaborator everything else.
"""

from __future__ import annotations

from p4front.p4types import BOOL, INT, BitType, Type, representation

Value = int | bool | str
# Fewer bits than Python prints in decimal without complaint (4300 digits).
MAX_INT_BITS = 12_000


class ConstError(Exception):
    """The operation has no value; the text says why."""


def wrap(value: int, type_: Type) -> int:
    """`value` reduced to the width of `type_`; an `int` is not reduced."""
    base = representation(type_)
    if not isinstance(base, BitType):
        if value.bit_length() > MAX_INT_BITS:
            raise ConstError("integer constant is too large")
        return value
    value &= (1 << base.width) - 1
    if base.signed and base.width and value >> (base.width - 1):
        value -= 1 << base.width
    return value


def fits(value: int, type_: Type) -> bool:
    """Whether `value` is representable in `type_` without wrapping."""
    return wrap(value, type_) == value


def fold_unary(op: str, value: Value, type_: Type) -> Value:
    """`op value` where the result has type `type_`."""
    if op == "!":
        return not value
    assert isinstance(value, int)
    if op == "-":
        return wrap(-value, type_)
    if op == "~":
        return wrap(~value, type_)
    return value


def fold_binary(op: str, left: Value, right: Value, operand_type: Type, result_type: Type) -> Value:
    """`left op right`; `operand_type` is that of the left operand."""
    if op == "==":
        return left == right
    if op == "!=":
        return left != right
    if op == "&&":
        return bool(left) and bool(right)
    if op == "||":
        return bool(left) or bool(right)
    assert isinstance(left, int) and isinstance(right, int)
    if op == "<":
        return left < right
    if op == "<=":
        return left <= right
    if op == ">":
        return left > right
    if op == ">=":
        return left >= right
    if result_type == BOOL:  # bitwise operators on bool do not exist; & | ^ are bit operators
        raise ConstError(f"{op} is not defined for bool")
    return wrap(_arithmetic(op, left, right, operand_type), result_type)


def _arithmetic(op: str, left: int, right: int, type_: Type) -> int:
    base = representation(type_)
    if op == "+":
        return left + right
    if op == "-":
        return left - right
    if op == "*":
        return left * right
    if op in ("/", "%"):
        if right == 0:
            raise ConstError("division by zero")
        if left < 0 or right < 0:
            raise ConstError(f"{op} is not defined for negative numbers")
        return left // right if op == "/" else left % right
    if op in ("<<", ">>"):
        if right < 0:
            raise ConstError("shift by a negative number")
        if op == ">>":
            return left >> min(right, MAX_INT_BITS)
        if isinstance(base, BitType):
            return left << right if right < base.width else 0
        if right > MAX_INT_BITS:
            raise ConstError("integer constant is too large")
        return left << right
    if op == "&":
        return left & right
    if op == "|":
        return left | right
    if op == "^":
        return left ^ right
    if op in ("|+|", "|-|"):
        assert isinstance(base, BitType)
        exact = left + right if op == "|+|" else left - right
        low = -(1 << (base.width - 1)) if base.signed else 0
        high = (1 << (base.width - (1 if base.signed else 0))) - 1
        return min(max(exact, low), high)
    raise ConstError(f"{op} is not defined for constants")


def concat(left: int, left_type: Type, right: int, right_type: Type, result_type: Type) -> int:
    """`left ++ right`."""
    left_base, right_base = representation(left_type), representation(right_type)
    assert isinstance(left_base, BitType) and isinstance(right_base, BitType)
    right_bits = right & ((1 << right_base.width) - 1)
    return wrap((left << right_base.width) | right_bits, result_type)


def slice_bits(value: int, high: int, low: int) -> int:
    """`value[high:low]`."""
    return (value >> low) & ((1 << (high - low + 1)) - 1)


def cast(value: Value, to: Type) -> Value:
    """`(to)value`."""
    base = representation(to)
    if base == BOOL:
        return bool(value)
    if base == INT or isinstance(base, BitType):
        return wrap(int(value), base)
    return value
