"""What a switch holds against what it should hold: the updates between the two, and the proof that there are none."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import finsy as fy
from finsy.proto import p4r

from controller import entries
from controller.errors import VerifyError

# Entries by `entries.identity`.
State = Mapping[Hashable, p4r.TableEntry]


def encoded(wanted: Iterable[fy.P4TableEntry], schema: fy.P4Schema) -> dict[Hashable, p4r.TableEntry]:
    messages = [entry.encode(schema).table_entry for entry in wanted]
    return {entries.identity(message): message for message in messages}


def question(wanted: State, schema: fy.P4Schema) -> list[Any]:
    """What to read of a switch: all entries, and the defaults of those tables for which one is wanted."""
    defaults_of = sorted({entry.table_id for entry in wanted.values() if entry.is_default_action})
    aliases = [str(schema.tables[table].alias) for table in defaults_of]
    return [fy.P4TableEntry(), *(fy.P4TableEntry(alias, is_default_action=True) for alias in aliases)]


def answer(found: Iterable[p4r.TableEntry]) -> dict[Hashable, p4r.TableEntry]:
    """What was read, without the program's own constant entries."""
    return {entries.identity(entry): entry for entry in found if not entry.is_const}


def difference(present: State, wanted: State) -> list[p4r.Update]:
    """The updates that turn what is present into what is wanted: deletions first, since tables may be full."""
    updates = []
    for key, entry in present.items():
        if key not in wanted and not entry.is_default_action:
            bare = p4r.TableEntry(table_id=entry.table_id, match=entry.match, priority=entry.priority)
            updates.append(update(p4r.Update.DELETE, bare))
    for key, entry in wanted.items():
        if key not in present and not entry.is_default_action:
            updates.append(update(p4r.Update.INSERT, entry))
        elif key not in present or entries.meaning(present[key]) != entries.meaning(entry):
            updates.append(update(p4r.Update.MODIFY, entry))
    return updates


def update(kind: Any, entry: p4r.TableEntry) -> p4r.Update:
    return p4r.Update(type=kind, entity=p4r.Entity(table_entry=entry))


def check_equal(switch: str, present: State, wanted: State, schema: fy.P4Schema) -> int:
    """VerifyError, naming switch and entry, if the switch does not hold exactly what is wanted; else how many."""
    keys = {**wanted, **present}
    for key in keys:
        want, have = wanted.get(key), present.get(key)
        if want is None and have is not None:
            raise VerifyError(f"{switch} has an unknown entry: {entries.describe(have, schema)}")
        if want is not None and have is None:
            raise VerifyError(f"{switch} lacks an entry: {entries.describe(want, schema)}")
        if want is not None and have is not None and entries.meaning(want) != entries.meaning(have):
            table = schema.tables[want.table_id]
            raise VerifyError(
                f"{switch} has another action: {entries.describe(want, schema)} was written, "
                f"{entries.action_text(have.action, table)} is there"
            )
    return len(keys)


def counted(updates: Sequence[p4r.Update]) -> tuple[int, int, int]:
    """How many insert, modify and delete."""
    kinds = [each.type for each in updates]
    return kinds.count(p4r.Update.INSERT), kinds.count(p4r.Update.MODIFY), kinds.count(p4r.Update.DELETE)
