"""Names as STF files write them, found in a program's P4Info.

A name is the full one, its alias, or an end of it that no other has. p4c's runner takes any end of the text; ends at a
dot are preferred here, so that `t` means `ingress.t` also where there is an `ingress.first`.
"""

import re
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

Thing = TypeVar("Thing")

# `f$0.x` is `f[0].x`: brackets could not be written in early STF.
_ESCAPED_INDEX = re.compile(r"\$([0-9]+)")


class UnresolvedName(Exception):
    """A name that the program does not have, or that means two things."""


def find(kind: str, name: str, things: Iterable[Thing], name_of: Callable[[Thing], Iterable[str]]) -> Thing:
    """The one thing with this name; UnresolvedName says which there are."""
    named = [(thing, list(name_of(thing))) for thing in things]
    for fits in (str.__eq__, lambda full, end: full.endswith(f".{end}"), str.endswith):
        found = [thing for thing, names in named if any(fits(full, name) for full in names)]
        if len(found) == 1:
            return found[0]
        if found:
            ambiguous = ", ".join(sorted(names[0] for thing, names in named if thing in found))
            raise UnresolvedName(f"{kind} {name!r} is ambiguous: {ambiguous}")
    known = ", ".join(sorted(names[0] for _, names in named)) or "none"
    raise UnresolvedName(f"there is no {kind} {name!r}; there are: {known}")


def find_object(kind: str, name: str, objects: Iterable[Any]) -> Any:
    """As `find`, among P4Info objects that have a preamble."""
    return find(kind, name, objects, lambda thing: (thing.preamble.name, thing.preamble.alias))


def find_key(table: Any, name: str) -> Any:
    """A match field of a table; `h.valid` and `valid` are a header's validity."""
    unescaped = _ESCAPED_INDEX.sub(r"[\1]", name)
    return find(f"key of table {table.preamble.name}", unescaped, table.match_fields, lambda key: _spellings(key.name))


def _spellings(field: str) -> list[str]:
    """The ways to write a match field of P4Info."""
    plain = field.removesuffix("$")
    for validity in (".isValid()", ".$valid$", "$valid$"):
        if field.endswith(validity):
            header = field.removesuffix(validity)
            dot = "." if header else ""
            return [field, f"{header}{dot}valid", f"{header}{dot}$valid$", f"{header}{dot}isValid"]
    return [field, plain]
