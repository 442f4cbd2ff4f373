"""Rows for people and for machines: aligned columns, or plain data for JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

# Shown by another column's text.
_FLAGS = ("default",)


def as_json(rows: Sequence[Any]) -> list[dict[str, Any]]:
    """The rows as plain data; columns that no row has a value for are left out."""
    plain = [dataclasses.asdict(row) for row in rows]
    empty = {name for name in (plain[0] if plain else {}) if all(row[name] is None for row in plain)}
    return [{name: value for name, value in row.items() if name not in empty} for row in plain]


def as_text(rows: Sequence[Any]) -> str:
    """The rows under their columns' names, aligned by spaces; numbers to the right."""
    if not rows:
        return "(none)"
    plain = as_json(rows)
    columns = [name for name in plain[0] if name not in _FLAGS]
    if not any(row.get("priority") for row in plain):
        columns = [name for name in columns if name != "priority"]
    cells = [[_cell(row, name) for name in columns] for row in plain]
    numeric = [all(isinstance(row[name], int) for row in plain) for name in columns]
    widths = [max(len(name), *(len(line[i]) for line in cells)) for i, name in enumerate(columns)]

    def line(texts: Sequence[str]) -> str:
        aligned = zip(texts, widths, numeric, strict=True)
        return "  ".join(t.rjust(width) if right else t.ljust(width) for t, width, right in aligned).rstrip()

    return "\n".join([line(columns), *(line(texts) for texts in cells)])


def _cell(row: dict[str, Any], name: str) -> str:
    value = row[name]
    if name == "match":
        return "default" if row.get("default") else " ".join(f"{key}={text}" for key, text in value.items())
    if name == "keys":
        return " ".join(f"{field}:{kind}/{bits}" for field, kind, bits in value) or "-"
    if isinstance(value, list):
        return " ".join(value)
    return "" if value is None else str(value)
