"""P4Info as the server uses it: nouns by id, each with the codecs of its values.

Tables and actions are joined with the BMv2 JSON by full name. The JSON may hold tables that P4Info does not list
(hidden ones), and P4Info tables that the JSON lacks (removed by the compiler): the latter keep entries that no
packet sees.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from finsy.proto import p4d, p4i, p4r, p4t

from fastswitch.codegen import model
from fastswitch.server.codec import Bits, SdnString, SignedBits, TranslatedBits
from fastswitch.server.errors import P4RuntimeError, invalid_argument, permission_denied, unimplemented
from fastswitch.server.match import KeyCodec, match_field

T = TypeVar("T")

# P4Info comes from a client: what it says about width and size must not decide how much memory is taken.
_MAX_WIDTH = 4_096  # bits
_MAX_UNSEEN_CELLS = 1 << 16  # of an array that the JSON lacks

_KINDS = {
    0x01: "an action",
    0x02: "a table",
    0x03: "a value set",
    0x04: "controller metadata",
    0x11: "an action profile",
    0x12: "a counter",
    0x13: "a direct counter",
    0x14: "a meter",
    0x15: "a direct meter",
    0x16: "a register",
    0x17: "a digest",
}


class Ids(dict[int, T], Generic[T]):
    """Objects of one kind by P4Info id. `find` says what the id is instead when it is not of this kind."""

    def __init__(self, kind: str, names: dict[int, str]) -> None:
        super().__init__()
        self._kind = kind
        self._names = names

    def find(self, p4_id: int) -> T:
        """The object; INVALID_ARGUMENT if there is none."""
        found = self.get(p4_id)
        if found is None:
            invalid_argument(self._explain(p4_id))
        return found

    def _explain(self, p4_id: int) -> str:
        text = f"no {self._kind} has id 0x{p4_id:08x}"
        if p4_id in self._names:
            return f"{text}: it is {_KINDS.get(p4_id >> 24, 'the object')} '{self._names[p4_id]}'"
        if not self:
            return f"{text}: the program has no {self._kind}"
        known = ", ".join(f"0x{i:08x} ({self._names[i]})" for i in sorted(self)[:8])
        return f"{text}; known are {known}{', ...' if len(self) > 8 else ''}"


@dataclass(slots=True)
class Param:
    """An action parameter."""

    id: int
    name: str
    bits: Bits
    what: str


@dataclass(slots=True)
class Action:
    """An action and the codec of its arguments."""

    id: int
    name: str
    params: list[Param]
    order: list[int]  # engine position -> index into params
    in_order: bool = True

    def encode(self, action: p4r.Action) -> bytes:
        """The engine's argument bytes; the message's values become canonical."""
        given = list(action.params)
        if len(given) != len(self.params):
            self._complain(action)
        parts: list[bytes] = []
        for value, param in zip(given, self.params, strict=True):
            if value.param_id != param.id:
                return self._encode_any_order(action)
            parts.append(self._value(value, param))
        if not self.in_order:
            parts = [parts[i] for i in self.order]
        return b"".join(parts)

    def decode(self, args: Iterable[bytes]) -> p4r.Action:
        """The message for padded engine arguments in the engine's order."""
        by_index = dict(zip(self.order, args, strict=True))
        params = [
            p4r.Action.Param(param_id=param.id, value=param.bits.from_padded(by_index[i]))
            for i, param in enumerate(self.params)
        ]
        return p4r.Action(action_id=self.id, params=params)

    @staticmethod
    def _value(value: p4r.Action.Param, param: Param) -> bytes:
        given = value.value
        canonical = param.bits.canonical(given, param.what)
        if canonical is not given:
            value.value = canonical
        return param.bits.padded(canonical)

    def _encode_any_order(self, action: p4r.Action) -> bytes:
        by_id = {value.param_id: value for value in action.params}
        if by_id.keys() != {param.id for param in self.params}:
            self._complain(action)
        parts = [self._value(by_id[param.id], param) for param in self.params]
        return b"".join([parts[i] for i in self.order])

    def _complain(self, action: p4r.Action) -> None:
        given = [value.param_id for value in action.params]
        wanted = ", ".join(f"{param.id} ({param.name})" for param in self.params) or "none"
        invalid_argument(f"action '{self.name}' takes parameters {wanted}; the request gives ids {given}")


@dataclass(slots=True)
class ActionUse:
    """An action as one table lists it."""

    action: Action
    scope: int
    index: int  # the table's own copy of the action in the engine; -1 if the JSON lacks the table


