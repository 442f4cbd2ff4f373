"""Emits codes.py: the constants, and an IntEnum for every enum."""

from __future__ import annotations

from collections.abc import Iterator

from wire.declarations import Const, Declaration, Enum, Header, Source, Typedef
from wire.text import class_name, const_literal, member_literal, notice


def emit(sources: list[Source]) -> str:
    lines = [
        '"""Constants and codes of the wire formats and of Plait\'s parts.\n',
        notice(sources),
        '"""\n',
        "from enum import IntEnum\n",
    ]
    declarations = [declaration for source in sources for declaration in source.declarations]
    for declaration in declarations:
        lines.extend(_constants(declaration))
    for declaration in declarations:
        if isinstance(declaration, Enum):
            lines.extend(_enum(declaration))
    return "\n".join(lines) + "\n"


def _constants(declaration: Declaration) -> Iterator[str]:
    match declaration:
        case Const():
            yield f"{declaration.name.upper()} = {const_literal(declaration)}"
        case Typedef():
            yield f"{declaration.name.upper()}_BITS = {declaration.bits}"
            yield f"{declaration.name.upper()}_MASK = {declaration.mask:#x}"
        case Header():
            yield f"{declaration.name.upper()}_LEN = {declaration.length}"


def _enum(enum: Enum) -> Iterator[str]:
    yield f"\n\nclass {class_name(enum.name)}(IntEnum):"
    for member, value in enum.members:
        yield f"    {member} = {member_literal(enum, value)}"
