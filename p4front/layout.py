"""Where variables live: header types, header instances, stacks, and the `scalars` of metadata and locals."""

from __future__ import annotations

from dataclasses import dataclass, field

from p4front import ir
from p4front import p4types as t
from p4front import syntax as ast
from p4front.diagnostics import Diagnostics, Span
from p4front.values import HeaderPlace, StackPlace, StructValue, UnionPlace, Value

SCALARS = "scalars"
STANDARD_METADATA = "standard_metadata"
MAX_PLACES = 100_000  # of all variables: structs in structs multiply


@dataclass(slots=True)
class HeaderTypeLayout:
    """Fields are (name, width, signed); a varbit's width is "*" and `max_length` its bytes."""

    name: str
    fields: list[tuple[str, int | str, bool]] = field(default_factory=list)
    max_length: int | None = None
    type: t.StructType | None = None


@dataclass(slots=True)
class HeaderInstance:
    name: str
    type_name: str
    metadata: bool


@dataclass(slots=True)
class HeaderStack:
    name: str
    type_name: str
    elements: list[str]


@dataclass(slots=True)
class HeaderUnion:
    name: str
    type_name: str
    members: list[str]


class Layout:
    """Allocates names and places; the output phase writes what was allocated."""

    def __init__(self, diagnostics: Diagnostics) -> None:
        self.diagnostics = diagnostics
        self.scalars = HeaderTypeLayout("scalars_0")
        self.header_types: dict[str, HeaderTypeLayout] = {}
        self.headers: dict[str, HeaderInstance] = {}
        self.stacks: dict[str, HeaderStack] = {}
        self.unions: dict[str, HeaderUnion] = {}
        self.union_types: dict[str, t.StructType] = {}
        self.union_stacks: dict[str, HeaderStack] = {}
        # the members of the union that a header is in
        self.siblings: dict[str, list[str]] = {}
        self.aliases: list[tuple[str, str, str]] = []
        self._types: dict[t.StructType, str] = {}
        self._scalar_names: set[str] = set()
        self._counters: dict[str, int] = {}
        self._metadata_prefix = ""
        self._places = 0
        self.headers[SCALARS] = HeaderInstance(SCALARS, self.scalars.name, True)

    # places

    def parameter(self, type_: t.Type, name: str, span: Span) -> Value:
        """A place for a value that parser, controls and deparser share: headers or user metadata."""
        return self._place(type_, name, span, fresh=False)

    def user_metadata(self, type_: t.Type, span: Span) -> Value:
        """A place for the user metadata, named as p4c names it: scalars by the type, headers `userMetadata.`."""
        self._metadata_prefix = f"{type_}."
        place = self._place(type_, str(type_), span, fresh=False)
        self._metadata_prefix = ""
        return place

    def variable(self, type_: t.Type, name: str, span: Span) -> Value:
        """A place for a local variable; its name is made unique."""
        return self._place(type_, self.unique(name), span, fresh=True)

    def unique(self, name: str) -> str:
        """`name_0`, `name_1`, ... for a local."""
        while True:
            number = self._counters.get(name, 0)
            self._counters[name] = number + 1
            candidate = f"{name}_{number}"
            taken = (self._scalar_names, self.headers, self.stacks, self.unions)
            if not any(candidate in names for names in taken):
                return candidate

    def standard_metadata(self, struct: t.StructType) -> StructValue:
        """The fixed instance that BMv2 fills and reads."""
        layout = HeaderTypeLayout(STANDARD_METADATA)
        fields: dict[str, Value] = {}
        for item in struct.fields.values():
            width = t.bit_width(item.type)
            assert width is not None
            layout.fields.append((item.name, width, False))
            fields[item.name] = ir.FieldRef(item.type, STANDARD_METADATA, item.name)
            alias = ast.annotation(item.decl.annotations, "alias") if item.decl is not None else None
            if alias is not None and alias.args and isinstance(alias.args[0], ast.StringLit):
                self.aliases.append((alias.args[0].value, STANDARD_METADATA, item.name))
        self.header_types[STANDARD_METADATA] = layout
        self.headers[STANDARD_METADATA] = HeaderInstance(STANDARD_METADATA, STANDARD_METADATA, True)
        return StructValue(struct, fields)

    def _place(self, type_: t.Type, name: str, span: Span, fresh: bool) -> Value:
        base = t.representation(type_)
        self._places += 1
        if self._places > MAX_PLACES:
            raise self.diagnostics.fail(f"{name}: more than {MAX_PLACES} fields and variables", span)
        if isinstance(base, t.StructType) and base.kind == "struct":
            inner = {
                item.name: self._place(item.type, f"{name}.{item.name}" if name else item.name, span, fresh)
                for item in base.fields.values()
            }
            return StructValue(base, inner)
        if isinstance(base, t.TupleType):
            parts = {str(i): self._place(item, f"{name}.{i}", span, fresh) for i, item in enumerate(base.items)}
            return StructValue(base, parts)
        if t.is_array(base):
            assert isinstance(base, t.StackType)
            items = {str(i): self._place(base.element, f"{name}[{i}]", span, fresh) for i in range(base.size)}
            return StructValue(base, items)
        if t.is_header(base):
            assert isinstance(base, t.StructType)
            return self.header(base, name, span)
        if isinstance(base, t.StackType):
            return self.stack(base, name, span)
        if t.is_union(base):
            assert isinstance(base, t.StructType)
            return self.union(base, name, span)
        if isinstance(base, t.VarbitType):
            return self.varbit(base, name)
        return self.scalar(type_, name, span)

    def scalar(self, type_: t.Type, name: str, span: Span) -> ir.FieldRef:
        """A field of `scalars`."""
        width = t.bit_width(type_)
        if width is None:
            raise self.diagnostics.fail(f"a variable cannot have type '{type_}'", span)
        base = t.representation(type_)
        signed = isinstance(base, t.BitType) and base.signed
        if name in self._scalar_names:
            raise self.diagnostics.fail(f"{name}: two variables of this name", span)
        self._scalar_names.add(name)
        self.scalars.fields.append((name, width, signed))
        return ir.FieldRef(type_, SCALARS, name)

    def header(self, type_: t.StructType, name: str, span: Span) -> HeaderPlace:
        """A header instance."""
        name = self._header_name(name)
        if name in self.headers:
            raise self.diagnostics.fail(f"{name}: two headers of this name", span)
        self.headers[name] = HeaderInstance(name, self.header_type(type_, span), False)
        return HeaderPlace(type_, name)

    def stack(self, type_: t.StackType, name: str, span: Span) -> StackPlace:
        """A stack of header instances."""
        name = self._header_name(name)
        element = type_.element
        assert isinstance(element, t.StructType)
        elements = [f"{name}[{index}]" for index in range(type_.size)]
        if t.is_union(element):
            for item in elements:
                self.union(element, item, span)
            self.union_stacks[name] = HeaderStack(name, element.name, elements)
            return StackPlace(type_, name)
        for item in elements:
            self.header(element, item, span)
        self.stacks[name] = HeaderStack(name, self.header_type(element, span), elements)
        return StackPlace(type_, name)

    def _header_name(self, name: str) -> str:
        prefix = self._metadata_prefix
        return f"userMetadata.{name[len(prefix):]}" if prefix and name.startswith(prefix) else name

    def union(self, type_: t.StructType, name: str, span: Span) -> UnionPlace:
        """A header union: an instance for each member."""
        name = self._header_name(name)
        members: list[str] = []
        for item in type_.fields.values():
            assert isinstance(item.type, t.StructType)
            members.append(self.header(item.type, f"{name}.{item.name}", span).name)
            self.siblings[members[-1]] = members
        self.union_types.setdefault(type_.name, type_)
        self.unions[name] = HeaderUnion(name, type_.name, members)
        return UnionPlace(type_, name)

    def varbit(self, type_: t.VarbitType, name: str) -> ir.FieldRef:
        """A varbit variable: a header of one field, since `scalars` cannot hold it."""
        layout = f"$varbit{type_.width}"
        kind = HeaderTypeLayout(layout, [("field", "*", False)], (type_.width + 7) // 8)
        self.header_types.setdefault(layout, kind)
        self.headers[name] = HeaderInstance(name, layout, True)
        return ir.FieldRef(type_, name, "field")

    # header types

    def header_type(self, type_: t.StructType, span: Span) -> str:
        """The name of the header type's layout, made on first use."""
        known = self._types.get(type_)
        if known is not None:
            return known
        name = type_.name
        number = 0
        while name in self.header_types or name == self.scalars.name:
            name = f"{type_.name}_{number}"
            number += 1
        layout = HeaderTypeLayout(name, type=type_)
        self._types[type_] = name
        self.header_types[name] = layout
        total = 0
        for path, field_type in flat_fields(type_):
            if isinstance(field_type, t.VarbitType):
                if layout.max_length is not None:
                    raise self.diagnostics.fail(f"header {type_.name} has more than one varbit field", span)
                layout.fields.append((path, "*", False))
                layout.max_length = field_type.width
                continue
            width = t.bit_width(field_type)
            base = t.representation(field_type)
            if width is None:
                where = f"{type_.name}.{path}"
                raise self.diagnostics.fail(f"{where}: a header field cannot have type '{field_type}'", span)
            layout.fields.append((path, width, isinstance(base, t.BitType) and base.signed))
            total += width
        if layout.max_length is not None:
            layout.max_length = (total + layout.max_length + 7) // 8
        return name


def flat_fields(type_: t.StructType) -> list[tuple[str, t.Type]]:
    """The fields of a header, those of structures and arrays in it included, as paths."""
    found: list[tuple[str, t.Type]] = []
    for item in type_.fields.values():
        found += _flat_field(item.name, item.type)
    return found


def _flat_field(name: str, type_: t.Type) -> list[tuple[str, t.Type]]:
    base = t.representation(type_)
    if isinstance(base, t.StructType) and base.kind == "struct":
        return [(f"{name}.{path}", inner) for path, inner in flat_fields(base)]
    if isinstance(base, t.StackType):
        return [part for index in range(base.size) for part in _flat_field(f"{name}[{index}]", base.element)]
    return [(name, base if isinstance(base, t.VarbitType) else type_)]