@dataclass(slots=True)
class Table:
    """A table of P4Info."""

    id: int
    name: str
    key: KeyCodec
    actions: dict[int, ActionUse]
    size: int
    is_const: bool
    has_const_default: bool
    profile_id: int
    direct_counter: int
    direct_meter: int
    idle_timeout: bool
    code: model.Table | None  # None if the JSON lacks the table
    initial_default: p4i.TableActionCall | None = None

    def use_of(self, action_id: int, *, default: bool) -> ActionUse:
        """The table's use of an action; refuses strangers and actions of the wrong scope."""
        use = self.actions.get(action_id)
        if use is None:
            known = ", ".join(f"0x{i:08x} ({u.action.name})" for i, u in self.actions.items())
            invalid_argument(f"table '{self.name}' has no action 0x{action_id:08x}; it has {known or 'none'}")
        if default:
            if use.scope == p4i.ActionRef.TABLE_ONLY:
                permission_denied(f"action '{use.action.name}' of table '{self.name}' is @tableonly")
        elif use.scope == p4i.ActionRef.DEFAULT_ONLY:
            permission_denied(f"action '{use.action.name}' of table '{self.name}' is @defaultonly")
        return use


@dataclass(slots=True)
class Profile:
    """An action profile or selector."""

    id: int
    name: str
    with_selector: bool
    size: int
    max_group_size: int
    sum_of_members: bool
    max_member_weight: int
    weights_disallowed: bool
    tables: list[Table] = field(default_factory=list)


@dataclass(slots=True)
class Array:
    """A counter, meter or register array. `data` converts register cells."""

    id: int
    name: str
    size: int
    meter_type: int = 0
    data: "DataCodec | None" = None


@dataclass(slots=True)
class DirectResource:
    """A direct counter or meter and the table it belongs to."""

    id: int
    name: str
    table_id: int
    meter_type: int = 0


@dataclass(slots=True)
class ValueSet:
    """A parser value set."""

    id: int
    name: str
    key: KeyCodec
    size: int


@dataclass(slots=True)
class Digest:
    """A digest: `list_id` is the JSON's learn list."""

    id: int
    name: str
    list_id: int | None
    data: "DataCodec"


@dataclass(slots=True)
class MetadataField:
    """A field of a packet-in or packet-out header."""

    id: int
    name: str
    bits: Bits
    what: str


class DataCodec:
    """`p4r.P4Data` of a type that is one value or a flat struct of them; the engine's form is their padded strings."""

    def __init__(self, leaves: list[tuple[str, Bits]], *, struct: bool, tuple_: bool = False) -> None:
        self._leaves = leaves
        self._struct = struct
        self._tuple = tuple_

    @property
    def sizes(self) -> list[int]:
        """Bytes of each value in the engine's form."""
        return [bits.size for _, bits in self._leaves]

    def encode(self, data: p4d.P4Data, what: str) -> bytes:
        """The engine's form; INVALID_ARGUMENT if the type does not fit."""
        if self._struct or self._tuple:
            members = data.struct.members if self._struct else data.tuple.members
            kind = "struct" if self._struct else "tuple"
            if data.WhichOneof("data") != kind or len(members) != len(self._leaves):
                invalid_argument(f"{what}: the value must be a {kind} of {len(self._leaves)} members")
            return b"".join(
                self._encode_leaf(member, leaf, what) for member, leaf in zip(members, self._leaves, strict=True)
            )
        return self._encode_leaf(data, self._leaves[0], what)

    def decode(self, padded: bytes) -> p4d.P4Data:
        """The message for the engine's form."""
        values = []
        offset = 0
        for kind, bits in self._leaves:
            values.append(self._decode_leaf(padded[offset : offset + bits.size], kind, bits))
            offset += bits.size
        if self._struct:
            return p4d.P4Data(struct=p4d.P4StructLike(members=values))
        if self._tuple:
            return p4d.P4Data(tuple=p4d.P4StructLike(members=values))
        return values[0]

    @staticmethod
    def _encode_leaf(data: p4d.P4Data, leaf: tuple[str, Bits], what: str) -> bytes:
        kind, bits = leaf
        given = data.WhichOneof("data")
        if given != kind:
            invalid_argument(f"{what}: the value must be a {kind}, not {given or 'empty'}")
        if kind == "bool":
            return bits.encode_int(int(data.bool))
        value = data.bitstring if kind == "bitstring" else data.enum_value
        return bits.padded(bits.canonical(value, what))

    @staticmethod
    def _decode_leaf(padded: bytes, kind: str, bits: Bits) -> p4d.P4Data:
        if kind == "bool":
            return p4d.P4Data(bool=any(padded))
        value = bits.from_padded(padded)
        return p4d.P4Data(bitstring=value) if kind == "bitstring" else p4d.P4Data(enum_value=value)


