"""Random expressions: the generated C against Python's integers."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastswitch import ProgramError
from fastswitch.codegen import generate_c
from fastswitch.interpreter import Interpreter
from fastswitch.tests.codegen_programs import assign, const, field, one_action, op
from fastswitch.tests.codegen_support import Compiled, compare

INPUTS: list[list[Any]] = [
    ["u1", 1], ["u3", 3], ["u4", 4], ["u8", 8], ["u16", 16], ["u31", 31], ["u33", 33], ["u64", 64], ["u65", 65],
    ["u127", 127], ["u128", 128], ["u132", 132], ["u200", 200],
    ["s2", 2, True], ["s8", 8, True], ["s32", 32, True], ["s64", 64, True], ["s70", 70, True], ["s140", 140, True],
]  # fmt: skip
KINDS = (
    *("ring", "ring", "ring", "mask", "mask", "shl", "shr", "div", "cast", "sat", "choose", "b2d", "comp"),
    *("dynshl", "dynshr", "neg"),
)
OUTPUT_WIDTHS = (1, 5, 8, 16, 32, 48, 64, 65, 100, 128, 129, 256)
INPUTS[0][1] += -sum(each[1] for each in INPUTS) % 8


class Maker:
    """Makes random expressions that any P4 compiler could have written, and some that none would."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def number(self, depth: int) -> dict[str, Any]:
        pick = self.random
        if depth <= 0 or pick.random() < 0.15:
            if pick.random() < 0.3:
                return const(pick.choice([0, 1, 2, 7, 255, 256, 2**32 - 1, 2**64 - 1, 2**64, 2**100 + 3, -1, -128]))
            return field("in", pick.choice(INPUTS)[0])
        kind = pick.choice(KINDS)
        one = self.number(depth - 1)
        if kind == "ring":
            return op(pick.choice("+-*|^&"), one, self.number(depth - 1))
        if kind == "mask":
            return op("&", one, const((1 << pick.choice([1, 8, 16, 31, 32, 48, 64, 65, 128, 200])) - 1))
        if kind == "shl":
            return op("&", op("<<", one, const(pick.choice([0, 1, 7, 8, 31, 63, 64, 90, 200]))), self.mask())
        if kind == "shr":
            return op(">>", one, const(pick.choice([0, 1, 7, 8, 31, 63, 64, 90, 200])))
        if kind == "dynshl":
            return op("&", op("<<", one, field("in", pick.choice(["u3", "u8"]))), self.mask())
        if kind == "dynshr":
            return op(">>", one, field("in", pick.choice(["u3", "u8", "u64", "u132"])))
        if kind == "div":
            return op(pick.choice("/%"), op("&", one, self.mask()), op("&", self.number(depth - 1), self.mask()))
        if kind == "cast":
            return op("two_comp_mod", one, const(pick.choice([1, 8, 16, 32, 33, 64, 65, 128, 150])))
        if kind == "sat":
            return op(pick.choice(["usat_cast", "sat_cast"]), one, const(pick.choice([1, 8, 32, 64, 100, 140])))
        if kind == "choose":
            return op("?", one, self.number(depth - 1), cond=self.condition(depth - 1))
        if kind == "b2d":
            return op("b2d", None, self.condition(depth - 1))
        if kind == "neg":
            return op("-", None, one)
        return op("~", None, one)

    def mask(self) -> dict[str, Any]:
        return const((1 << self.random.choice([8, 16, 32, 48, 64, 80, 128, 160])) - 1)

    def condition(self, depth: int) -> dict[str, Any]:
        pick = self.random
        if depth > 0 and pick.random() < 0.3:
            kind = pick.choice(["and", "or", "not", "==", "!="])
            left = None if kind == "not" else self.condition(depth - 1)
            return op(kind, left, self.condition(depth - 1))
        if pick.random() < 0.15:
            return op("d2b", None, self.number(depth - 1))
        return op(pick.choice(["==", "!=", "<", "<=", ">", ">="]), self.number(depth - 1), self.number(depth - 1))


def expressions_program(seed: int, count: int) -> dict[str, Any]:
    maker = Maker(seed)
    outputs: list[list[Any]] = []
    body = []
    for index in range(count):
        while True:
            expression = maker.number(maker.random.randint(1, 5))
            width = maker.random.choice(OUTPUT_WIDTHS)
            signed = width > 1 and maker.random.random() < 0.3
            try:  # what cannot be a P4 program (a negative divisor, thousands of bits compared) is refused
                generate_c(one_action({"in": INPUTS, "out": [["o", 8 * width, False]]},
                                      [assign(field("out", "o"), expression)]))  # fmt: skip
                break
            except ProgramError:
                continue
        outputs.append([f"o{index}", width, signed])
        body.append(assign(field("out", f"o{index}"), expression))
    outputs.append(["pad", 8 - sum(each[1] for each in outputs) % 8, False])
    return one_action({"in": INPUTS, "out": outputs}, body)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("expressions")


@settings(max_examples=12, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**6))
def test_numbers_agree_with_python(folder: Path, seed: int) -> None:
    document = expressions_program(seed, 20)
    compiled, reference = Compiled(document, folder), Interpreter(document)
    pick = random.Random(seed)
    size = sum(each[1] for each in INPUTS) // 8 + sum(each[1] for each in document["header_types"][3]["fields"]) // 8
    for _ in range(12):
        kind = pick.random()
        if kind < 0.15:
            frame = bytes(size)
        elif kind < 0.3:
            frame = b"\xff" * size
        else:
            frame = bytes(pick.choice([0, 1, 0x7F, 0x80, 0xFF, pick.randrange(256)]) for _ in range(size))
        compare(compiled, reference, frame, {"ingress_port": 1})
    compiled.close()


def test_shift_amounts_beyond_the_width_give_zero_or_the_sign(folder: Path) -> None:
    shifts = {
        "left": op("&", op("<<", field("h", "a"), field("h", "n")), const(0xFF)),
        "right": op(">>", field("h", "a"), field("h", "n")),
        "signed": op(">>", field("h", "s"), field("h", "n")),
    }
    document = one_action(
        {"h": [["a", 8], ["s", 8, True], ["n", 8], ["left", 8], ["right", 8], ["signed", 8]]},
        [assign(field("h", name), expression) for name, expression in shifts.items()],
    )
    compiled = Compiled(document, folder)
    for amount, expected in ((0, "ffff80"), (1, "fe7fc0"), (9, "0000ff"), (64, "0000ff"), (255, "0000ff")):
        compiled.start(bytes([0xFF, 0x80, amount, 0, 0, 0]))
        compiled.run("pied")
        assert compiled.frame()[3:].hex() == expected, amount
    compiled.close()


def test_unsigned_saturating_subtraction_sees_the_negative_intermediate(folder: Path) -> None:
    document = one_action(
        {"h": [["a", 8], ["b", 8], ["c", 8]]},
        [assign(field("h", "c"), op("usat_cast", op("-", field("h", "a"), field("h", "b")), const(8)))],
    )
    compiled = Compiled(document, folder)
    for a, b, expected in ((5, 3, 2), (3, 5, 0), (255, 0, 255)):
        compiled.start(bytes([a, b, 77]))
        compiled.run("pied")
        assert compiled.frame() == bytes([a, b, expected])
    compiled.close()
