"""What an expression is during elaboration: an IR expression, or an aggregate of them.

A place that can be assigned to is a value too: `ir.FieldRef`, a header, a stack, or a structure of places.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from p4front import ir
from p4front import p4types as t

_PART = re.compile(r"[.\[]")


@dataclass(slots=True)
class StructValue:
    """A structure, tuple or array, by field; the fields of the latter two are "0", "1", ..."""

    type: t.Type
    fields: dict[str, Value]


@dataclass(slots=True)
class HeaderPlace:
    """A header instance."""

    type: t.StructType
    name: str


@dataclass(slots=True)
class StackPlace:
    type: t.StackType
    name: str


@dataclass(slots=True)
class StackEnd:
    """`stack.next` or `stack.last`, in a parser; `member` is set behind `.member` of a stack of unions."""

    type: t.StructType
    stack: str
    which: str
    member: str | None = None


@dataclass(slots=True)
class StackElement:
    """`stack[index]` with an index known only at run time.

    BMv2 ends at an index outside the stack: `index` never is, and `guard` (None: always) says whether the program's was
    not either.
    """

    type: t.StructType
    stack: StackPlace
    index: ir.Expr
    guard: ir.Expr | None = None


@dataclass(slots=True)
class HeaderLiteral:
    """`{a, b}` as a header: valid, with these fields."""

    type: t.StructType
    fields: dict[str, Value]


@dataclass(slots=True)
class InvalidHeader:
    """`{#}`."""

    type: t.Type


@dataclass(slots=True)
class UnionPlace:
    type: t.StructType
    name: str


@dataclass(slots=True)
class SlicePlace:
    """Some bits of a place."""

    type: t.Type
    base: ir.Expr
    high: int
    low: int


@dataclass(slots=True)
class ObjectValue:
    """An instance: an extern, a control, a parser, a table, the packet."""

    type: t.Type
    target: object


Value = (
    ir.Expr
    | StructValue
    | HeaderPlace
    | StackPlace
    | StackEnd
    | StackElement
    | HeaderLiteral
    | InvalidHeader
    | UnionPlace
    | SlicePlace
    | ObjectValue
)


def header_field(header: HeaderPlace, path: str, type_: t.Type) -> Value:
    """A field of a header; a structure inside a header is a `StructValue` of dotted fields."""
    base = t.representation(type_)
    if isinstance(base, t.StructType) and base.kind == "struct":
        inner = {name: header_field(header, f"{path}.{name}", item.type) for name, item in base.fields.items()}
        return StructValue(base, inner)
    if isinstance(base, t.StackType):
        return StructValue(base, {
            str(index): header_field(header, f"{path}[{index}]", base.element) for index in range(base.size)
        })  # fmt: skip
    return ir.FieldRef(type_, header.name, path)


def stack_element(stack: StackPlace, index: int) -> HeaderPlace | UnionPlace:
    """`stack[index]`."""
    element = stack.type.element
    assert isinstance(element, t.StructType)
    name = f"{stack.name}[{index}]"
    return UnionPlace(element, name) if t.is_union(element) else HeaderPlace(element, name)


def union_members(union: UnionPlace) -> list[HeaderPlace]:
    """The headers of a union."""
    found: list[HeaderPlace] = []
    for item in union.type.fields.values():
        assert isinstance(item.type, t.StructType)
        found.append(HeaderPlace(item.type, f"{union.name}.{item.name}"))
    return found


def leaves(value: Value) -> Iterator[ir.Expr]:
    """The scalars of a value in the order of its fields, headers taken apart."""
    if isinstance(value, StructValue | HeaderLiteral):
        for item in value.fields.values():
            yield from leaves(item)
    elif isinstance(value, HeaderPlace):
        for name, field in value.type.fields.items():
            yield from leaves(header_field(value, name, field.type))
    elif isinstance(value, StackPlace):
        for index in range(value.type.size):
            yield from leaves(stack_element(value, index))
    elif isinstance(value, UnionPlace):
        for member in union_members(value):
            yield from leaves(member)
    elif isinstance(value, ir.Expr):
        yield value


def names_in(value: Value) -> set[str]:
    """The storage a value reads: `header.field` of each field, the names of headers and stacks."""
    found: set[str] = set()
    _collect(value, found)
    return found


def _collect(value: Value, found: set[str]) -> None:
    if isinstance(value, StructValue | HeaderLiteral):
        for item in value.fields.values():
            _collect(item, found)
    elif isinstance(value, HeaderPlace | StackPlace | UnionPlace):
        found.add(value.name)
    elif isinstance(value, StackEnd):
        found.add(value.stack)
    elif isinstance(value, StackElement):
        found.add(value.stack.name)
        _collect(value.index, found)
    elif isinstance(value, SlicePlace):
        _collect(value.base, found)
    elif isinstance(value, ir.FieldRef):
        found.add(f"{value.header}.{value.field}")
    elif isinstance(value, ir.StackFieldRef):
        found.add(value.stack)
    elif isinstance(value, ir.ElementFieldRef):
        found.add(value.stack)
        _collect(value.index, found)
    elif isinstance(value, ir.Op):
        for arg in value.args:
            _collect(arg, found)


def overlap(one: set[str], other: set[str]) -> bool:
    """Whether two sets of `names_in` can share storage: equal names, or a header and its field."""
    return not (one.isdisjoint(other) and _outer(one).isdisjoint(other) and one.isdisjoint(_outer(other)))


def _outer(names: set[str]) -> set[str]:
    """What the names are parts of: `a[1].b` of `a[1]` and of `a`."""
    return {name[: match.start()] for name in names for match in _PART.finditer(name)}