class Schema:
    """Everything of one P4Info, by id."""

    def __init__(self, p4info: p4i.P4Info, program: model.Program) -> None:
        self.names = _collect_names(p4info)
        self._types = p4info.type_info
        self._sdn_strings: dict[tuple[str, int], SdnString] = {}
        self._code_tables = {table.name: table for table in program.tables}
        # An action has a copy per table, and copies with bound arguments where the program calls it directly.
        visible = {table.preamble.name for table in p4info.tables}
        self._code_actions = {action.name: action for action in program.actions}
        for code_table in program.tables:
            if code_table.name in visible:
                self._code_actions.update((action.name, action) for action in code_table.actions)
        learn_lists = {learn.name: learn.id for learn in program.learn_lists}

        self.actions: Ids[Action] = Ids("action", self.names)
        for action in p4info.actions:
            self.actions[action.preamble.id] = self._action(action)
        self.tables: Ids[Table] = Ids("table", self.names)
        for table in p4info.tables:
            self.tables[table.preamble.id] = self._table(table)
        self.profiles: Ids[Profile] = Ids("action profile", self.names)
        for profile in p4info.action_profiles:
            self.profiles[profile.preamble.id] = self._profile(profile)
        self.counters: Ids[Array] = Ids("counter", self.names)
        for counter in p4info.counters:
            pre, size = counter.preamble, _cells(counter, program.counters)
            self.counters[pre.id] = Array(pre.id, pre.name, size)
        self.meters: Ids[Array] = Ids("meter", self.names)
        for meter in p4info.meters:
            pre, size = meter.preamble, _cells(meter, program.meters)
            self.meters[pre.id] = Array(pre.id, pre.name, size, meter.spec.type)
        self.registers: Ids[Array] = Ids("register", self.names)
        for register in p4info.registers:
            pre, size = register.preamble, _cells(register, program.registers)
            widths = [array.width for array in program.registers if array.name == pre.name]
            data = self._data(register.type_spec, f"register '{pre.name}'", widths)
            self.registers[pre.id] = Array(pre.id, pre.name, size, data=data)
        self.direct_counters: Ids[DirectResource] = Ids("direct counter", self.names)
        for direct in p4info.direct_counters:
            pre = direct.preamble
            self.direct_counters[pre.id] = DirectResource(pre.id, pre.name, direct.direct_table_id)
        self.direct_meters: Ids[DirectResource] = Ids("direct meter", self.names)
        for direct_meter in p4info.direct_meters:
            pre, spec = direct_meter.preamble, direct_meter.spec
            resource = DirectResource(pre.id, pre.name, direct_meter.direct_table_id, spec.type)
            self.direct_meters[pre.id] = resource
        self.value_sets: Ids[ValueSet] = Ids("value set", self.names)
        for value_set in p4info.value_sets:
            pre = value_set.preamble
            given = [info.bitwidth for info in value_set.match]
            used = next((v.key_widths for v in program.value_sets if v.name == pre.name), None)
            if used is not None and len(used) != len(given):
                invalid_argument(f"value set '{pre.name}' has {len(given)} fields, in the JSON {len(used)}")
            sizes = zip(value_set.match, used or given, strict=True)
            fields = [match_field(info, self._bits(info, width)) for info, width in sizes]
            key = KeyCodec(pre.name, fields, list(range(len(fields))))
            self.value_sets[pre.id] = ValueSet(pre.id, pre.name, key, value_set.size)
        self.digests: Ids[Digest] = Ids("digest", self.names)
        for digest in p4info.digests:
            pre = digest.preamble
            lists = [learn for learn in program.learn_lists if learn.name == pre.name]
            widths = [use.field.width for learn in lists for use in learn.fields]
            data = self._data(digest.type_spec, f"digest '{pre.name}'", widths)
            self.digests[pre.id] = Digest(pre.id, pre.name, learn_lists.get(pre.name), data)
        self.packet_in = self._controller_header(p4info, "packet_in", program)
        self.packet_out = self._controller_header(p4info, "packet_out", program)

    def _action(self, info: p4i.Action) -> Action:
        name = info.preamble.name
        code = self._code_actions.get(name)
        widths = {param.name: param.width for param in code.params} if code else {}
        params = []
        for p in info.params:
            bits = self._bits(p, widths.get(p.name) or p.bitwidth)
            params.append(Param(p.id, p.name, bits, f"parameter '{p.name}' of '{name}'"))
        order = _join([p.name for p in params], [p.name for p in code.params] if code else None, f"action '{name}'")
        return Action(info.preamble.id, name, params, order, order == list(range(len(params))))

    def _table(self, info: p4i.Table) -> Table:
        name = info.preamble.name
        code = self._code_tables.get(name)
        widths = {key.name: key.width for key in code.keys} if code else {}
        fields = [match_field(f, self._bits(f, widths.get(f.name) or f.bitwidth)) for f in info.match_fields]
        order = _join([f.name for f in fields], [key.name for key in code.keys] if code else None, f"table '{name}'")
        copies = {action.name: action for action in code.actions} if code else {}
        uses = {}
        for ref in info.action_refs:
            action = self.actions.find(ref.id)
            copy = copies.get(action.name)
            if code and copy is None:
                invalid_argument(f"table '{name}': the JSON does not list action '{action.name}'")
            if copy is not None and copy.params != self._code_actions[action.name].params:
                invalid_argument(f"table '{name}': the JSON's action '{action.name}' has other parameters elsewhere")
            uses[ref.id] = ActionUse(action, ref.scope, copy.index if copy is not None else -1)
        kinds = {r >> 24: r for r in info.direct_resource_ids}
        return Table(
            id=info.preamble.id,
            name=name,
            key=KeyCodec(name, fields, order, _key_mask(code)),
            actions=uses,
            size=info.size,
            is_const=info.is_const_table,
            has_const_default=info.const_default_action_id != 0,
            profile_id=info.implementation_id,
            direct_counter=kinds.get(0x13, 0),
            direct_meter=kinds.get(0x15, 0),
            idle_timeout=info.idle_timeout_behavior == p4i.Table.NOTIFY_CONTROL,
            code=code,
            initial_default=info.initial_default_action if info.HasField("initial_default_action") else None,
        )

    def _profile(self, info: p4i.ActionProfile) -> Profile:
        return Profile(
            id=info.preamble.id,
            name=info.preamble.name,
            with_selector=info.with_selector,
            size=info.size,
            max_group_size=info.max_group_size,
            sum_of_members=info.HasField("sum_of_members"),
            max_member_weight=info.sum_of_members.max_member_weight,
            weights_disallowed=info.weights_disallowed,
            tables=[self.tables.find(table_id) for table_id in info.table_ids],
        )

    def _controller_header(self, p4info: p4i.P4Info, name: str, program: model.Program) -> list[MetadataField]:
        for header in p4info.controller_packet_metadata:
            if header.preamble.name == name:
                widths = _header_widths(header, program)
                return [
                    MetadataField(m.id, m.name, self._bits(m, width), f"metadata '{m.name}' of {name}")
                    for m, width in zip(header.metadata, widths, strict=True)
                ]
        return []

    def _bits(
        self,
        info: p4i.MatchField | p4i.Action.Param | p4i.ControllerPacketMetadata.Metadata,
        width: int,
    ) -> Bits:
        """The codec of something that has a bit width and perhaps a type with a translation."""
        type_name = info.type_name.name
        if type_name and type_name in self._types.new_types:
            spec = self._types.new_types[type_name]
            if spec.HasField("translated_type"):
                return self._translated(spec.translated_type, width, f"'{info.name}'")
        return Bits(_width(width, f"'{info.name}'"))

    def _translated(self, translated: p4t.P4NewTypeTranslation, width: int, what: str) -> Bits:
        """A translated type with `width` bits in the data plane; 0 if no packet ever sees it."""
        if translated.HasField("sdn_string"):
            width = _width(width or 32, what)
            return self._sdn_strings.setdefault((translated.uri, width), SdnString(width))
        controller_width = _width(translated.sdn_bitwidth, what)
        if width in (0, controller_width):
            return Bits(controller_width)
        return TranslatedBits(_width(width, what), controller_width)

    def _data(self, spec: p4t.P4DataTypeSpec, what: str, widths: list[int]) -> DataCodec:
        """`widths` are those of the JSON, which translated types do not tell; [] if the JSON lacks the object."""
        kind = spec.WhichOneof("type_spec")
        members = [spec]
        if kind == "struct":
            members = [member.type_spec for member in self._types.structs[spec.struct.name].members]
        elif kind == "tuple":
            members = list(spec.tuple.members)
        if len(widths) != len(members):
            widths = [0] * len(members)
        leaves = [self._leaf(member, what, width) for member, width in zip(members, widths, strict=True)]
        return DataCodec(leaves, struct=kind == "struct", tuple_=kind == "tuple")

    def _leaf(self, spec: p4t.P4DataTypeSpec, what: str, width: int) -> tuple[str, Bits]:
        kind = spec.WhichOneof("type_spec")
        if kind == "bitstring":
            return "bitstring", _bitstring(spec.bitstring, what)
        if kind == "bool":
            return "bool", Bits(1)
        if kind == "serializable_enum":
            enum = self._types.serializable_enums[spec.serializable_enum.name]
            return "enum_value", Bits(_width(enum.underlying_type.bitwidth, what))
        if kind == "new_type":
            new_type = self._types.new_types[spec.new_type.name]
            if new_type.HasField("original_type"):
                return self._leaf(new_type.original_type, what, width)
            return "bitstring", self._translated(new_type.translated_type, width, what)
        unimplemented(f"{what}: values of type {kind} are not supported over P4Runtime")


