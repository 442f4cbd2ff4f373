"""P4Info: what the control plane sees of the elaborated program.

Objects come in p4c's order: all controls' actions in the order of the package, then what the controls declare;
instances stand where they are declared, with what they declare in turn.
"""

from __future__ import annotations

from collections.abc import Iterator

from finsy.proto import p4i, p4t

from p4front import fold, ir
from p4front import p4types as t
from p4front import syntax as ast
from p4front.diagnostics import Diagnostics, Span
from p4front.elaborate import Elaborated
from p4front.key_names import annotated_name
from p4front.p4info_symbols import Symbols, field_ids
from p4front.p4info_types import TypeInfo, annotation_text, runtime_width, value_bytes

_MATCH_TYPES = {
    "exact": p4i.MatchField.EXACT,
    "lpm": p4i.MatchField.LPM,
    "ternary": p4i.MatchField.TERNARY,
    "range": p4i.MatchField.RANGE,
    "optional": p4i.MatchField.OPTIONAL,
}
_COUNTER_UNITS = {
    "packets": p4i.CounterSpec.PACKETS,
    "bytes": p4i.CounterSpec.BYTES,
    "packets_and_bytes": p4i.CounterSpec.BOTH,
}
_METER_UNITS = {"packets": p4i.MeterSpec.PACKETS, "bytes": p4i.MeterSpec.BYTES}
_EXTERN_KINDS = {
    "counter": "counter", "direct_counter": "direct_counter", "meter": "meter", "direct_meter": "direct_meter",
    "register": "register", "action_profile": "action_profile", "action_selector": "action_profile",
}  # fmt: skip
_PROFILE_ANNOTATIONS = ("max_group_size", "selector_size_semantics", "max_member_weight")

Member = ir.Table | ir.Extern | ir.ValueSet | ir.ActionMember


def make_p4info(program: Elaborated, source: str, diagnostics: Diagnostics) -> p4i.P4Info:
    """The P4Info of a program; `source` is the preprocessed text, from which annotations are copied."""
    return _Builder(program, source, diagnostics).build()


