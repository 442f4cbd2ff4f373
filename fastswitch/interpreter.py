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

from typing import Any

from fastswitch.interpreter_actions import Actions
from fastswitch.interpreter_hash import csum16
from fastswitch.interpreter_values import Entry, Json, Packet, ParserError

__all__ = ["EndlessError", "Entry", "Interpreter", "Packet", "ParserError"]

MAX_TURNS = 12_000  # a parser that takes a byte a state through the longest frame stays below


class EndlessError(Exception):
    """A loop that may have no end.  BMv2 goes on, generated code stops somewhere: there is nothing to compare."""


class Interpreter(Actions):
    """One switch that runs one program."""

    # -- parser

    def parse(
        self,
        data: bytes,
        standard: dict[str, int] | None = None,
        carried: dict[tuple[str, str], int] | None = None,
    ) -> Packet:
        """A packet after the parser and the verification of checksums. `carried`: metadata that it starts with."""
        packet = Packet(data, fields=dict(carried or {}))
        for name, value in (standard or {}).items():
            self.standard(packet, name, value)
        packet.requests["arrival_length"] = len(data)
        code = self.errors["NoError"]
        parsers = self.document["parsers"]
        if parsers:
            parser = next((each for each in parsers if each["name"] == "parser"), parsers[0])
            states = {each["name"]: each for each in parser["parse_states"]}
            following = parser["init_state"]
            try:
                visited = 0
                while following is not None:
                    following = self._parser_state(packet, states[following])
                    visited += 1
                    if visited > MAX_TURNS:
                        raise EndlessError(f"the parser visits more than {MAX_TURNS} states")
            except ParserError as error:
                code = error.args[0]
        packet.parser_error = code
        packet.checksum_error = any(self._checksum_wrong(packet, each) for each in self.document.get("checksums", []))
        self.standard(packet, "parser_error", code)
        self.standard(packet, "checksum_error", int(packet.checksum_error))
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
        return ParserError(self.errors[name])

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
            self.primitive(packet, args[0]["op"], args[0]["parameters"], [])
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
        elif any(each[1] == "*" for each in fields):
            variable = self._own_length(packet, header, fixed // 8)
        if variable < 0 or variable % 8:
            raise self._fail("ParserInvalidArgument")
        size = (fixed + variable) // 8
        if len(packet.data) - packet.cursor < size:
            raise self._fail("PacketTooShort")
        if variable and size > self.headers[header]["max_length"]:
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

    def _own_length(self, packet: Packet, header: str, fixed_bytes: int) -> int:
        """P4-14: the bits of the variable part, from the fields before it."""
        if len(packet.data) - packet.cursor < fixed_bytes:
            raise self._fail("PacketTooShort")
        position = 8 * packet.cursor
        whole = int.from_bytes(packet.data, "big")
        for name, width, *_ in self.headers[header]["fields"]:
            if width == "*":
                break
            position += width
            self.set(packet, header, name, whole >> (8 * len(packet.data) - position) & ((1 << width) - 1))
        self.within = header
        length = self.number(packet, self.headers[header]["length_exp"], [])
        self.within = None
        return length

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
                selector = table.get("selector") or self.profiles[table["action_profile"]]["selector"]
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
        index = jumps = 0
        while index < len(body):
            jump = self.primitive(packet, body[index]["op"], body[index].get("parameters", []), params)
            index = index + 1 if jump is None else jump
            jumps += jump is not None
            if jumps > MAX_TURNS:
                raise EndlessError(f"action {self.actions[action]['name']} jumps more than {MAX_TURNS} times")

    # -- checksums, deparser

    def _checksum(self, packet: Packet, checksum: Json) -> int:
        if checksum.get("type") == "ipv4":
            raw = self._emitted(packet, checksum["target"][0])
            return csum16(raw[:10] + b"\0\0" + raw[12:])
        calculation = self.calculations[checksum["calculation"]]
        return self.hash(packet, calculation["algo"], calculation["input"])

    def _applies(self, packet: Packet, checksum: Json) -> bool:
        if checksum.get("type") == "ipv4" and not self.is_valid(packet, checksum["target"][0]):
            return False
        return checksum.get("if_cond") is None or bool(self.evaluate(packet, checksum["if_cond"], []))

    def _checksum_wrong(self, packet: Packet, checksum: Json) -> bool:
        header, name = checksum["target"]
        if not checksum.get("verify", True) or not self.is_valid(packet, header) or not self._applies(packet, checksum):
            return False
        return self._checksum(packet, checksum) != self.get(packet, header, name) % (1 << 64)  # as BMv2 compares

    def deparse(self, packet: Packet) -> bytes:
        """The frame that leaves: updated checksums, valid headers, payload, cut to what truncate() asked for."""
        for checksum in self.document.get("checksums", []):
            if checksum.get("update", True) and self._applies(packet, checksum):
                header, name = checksum["target"]
                self.set(packet, header, name, self._checksum(packet, checksum))
        deparsers = self.document["deparsers"]
        deparser = next((each for each in deparsers if each["name"] == "deparser"), deparsers[0]) if deparsers else {}
        for primitive in deparser.get("primitives", []):
            self.primitive(packet, primitive["op"], primitive["parameters"], [])
        out = b""
        for header in deparser.get("order", []):
            if header in packet.valid:
                out += self._emitted(packet, header)
        return (out + packet.payload)[: packet.requests.get("truncate")]

    def _emitted(self, packet: Packet, header: str) -> bytes:
        bits = 0
        for name, width, *_ in self.headers[header]["fields"]:
            if width == "*":
                raw = packet.varbits.get((header, name), b"")
                bits = bits << 8 * len(raw) | int.from_bytes(raw, "big")
            else:
                bits = bits << width | (self.get(packet, header, name) & ((1 << width) - 1))
        return bits.to_bytes(self._size(packet, header), "big")