def _key_mask(table: model.Table | None) -> bytes | None:
    """What the JSON cuts the table's keys with, in the engine's form; None if it cuts nothing. Ranges are not cut."""
    if table is None or all(key.mask is None or key.match == "range" for key in table.keys):
        return None
    masks = (-1 if key.mask is None or key.match == "range" else key.mask for key in table.keys)
    return b"".join(Bits(key.width).encode_int(mask) for key, mask in zip(table.keys, masks, strict=True))


def _width(width: int, what: str) -> int:
    if not 1 <= width <= _MAX_WIDTH:
        invalid_argument(f"{what} is {width} bits wide; 1 to {_MAX_WIDTH} are possible")
    return width


def _cells(info: p4i.Counter | p4i.Meter | p4i.Register, arrays: Iterable[model.Array]) -> int:
    """Cells of an array: as the JSON says, which the engine has reserved."""
    for array in arrays:
        if array.name == info.preamble.name:
            return array.size
    return max(0, min(info.size, _MAX_UNSEEN_CELLS))


def _header_widths(info: p4i.ControllerPacketMetadata, program: model.Program) -> list[int]:
    """Of the header's fields: P4Info leaves out those of translated types, which the JSON's header of the same fields
    tells."""
    names = [metadata.name for metadata in info.metadata]
    given = [metadata.bitwidth for metadata in info.metadata]
    translated = [bool(metadata.type_name.name) for metadata in info.metadata]
    if not any(translated):
        return given
    for header in program.header_types:
        widths = [field.width for field in header.fields]
        if [field.name for field in header.fields] == names and all(
            known or a == b for known, a, b in zip(translated, given, widths, strict=True)
        ):
            return widths
    invalid_argument(f"the JSON has no header with the fields of {info.preamble.name}: {', '.join(names)}")


