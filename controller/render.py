"""Rows for people and for machines: aligned columns, or plain data for JSON."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any

_GAP = "  "

# Columns of names in a program, which may be given by any end that no other has.
_DOTTED = ("table", "profile", "name", "digest")

# Shown by another column's text.
_FLAGS = ("default",)


def as_json(rows: Sequence[Any]) -> list[dict[str, Any]]:
    """The rows as plain data; columns that no row has a value for are left out."""
    plain = [dataclasses.asdict(row) for row in rows]
    empty = {name for name in (plain[0] if plain else {}) if all(row[name] is None for row in plain)}
    return [{name: value for name, value in row.items() if name not in empty} for row in plain]


def as_text(rows: Sequence[Any], width: int | None = None) -> str:
    """The rows under their columns' names, aligned by spaces; numbers to the right.

    width: cells are broken at spaces, as far as they can be, so that lines fit into it; None breaks nothing.
    """
    if not rows:
        return "(none)"
    plain = as_json(rows)
    columns = [name for name in plain[0] if name not in _FLAGS]
    if not any(row.get("priority") for row in plain):
        columns = [name for name in columns if name != "priority"]
    cells = [[_cell(row, name) for name in columns] for row in plain]
    for i, name in enumerate(columns):
        if name in _DOTTED:
            short = _shortened({line[i] for line in cells})
            cells = [[*line[:i], short[line[i]], *line[i + 1 :]] for line in cells]
    numeric = [{type(row[name]) for row in plain} <= {int, type(None)} for name in columns]
    widths = [max(len(name), *(len(line[i]) for line in cells)) for i, name in enumerate(columns)]
    if width is not None:
        widths = _narrowed(widths, [columns, *cells], width - len(_GAP) * (len(columns) - 1))

    def lines(texts: Sequence[str]) -> Iterator[str]:
        folded = [_folded(text, wide) for text, wide in zip(texts, widths, strict=True)]
        for parts in zip_longest(*folded, fillvalue=""):
            aligned = zip(parts, widths, numeric, strict=True)
            yield _GAP.join(t.rjust(w) if right else t.ljust(w) for t, w, right in aligned).rstrip()

    return "\n".join(line for texts in [columns, *cells] for line in lines(texts))


def _shortened(names: set[str]) -> dict[str, str]:
    """Each name without what stands before its last dot, where that is enough to tell it from the others."""
    ends = Counter(name.rpartition(".")[2] for name in names)
    return {name: end if ends[end := name.rpartition(".")[2]] == 1 else name for name in names}


def _narrowed(widths: Sequence[int], cells: Sequence[Sequence[str]], room: int) -> list[int]:
    """Takes from the widest column that can be broken until all fit, or none can be broken further."""
    narrow = list(widths)
    least = [max(max(map(len, line[i].split(" "))) for line in cells) for i in range(len(widths))]
    while sum(narrow) > room:
        spare = [(narrow[i], i) for i in range(len(narrow)) if narrow[i] > least[i]]
        if not spare:
            break
        narrow[max(spare)[1]] -= 1
    return narrow


def _folded(text: str, width: int) -> list[str]:
    lines = [""]
    for word in text.split(" "):
        joined = f"{lines[-1]} {word}".strip(" ")
        if len(joined) <= width or not lines[-1]:
            lines[-1] = joined
        else:
            lines.append(word)
    return lines


def _cell(row: dict[str, Any], name: str) -> str:
    value = row[name]
    if name == "match":
        return "default" if row.get("default") else " ".join(f"{key}={text}" for key, text in value.items())
    if name == "keys":
        return " ".join(f"{field}:{kind}/{bits}" for field, kind, bits in value) or "-"
    if isinstance(value, list):
        return " ".join(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else str(value)
