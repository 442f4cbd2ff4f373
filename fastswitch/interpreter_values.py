"""The interpreter's state and expressions: packets, fields of unlimited integers, and what operations mean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]


class ParserError(Exception):
    """Ends parsing; its argument is the error's code."""


@dataclass
class Entry:
    """One row of a table.

    `match` has one tuple a key: ("exact", v), ("lpm", v, length), ("ternary", v, mask) or ("range", low, high).
    """

    match: list[tuple[Any, ...]]
    action: int  # id in the JSON
    params: list[int]
    priority: int = 0  # larger wins
    group: list[tuple[int, list[int]]] | None = None  # members of a selector group: action, params
    hits: int = 0
    bytes: int = 0


@dataclass
class Packet:
    """A packet in flight: header fields by (header, field), validity, stack fill, and what externs asked for."""

    data: bytes
    fields: dict[tuple[str, str], int] = field(default_factory=dict)
    varbits: dict[tuple[str, str], bytes] = field(default_factory=dict)
    valid: set[str] = field(default_factory=set)
    filled: dict[str, int] = field(default_factory=dict)
    cursor: int = 0
    requests: dict[str, Any] = field(default_factory=dict)
    parser_error: int = 0
    checksum_error: bool = False
    exited: bool = False
    length_change: int = 0
    digests: list[tuple[int, list[int]]] = field(default_factory=list)

    @property
    def payload(self) -> bytes:
        return self.data[self.cursor :]


