"""P4Info's view of types: data type specifications and the named types they need in `type_info`."""

from __future__ import annotations

from finsy.proto import p4i, p4t

from p4front import p4types as t
from p4front import syntax as ast
from p4front.diagnostics import Diagnostics, Span
from p4front.key_names import annotated_name
from p4front.layout import flat_fields


def value_bytes(value: int, width: int) -> bytes:
    """A value in as many bytes as its width takes, as p4c writes it."""
    return (value & ((1 << width) - 1)).to_bytes(max(1, (width + 7) // 8), "big")


class TypeInfo:
    """Fills `type_info` while types are converted."""

    def __init__(self, info: p4i.P4Info, errors: dict[str, int], diagnostics: Diagnostics) -> None:
        self.info = info
        self.errors = errors
        self.diagnostics = diagnostics

    def touch(self) -> None:
        """p4c leaves an empty `type_info` wherever it looked at a type."""
        self.info.type_info.SetInParent()

    def user_type(self, type_: t.Type) -> str | None:
        """Register the type; its name if it is a `type`."""
        self.touch()
        self.spec(type_, (-1, -1))
        return type_.name if isinstance(type_, t.NewType) else None

    def spec(self, type_: t.Type, span: Span) -> p4t.P4DataTypeSpec:
        """The specification of a type."""
        result = p4t.P4DataTypeSpec()
        if isinstance(type_, t.BitType):
            kind = result.bitstring.int if type_.signed else result.bitstring.bit
            kind.bitwidth = type_.width
            kind.SetInParent()
        elif isinstance(type_, t.VarbitType):
            result.bitstring.varbit.max_bitwidth = type_.width
        elif type_ == t.BOOL:
            result.bool.SetInParent()
        elif type_ == t.ERROR:
            result.error.SetInParent()
            if not self.info.type_info.HasField("error"):
                self.info.type_info.error.members.extend(self.errors)
        elif isinstance(type_, t.NewType):
            result.new_type.name = type_.name
            self._new_type(type_)
        elif isinstance(type_, t.EnumType):
            if type_.base is None:
                result.enum.name = type_.name
                self._enum(type_)
            else:
                result.serializable_enum.name = type_.name
                self._serializable_enum(type_)
        elif isinstance(type_, t.StructType):
            self._struct(type_, result, span)
        elif isinstance(type_, t.TupleType):
            result.tuple.SetInParent()
            for item in type_.items:
                result.tuple.members.add().CopyFrom(self.spec(item, span))
        elif isinstance(type_, t.StackType) and isinstance(type_.element, t.StructType):
            result.header_stack.header.name = _name(type_.element)
            result.header_stack.size = type_.size
            self.spec(type_.element, span)
        else:
            raise self.diagnostics.fail(f"P4Runtime has no representation of '{type_}'", span)
        return result

    def _struct(self, type_: t.StructType, result: p4t.P4DataTypeSpec, span: Span) -> None:
        name = _name(type_)
        if type_.kind == "struct":
            result.struct.name = name
            if name not in self.info.type_info.structs:
                members = []
                for field in type_.fields.values():
                    members.append((field.name, self.spec(field.type, span)))
                entry = self.info.type_info.structs[name]
                for member, spec in members:
                    entry.members.add(name=member).type_spec.CopyFrom(spec)
        elif type_.kind == "header":
            result.header.name = name
            if name not in self.info.type_info.headers:
                found = [(path, self.spec(t.representation(item), span)) for path, item in flat_fields(type_)]
                header = self.info.type_info.headers[name]
                for member, spec in found:
                    header.members.add(name=member).type_spec.CopyFrom(spec.bitstring)
        else:
            raise self.diagnostics.unsupported("header unions", span)

    def _enum(self, type_: t.EnumType) -> None:
        if type_.name not in self.info.type_info.enums:
            entry = self.info.type_info.enums[type_.name]
            for member in type_.members:
                entry.members.add(name=member)

    def _serializable_enum(self, type_: t.EnumType) -> None:
        if type_.name in self.info.type_info.serializable_enums:
            return
        width = t.bit_width(type_) or 0
        entry = self.info.type_info.serializable_enums[type_.name]
        entry.underlying_type.bitwidth = width
        for member, value in type_.members.items():
            entry.members.add(name=member, value=value_bytes(value, width))

    def _new_type(self, type_: t.NewType) -> None:
        if type_.name in self.info.type_info.new_types:
            return
        underlying: t.Type = type_
        while isinstance(underlying, t.NewType):
            underlying = underlying.base
        spec = self.spec(underlying, (-1, -1))
        entry = self.info.type_info.new_types[type_.name]
        annotations = type_.decl.annotations if type_.decl is not None else []
        entry.annotations.extend(
            annotation_text(item) for item in annotations if item.name != "p4runtime_translation"
        )
        translation = ast.annotation(annotations, "p4runtime_translation")
        if translation is None:
            entry.original_type.CopyFrom(spec)
            return
        if len(translation.args) != 2 or not isinstance(translation.args[0], ast.StringLit):
            raise self.diagnostics.fail("@p4runtime_translation needs a URI and a type", translation.span)
        entry.translated_type.uri = translation.args[0].value
        to = translation.args[1]
        width = _translated_width(to)
        if width is not None:
            entry.translated_type.sdn_bitwidth = width
        elif isinstance(to, ast.TypeName) and isinstance(to.node, ast.BaseType) and to.node.name == "string":
            entry.translated_type.sdn_string.SetInParent()
        else:
            raise self.diagnostics.fail("@p4runtime_translation needs bit<W> or string", translation.span)


def annotation_text(item: ast.Annotation) -> str:
    """An annotation as it was written."""
    return f"@{item.name}" if item.body is None else f"@{item.name}({item.body})"


def runtime_width(type_: t.Type) -> int:
    """The width the control plane sees: that of the translation, if the type has one; 0 for strings and errors."""
    if t.representation(type_) == t.ERROR:
        return 0
    if isinstance(type_, t.NewType) and type_.decl is not None:
        translation = ast.annotation(type_.decl.annotations, "p4runtime_translation")
        if translation is not None and len(translation.args) == 2:
            return _translated_width(translation.args[1]) or 0
    return t.bit_width(type_) or 0


def _translated_width(to: ast.Expr) -> int | None:
    if isinstance(to, ast.IntLit):
        return to.value
    if isinstance(to, ast.TypeName) and isinstance(to.node, ast.BaseType) and to.node.name == "bit":
        width = to.node.width
        return 1 if width is None else width.value if isinstance(width, ast.IntLit) else None
    return None


def _name(type_: t.StructType) -> str:
    name = annotated_name(type_.decl.annotations) if type_.decl is not None else None
    return name or type_.name