class _Builder:
    def __init__(self, program: Elaborated, source: str, diagnostics: Diagnostics) -> None:
        self.program = program
        self.source = source
        self.diagnostics = diagnostics
        self.info = p4i.P4Info()
        self.symbols = Symbols(diagnostics)
        self.types = TypeInfo(self.info, program.errors, diagnostics)
        members = [list(ir.members_of(block)) for block in program.blocks]
        self.actions: list[ir.ActionMember] = []
        for instance, block in zip(program.blocks, members, strict=True):
            self.actions += instance.global_actions
            self.actions += [member for member in block if isinstance(member, ir.ActionMember)]
        self.objects: list[Member] = [*program.externs, *(m for block in members for m in block)]

    def build(self) -> p4i.P4Info:
        self._collect()
        self._package()
        for action in self.actions:
            if action.used:
                self._action(action)
        for item in self.objects:
            if isinstance(item, ir.Table) and item.applied:
                self._table(item)
            elif isinstance(item, ir.Extern):
                self._extern(item)
            elif isinstance(item, ir.ValueSet):
                self._value_set(item)
        for digest in self.program.digests:
            self._digest(digest)
        for header in self._controller_headers():
            self._controller_header(header)
        return self.info

    def _collect(self) -> None:
        seen: set[tuple[str, str]] = set()
        for action in self.actions:
            if action.used:
                self.symbols.add("action", action.name, action.decl.annotations)
        for item in self.objects:
            if isinstance(item, ir.Table) and item.applied:
                self._once("table", item.name, item.decl.name_span, seen)
                self.symbols.add("table", item.name, item.annotations)
                for extern in (item.profile, item.counter, item.meter):
                    if extern is not None and extern.in_table:
                        self._collect_extern(extern)
            elif isinstance(item, ir.Extern):
                self._collect_extern(item)
            elif isinstance(item, ir.ValueSet):
                self.symbols.add("value_set", item.name, item.decl.annotations)
        for digest in self.program.digests:
            self.symbols.add("digest", digest.name, [])
        for header in self._controller_headers():
            self.symbols.add("controller_header", header.name, header.annotations)
        self.symbols.assign()

    def _once(self, kind: str, name: str, span: Span, seen: set[tuple[str, str]]) -> None:
        """Two objects of one kind cannot share a name: the control plane could not tell them apart."""
        if (kind, name) in seen:
            self.diagnostics.error(f"two objects of kind {kind} have the control plane name {name!r}", span)
        seen.add((kind, name))

    def _collect_extern(self, extern: ir.Extern) -> None:
        kind = _EXTERN_KINDS.get(extern.type.extern.name)
        if kind is not None:
            self.symbols.add(kind, extern.name, extern.annotations)

    # annotations

    def _annotate(self, message: object, annotations: list[ast.Annotation], skip: tuple[str, ...] = ()) -> None:
        for item in annotations:
            if item.structured:
                self._structured(message.structured_annotations.add(), item)  # type: ignore[attr-defined]
            elif item.name not in ("name", "id", "brief", "description", *skip):
                message.annotations.append(annotation_text(item))  # type: ignore[attr-defined]

    def _structured(self, message: p4t.StructuredAnnotation, item: ast.Annotation) -> None:
        message.name = item.name
        for key, expr in item.pairs.items():
            pair = message.kv_pair_list.kv_pairs.add(key=key)
            self._annotation_value(pair.value, expr)
        for expr in item.args:
            self._annotation_value(message.expression_list.expressions.add(), expr)
        if not item.pairs and not item.args:
            message.expression_list.SetInParent()

    def _annotation_value(self, message: p4t.Expression, expr: ast.Expr) -> None:
        value = self.program.annotation_value(expr)
        if isinstance(value, bool):
            message.bool_value = value
        elif isinstance(value, str):
            message.string_value = value
        elif value is not None and -(1 << 63) <= value < 1 << 63:
            message.int64_value = value
        else:
            self.diagnostics.error("a structured annotation holds constants of 64 bits, bools and strings", expr.span)

    def _document(self, message: object, annotations: list[ast.Annotation]) -> None:
        for kind in ("brief", "description"):
            found = ast.annotation(annotations, kind)
            if found is not None and found.args and isinstance(found.args[0], ast.StringLit):
                setattr(message.doc, kind, found.args[0].value)  # type: ignore[attr-defined]

    def _preamble(
        self,
        preamble: p4i.Preamble,
        kind: str,
        name: str,
        annotations: list[ast.Annotation],
        skip: tuple[str, ...] = (),
    ) -> None:
        preamble.id = self.symbols.id(kind, name)
        preamble.name = name
        preamble.alias = self.symbols.alias(name)
        self._annotate(preamble, annotations, skip)
        self._document(preamble, annotations)

    # objects

    def _package(self) -> None:
        main = self.program.main
        package = self.info.pkg_info
        package.arch = "v1model"
        pkginfo = ast.annotation(main.annotations, "pkginfo")
        for key, expr in (pkginfo.pairs if pkginfo is not None else {}).items():
            if key in ("name", "version", "organization", "contact", "url", "arch") and isinstance(expr, ast.StringLit):
                setattr(package, key, expr.value)
        platform = ast.annotation(main.annotations, "platform_property")
        for key, expr in (platform.pairs if platform is not None else {}).items():
            if isinstance(expr, ast.IntLit) and key in package.platform_properties.DESCRIPTOR.fields_by_name:
                setattr(package.platform_properties, key, expr.value)
        rest = [item for item in main.annotations if item.name not in ("pkginfo", "platform_property")]
        self._annotate(package, rest)
        self._document(package, main.annotations)

    def _action(self, member: ir.ActionMember) -> None:
        decl = member.decl
        if ast.has_annotation(decl.annotations, "hidden"):
            return
        action_id = self.symbols.id("action", member.name)
        if any(action.preamble.id == action_id for action in self.info.actions):
            return
        action = self.info.actions.add()
        self._preamble(action.preamble, "action", member.name, decl.annotations)
        # parameters of an action that is only called directly have no control plane
        params = [param for param in decl.params if not param.direction and member.in_table]
        for param_id, param in zip(field_ids([p.annotations for p in params]), params, strict=True):
            message = action.params.add(id=param_id, name=annotated_name(param.annotations) or param.name)
            self._annotate(message, param.annotations)
            self._document(message, param.annotations)
            self._typed(message, param.type)

    def _typed(self, message: object, type_: t.Type) -> None:
        """bitwidth and type_name of a match field, parameter or metadata field."""
        enum = isinstance(type_, t.EnumType) and type_.base is None
        if not enum:
            message.bitwidth = runtime_width(type_)  # type: ignore[attr-defined]
        name = self.types.user_type(type_)
        if enum:
            name = str(type_)
        if name is not None:
            message.type_name.name = name  # type: ignore[attr-defined]

    def _table(self, table: ir.Table) -> None:
        if ast.has_annotation(table.annotations, "hidden"):
            return
        message = self.info.tables.add(size=table.size)
        if table.entries is not None:
            message.size = table.size
        self._preamble(message.preamble, "table", table.name, table.annotations)
        self.types.touch()
        default = table.actions[table.default].action
        default_id = self.symbols.id("action", default.name)
        if table.default_const:
            message.const_default_action_id = default_id
        message.initial_default_action.action_id = default_id
        for param, arg in zip(default.params, table.default_args, strict=False):
            ids = field_ids([p.annotations for p in default.params])
            width = t.bit_width(param.type) or 0
            entry = message.initial_default_action.arguments.add(param_id=ids[default.params.index(param)])
            entry.value = value_bytes(arg.value, width)
        for reference in table.actions:
            self._action_ref(message.action_refs.add(), reference, table)
        ids = field_ids([key.annotations for key in table.keys])
        for field_id, key in zip(ids, table.keys, strict=True):
            if key.match_kind != "selector":
                self._match_field(message.match_fields.add(id=field_id, name=key.name), key)
        message.is_const_table = table.entries is not None and table.entries_const
        message.has_initial_entries = bool(table.entries)
        if table.support_timeout:
            message.idle_timeout_behavior = p4i.Table.NOTIFY_CONTROL
        self._table_externs(message, table)

    def _action_ref(self, message: p4i.ActionRef, reference: ir.ActionRef, table: ir.Table) -> None:
        message.id = self.symbols.id("action", reference.action.name)
        self._annotate(message, reference.annotations)
        table_only = ast.has_annotation(reference.annotations, "tableonly")
        default_only = ast.has_annotation(reference.annotations, "defaultonly")
        if table_only and default_only:
            self.diagnostics.error(
                f"table {table.name}: action {reference.action.name} is both @tableonly and @defaultonly",
                reference.annotations[0].span,
            )
        if table_only:
            message.scope = p4i.ActionRef.TABLE_ONLY
        elif default_only:
            message.scope = p4i.ActionRef.DEFAULT_ONLY

    def _match_field(self, message: p4i.MatchField, key: ir.Key) -> None:
        self._annotate(message, key.annotations)
        self._document(message, key.annotations)
        if key.match_kind in _MATCH_TYPES:
            message.match_type = _MATCH_TYPES[key.match_kind]
        else:
            message.other_match_type = key.match_kind
        self._typed(message, key.type)

    def _table_externs(self, message: p4i.Table, table: ir.Table) -> None:
        if table.profile is not None:
            message.implementation_id = self.symbols.id("action_profile", table.profile.name)
            if table.profile.in_table:
                self._profile(table.profile, table.decl.properties["implementation"].annotations)
        if table.counter is not None:
            counter = self.info.direct_counters.add()
            self._preamble(counter.preamble, "direct_counter", table.counter.name, table.counter.annotations)
            counter.spec.unit = _COUNTER_UNITS[_symbol(table.counter, "type")]
            counter.direct_table_id = message.preamble.id
            message.direct_resource_ids.append(counter.preamble.id)
        if table.meter is not None:
            meter = self.info.direct_meters.add()
            self._preamble(meter.preamble, "direct_meter", table.meter.name, table.meter.annotations)
            meter.spec.unit = _METER_UNITS[_symbol(table.meter, "type")]
            meter.direct_table_id = message.preamble.id
            message.direct_resource_ids.append(meter.preamble.id)

    def _extern(self, extern: ir.Extern) -> None:
        kind = extern.type.extern.name
        self.types.touch()
        if kind == "counter":
            counter = self.info.counters.add(size=_number(extern, "size"))
            self._preamble(counter.preamble, "counter", extern.name, extern.annotations)
            counter.spec.unit = _COUNTER_UNITS[_symbol(extern, "type")]
            self._index_type(counter, extern, 0)
        elif kind == "meter":
            meter = self.info.meters.add(size=_number(extern, "size"))
            self._preamble(meter.preamble, "meter", extern.name, extern.annotations)
            meter.spec.unit = _METER_UNITS[_symbol(extern, "type")]
            self._index_type(meter, extern, 0)
        elif kind == "register":
            register = self.info.registers.add(size=_number(extern, "size"))
            self._preamble(register.preamble, "register", extern.name, extern.annotations)
            register.type_spec.CopyFrom(self.types.spec(extern.type.args[0], extern.span))
            self._index_type(register, extern, 1)
        elif kind in ("action_profile", "action_selector"):
            self._profile(extern, extern.annotations)

    def _index_type(self, message: object, extern: ir.Extern, position: int) -> None:
        if position < len(extern.type.args):
            name = self.types.user_type(extern.type.args[position])
            if name is not None:
                message.index_type_name.name = name  # type: ignore[attr-defined]

    def _profile(self, extern: ir.Extern, annotations: list[ast.Annotation]) -> None:
        message = self.info.action_profiles.add(size=_number(extern, "size"))
        self._preamble(message.preamble, "action_profile", extern.name, annotations, _PROFILE_ANNOTATIONS)
        message.with_selector = extern.type.extern.name == "action_selector"
        names = sorted(table.name for table in extern.tables if table.applied)
        message.table_ids.extend(self.symbols.id("table", name) for name in names)
        if not message.with_selector:
            return
        size = _annotation_number(annotations, "max_group_size")
        if size is not None:
            message.max_group_size = size
        semantics = ast.annotation(annotations, "selector_size_semantics")
        if semantics is not None and semantics.args and isinstance(semantics.args[0], ast.StringLit):
            chosen = semantics.args[0].value.lower()
            if chosen == "sum_of_weights":
                message.sum_of_weights.SetInParent()
            elif chosen == "sum_of_members":
                message.sum_of_members.SetInParent()
                weight = _annotation_number(annotations, "max_member_weight")
                if weight is not None:
                    message.sum_of_members.max_member_weight = weight
            else:
                self.diagnostics.error('needs "sum_of_weights" or "sum_of_members"', semantics.span)

    def _value_set(self, value_set: ir.ValueSet) -> None:
        message = self.info.value_sets.add(size=value_set.size)
        self._preamble(message.preamble, "value_set", value_set.name, value_set.decl.annotations)
        element = value_set.element
        if isinstance(element, t.StructType):
            fields = list(element.fields.values())
            annotated = [field.decl.annotations if field.decl is not None else [] for field in fields]
            for field_id, field, annotations in zip(field_ids(annotated), fields, annotated, strict=True):
                match = message.match.add(id=field_id, name=field.name, bitwidth=t.bit_width(field.type) or 0)
                kind = ast.annotation(annotations, "match")
                named = kind.args[0] if kind is not None and kind.args else None
                match.match_type = _MATCH_TYPES[named.name if isinstance(named, ast.Name) else "exact"]
                self._annotate(match, annotations, ("match",))
                self._document(match, annotations)
        elif isinstance(element, t.EnumType):
            for number, name in enumerate(element.members, start=1):
                match = message.match.add(id=number, name=name, bitwidth=t.bit_width(element) or 0)
                match.match_type = p4i.MatchField.EXACT
        else:
            message.match.add(id=1, bitwidth=t.bit_width(element) or 0, match_type=p4i.MatchField.EXACT)

    def _digest(self, digest: ir.Digest) -> None:
        number = self.symbols.id("digest", digest.name)
        if any(known.preamble.id == number for known in self.info.digests):
            return
        message = self.info.digests.add()
        self._preamble(message.preamble, "digest", digest.name, [])
        message.type_spec.CopyFrom(self.types.spec(digest.type, digest.span))

    def _controller_headers(self) -> list[ast.StructDecl]:
        return [
            decl
            for decl in self.program.program.declarations
            if isinstance(decl, ast.StructDecl)
            and decl.kind == "header"
            and ast.has_annotation(decl.annotations, "controller_header")
        ]

    def _controller_header(self, decl: ast.StructDecl) -> None:
        found = ast.annotation(decl.annotations, "controller_header")
        assert found is not None
        if not found.args or not isinstance(found.args[0], ast.StringLit):
            raise self.diagnostics.fail("@controller_header needs a name", found.span)
        message = self.info.controller_packet_metadata.add()
        self._preamble(message.preamble, "controller_header", decl.name, decl.annotations)
        message.preamble.name = message.preamble.alias = found.args[0].value
        fields = list(_flat_fields(decl.fields, ""))
        ids = field_ids([field.annotations for _, field in fields])
        for field_id, (name, field) in zip(ids, fields, strict=True):
            if ast.has_annotation(field.annotations, "hidden"):
                continue
            metadata = message.metadata.add(id=field_id, name=name)
            self._annotate(metadata, field.annotations)
            self._typed(metadata, field.type)


def _flat_fields(fields: list[ast.FieldDecl], prefix: str) -> Iterator[tuple[str, ast.FieldDecl]]:
    """Fields with those of nested structures in their place, named by their path."""
    for field in fields:
        name = prefix + (annotated_name(field.annotations) or field.name)
        base = t.representation(field.type)
        if isinstance(base, t.StructType) and base.decl is not None:
            yield from _flat_fields(base.decl.fields, f"{name}.")
        else:
            yield name, field


def _symbol(extern: ir.Extern, name: str) -> str:
    value = extern.args[name]
    assert isinstance(value, ir.Symbol)
    return value.name


def _number(extern: ir.Extern, name: str) -> int:
    value = fold.known(extern.args[name])
    assert isinstance(value, int)
    return value


def _annotation_number(annotations: list[ast.Annotation], name: str) -> int | None:
    found = ast.annotation(annotations, name)
    if found is None or not found.args or not isinstance(found.args[0], ast.IntLit):
        return None
    return found.args[0].value