class Values:
    """A program's declarations, and reading and writing what they declare."""

    def __init__(self, document: Json, random: Callable[[int, int], int] = lambda low, high: low) -> None:
        self.document = document
        self.random = random
        self.types = {each["name"]: each for each in document["header_types"]}
        self.headers = {each["name"]: self.types[each["header_type"]] for each in document["headers"]}
        self.metadata = {each["name"] for each in document["headers"] if each.get("metadata")}
        names = {each["id"]: each["name"] for each in document["headers"]}
        self.stacks = {s["name"]: [names[i] for i in s["header_ids"]] for s in document.get("header_stacks", [])}
        self.unions = {u["name"]: [names[i] for i in u["header_ids"]] for u in document.get("header_unions", [])}
        union_names = {u["id"]: u["name"] for u in document.get("header_unions", [])}
        for stack in document.get("header_union_stacks", []):
            self.stacks[stack["name"]] = [union_names[i] for i in stack["header_union_ids"]]
        self.union_of = {header: union for union, members in self.unions.items() for header in members}
        self.union_members = {
            union["name"]: [m[0] for t in document["header_union_types"] if t["name"] == union["union_type"]
                            for m in t["headers"]]
            for union in document.get("header_unions", [])
        }  # fmt: skip
        self.actions = {each["id"]: each for each in document["actions"]}
        self.calculations = {each["name"]: each for each in document.get("calculations", [])}
        self.errors = {name: code for name, code in document.get("errors", [])}
        for core in CORE_ERRORS:
            self.errors.setdefault(core, max(self.errors.values(), default=-1) + 1)
        self.registers = {r["name"]: [0] * r["size"] for r in document.get("register_arrays", [])}
        self.register_bits = {r["name"]: r["bitwidth"] for r in document.get("register_arrays", [])}
        self.counters = {
            c["name"]: [[0, 0] for _ in range(c["size"])]
            for c in document.get("counter_arrays", [])
            if not c.get("is_direct")
        }
        self.meters = {m["name"]: m for m in document.get("meter_arrays", [])}
        self.meter_colors: dict[tuple[str, int], int] = {}
        self.value_sets: dict[str, set[int]] = {v["name"]: set() for v in document.get("parse_vsets", [])}
        self.aliases = {tuple(target): name for name, target in document.get("field_aliases", [])}
        self.within: str | None = None  # the header whose length is being computed
        self.calls: dict[int, int] = {}  # of round_robin "hashes", by the identity of their input lists
        self.logs: list[str] = []
        self.tables: dict[str, Json] = {}
        self.entries: dict[str, list[Entry]] = {}
        self.defaults: dict[str, tuple[int, list[int]] | None] = {}
        self.profiles: dict[str, Json] = {}
        for pipeline in document["pipelines"]:
            for profile in pipeline.get("action_profiles", []):
                self.profiles[profile["name"]] = profile
            for table in pipeline["tables"]:
                self._load_table(table)

    def _load_table(self, table: Json) -> None:
        name = table["name"]
        self.tables[name] = table
        self.entries[name] = []
        default = table.get("default_entry")
        self.defaults[name] = (
            (default["action_id"], [int(v, 16) for v in default["action_data"]]) if default is not None else None
        )
        for each in table.get("entries", []):
            match: list[tuple[Any, ...]] = []
            for key in each["match_key"]:
                kind = key["match_type"]
                if kind == "range":
                    match.append((kind, int(key["start"], 16), int(key["end"], 16)))
                elif kind == "lpm":
                    match.append((kind, int(key["key"], 16), key["prefix_length"]))
                elif kind in ("ternary", "optional"):
                    match.append(("ternary", int(key["key"], 16), int(key["mask"], 16)))
                else:
                    match.append(("exact", int(key["key"], 16) if isinstance(key["key"], str) else int(key["key"])))
            action = each["action_entry"]
            params = [int(v, 16) for v in action["action_data"]]
            self.add_entry(name, match, action["action_id"], params, -each.get("priority", 0))

    # -- control

    def add_entry(
        self,
        table: str,
        match: list[tuple[Any, ...]],
        action: int,
        params: list[int],
        priority: int = 0,
        group: list[tuple[int, list[int]]] | None = None,
    ) -> Entry:
        masks = [int(key["mask"], 16) if key.get("mask") else -1 for key in self.tables[table]["key"]]
        cut = [(m[0], m[1] if m[0] == "range" else m[1] & mask, *m[2:]) for m, mask in zip(match, masks, strict=True)]
        entry = Entry(cut, action, params, priority, group)
        self.entries[table].append(entry)
        return entry

    # -- fields

    def width(self, header: str, name: str) -> tuple[int, bool]:
        for each in self.headers[header]["fields"]:
            if each[0] == name:
                return each[1], bool(each[2]) if len(each) > 2 else False
        raise KeyError((header, name))

    def _saturates(self, header: str, name: str) -> bool:
        return any(each[0] == name and len(each) > 3 and each[3] for each in self.headers[header]["fields"])

    def get(self, packet: Packet, header: str | None, name: str) -> int:
        if header is None:
            return 0
        if name == "$valid$":
            return int(self.is_valid(packet, header))
        return packet.fields.get((header, name), 0)

    def set(self, packet: Packet, header: str | None, name: str, value: int) -> None:
        if header is None:
            return
        if name == "$valid$":
            self._mark(packet, header, bool(value & 1))
            return
        bits, signed = self.width(header, name)
        if self._saturates(header, name):
            value = OPERATIONS["sat_cast" if signed else "usat_cast"](value, bits)
        value &= (1 << bits) - 1
        if signed and value >> (bits - 1):
            value -= 1 << bits
        packet.fields[(header, name)] = value

    def is_valid(self, packet: Packet, header: str) -> bool:
        return header in self.metadata or header in packet.valid

    def _mark(self, packet: Packet, header: str, valid: bool) -> None:
        if header in self.metadata:
            return
        packet.valid.discard(header)
        if valid:
            if header in self.union_of:
                packet.valid -= set(self.unions[self.union_of[header]])
            packet.valid.add(header)

    def standard(self, packet: Packet, name: str, value: int) -> None:
        """Sets a field of standard metadata under whatever name the program gave it, if it has it."""
        for header in ("standard_metadata", "intrinsic_metadata", "queueing_metadata"):
            for (owner, own_name), alias in self.aliases.items():
                if alias == f"{header}.{name}":
                    self.set(packet, owner, own_name, value)
                    return
        for header in ("standard_metadata", "intrinsic_metadata", "queueing_metadata"):
            if header in self.headers and any(each[0] == name for each in self.headers[header]["fields"]):
                self.set(packet, header, name, value)
                return

    def standard_value(self, packet: Packet, name: str) -> int:
        for header in ("standard_metadata", "intrinsic_metadata", "queueing_metadata"):
            for (owner, own_name), alias in self.aliases.items():
                if alias == f"{header}.{name}":
                    return self.get(packet, owner, own_name)
        for header in ("standard_metadata", "intrinsic_metadata", "queueing_metadata"):
            if (header, name) in packet.fields:
                return packet.fields[(header, name)]
        return 0

    # -- expressions

    def locate(self, packet: Packet, node: Any, params: list[int]) -> str | None:
        """The header (or union) that an expression names; None beyond a stack."""
        kind, value = node["type"], node["value"]
        if kind in ("header", "header_union"):
            return str(value)
        if kind == "expression":
            if "op" not in value:
                return self.locate(packet, value, params)
            if value["op"] in ("dereference_header_stack", "dereference_union_stack", "dereference_stack"):
                members = self.stacks[value["left"]["value"]]
                index = self.number(packet, value["right"], params)
                return members[index] if 0 <= index < len(members) else None
            if value["op"] == "access_union_header":
                union = self.locate(packet, value["left"], params)
                return None if union is None else self.unions[union][value["right"]]
        raise NotImplementedError(node)

    def number(self, packet: Packet, node: Any, params: list[int]) -> int:
        result = self.evaluate(packet, node, params)
        return int(result)

    def evaluate(self, packet: Packet, node: Any, params: list[int]) -> Any:
        kind, value = node["type"], node["value"]
        if kind == "hexstr":
            return int(value, 16)
        if kind == "field":
            return self.get(packet, value[0], value[1])
        if kind == "bool":
            return bool(value)
        if kind in ("local", "runtime_data"):
            if self.within is not None:  # the length of a header in terms of its own fields
                return self.get(packet, self.within, self.headers[self.within]["fields"][value][0])
            return params[value]
        if kind in ("stack_field", "union_stack_field"):
            return self._last_field(packet, value)
        if kind == "lookahead":
            return self._peek(packet, value[0], value[1])
        if kind == "register":
            cells = self.registers[value[0]]
            index = self.number(packet, value[1], params)
            return cells[index] if index < len(cells) else 0
        if kind == "expression":
            return self._operation(packet, value, params) if "op" in value else self.evaluate(packet, value, params)
        raise NotImplementedError(kind)

    def _last_field(self, packet: Packet, value: list[str]) -> int:
        count = packet.filled.get(value[0], 0)
        if count == 0:
            return 0
        element = self.stacks[value[0]][count - 1]
        if len(value) == 3:
            element = self.unions[element][self.union_members[element].index(value[1])]
        return self.get(packet, element, value[-1])

    def _peek(self, packet: Packet, offset: int, width: int) -> int:
        if len(packet.data) - packet.cursor < (offset + width + 7) // 8:
            raise ParserError(self.errors["PacketTooShort"])
        rest = packet.data[packet.cursor :]
        return int.from_bytes(rest, "big") >> (8 * len(rest) - offset - width) & ((1 << width) - 1)

    def _operation(self, packet: Packet, node: Json, params: list[int]) -> Any:
        op = node["op"]
        if op in ("valid", "valid_union"):
            name = self.locate(packet, node["right"], params)
            members = self.unions.get(name, [name]) if name is not None else []
            return any(self.is_valid(packet, member) for member in members)
        if op == "access_field":
            header = self.locate(packet, node["left"], params)
            if header is None:
                return 0
            return self.get(packet, header, [*self.headers[header]["fields"], ["$valid$"]][node["right"]][0])
        if op in ("last_stack_index", "size_stack"):
            stack = (node.get("left") or node["right"])["value"]
            count = packet.filled.get(stack, 0)
            return (count - 1) % (1 << 64) if op == "last_stack_index" else count
        if op in ("==", "!=") and self._varbit_name(node["left"]) is not None:
            one, other = (packet.varbits.get(self._varbit_name(node[side]), b"") for side in ("left", "right"))
            return (one == other) == (op == "==")
        if op in ("==", "!=") and self._is_header(node["left"]):
            return self._same(packet, node, params) == (op == "==")
        if op == "?":
            return self.evaluate(
                packet, node["left" if self.evaluate(packet, node["cond"], params) else "right"], params
            )
        right = self.evaluate(packet, node["right"], params)
        left = self.evaluate(packet, node["left"], params) if node.get("left") is not None else 0
        return OPERATIONS[op](left, right)

    def _varbit_name(self, node: Any) -> Any:
        while node["type"] == "expression" and "op" not in node["value"]:
            node = node["value"]
        name = tuple(node["value"]) if node["type"] == "field" else ()
        return name if name and name[1] != "$valid$" and self.width(*name)[0] == "*" else None

    def _is_header(self, node: Any) -> bool:
        while node["type"] == "expression" and "op" not in node["value"]:
            node = node["value"]
        return node["type"] in ("header", "header_union") or (
            node["type"] == "expression" and node["value"]["op"].startswith(("dereference", "access_union"))
        )

    def _same(self, packet: Packet, node: Json, params: list[int]) -> bool:
        one, other = (self.locate(packet, node[side], params) for side in ("left", "right"))
        if one in self.unions and other in self.unions:
            pairs = list(zip(self.unions[one], self.unions[other], strict=True))
            return all(
                (a in packet.valid) == (b in packet.valid) and (a not in packet.valid or self._equal(packet, a, b))
                for a, b in pairs
            )
        return one is not None and other is not None and self._equal(packet, one, other)

    def _equal(self, packet: Packet, one: str, other: str) -> bool:
        if not (self.is_valid(packet, one) and self.is_valid(packet, other)):
            return False
        return all(
            self.get(packet, one, each[0]) == self.get(packet, other, each[0])
            and packet.varbits.get((one, each[0]), b"") == packet.varbits.get((other, each[0]), b"")
            for each in self.headers[one]["fields"]
        )


def _two_complement(value: int, width: int) -> int:
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value


CORE_ERRORS = (
    *("NoError", "PacketTooShort", "NoMatch", "StackOutOfBounds", "HeaderTooShort", "ParserTimeout"),
    "ParserInvalidArgument",
)
OLD_OPERATIONS = {
    "add": "+",
    "subtract": "-",
    "bit_and": "&",
    "bit_or": "|",
    "bit_xor": "^",
    "shift_left": "<<",
    "shift_right": ">>",
}
OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a // b if b else 0,
    "%": lambda a, b: a % b if b else 0,
    "<<": lambda a, b: a << b if b < 100_000 else 0,
    ">>": lambda a, b: a >> b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "~": lambda a, b: ~b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "and": lambda a, b: a and b,
    "or": lambda a, b: a or b,
    "not": lambda a, b: not b,
    "d2b": lambda a, b: b != 0,
    "b2d": lambda a, b: int(b),
    "two_comp_mod": _two_complement,
    "usat_cast": lambda a, b: min(max(a, 0), (1 << b) - 1),
    "sat_cast": lambda a, b: min(max(a, -(1 << (b - 1))), (1 << (b - 1)) - 1),
}
