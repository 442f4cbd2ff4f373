"""From the routes that switches have to those that they should have, without breaking what works. Pure.

The switches of a fabric cannot change at one moment, so the changes of an entry's switches go in rounds of rising rank:
an entry sends packets on only to switches whose entries have lower ranks (`policy.Router.ranked`). So a packet that
meets a new entry meets only new entries from there on, which is a path that works, without a loop; before that, it is
on an old one. Routes that go are removed last; names of paths are there before a route leads to them, and go when
packets that bear them have passed.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import finsy as fy
from finsy.proto import p4r

from controller.named_paths import PATH_LABEL

Key = Hashable
Ranked = Sequence[tuple[int, fy.P4TableEntry]]


@dataclass(frozen=True, slots=True)
class Change:
    """An update of one entry; `entry` is what the switch has afterwards, or had before where it is deleted."""

    kind: int  # p4r.Update.Type
    key: Key
    entry: fy.P4TableEntry

    def encode(self, schema: fy.P4Schema) -> p4r.Update:
        entity = self.entry.encode(schema)
        if self.kind == p4r.Update.DELETE:
            entity.table_entry.ClearField("action")
        return p4r.Update(type=self.kind, entity=entity)  # type: ignore[arg-type] # it is the enum's number


@dataclass(slots=True)
class Round:
    """Changes by switch, which may be made in any order. `drain`: not before packets that are under way have passed."""

    changes: dict[str, list[Change]] = field(default_factory=dict)
    drain: bool = False

    def add(self, switch: str, change: Change) -> None:
        self.changes.setdefault(switch, []).append(change)


def key_of(entry: fy.P4TableEntry) -> Key:
    """What makes a route this one and no other: its table and match."""
    match: Any = entry.match
    return entry.table_id, frozenset(match.items())


def rounds(before: Mapping[str, Mapping[Key, fy.P4TableEntry]], after: Mapping[str, Ranked]) -> list[Round]:
    """The rounds, in order, that bring the switches in `before` to `after`; empty ones are left out."""
    written: dict[int, Round] = {}
    removed, drained = Round(), Round(drain=True)
    for switch, had in before.items():
        wanted = {key_of(entry): (rank, entry) for rank, entry in after[switch]}
        for key, (rank, entry) in wanted.items():
            old = had.get(key)
            if old is None or old != entry:
                kind = p4r.Update.INSERT if old is None else p4r.Update.MODIFY
                written.setdefault(rank, Round()).add(switch, Change(kind, key, entry))
        for key, old in had.items():
            if key not in wanted:
                place = drained if old.table_id == PATH_LABEL else removed
                place.add(switch, Change(p4r.Update.DELETE, key, old))
    ordered = [written[rank] for rank in sorted(written)]
    return [each for each in (*ordered, removed, drained) if each.changes]
