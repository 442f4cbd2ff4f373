"""The types of P4-16.

Structural types (`bit<W>`, tuples, stacks) are equal when their parts are; declared types (headers, enums, externs) are
equal only to themselves.  A typedef leaves no trace here; `type` makes a `NewType`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from p4front import syntax as ast


class Type:
    """Base of all types; `str` gives the type as P4 writes it."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class BitType(Type):
    """`bit<W>`, or `int<W>` if signed."""

    width: int
    signed: bool = False

    def __str__(self) -> str:
        return f"{'int' if self.signed else 'bit'}<{self.width}>"


@dataclass(frozen=True, slots=True)
class VarbitType(Type):
    width: int

    def __str__(self) -> str:
        return f"varbit<{self.width}>"


@dataclass(frozen=True, slots=True)
class SimpleType(Type):
    """A type that is only a name: bool, int, error, string, match_kind, void, ..."""

    name: str

    def __str__(self) -> str:
        return self.name


BOOL = SimpleType("bool")
INT = SimpleType("int")
ERROR = SimpleType("error")
STRING = SimpleType("string")
MATCH_KIND = SimpleType("match_kind")
VOID = SimpleType("void")
DONT_CARE = SimpleType("_")
# The type of an expression that already has an error: fits everywhere, so that one mistake is reported once.
UNKNOWN = SimpleType("<unknown>")
# What `{#}` and `...` are before their context says more.
INVALID = SimpleType("{#}")
DOTS = SimpleType("...")
STATE = SimpleType("state")
PACKET_IN, PACKET_OUT = "packet_in", "packet_out"


@dataclass(frozen=True, slots=True)
class TypeVar(Type):
    """A type parameter; `owner` keeps equal names of different declarations apart."""

    name: str
    owner: int

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class TupleType(Type):
    items: tuple[Type, ...]
    name: str = "tuple"

    def __str__(self) -> str:
        return f"{self.name}<{', '.join(map(str, self.items))}>"


@dataclass(frozen=True, slots=True)
class ListType(Type):
    """The type of `{a, b}` before its context makes a tuple, structure or header of it."""

    items: tuple[Type, ...]

    def __str__(self) -> str:
        return f"{{{', '.join(map(str, self.items))}}}"


@dataclass(frozen=True, slots=True)
class RecordType(Type):
    """The type of `{a = 1, b = 2}` before its context makes a structure or header of it."""

    fields: tuple[tuple[str, Type], ...]

    def __str__(self) -> str:
        return "{" + ", ".join(f"{name} = {type_}" for name, type_ in self.fields) + "}"


@dataclass(frozen=True, slots=True)
class SetType(Type):
    element: Type

    def __str__(self) -> str:
        return f"set<{self.element}>"


@dataclass(frozen=True, slots=True)
class StackType(Type):
    """A header stack, or an array of anything else (`is_array`)."""

    element: Type
    size: int

    def __str__(self) -> str:
        return f"{self.element}[{self.size}]"


@dataclass(eq=False, slots=True)
class Field:
    name: str
    type: Type
    decl: ast.FieldDecl | None = None


@dataclass(eq=False, slots=True)
class StructType(Type):
    """A struct, header or header_union; a generic one is replaced by one instance per tuple of arguments."""

    name: str
    kind: str
    fields: dict[str, Field] = field(default_factory=dict)
    decl: ast.StructDecl | None = None
    params: tuple[TypeVar, ...] = ()
    args: tuple[Type, ...] = ()
    generic: StructType | None = None
    instances: dict[tuple[Type, ...], StructType] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.name}<{', '.join(map(str, self.args))}>" if self.args else self.name


@dataclass(eq=False, slots=True)
class EnumType(Type):
    """`base` is None for an enum without representation; `members` gives each name its value."""

    name: str
    base: Type | None
    members: dict[str, int] = field(default_factory=dict)
    decl: ast.EnumDecl | None = None

    def __str__(self) -> str:
        return self.name


@dataclass(eq=False, slots=True)
class NewType(Type):
    name: str
    base: Type
    decl: ast.TypedefDecl | None = None

    def __str__(self) -> str:
        return self.name


@dataclass(eq=False, slots=True)
class ExternType(Type):
    """An extern declaration; `ExternRef` is the type of its instances."""

    name: str
    params: tuple[TypeVar, ...]
    decl: ast.ExternDecl
    methods: list[FunctionType] = field(default_factory=list)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class ExternRef(Type):
    extern: ExternType
    args: tuple[Type, ...] = ()

    def __str__(self) -> str:
        return f"{self.extern.name}<{', '.join(map(str, self.args))}>" if self.args else self.extern.name


@dataclass(eq=False, slots=True)
class Parameter:
    name: str
    direction: str
    type: Type
    default: ast.Expr | None = None
    decl: ast.Param | None = None


@dataclass(eq=False, slots=True)
class FunctionType(Type):
    """`kind` is function, extern, method, constructor, action or builtin."""

    name: str
    kind: str
    type_params: tuple[TypeVar, ...]
    params: list[Parameter]
    result: Type
    decl: Any = None
    owner: ExternType | None = None

    def __str__(self) -> str:
        return self.name


