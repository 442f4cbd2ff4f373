"""What the generator knows about p4src/include: constants, typedefs, enums and headers, with their bits resolved.

The emitters see only these classes, never the front-end's tree, so a change there touches `read` alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar


class WireError(Exception):
    """A declaration that cannot become C and Python; the message names it."""


@dataclass(frozen=True, slots=True)
class Const:
    name: str
    bits: int
    value: int


@dataclass(frozen=True, slots=True)
class Typedef:
    """A named width; `name` is without its `_t`."""

    name: str
    bits: int

    @property
    def mask(self) -> int:
        return (1 << self.bits) - 1


@dataclass(frozen=True, slots=True)
class Enum:
    """A closed set of codes; `name` is without its `_t`."""

    name: str
    bits: int
    members: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a header; `offset` counts bits from the header's first, most significant bit."""

    name: str
    offset: int
    bits: int
    type_name: str | None  # name of its enum or typedef, without `_t`

    @property
    def mask(self) -> int:
        return (1 << self.bits) - 1


@dataclass(frozen=True, slots=True)
class Header:
    """A wire format; `name` is without its `_t`."""

    name: str
    fields: tuple[Field, ...]

    @property
    def bits(self) -> int:
        return sum(field.bits for field in self.fields)

    @property
    def length(self) -> int:
        return self.bits // 8


Declaration = Const | Typedef | Enum | Header
Kind = TypeVar("Kind", Const, Typedef, Enum, Header)


@dataclass(frozen=True, slots=True)
class Source:
    """One P4 file: its path as the generated files name it, and its declarations in order."""

    path: str
    declarations: tuple[Declaration, ...]

    def of(self, kind: type[Kind]) -> list[Kind]:
        return [declaration for declaration in self.declarations if isinstance(declaration, kind)]


def base_name(p4_name: str) -> str:
    """`bth_t` -> `bth`: the suffix says "type" in P4; C and Python say it by `struct`, `enum` and class names."""
    return p4_name.removesuffix("_t")


def make_header(p4_name: str, fields: list[tuple[str, int, str | None]]) -> Header:
    """A header from (name, width, type name) triples; refuses what has no whole bytes or no C integer."""
    name = base_name(p4_name)

    def placed() -> Iterator[Field]:
        offset = 0
        for field_name, bits, type_name in fields:
            if not 1 <= bits <= 64:
                raise WireError(f"header {p4_name}: field {field_name} has {bits} bits; 1 to 64 are supported")
            yield Field(field_name, offset, bits, None if type_name is None else base_name(type_name))
            offset += bits

    header = Header(name, tuple(placed()))
    if header.bits == 0 or header.bits % 8:
        raise WireError(f"header {p4_name}: {header.bits} bits are not a whole number of bytes")
    return header
