"""Random frames: RoCEv2, UDP, TCP, other IPv4, ARP, IPv6, what a program's own parser asks for, and garbage.

All draw from a `random.Random`, which hypothesis may provide (`st.randoms`), so that it can shrink what it finds: 0 is
therefore always drawn for what is whole and usual.
"""

import random
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]

_USUAL: dict[int, tuple[int, ...]] = {
    2: (0, 1, 2, 3),
    4: (4, 5, 6, 0, 15),
    8: (0, 1, 2, 64, 255, 6, 17, 0x0A, 0x11, 0x81),
    9: (0, 1, 2, 3, 4, 5),
    13: (0, 0, 0, 1, 0x1FFF),
    16: (0x0800, 0x0806, 0x86DD, 0x8808, 4791, 50000, 80, 53, 0, 0xFFFF),
    32: (0x0A000001, 0x0A000002, 0x0A000102, 0x0A010203, 0xC0A80001, 0, 0xFFFFFFFF),
    64: (0x0102030401020304, 0x0403020100000000, 0),
    48: (0x02000A000002, 0x060000010101, 0xFFFFFFFFFFFF, 0),
}


@dataclass
class Pool:
    """Values that fields of a width often have: those of the table entries, by width, and usual ones."""

    added: dict[int, list[int]] = field(default_factory=dict)

    def add(self, width: int, value: int) -> None:
        self.added.setdefault(width, []).append(value)

    def draw(self, draw: random.Random, width: int) -> int:
        kind = draw.randrange(8)
        known = self.added.get(width) or _USUAL.get(width)
        if known and kind < 4:
            return known[draw.randrange(len(known))]
        if kind < 6 and width in _USUAL:
            return _USUAL[width][draw.randrange(len(_USUAL[width]))]
        if known and kind == 6:
            return known[draw.randrange(len(known))] ^ 1 << draw.randrange(width)
        if width > 3 and kind == 7:
            return draw.randrange(8)
        return draw.getrandbits(width)


