"""Parser states to BMv2's JSON.

A transition's value is its keys one behind the other, each padded to whole bytes; ranges become prefixes.
"""

from __future__ import annotations

from itertools import product
from typing import Any

from p4front import ir, json_actions, json_expr
from p4front import p4types as t
from p4front.diagnostics import Diagnostics

Json = dict[str, Any]
MAX_PREFIXES = 4096


class ParserWriter:
    """Writes the states of the program's parser."""

    def __init__(self, diagnostics: Diagnostics) -> None:
        self.diagnostics = diagnostics

    def state(self, state: ir.State, number: int) -> Json:
        """One state."""
        return {
            "name": state.name,
            "id": number,
            "parser_ops": [self._op(op) for op in state.ops],
            "transitions": [json for transition in state.transitions for json in self._transition(state, transition)],
            "transition_key": [self._key(expr) for expr in state.select],
        }

    def _op(self, op: ir.Stmt) -> Json:
        if isinstance(op, ir.ParserOp):
            return self._parser_op(op)
        if isinstance(op, ir.Prim):
            if op.op == "assign":
                return self._set(op)
            return {"parameters": [json_actions.primitive(op)], "op": "primitive"}
        raise self.diagnostics.fail("this statement cannot be in a parser", op.span)

    def _parser_op(self, op: ir.ParserOp) -> Json:
        params: list[Json] = []
        for position, param in enumerate(op.params):
            if op.op == "verify" and position == 0:
                assert isinstance(param, ir.Expr)
                params.append(json_expr.condition(param))
            elif op.op == "verify":
                params.append(json_expr.node(param))  # type: ignore[arg-type]
            elif op.op == "extract_VL" and position == 1:
                params.append({"type": "expression", "value": json_expr.node(param)})  # type: ignore[arg-type]
            elif isinstance(param, ir.Op):
                params.append({"type": "expression", "value": json_expr.node(param)})
            else:
                params.append(json_expr.parameter(param))
        return {"parameters": params, "op": op.op}

    def _set(self, op: ir.Prim) -> Json:
        target, value = op.params
        if not isinstance(target, ir.FieldRef):
            return {"parameters": [json_actions.primitive(op)], "op": "primitive"}
        return {"parameters": [json_expr.parameter(target), json_expr.parameter(value)], "op": "set"}

    def _key(self, expr: ir.Expr) -> Json:
        if isinstance(expr, ir.StackFieldRef):
            return json_expr.node(expr)
        return json_expr.parameter(expr)

    def _transition(self, state: ir.State, transition: ir.Transition) -> list[Json]:
        if transition.keys is None:
            return [{"type": "default", "value": None, "mask": None, "next_state": transition.next}]
        if transition.value_set is not None:
            return [
                {
                    "type": "parse_vset", "value": transition.value_set.name, "mask": None,
                    "next_state": transition.next,
                }
            ]  # fmt: skip
        widths = [t.bit_width(expr.type) or 0 for expr in state.select]
        choices = [_choices(key, width) for key, width in zip(transition.keys, widths, strict=True)]
        total = 1
        for choice in choices:
            total *= len(choice)
        if total > MAX_PREFIXES:
            raise self.diagnostics.fail("the ranges of a select need too many transitions", state.span)
        found: list[Json] = []
        for combination in product(*choices):
            value = mask = size = 0
            exact = True
            for (part, part_mask), width in zip(combination, widths, strict=True):
                padded = (width + 7) // 8 * 8
                value, mask, size = value << padded | part, mask << padded | part_mask, size + padded
                exact = exact and part_mask == (1 << width) - 1
            found.append(
                {
                    "type": "hexstr",
                    "value": json_expr.hexstr(value, size),
                    "mask": None if exact else json_expr.hexstr(mask, size),
                    "next_state": transition.next,
                }
            )
        return found


def _choices(key: ir.EntryKey, width: int) -> list[tuple[int, int]]:
    """A key as (value, mask) pairs."""
    everything = (1 << width) - 1
    if key.kind == "any":
        return [(0, 0)]
    if key.kind == "value":
        return [(key.value & everything, everything)]
    if key.kind == "mask":
        mask = key.other & everything
        return [(key.value & mask, mask)]
    return [(low, everything ^ ((1 << bits) - 1)) for low, bits in _prefixes(key.value, key.other)]


def _prefixes(low: int, high: int) -> list[tuple[int, int]]:
    """A range as aligned blocks: (first value, number of free bits)."""
    found: list[tuple[int, int]] = []
    while low <= high and len(found) <= MAX_PREFIXES:
        bits = (low & -low).bit_length() - 1 if low else (high + 1).bit_length()
        while low + (1 << bits) - 1 > high:
            bits -= 1
        found.append((low, bits))
        low += 1 << bits
    return found
