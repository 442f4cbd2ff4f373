"""The interpreter's primitives: what actions, parsers and deparsers can do to a packet."""

from __future__ import annotations

import re
from typing import Any

from fastswitch.interpreter_hash import HASHES
from fastswitch.interpreter_values import OLD_OPERATIONS, OPERATIONS, Packet, Values

DROP_PORT = 511


class Actions(Values):
    """Primitives by name."""

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

    def primitive(self, packet: Packet, op: str, args: list[Any], params: list[int]) -> int | None:
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
                store(0, OPERATIONS[OLD_OPERATIONS[op]](number(1), number(2)))
            case "assign_VL":
                target, origin = tuple(args[0]["value"]), tuple(args[1]["value"])
                packet.varbits[target] = packet.varbits.get(origin, b"")
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
                values = self.registers[args[1]["value"]]
                if number(2) < len(values):
                    store(0, values[number(2)])
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
                    self.primitive(packet, "drop", [], [])
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

    def hash(self, packet: Packet, algorithm: str, inputs: list[Any]) -> int:
        if algorithm == "round_robin":
            self.calls[id(inputs)] = self.calls.get(id(inputs), 0) + 1
            return self.calls[id(inputs)] - 1
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