def internet_checksum(data: bytes) -> int:
    data += bytes(len(data) % 2)
    total = sum(int.from_bytes(data[i : i + 2], "big") for i in range(0, len(data), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def frame(draw: random.Random, pool: Pool, parser: "ParserWalk") -> bytes:
    """A frame of at least one byte; often what the program forwards, then sometimes broken in one way."""
    kind = draw.randrange(16)
    if kind == 15:
        return draw.randbytes(1 + draw.randrange(90))
    made = bytearray(_ethernet(draw, pool) if kind < 9 else parser.frame(draw, pool))
    breakage = draw.randrange(12)
    if breakage == 11:
        del made[1 + draw.randrange(len(made)) :]
    elif breakage == 10:
        made[draw.randrange(len(made))] ^= 1 << draw.randrange(8)
    return bytes(made)


def _payload(draw: random.Random) -> bytes:
    if draw.randrange(24) == 23:
        return bytes(1400 + draw.randrange(64))
    return draw.randbytes(draw.randrange(24))


def _ethernet(draw: random.Random, pool: Pool) -> bytes:
    macs = pool.draw(draw, 48).to_bytes(6, "big") + pool.draw(draw, 48).to_bytes(6, "big")
    kind = draw.randrange(10)
    if kind == 9:
        arp = b"\0\1\x08\0\6\4\0" + bytes([draw.choice((1, 2))]) + macs[6:] + pool.draw(draw, 32).to_bytes(4, "big")
        return macs + b"\x08\x06" + arp + bytes(6) + pool.draw(draw, 32).to_bytes(4, "big") + bytes(18)
    if kind == 8:
        body = _transport(draw, pool, 17)
        head = b"\x60\0\0\0" + len(body).to_bytes(2, "big") + bytes([17, draw.choice((0, 1, 64))])
        return macs + b"\x86\xdd" + head + pool.draw(draw, 128).to_bytes(16, "big") * 2 + body
    if kind == 7:
        return macs + pool.draw(draw, 16).to_bytes(2, "big") + _payload(draw)
    return macs + b"\x08\x00" + _ipv4(draw, pool)


def _ipv4(draw: random.Random, pool: Pool) -> bytes:
    protocol = draw.choice((17, 17, 17, 17, 17, 6, 6, 1, 0))
    options = draw.randbytes(4 * (1 + draw.randrange(10))) if draw.randrange(10) == 9 else b""
    body = _transport(draw, pool, protocol)
    fragment = draw.choice((0x4000, 0x4000, 0x4000, 0, 0x2000, 0x2005, 0x1FFF, 0x8000))
    head = bytes([0x45 + len(options) // 4, draw.getrandbits(8)])
    head += (20 + len(options) + len(body)).to_bytes(2, "big") + draw.randbytes(2) + fragment.to_bytes(2, "big")
    head += bytes([draw.choice((64, 64, 64, 64, 64, 255, 3, 2, 1, 0)), protocol, 0, 0])
    head += pool.draw(draw, 32).to_bytes(4, "big") + pool.draw(draw, 32).to_bytes(4, "big") + options
    broken = draw.randrange(16) == 15
    return head[:10] + (internet_checksum(head) ^ broken).to_bytes(2, "big") + head[12:] + body


def _transport(draw: random.Random, pool: Pool, protocol: int) -> bytes:
    ports = pool.draw(draw, 16).to_bytes(2, "big")
    if protocol == 17:
        rest = _payload(draw)
        if draw.randrange(4) < 3:  # RoCEv2: 12 bytes of BTH, then often 16 of RETH or 4 of AETH
            ports += (4791).to_bytes(2, "big")
            opcode = draw.choice((0x06, 0x07, 0x08, 0x0A, 0x0A, 0x0C, 0x11, 0x81, 0x04))
            rest = bytes([opcode]) + draw.randbytes(3) + pool.draw(draw, 32).to_bytes(4, "big") + draw.randbytes(4)
            rest += draw.randbytes({0x06: 16, 0x0A: 16, 0x0C: 16, 0x11: 4, 0x81: 16}.get(opcode, 0)) + _payload(draw)
        else:
            ports += pool.draw(draw, 16).to_bytes(2, "big")
        return ports + (8 + len(rest)).to_bytes(2, "big") + draw.choice((b"\0\0", b"\x12\x34")) + rest
    if protocol == 6:
        return ports + pool.draw(draw, 16).to_bytes(2, "big") + draw.randbytes(8) + b"\x50\x10" + draw.randbytes(6)
    return ports + _payload(draw)


class ParserWalk:
    """Frames that take a random way through the parser of a BMv2 JSON.

    Headers are drawn as they are extracted; the fields that a state then selects on are set so that one of its
    transitions, drawn too, is taken. Checksums that the program verifies or updates by csum16 are mostly right.
    """

    MAX_STATES = 24  # a parser may loop

    def __init__(self, document: Json) -> None:
        types = {each["name"]: each["fields"] for each in document["header_types"]}
        self._types = {each["name"]: types[each["header_type"]] for each in document["headers"]}
        names = {each["id"]: each["name"] for each in document["headers"]}
        self._stacks = {s["name"]: [names[i] for i in s["header_ids"]] for s in document.get("header_stacks", [])}
        parsers = document["parsers"]
        parser = next((each for each in parsers if each["name"] == "parser"), parsers[0]) if parsers else None
        self._states = {each["name"]: each for each in parser["parse_states"]} if parser else {}
        self._start = parser["init_state"] if parser else None
        self._calculations = {each["name"]: each for each in document.get("calculations", [])}
        self._checksums = document.get("checksums", [])

    def frame(self, draw: random.Random, pool: Pool) -> bytes:
        way = _Way()
        state = self._start
        for _ in range(self.MAX_STATES):
            if state is None or len(way.bits) > 4096:
                break
            for op in self._states[state]["parser_ops"]:
                self._op(draw, pool, way, op)
            state = self._transition(draw, way, self._states[state])
        if draw.randrange(8) < 7:
            for checksum in self._checksums:
                self._set_checksum(way, checksum)
        return way.bytes() + _payload(draw) or b"\0"

    def _op(self, draw: random.Random, pool: Pool, way: "_Way", op: Json) -> None:
        args = op["parameters"]
        if op["op"] in ("extract", "extract_VL"):
            kind, value = args[0]["type"], args[0]["value"]
            if kind == "regular":
                header = value
            elif kind == "stack":
                count = way.filled.get(value, 0)
                if count >= len(self._stacks[value]):
                    return
                header = self._stacks[value][count]
                way.filled[value] = count + 1
            else:
                return
            for name, width, *_ in self._types[header]:
                bits = 8 * draw.randrange(5) if width == "*" else width
                way.put(header, name, bits, pool.draw(draw, bits) if bits else 0)
        elif op["op"] == "advance" and args[0]["type"] == "hexstr":
            way.put("", "", int(args[0]["value"], 16) % 512, 0)

    def _transition(self, draw: random.Random, way: "_Way", state: Json) -> str | None:
        transitions = state["transitions"]
        if not transitions:
            return None
        taken = transitions[draw.randrange(len(transitions))]
        if taken.get("type", "hexstr") == "hexstr" and taken.get("value") not in (None, "default"):
            value = int(taken["value"], 16)
            mask = int(taken["mask"], 16) if taken.get("mask") else -1
            for key in reversed(state["transition_key"]):
                width = self._constrain(way, key, value, mask)
                value >>= (width + 7) // 8 * 8
                mask >>= (width + 7) // 8 * 8
        following: str | None = taken["next_state"]
        return following

    def _constrain(self, way: "_Way", key: Json, value: int, mask: int) -> int:
        """Sets the bits of one key; returns its width."""
        if key["type"] == "lookahead":
            offset, width = key["value"]
            way.later.append((len(way.bits) + offset, width, value & ((1 << width) - 1), mask))
            return int(width)
        if key["type"] == "stack_field":
            stack, name = key["value"]
            count = way.filled.get(stack, 0)
            header = self._stacks[stack][max(count - 1, 0)]
        else:
            header, name = key["value"][0], key["value"][-1]
        if name == "$valid$" or header not in self._types:
            return 1
        width = next(each[1] for each in self._types[header] if each[0] == name)
        if (header, name) in way.places:
            start, _ = way.places[(header, name)]
            way.set(start, width, value, mask)
        return int(width)

    def _set_checksum(self, way: "_Way", checksum: Json) -> None:
        calculation = self._calculations[checksum["calculation"]]
        target = tuple(checksum["target"])
        if calculation["algo"] != "csum16" or target not in way.places:
            return
        bits = ""
        for each in calculation["input"]:
            if each["type"] == "field" and tuple(each["value"]) in way.places:
                start, width = way.places[tuple(each["value"])]
                bits += "".join(map(str, way.bits[start : start + width]))
            elif each["type"] == "hexstr":
                bits += f"{int(each['value'], 16):0{each['bitwidth']}b}"
        bits += "0" * (-len(bits) % 8)
        data = bytes(int(bits[i : i + 8], 2) for i in range(0, len(bits), 8))
        start, width = way.places[target]
        way.set(start, width, internet_checksum(data), -1)


class _Way:
    """The bits of a frame so far, and where the fields are in them."""

    def __init__(self) -> None:
        self.bits: list[int] = []
        self.places: dict[tuple[str, str], tuple[int, int]] = {}
        self.filled: dict[str, int] = {}
        self.later: list[tuple[int, int, int, int]] = []

    def put(self, header: str, name: str, width: int, value: int) -> None:
        self.places[(header, name)] = (len(self.bits), width)
        self.bits += [value >> i & 1 for i in range(width - 1, -1, -1)]

    def set(self, start: int, width: int, value: int, mask: int) -> None:
        for i in range(width):
            position = start + width - 1 - i
            if mask >> i & 1 and position < len(self.bits):
                self.bits[position] = value >> i & 1

    def bytes(self) -> bytes:
        for constraint in self.later:
            self.set(*constraint)
        whole = len(self.bits) // 8
        return int("".join(map(str, self.bits[: 8 * whole])) or "0", 2).to_bytes(whole, "big")
