"""A reference for the generated code: runs BMv2 JSON directly, slowly and plainly, with Python's integers.

It shares nothing with `fastswitch.codegen`, so that a misreading of the format in one shows as a difference.  It trusts
its JSON; use it in tests only.

    switch = Interpreter(document)
    switch.add_entry("ingress.ipv4_lpm", [("lpm", 0x0A000000, 8)], action_id, [1])
    packet = switch.parse(frame, {"ingress_port": 1})
    switch.run("ingress", packet)
    switch.run("egress", packet)
    frame = switch.deparse(packet)
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fastswitch.interpreter_hash import HASHES

Json = dict[str, Any]
DROP_PORT = 511


class ParserError(Exception):
    """Ends parsing; its argument is the error's code."""


@dataclass
class Entry:
    """One row of a table: a match per key, as ("exact", v), ("lpm", v, length), ("ternary", v, mask), ("range", a, b)."""

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
    exited: bool = False
    length_change: int = 0
    digests: list[tuple[int, list[int]]] = field(default_factory=list)

    @property
    def payload(self) -> bytes:
        return self.data[self.cursor :]


class Interpreter:
    """One switch that runs one program."""

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
            match = []
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
        entry = Entry(match, action, params, priority, group)
        self.entries[table].append(entry)
        return entry

    # -- fields

    def width(self, header: str, name: str) -> tuple[int, bool]:
        for each in self.headers[header]["fields"]:
            if each[0] == name:
                return each[1], bool(each[2]) if len(each) > 2 else False
        raise KeyError((header, name))

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
            raise ParserError(self.errors.get("PacketTooShort", 1))
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
            return self.evaluate(packet, node["left" if self.evaluate(packet, node["cond"], params) else "right"], params)
        right = self.evaluate(packet, node["right"], params)
        left = self.evaluate(packet, node["left"], params) if node.get("left") is not None else 0
        return _OPERATIONS[op](left, right)

    def _varbit_name(self, node: Any) -> Any:
        while node["type"] == "expression" and "op" not in node["value"]:
            node = node["value"]
        name = tuple(node["value"]) if node["type"] == "field" else ()
        return name if name and name[1] != "$valid$" and self.width(*name)[0] == "*" else None

    def _is_header(self, node: Any) -> bool:
        while node["type"] == "expression" and "op" not in node["value"]:
            node = node["value"]
        return node["type"] in ("header", "header_union") or (
            node["type"] == "expression"
            and node["value"]["op"].startswith(("dereference", "access_union"))
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

    # -- parser

    def parse(self, data: bytes, standard: dict[str, int] | None = None) -> Packet:
        """A packet after the parser and the verification of checksums."""
        packet = Packet(data)
        for name, value in (standard or {}).items():
            self.standard(packet, name, value)
        packet.requests["arrival_length"] = len(data)
        code = self.errors.get("NoError", 0)
        parsers = self.document["parsers"]
        if parsers:
            parser = next((each for each in parsers if each["name"] == "parser"), parsers[0])
            states = {each["name"]: each for each in parser["parse_states"]}
            following = parser["init_state"]
            try:
                while following is not None:
                    following = self._parser_state(packet, states[following])
            except ParserError as error:
                code = error.args[0]
        self.standard(packet, "parser_error", code)
        wrong = any(self._checksum_wrong(packet, each) for each in self.document.get("checksums", []))
        self.standard(packet, "checksum_error", int(wrong))
        return packet

    def _parser_state(self, packet: Packet, state: Json) -> str | None:
        for op in state["parser_ops"]:
            self._parser_op(packet, op)
        key, widths = [], []
        for each in state["transition_key"]:
            key.append(self.evaluate(packet, each, []))
            widths.append(self._key_width(each))
        packed = 0
        for value, width in zip(key, widths, strict=True):
            packed = packed << (width + 7) // 8 * 8 | (value & ((1 << width) - 1))
        default = None
        for each in state["transitions"]:
            kind = each.get("type", "hexstr")
            if kind == "default" or each.get("value") == "default":
                default = each["next_state"]
            elif kind == "parse_vset":
                if packed in self.value_sets[each["value"]]:
                    return each["next_state"]
            else:
                mask = int(each["mask"], 16) if each.get("mask") else -1
                if packed & mask == int(each["value"], 16) & mask:
                    return each["next_state"]
        return default

    def _key_width(self, node: Any) -> int:
        value = node["value"]
        if node["type"] == "lookahead":
            return value[1]
        if value[-1] == "$valid$":
            return 1
        header = value[0]
        if node["type"] == "stack_field":
            header = self.stacks[header][0]
        elif node["type"] == "union_stack_field":
            union = self.stacks[header][0]
            header = self.unions[union][self.union_members[union].index(value[1])]
        return self.width(header, value[-1])[0]

    def _fail(self, name: str) -> ParserError:
        return ParserError(self.errors.get(name, -1))

    def _parser_op(self, packet: Packet, op: Json) -> None:
        args = op["parameters"]
        if op["op"] in ("extract", "extract_VL"):
            self._extract(packet, args)
        elif op["op"] == "set":
            self.assign(packet, args[0], self.number(packet, args[1], []), [])
        elif op["op"] == "verify":
            if not self.evaluate(packet, args[0], []):
                raise ParserError(args[1] if isinstance(args[1], int) else self.number(packet, args[1], []))
        elif op["op"] in ("advance", "shift"):
            bits = 8 * args[0] if op["op"] == "shift" else self.number(packet, args[0], [])
            if bits % 8:
                raise self._fail("ParserInvalidArgument")
            if len(packet.data) - packet.cursor < bits // 8:
                raise self._fail("PacketTooShort")
            packet.cursor += bits // 8
        elif op["op"] == "primitive":
            self._primitive(packet, args[0]["op"], args[0]["parameters"], [])
        else:
            raise NotImplementedError(op["op"])

    def _extract(self, packet: Packet, args: list[Any]) -> None:
        kind, value = args[0]["type"], args[0]["value"]
        stack = None
        if kind == "regular":
            header = value
        else:
            stack = value if kind == "stack" else value[0]
            count = packet.filled.get(stack, 0)
            if count >= len(self.stacks[stack]):
                raise self._fail("StackOutOfBounds")
            header = self.stacks[stack][count]
            if kind == "union_stack":
                header = self.unions[header][self.union_members[header].index(value[1])]
        fields = self.headers[header]["fields"]
        fixed = sum(each[1] for each in fields if each[1] != "*")
        variable = 0
        if len(args) == 2:
            variable = self.number(packet, args[1], [])
            if variable % 8:
                raise self._fail("ParserInvalidArgument")
        size = (fixed + variable) // 8
        if len(packet.data) - packet.cursor < size:
            raise self._fail("PacketTooShort")
        if len(args) == 2 and size > self.headers[header]["max_length"]:
            raise self._fail("HeaderTooShort")
        bits = int.from_bytes(packet.data[packet.cursor : packet.cursor + size], "big")
        left = 8 * size
        for each in fields:
            width = variable if each[1] == "*" else each[1]
            left -= width
            value = bits >> left & ((1 << width) - 1)
            if each[1] == "*":
                packet.varbits[(header, each[0])] = value.to_bytes(width // 8, "big")
            else:
                self.set(packet, header, each[0], value)
        packet.cursor += size
        self._mark(packet, header, True)
        if stack is not None:
            packet.filled[stack] = packet.filled.get(stack, 0) + 1

    # -- control

    def run(self, name: str, packet: Packet) -> None:
        """A pipeline: "ingress" or "egress"."""
        if name == "egress":
            length = self.standard_value(packet, "packet_length")
            self.standard(packet, "packet_length", length + packet.length_change)
            packet.length_change = 0
        pipeline = next((each for each in self.document["pipelines"] if each["name"] == name), None)
        packet.exited = False
        if pipeline is not None:
            tables = {each["name"]: each for each in pipeline["tables"]}
            conditionals = {each["name"]: each for each in pipeline.get("conditionals", [])}
            calls = {each["name"]: each for each in pipeline.get("action_calls", [])}
            node = pipeline["init_table"]
            while node is not None and not packet.exited:
                if node in tables:
                    node = self._apply(packet, tables[node])
                elif node in conditionals:
                    conditional = conditionals[node]
                    taken = self.evaluate(packet, conditional["expression"], [])
                    node = conditional["true_next" if taken else "false_next"]
                else:
                    self._call(packet, calls[node]["action_id"], [])
                    node = calls[node]["next_node"]
        packet.exited = False
        if name == "ingress" and packet.requests.get("digest"):
            for each in self.document.get("learn_lists", []):
                if each["id"] == packet.requests["digest"]:
                    values = [self.number(packet, e, []) for e in each["elements"]]
                    packet.digests.append((each["id"], values))
            packet.requests["digest"] = 0

    def _key_values(self, packet: Packet, table: Json) -> list[tuple[int, int]]:
        found = []
        for key in table["key"]:
            target = key["target"]
            if key["match_type"] == "valid":
                header = target if isinstance(target, str) else target[0]
                found.append((int(self.is_valid(packet, header)), 1))
                continue
            width = 1 if target[1] == "$valid$" else self.width(*target)[0]
            value = self.get(packet, *target) if target[1] == "$valid$" or self.is_valid(packet, target[0]) else 0
            value &= (1 << width) - 1
            if key.get("mask"):
                value &= int(key["mask"], 16)
            found.append((value, width))
        return found

    def lookup(self, packet: Packet, table: Json) -> Entry | None:
        values = self._key_values(packet, table)
        best: Entry | None = None
        rank = (-1, 0)
        if not values:
            return None
        for entry in self.entries[table["name"]]:
            length = 0
            for (value, width), match in zip(values, entry.match, strict=True):
                if match[0] == "exact":
                    hit = value == match[1]
                elif match[0] == "lpm":
                    length = match[2]
                    hit = value >> (width - length) == match[1] >> (width - length)
                elif match[0] == "ternary":
                    hit = value & match[2] == match[1] & match[2]
                else:
                    hit = match[1] <= value <= match[2]
                if not hit:
                    break
            else:
                ordered = table["match_type"] in ("ternary", "range", "optional")
                this = (0, entry.priority) if ordered else (0, length)
                if best is None or this > rank:
                    best, rank = entry, this
        return best

    def _apply(self, packet: Packet, table: Json) -> str | None:
        entry = self.lookup(packet, table)
        hit = entry is not None
        chosen: tuple[int, list[int]] | None = self.defaults[table["name"]]
        if entry is not None:
            entry.hits += 1
            entry.bytes += packet.requests["arrival_length"]
            if table.get("direct_meters"):
                target = self.meters[table["direct_meters"]]["result_target"]
                self.set(packet, target[0], target[1], 0)
            if entry.group is None:
                chosen = (entry.action, entry.params)
            elif entry.group:
                selector = self.profiles[table["action_profile"]]["selector"]
                value = self.hash(packet, selector["algo"], selector["input"])
                chosen = entry.group[value % len(entry.group)]
            else:
                hit = False
        if chosen is not None:
            self._call(packet, chosen[0], chosen[1])
        following = table["next_tables"]
        if "__HIT__" in following:
            return following["__HIT__" if hit else "__MISS__"]
        if chosen is None:
            return table.get("base_default_next")
        return following.get(self.actions[chosen[0]]["name"], table.get("base_default_next"))

    def _call(self, packet: Packet, action: int, params: list[int]) -> None:
        body = self.actions[action]["primitives"]
        index = 0
        while index < len(body):
            jump = self._primitive(packet, body[index]["op"], body[index].get("parameters", []), params)
            index = index + 1 if jump is None else jump

    # -- primitives

    def assign(self, packet: Packet, node: Any, value: int, params: list[int]) -> None:
        kind, target = node["type"], node["value"]
        if kind == "field":
            self.set(packet, target[0], target[1], value)
        elif kind == "stack_field":
            count = packet.filled.get(target[0], 0)
            self.set(packet, self.stacks[target[0]][count - 1] if count else None, target[1], value)
        elif kind == "expression" and "op" not in target:
            self.assign(packet, target, value, params)
        elif kind == "expression" and target["op"] == "access_field":
            header = self.locate(packet, target["left"], params)
            if header is not None:
                names = [*[each[0] for each in self.headers[header]["fields"]], "$valid$"]
                self.set(packet, header, names[target["right"]], value)
        elif kind == "register":
            self._write_register(target[0], self.number(packet, target[1], params), value)
        else:
            raise NotImplementedError(node)

    def _write_register(self, name: str, index: int, value: int) -> None:
        cells = self.registers[name]
        if 0 <= index < len(cells):
            cells[index] = value & ((1 << self.register_bits[name]) - 1)

    def _size(self, packet: Packet, header: str) -> int:
        fields = self.headers[header]["fields"]
        fixed = sum(each[1] for each in fields if each[1] != "*") // 8
        return fixed + sum(len(packet.varbits.get((header, each[0]), b"")) for each in fields if each[1] == "*")

    def _copy(self, packet: Packet, to: str | None, source: str | None) -> None:
        if to is None:
            return
        if source is None or not self.is_valid(packet, source):
            self._mark(packet, to, False)
            return
        for mine, other in zip(self.headers[to]["fields"], self.headers[source]["fields"], strict=True):
            if mine[1] == "*":
                packet.varbits[(to, mine[0])] = packet.varbits.get((source, other[0]), b"")
            else:
                self.set(packet, to, mine[0], self.get(packet, source, other[0]))
        self._mark(packet, to, True)

    def _headers_of(self, element: str) -> list[str]:
        return self.unions.get(element, [element])

    def _primitive(self, packet: Packet, op: str, args: list[Any], params: list[int]) -> int | None:
        def number(index: int) -> int:
            return self.number(packet, args[index], params)

        def store(index: int, value: int) -> None:
            self.assign(packet, args[index], value, params)

        match op:
            case "_jump":
                return number(0)
            case "_jump_if_zero":
                return number(1) if number(0) == 0 else None
            case "assign" | "modify_field":
                store(0, number(1))
            case "add_to_field":
                store(0, number(0) + number(1))
            case "subtract_from_field":
                store(0, number(0) - number(1))
            case "add" | "subtract" | "bit_and" | "bit_or" | "bit_xor" | "shift_left" | "shift_right":
                store(0, _OPERATIONS[_OLD[op]](number(1), number(2)))
            case "assign_VL":
                to, source = tuple(args[0]["value"]), tuple(args[1]["value"])
                packet.varbits[to] = packet.varbits.get(source, b"")
            case "assign_header" | "copy_header":
                to, source = (self.locate(packet, each, params) for each in args)
                self._copy(packet, to, source)
            case "assign_union" | "assign_header_stack" | "assign_union_stack":
                self._copy_many(packet, op, args, params)
            case "add_header":
                header = self.locate(packet, args[0], params)
                if header is not None and not self.is_valid(packet, header):
                    for each in self.headers[header]["fields"]:
                        packet.fields.pop((header, each[0]), None)
                        packet.varbits.pop((header, each[0]), None)
                    packet.length_change += self._size(packet, header)
                    self._mark(packet, header, True)
            case "remove_header":
                header = self.locate(packet, args[0], params)
                if header is not None and header in packet.valid:
                    packet.length_change -= self._size(packet, header)
                    self._mark(packet, header, False)
            case "push" | "pop":
                self._shift(packet, args[0]["value"], number(1) if op == "push" else -number(1))
            case "exit":
                packet.exited = True
            case "mark_to_drop" | "drop":
                if args:
                    header = args[0]["value"]
                    for name, value in (("egress_spec", DROP_PORT), ("mcast_grp", 0)):
                        if any(each[0] == name for each in self.headers[header]["fields"]):
                            self.set(packet, header, name, value)
                else:
                    self.standard(packet, "egress_spec", DROP_PORT)
                    self.standard(packet, "mcast_grp", 0)
            case "modify_field_with_hash_based_offset":
                calculation = self.calculations[args[2]["value"]]
                value = self.hash(packet, calculation["algo"], calculation["input"])
                store(0, (number(1) + value % ((number(3) % 2**64) or 1)) % 2**64)
            case "modify_field_rng_uniform":
                if number(1) % 2**64 <= number(2) % 2**64:
                    store(0, self.random(number(1), number(2)))
            case "count":
                cells, index = self.counters[args[0]["value"]], number(1)
                if index < len(cells):
                    cells[index][0] += 1
                    cells[index][1] += packet.requests["arrival_length"]
            case "execute_meter":
                if number(1) < self.meters[args[0]["value"]]["size"]:
                    store(2, self.meter_colors.get((args[0]["value"], number(1)), 0))
            case "register_read":
                cells = self.registers[args[1]["value"]]
                if number(2) < len(cells):
                    store(0, cells[number(2)])
            case "register_write":
                self._write_register(args[0]["value"], number(1), number(2))
            case "generate_digest":
                packet.requests["digest"] = number(1)
            case "clone_ingress_pkt_to_egress" | "clone_egress_pkt_to_egress":
                packet.requests["clone"] = (number(0) & 0x7FFF, number(1))
            case "resubmit" | "recirculate":
                packet.requests[op] = number(0)
            case "truncate":
                packet.requests["truncate"] = min(number(0), packet.requests.get("truncate", 1 << 30))
            case "log_msg":
                values = [self.number(packet, each, params) for each in args[1]["value"]]
                pieces = iter(values)
                self.logs.append(re.sub(r"\{[^}]*\}", lambda _: str(next(pieces, "")), args[0]["value"]))
            case "assert" | "assume":
                if not self.evaluate(packet, args[0], params):
                    self._primitive(packet, "drop", [], [])
                    packet.exited = True
            case "no_op":
                pass
            case _:
                raise NotImplementedError(op)
        return None

    def _copy_many(self, packet: Packet, op: str, args: list[Any], params: list[int]) -> None:
        if op == "assign_union":
            pairs = [tuple(self.locate(packet, each, params) for each in args)]
        else:
            to, source = args[0]["value"], args[1]["value"]
            packet.filled[to] = packet.filled.get(source, 0)
            pairs = list(zip(self.stacks[to], self.stacks[source], strict=True))
        for one, other in pairs:
            assert one is not None and other is not None
            members = list(zip(self._headers_of(one), self._headers_of(other), strict=True))
            # Invalid members first: making one valid ends the others.
            for a, b in sorted(members, key=lambda pair: self.is_valid(packet, pair[1])):
                self._copy(packet, a, b)

    def _shift(self, packet: Packet, stack: str, by: int) -> None:
        elements = self.stacks[stack]
        before = [
            [(self._snapshot(packet, header), header in packet.valid) for header in self._headers_of(element)]
            for element in elements
        ]
        for index, element in enumerate(elements):
            source = index - by
            for position, header in enumerate(self._headers_of(element)):
                packet.valid.discard(header)
                if 0 <= source < len(elements):
                    (fields, varbits), valid = before[source][position]
                    for name, value in fields.items():
                        packet.fields[(header, name)] = value
                    for name, raw in varbits.items():
                        packet.varbits[(header, name)] = raw
                    if valid:
                        packet.valid.add(header)
                elif by:
                    for each in self.headers[header]["fields"]:
                        packet.fields.pop((header, each[0]), None)
                        packet.varbits.pop((header, each[0]), None)
        packet.filled[stack] = min(max(packet.filled.get(stack, 0) + by, 0), len(elements))

    def _snapshot(self, packet: Packet, header: str) -> tuple[dict[str, int], dict[str, bytes]]:
        names = [each[0] for each in self.headers[header]["fields"]]
        return (
            {name: packet.fields.get((header, name), 0) for name in names},
            {name: packet.varbits.get((header, name), b"") for name in names},
        )

    # -- hashes, checksums, deparser

    def hash(self, packet: Packet, algorithm: str, inputs: list[Any]) -> int:
        bits = ""
        tail = b""

        def add(header: str, name: str) -> str:
            if not self.is_valid(packet, header):
                return ""
            width = next(each[1] for each in self.headers[header]["fields"] if each[0] == name)
            if width == "*":
                raw = packet.varbits.get((header, name), b"")
                return "".join(f"{byte:08b}" for byte in raw)
            return f"{self.get(packet, header, name) & ((1 << width) - 1):0{width}b}"

        for each in inputs:
            if each["type"] == "field":
                bits += add(*each["value"])
            elif each["type"] == "hexstr":
                width = each["bitwidth"]
                bits += f"{int(each['value'], 16) & ((1 << width) - 1):0{width}b}"
            elif each["type"] == "header":
                bits += "".join(add(each["value"], f[0]) for f in self.headers[each["value"]]["fields"])
            elif each["type"] == "payload":
                tail = packet.payload
        bits += "0" * (-len(bits) % 8)
        data = bytes(int(bits[i : i + 8], 2) for i in range(0, len(bits), 8)) + tail
        return HASHES[algorithm](data)

    def _checksum(self, packet: Packet, checksum: Json) -> int:
        calculation = self.calculations[checksum["calculation"]]
        return self.hash(packet, calculation["algo"], calculation["input"])

    def _applies(self, packet: Packet, checksum: Json) -> bool:
        return checksum.get("if_cond") is None or bool(self.evaluate(packet, checksum["if_cond"], []))

    def _checksum_wrong(self, packet: Packet, checksum: Json) -> bool:
        header, name = checksum["target"]
        if not checksum.get("verify", True) or not self.is_valid(packet, header) or not self._applies(packet, checksum):
            return False
        return self._checksum(packet, checksum) != self.get(packet, header, name)

    def deparse(self, packet: Packet) -> bytes:
        """The frame that leaves: updated checksums, valid headers, payload, cut to what truncate() asked for."""
        for checksum in self.document.get("checksums", []):
            if checksum.get("update", True) and self._applies(packet, checksum):
                self.set(packet, *checksum["target"], self._checksum(packet, checksum))
        deparsers = self.document["deparsers"]
        deparser = next((each for each in deparsers if each["name"] == "deparser"), deparsers[0]) if deparsers else {}
        for primitive in deparser.get("primitives", []):
            self._primitive(packet, primitive["op"], primitive["parameters"], [])
        out = b""
        for header in deparser.get("order", []):
            if header not in packet.valid:
                continue
            bits = 0
            size = self._size(packet, header)
            for name, width, *_ in self.headers[header]["fields"]:
                if width == "*":
                    raw = packet.varbits.get((header, name), b"")
                    bits = bits << 8 * len(raw) | int.from_bytes(raw, "big")
                else:
                    bits = bits << width | (self.get(packet, header, name) & ((1 << width) - 1))
            out += bits.to_bytes(size, "big")
        return (out + packet.payload)[: packet.requests.get("truncate")]


def _two_complement(value: int, width: int) -> int:
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value


_OLD = {
    "add": "+",
    "subtract": "-",
    "bit_and": "&",
    "bit_or": "|",
    "bit_xor": "^",
    "shift_left": "<<",
    "shift_right": ">>",
}
_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
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
