"""Spelling shared by the emitters: the notice, number literals, Python names."""

from __future__ import annotations

from wire.declarations import Const, Enum, Source

# Enums above this are bit patterns (opcodes, EtherTypes); those below are counted.
_LARGEST_COUNTED = 64


def notice(sources: list[Source]) -> str:
    return f"Do not edit; generated from {' and '.join(source.path for source in sources)} by wire/generate.py."


def const_literal(const: Const) -> str:
    """All-ones values are masks or "none" markers and read better in hexadecimal."""
    return hex(const.value) if const.value > 9 and const.value & (const.value + 1) == 0 else str(const.value)


def member_literal(enum: Enum, value: int) -> str:
    if max(v for _, v in enum.members) < _LARGEST_COUNTED:
        return str(value)
    return f"0x{value:0{(enum.bits + 3) // 4}x}"


def class_name(name: str) -> str:
    """`bth_opcode` -> `BthOpcode`."""
    return "".join(word.capitalize() for word in name.split("_"))
