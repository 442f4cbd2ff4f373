"""Ids and aliases of P4Info objects, as p4c gives them.

An id is the object kind's prefix and 24 bits of a hash of the full name; `@id` overrides it.  An alias is the shortest
dotted suffix of the full name that no other object has.
"""

from __future__ import annotations

from collections import Counter

from p4front import syntax as ast
from p4front.diagnostics import Diagnostics

PREFIXES = {
    "action": 0x01, "table": 0x02, "value_set": 0x03, "controller_header": 0x04,
    "action_profile": 0x11, "counter": 0x12, "direct_counter": 0x13, "meter": 0x14, "direct_meter": 0x15,
    "register": 0x16, "digest": 0x17,
}  # fmt: skip


def jenkins_hash(name: str) -> int:
    """Jenkins' one-at-a-time hash, 32 bits."""
    value = 0
    for byte in name.encode():
        value = (value + byte) & 0xFFFFFFFF
        value = (value + (value << 10)) & 0xFFFFFFFF
        value ^= value >> 6
    value = (value + (value << 3)) & 0xFFFFFFFF
    value ^= value >> 11
    return (value + (value << 15)) & 0xFFFFFFFF


class Symbols:
    """Collects all objects first; ids and aliases depend on all of them."""

    def __init__(self, diagnostics: Diagnostics) -> None:
        self.diagnostics = diagnostics
        self._ids: dict[tuple[str, str], int | None] = {}
        self._assigned: set[int] = set()
        self._suffixes: Counter[tuple[str, ...]] = Counter()
        self._names: set[str] = set()

    def add(self, kind: str, name: str, annotations: list[ast.Annotation]) -> None:
        """Enter an object; entering it twice is harmless."""
        if (kind, name) in self._ids:
            return
        self._ids[kind, name] = self._explicit(kind, annotations)
        if name not in self._names:
            self._names.add(name)
            parts = tuple(name.split("."))
            for length in range(1, len(parts) + 1):
                self._suffixes[parts[-length:]] += 1

    def _explicit(self, kind: str, annotations: list[ast.Annotation]) -> int | None:
        found = ast.annotation(annotations, "id")
        if found is None:
            return None
        value = id_annotation(annotations)
        if value is None or value < 0 or value >= 1 << 32:
            self.diagnostics.error("@id needs a number", found.span)
            return None
        prefix = PREFIXES[kind] << 24
        if value >> 24 and value >> 24 != PREFIXES[kind]:
            self.diagnostics.error(f"the prefix of @id must be {PREFIXES[kind]:#04x} for this object", found.span)
            return None
        value |= prefix
        if value in self._assigned:
            self.diagnostics.error(f"@id {value} is given to two objects", found.span)
            return None
        self._assigned.add(value)
        return value

    def assign(self) -> None:
        """Compute the ids that no annotation gave: by name, with linear probing."""
        for kind, prefix in PREFIXES.items():
            names = sorted(name for (of, name), value in self._ids.items() if of == kind and value is None)
            for name in names:
                value = jenkins_hash(name)
                while (candidate := prefix << 24 | value & 0xFFFFFF) in self._assigned:
                    value += 1
                self._assigned.add(candidate)
                self._ids[kind, name] = candidate

    def id(self, kind: str, name: str) -> int:
        """The id of an object that was added."""
        value = self._ids[kind, name]
        assert value is not None
        return value

    def alias(self, name: str) -> str:
        """The shortest suffix that only this name has."""
        parts = tuple(name.split("."))
        for length in range(1, len(parts)):
            if self._suffixes[parts[-length:]] < 2:
                return ".".join(parts[-length:])
        return name


def id_annotation(annotations: list[ast.Annotation]) -> int | None:
    """The number of `@id(number)`."""
    found = ast.annotation(annotations, "id")
    if found is None or not found.args or not isinstance(found.args[0], ast.IntLit):
        return None
    return found.args[0].value


def field_ids(annotated: list[list[ast.Annotation]]) -> list[int]:
    """Ids of fields or parameters: `@id` or their position, skipping what is taken."""
    explicit = [id_annotation(annotations) for annotations in annotated]
    taken = {value for value in explicit if value is not None}
    result: list[int] = []
    index = 1
    for value in explicit:
        if value is not None:
            result.append(value)
            index += 1
            continue
        while index in taken:
            index += 1
        taken.add(index)
        result.append(index)
    return result
