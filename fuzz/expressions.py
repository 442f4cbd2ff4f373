"""Random expressions over a program's declarations."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from fastswitch.tests.codegen_programs import Json, const, field, header, op, param

if TYPE_CHECKING:
    from fuzz.grammar import Grammar

CONSTANTS = (0, 1, 2, 3, 7, 8, 255, 256, (1 << 31) - 1, (1 << 32) - 1, (1 << 64) - 1, 1 << 64, (1 << 100) + 3, -1, -128)
MASKS = (1, 3, 8, 9, 16, 31, 32, 33, 48, 63, 64, 65, 100, 127, 128, 129, 200, 256, 512)


class Expressions:
    """Numbers, conditions and places to write to.  `params`: widths of the parameters of the action around them."""

    def __init__(self, rng: random.Random, grammar: Grammar) -> None:
        self.rng = rng
        self.grammar = grammar
        self.params: list[int] = []
        self.in_parser = False

    def number(self, depth: int) -> Json:
        """Any integer: mostly brought back to some width, as a compiler does after each operation."""
        rng = self.rng
        if depth <= 0 or rng.random() < 0.2:
            return self._leaf()
        left = self.number(depth - 1)
        match rng.randrange(9):
            case 0 | 1:
                made = op(rng.choice("+-*&|^"), left, self.number(depth - 1))
            case 2:
                made = op("<<", left, rng.choice([const(rng.randrange(140)), op("&", self._leaf(), const(0xFF))]))
                return self._masked(made)
            case 3:
                made = op(">>", left, rng.choice([const(rng.randrange(140)), op("&", self._leaf(), const(0xFF))]))
            case 4:
                made = op(rng.choice("/%"), self._unsigned(left), self._unsigned(self.number(depth - 1)))
            case 5:
                made = op(rng.choice("~-"), None, left)
            case 6:
                made = op(rng.choice(["usat_cast", "sat_cast", "two_comp_mod"]), left, const(rng.choice(MASKS)))
            case 7:
                made = op("?", left, self.number(depth - 1), cond=self.condition(depth - 1))
            case _:
                made = op("b2d", None, self.condition(depth - 1))
        return self._masked(made) if rng.random() < 0.7 else made

    def _masked(self, node: Json) -> Json:
        if self.rng.random() < 0.2:
            return op("two_comp_mod", node, const(self.rng.choice(MASKS)))
        return self._unsigned(node)

    def _unsigned(self, node: Json) -> Json:
        return op("&", node, const((1 << self.rng.choice(MASKS)) - 1))

    def _leaf(self) -> Json:
        rng = self.rng
        kind = rng.random()
        if kind < 0.2:
            return const(rng.choice(CONSTANTS))
        if self.params and kind < 0.4:
            return param(rng.randrange(len(self.params)))
        if self.grammar.stacks and kind < 0.5:
            name = rng.choice(list(self.grammar.stacks))
            stack = {"type": "header_stack", "value": name}
            if kind < 0.44:
                return op(rng.choice(["last_stack_index", "size_stack"]), None, stack)
            return self._element_field(name)
        if kind < 0.6:
            return field("scalars", rng.choice(self.grammar.metadata)[0])
        if kind < 0.65:
            return field("standard_metadata", rng.choice(["ingress_port", "packet_length", "priority", "parser_error"]))
        return self._header_field()

    def _header_field(self) -> Json:
        rng = self.rng
        name, kind = rng.choice([*self.grammar.instances().items()])
        if rng.random() < 0.1:
            return field(name, "$valid$")
        return field(name, rng.choice([each[0] for each in self.grammar.types[kind] if each[1] != "*"]))

    def _element_field(self, name: str) -> Json:
        """A field of a stack's element, whose index is known when the packet is there."""
        index = self.rng.choice([op("&", self._scalar(), const(7)), self._scalar(), const(self.rng.randrange(6))])
        element = op("dereference_header_stack", {"type": "header_stack", "value": name}, index)
        place = self.rng.randrange(len(self.grammar.types[self.grammar.stacks[name][0]]) + 1)
        return {"type": "expression", "value": {"op": "access_field", "left": element, "right": place}}

    def _scalar(self) -> Json:
        return field("scalars", self.rng.choice(self.grammar.metadata)[0])

    def lookahead(self) -> Json:
        """Bits that are not extracted yet."""
        return {"type": "lookahead", "value": [self.rng.choice([0, 0, 3, 8, 17, 64]), self.rng.choice(MASKS)]}

    def target(self) -> Json:
        """Something that can be assigned to."""
        rng = self.rng
        kind = rng.random()
        if kind < 0.35:
            return self._scalar()
        if kind < 0.5:
            return field("standard_metadata", rng.choice(["egress_spec", "mcast_grp", "priority"]))
        if self.grammar.stacks and kind < 0.65 and not self.in_parser:
            return self._element_field(rng.choice(list(self.grammar.stacks)))
        return self._header_field()

    def condition(self, depth: int) -> Json:
        """A truth value."""
        rng = self.rng
        if depth > 0 and rng.random() < 0.3:
            kind = rng.choice(["and", "or", "not", "==", "!="])
            return op(kind, None if kind == "not" else self.condition(depth - 1), self.condition(depth - 1))
        match rng.randrange(7):
            case 6 if self.grammar.unions:
                left, right = ({"type": "header_union", "value": rng.choice(list(self.grammar.unions))} for _ in "ab")
                return rng.choice([op("valid_union", None, left), op("==", left, right), op("!=", left, right)])
            case 0:
                return op("valid", None, header(rng.choice([*self.grammar.instances()])))
            case 1:
                return op("d2b", None, self.number(depth - 1))
            case 2:
                instances = self.grammar.instances()
                one = rng.choice([*instances])
                other = rng.choice([name for name in instances if instances[name] == instances[one]])
                return op(rng.choice(["==", "!="]), header(one), header(other))
        return op(rng.choice(["==", "!=", "<", "<=", ">", ">="]), self.number(depth - 1), self.number(depth - 1))