def _bitstring(spec: p4t.P4BitstringLikeTypeSpec, what: str) -> Bits:
    if spec.HasField("int"):
        return SignedBits(_width(spec.int.bitwidth, what))
    if spec.HasField("bit"):
        return Bits(_width(spec.bit.bitwidth, what))
    unimplemented(f"{what}: varbit values are not supported over P4Runtime")


def _join(p4info_names: list[str], json_names: list[str] | None, what: str) -> list[int]:
    """For each position in the JSON the index in P4Info, by name; by position if the names differ."""
    if json_names is None:
        return list(range(len(p4info_names)))
    if len(p4info_names) != len(json_names):
        invalid_argument(
            f"{what}: P4Info has {p4info_names or 'nothing'} and the JSON {json_names or 'nothing'}; "
            "were they compiled from the same program?"
        )
    if len(set(p4info_names)) == len(p4info_names) and set(p4info_names) == set(json_names):
        return [p4info_names.index(name) for name in json_names]
    return list(range(len(p4info_names)))


def _collect_names(p4info: p4i.P4Info) -> dict[int, str]:
    groups = (
        p4info.tables,
        p4info.actions,
        p4info.action_profiles,
        p4info.counters,
        p4info.direct_counters,
        p4info.meters,
        p4info.direct_meters,
        p4info.controller_packet_metadata,
        p4info.value_sets,
        p4info.registers,
        p4info.digests,
    )
    names: dict[int, str] = {}
    for group in groups:
        for noun in group:
            pre = noun.preamble
            if pre.id in names:
                invalid_argument(f"P4Info gives id 0x{pre.id:08x} to both '{names[pre.id]}' and '{pre.name}'")
            names[pre.id] = pre.name
    return names


def build_schema(p4info: p4i.P4Info, program: model.Program) -> Schema:
    """The schema; INVALID_ARGUMENT whatever is wrong with P4Info, which a client sent."""
    try:
        return Schema(p4info, program)
    except P4RuntimeError as error:
        invalid_argument(f"P4Info: {error.message}")
