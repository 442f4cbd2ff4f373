"""The order and priorities of a table's entries, and their keys as masks and ranges."""

from __future__ import annotations

from p4front import ir
from p4front import syntax as ast
from p4front.diagnostics import Diagnostics

_ORDERED_BY_KEY = ("exact", "lpm", "selector")


def ordered_entries(table: ir.Table, diagnostics: Diagnostics) -> list[tuple[ir.Entry, int]]:
    """The entries with their P4 priorities, the one that wins first; priority 0 in tables that need none.

    As the language says (14.2.1.4): the entry after one with priority p has p less `priority_delta`, or p more where
    `largest_priority_wins` is false.
    """
    entries = table.entries or []
    explicit = any(entry.priority is not None for entry in entries)
    if all(key.match_kind in _ORDERED_BY_KEY for key in table.keys):
        if explicit:
            diagnostics.error("a table with only exact and lpm keys has no priorities", table.decl.name_span)
        return [(entry, 0) for entry in entries]
    if table.entries_const:
        if explicit:
            diagnostics.error("'const entries' cannot have priorities", table.decl.name_span)
        return [(entry, len(entries) - place) for place, entry in enumerate(entries)]
    largest_wins = bool(_property(table, "largest_priority_wins", 1))
    step = _property(table, "priority_delta", 1)
    if not explicit:
        numbers = [1 + place * step for place in range(len(entries))]
        return list(zip(entries, numbers[::-1] if largest_wins else numbers, strict=True))
    priorities = _priorities(entries, -step if largest_wins else step, diagnostics)
    _warn(entries, priorities, largest_wins, table, diagnostics)
    places = sorted(range(len(priorities)), key=lambda place: priorities[place], reverse=largest_wins)
    return [(entries[place], priorities[place]) for place in places]


def _priorities(entries: list[ir.Entry], step: int, diagnostics: Diagnostics) -> list[int]:
    found: list[int] = []
    for entry in entries:
        if entry.priority is not None:
            found.append(entry.priority)
        elif found:
            found.append(found[-1] + step)
        else:
            diagnostics.error("the first entry must have a priority if another has one", entry.span)
            found.append(1)
        if not 0 < found[-1] < 1 << 31:
            diagnostics.error(f"priority {found[-1]} of this entry is out of range", entry.span)
    return found


def _warn(
    entries: list[ir.Entry], priorities: list[int], largest_wins: bool, table: ir.Table, diagnostics: Diagnostics
) -> None:
    """Priorities that are probably a mistake; `@noWarn` on the entries turns either warning off."""
    seen: set[int] = set()
    for entry, priority in zip(entries, priorities, strict=True):
        if priority in seen and not table.silences("duplicate-priorities"):
            diagnostics.warning("duplicate-priorities", f"another entry has priority {priority} too", entry.span)
        seen.add(priority)
    if table.silences("entries-out-of-priority-order"):
        return
    for place in range(1, len(entries)):
        before, here = priorities[place - 1], priorities[place]
        if (here > before) if largest_wins else (here < before):
            text = f"this entry (priority {here}) wins over the one before it"
            diagnostics.warning("entries-out-of-priority-order", text, entries[place].span)
            return


def _property(table: ir.Table, name: str, default: int) -> int:
    """The value of a table property that is a literal."""
    item = table.decl.properties.get(name)
    value = item.value if item is not None else None
    return int(value.value) if isinstance(value, ast.IntLit | ast.BoolLit) else default


def key_mask(key: ir.EntryKey, width: int) -> tuple[int, int]:
    """A key that is no range as (value, mask), the value without bits outside the mask."""
    everything = (1 << width) - 1
    mask = {"value": everything, "any": 0}.get(key.kind, key.other & everything)
    return key.value & mask, mask


def key_range(key: ir.EntryKey, width: int) -> tuple[int, int]:
    """A key of kind value, range or any as (lowest, highest)."""
    if key.kind == "any":
        return 0, (1 << width) - 1
    return (key.value, key.other) if key.kind == "range" else (key.value, key.value)
