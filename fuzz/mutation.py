"""Hostile changes to JSON documents and to bytes."""

from __future__ import annotations

import copy
import json
import random
import re
from typing import Any

Path = list[Any]

HOSTILE_NUMBERS = (
    *(-1, 0, 1, 2, 7, 8, 9, 31, 63, 64, 65, 255, 256, 511, 512, 4095, 4096, 65535, 65536, 1 << 24, (1 << 31) - 1),
    *(1 << 31, (1 << 32) - 1, 1 << 32, (1 << 63) - 1, 1 << 63, 1 << 64, 1 << 200, -(1 << 31), -(1 << 63), -(1 << 200)),
    *(0.5, 1e308, float("inf"), float("nan")),
)
HOSTILE_TEXTS = (
    *("", " ", "0", "*", "$valid$", "default", "__HIT__", "__MISS__", "int", "phv", "packet", "done", "key", "NULL"),
    *('x; system("id");', "*/ int y; /*", "// \\", "a\nb", '"', "'", "\\", "??/", "%s%n", "{}", "{0}"),
    *("\0", "\u202e", "\ud800", "\U0001f600", "ñ", "a" * 2000, "main", "__asm__", 'L"', "u8", "0x", "-0x1", "0xg"),
    *("0x" + "f" * 300, "0x" + "f" * 3000, "-0x" + "8" * 40, "extract", "regular", "field", "header", "expression"),
    *("stack", "register_array", "standard_metadata", "scalars", "egress_spec", "NoError", "start", "+", "<<", "?"),
    *("../../x", "/dev/zero", "ingress", "lookahead", "local", "runtime_data", "crc32", "plait.queue_bytes", "$(id)"),
)
_WRAPS = 400
_HEX = re.compile("-?0x[0-9a-fA-F]+")


class Mutator:
    """Changes copies of one document."""

    def __init__(self, document: Any) -> None:
        self._document = document
        self._text = json.dumps(document)  # reading it is much faster than copying objects
        self._paths = list(_paths(document))
        self._numbers = [path for path in self._paths if _is_number(self._at(path))]

    def mutated(self, rng: random.Random) -> Any:
        """A copy with a few changes, most often one; never nested deeper than `json` can write."""
        while True:
            try:
                made = self._changed(rng)
                json.dumps(made)
            except RecursionError:
                continue
            return made

    def _changed(self, rng: random.Random) -> Any:
        made = json.loads(self._text)
        for _ in range(rng.choice([1, 1, 1, 2, 3, 8])):
            a_number = self._numbers and rng.random() < 0.3
            path = rng.choice(self._numbers if a_number else self._paths)
            try:
                holder = made
                for step in path[:-1]:
                    holder = holder[step]
                if a_number:
                    holder[path[-1]] = _another_number(rng, holder[path[-1]])
                else:
                    self._change(rng, holder, path[-1])
            except (KeyError, IndexError, TypeError, ValueError):
                continue  # an earlier change took it away
        return made

    def _change(self, rng: random.Random, holder: Any, key: Any) -> None:
        value = holder[key]
        match rng.randrange(9):
            case 0:
                del holder[key]
            case 1:
                holder[key] = rng.choice([None, True, False, [], {}, [[]], [None], {"": ""}])
            case 2:
                holder[key] = rng.choice(HOSTILE_NUMBERS)
            case 3:
                holder[key] = rng.choice(HOSTILE_TEXTS)
            case 4:
                holder[key] = copy.deepcopy(self._other(rng))
            case 5 if isinstance(holder, list):
                holder.insert(key, copy.deepcopy(value))
            case 6 if isinstance(holder, list):
                other = rng.randrange(len(holder))
                holder[key], holder[other] = holder[other], holder[key]
            case 7:
                holder[key] = nested(rng, value)
            case _:
                holder[key] = self._alike(rng, value)

    def _at(self, path: Path) -> Any:
        found = self._document
        for step in path:
            found = found[step]
        return found

    def _other(self, rng: random.Random) -> Any:
        return self._at(rng.choice(self._paths))

    def _alike(self, rng: random.Random, value: Any) -> Any:
        """Another value of the same type from the document: what type checks let through."""
        for _ in range(20):
            other = self._other(rng)
            if type(other) is type(value) and other != value:
                return copy.deepcopy(other)
        return value


def _is_number(value: Any) -> bool:
    return isinstance(value, int) or isinstance(value, str) and bool(_HEX.fullmatch(value))


def _another_number(rng: random.Random, value: Any) -> Any:
    """One that is near, or at an edge; a hexadecimal text stays one."""
    number = int(value, 16) if isinstance(value, str) else value
    near = number + rng.choice([-1, 1, 1, 1, 2, 8])
    made = rng.choice([near, near, rng.choice([each for each in HOSTILE_NUMBERS if isinstance(each, int)])])
    return hex(made) if isinstance(value, str) else made


def nested(rng: random.Random, value: Any) -> Any:
    """The value inside many others."""
    depth = rng.choice([1, 3, 60, 300, _WRAPS])
    kind = rng.randrange(3)
    for _ in range(depth):
        if kind == 0:
            value = [value]
        elif kind == 1:
            value = {"type": "expression", "value": value}
        else:
            value = {"type": "expression", "value": {"op": rng.choice("+-~&"), "left": value, "right": value}}
            if depth > 12:
                value["value"]["right"] = {"type": "hexstr", "value": "0x1"}
    return value


def _paths(value: Any, before: Path | None = None) -> Any:
    """The way to every value inside, containers included."""
    before = before or []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield [*before, key]
        yield from _paths(inner, [*before, key])


def mutated_bytes(rng: random.Random, data: bytes, changes: int = 8) -> bytes:
    """A few changes of bits, bytes, runs and length."""
    found = bytearray(data)
    for _ in range(rng.randrange(1, changes)):
        place = rng.randrange(len(found) + 1)
        match rng.randrange(7):
            case 0 if place < len(found):
                found[place] ^= 1 << rng.randrange(8)
            case 1 if place < len(found):
                found[place] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)])
            case 2:
                found[place : place + rng.randrange(1, 16)] = b""
            case 3:
                found[place:place] = rng.randbytes(rng.randrange(1, 16))
            case 4:
                start = rng.randrange(len(found) + 1)
                found[place:place] = found[start : start + rng.randrange(1, 64)]
            case 5 if rng.random() < 0.3:
                del found[place:]
            case _:
                found[place : place + 4] = rng.choice([0, 1, 0xFFFFFFFF, 0x7FFFFFFF, 0x80000000]).to_bytes(4, "big")
    return bytes(found)