@dataclass(eq=False, slots=True)
class BlockType(Type):
    """A parser or control, or the type of one; `kind` says which of the two."""

    name: str
    kind: str
    type_params: tuple[TypeVar, ...]
    params: list[Parameter]
    ctor_params: list[Parameter]
    decl: ast.ParserDecl | ast.ControlDecl
    has_body: bool

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass(eq=False, slots=True)
class PackageType(Type):
    name: str
    type_params: tuple[TypeVar, ...]
    params: list[Parameter]
    decl: ast.PackageDecl

    def __str__(self) -> str:
        return f"package {self.name}"


@dataclass(frozen=True, slots=True)
class SpecialisedBlock(Type):
    """A parser, control or package type with its type arguments."""

    block: BlockType | PackageType
    args: tuple[Type, ...]

    def __str__(self) -> str:
        return f"{self.block.name}<{', '.join(map(str, self.args))}>"


@dataclass(eq=False, slots=True)
class TableType(Type):
    decl: ast.TableDecl

    def __str__(self) -> str:
        return f"table {self.decl.name}"


@dataclass(frozen=True, slots=True)
class ApplyResultType(Type):
    """What `table.apply()` gives: hit, miss, action_run."""

    table: TableType

    def __str__(self) -> str:
        return f"apply_result({self.table.decl.name})"


@dataclass(frozen=True, slots=True)
class ActionEnumType(Type):
    """The type of `table.apply().action_run`."""

    table: TableType

    def __str__(self) -> str:
        return f"action_list({self.table.decl.name})"


@dataclass(frozen=True, slots=True)
class MetaType(Type):
    """The type of an expression that names a type: `error`, an enum, a parser in a constructor call."""

    type: Type

    def __str__(self) -> str:
        return f"type {self.type}"


def is_header(type_: Type) -> bool:
    """Whether a value of the type has a validity."""
    return isinstance(type_, StructType) and type_.kind == "header"


def is_union(type_: Type) -> bool:
    """Whether the type is a header union."""
    return isinstance(type_, StructType) and type_.kind == "header_union"


def is_array(type_: Type) -> bool:
    """Whether the type is an array of anything but headers and header unions."""
    return isinstance(type_, StackType) and not (is_header(type_.element) or is_union(type_.element))


def is_struct(type_: Type) -> bool:
    """Whether the type is a plain structure."""
    return isinstance(type_, StructType) and type_.kind == "struct"


def representation(type_: Type) -> Type:
    """The type that carries the bits: the base of a `type` or of a serialisable enum."""
    while True:
        base = type_.base if isinstance(type_, NewType | EnumType) else None
        if base is None:
            return type_
        type_ = base


def bit_width(type_: Type) -> int | None:
    """How many bits a value takes in a BMv2 field or a P4Info message; None for what is no scalar."""
    base = representation(type_)
    if isinstance(base, BitType):
        return base.width
    if base == BOOL:
        return 1
    if base == ERROR or isinstance(base, EnumType):
        return 32
    return None


def min_bits(type_: Type) -> int | None:
    """`minSizeInBits()`, or None for a type that has no size."""
    return _size_in_bits(type_, maximal=False)


def max_bits(type_: Type) -> int | None:
    """`maxSizeInBits()`, or None for a type that has no size."""
    return _size_in_bits(type_, maximal=True)


def _size_in_bits(type_: Type, maximal: bool) -> int | None:
    base = representation(type_)
    if isinstance(base, VarbitType):
        return base.width if maximal else 0
    if isinstance(base, StackType):
        element = _size_in_bits(base.element, maximal)
        return None if element is None else element * base.size
    parts: list[Type]
    if isinstance(base, StructType):
        parts = [item.type for item in base.fields.values()]
    elif isinstance(base, TupleType | ListType):
        parts = list(base.items)
    else:
        return bit_width(base)
    sizes = [_size_in_bits(part, maximal) for part in parts]
    if any(size is None for size in sizes):
        return None
    known = [size for size in sizes if size is not None]
    if is_union(base):
        return (max if maximal else min)(known, default=0)
    return sum(known)


def substitute(type_: Type, bindings: dict[TypeVar, Type]) -> Type:
    """The type with its variables replaced; a variable without a binding stays."""
    if not bindings:
        return type_
    if isinstance(type_, TypeVar):
        return bindings.get(type_, type_)
    if isinstance(type_, TupleType):
        return TupleType(tuple(substitute(item, bindings) for item in type_.items), type_.name)
    if isinstance(type_, StackType):
        return StackType(substitute(type_.element, bindings), type_.size)
    if isinstance(type_, ExternRef) and type_.args:
        return ExternRef(type_.extern, tuple(substitute(item, bindings) for item in type_.args))
    if isinstance(type_, SpecialisedBlock):
        return SpecialisedBlock(type_.block, tuple(substitute(item, bindings) for item in type_.args))
    if isinstance(type_, StructType) and type_.generic is not None:
        return specialise_struct(type_.generic, tuple(substitute(item, bindings) for item in type_.args))
    return type_


def specialise_struct(generic: StructType, args: tuple[Type, ...]) -> StructType:
    """The instance of a generic struct or header for these arguments, made once."""
    found = generic.instances.get(args)
    if found is None:
        found = StructType(generic.name, generic.kind, {}, generic.decl, (), args, generic)
        generic.instances[args] = found
        bindings: dict[TypeVar, Type] = dict(zip(generic.params, args, strict=True))
        for item in generic.fields.values():
            found.fields[item.name] = Field(item.name, substitute(item.type, bindings), item.decl)
    return found
