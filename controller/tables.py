"""The verbs by which people meet tables: list, dump, add, set, del.

Reading takes no part in the election of a controller. Writing asks for the highest election id for as long as it takes,
so that it works beside the laboratory's controller, which is primary again afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import finsy as fy
from finsy.p4schema import P4Table
from finsy.proto import p4r

from controller import defaults, entries, text
from controller.connection import controlling, reading, write
from controller.errors import EntryTextError
from controller.render import as_json, as_text
from controller.targets import Target

__all__ = [
    "EntryRow",
    "TableRow",
    "Target",
    "as_json",
    "as_text",
    "table_add",
    "table_del",
    "table_dump",
    "table_list",
    "table_set",
]


@dataclass(frozen=True, slots=True)
class TableRow:
    """A table of a program; `keys` are (field, kind of match, bits)."""

    table: str
    keys: list[tuple[str, str, int]]
    actions: list[str]
    size: int
    entries: int


@dataclass(frozen=True, slots=True)
class EntryRow:
    """An entry; `match` has a text for every key field, and is empty for the table's default.

    `packets` and `bytes` are those of a direct counter, None where the table has none.
    """

    table: str
    match: dict[str, str]
    priority: int
    action: str
    default: bool = False
    packets: int | None = None
    bytes: int | None = None


async def table_list(target: Target) -> list[TableRow]:
    """The tables of the switch's program in the order of their names, with the number of entries each holds."""
    async with reading(target) as reader:
        found = await reader.read([fy.P4TableEntry()])
        counts: dict[int, int] = {}
        for entity in found:
            table_id = entity.table_entry.table_id
            counts[table_id] = counts.get(table_id, 0) + (not entity.table_entry.is_default_action)
        rows = [
            TableRow(
                table=table.name,
                keys=[(field.name, text.kind(field), field.bitwidth) for field in text.key_fields(table)],
                actions=[action.alias for action in text.actions_of(table)],
                size=table.size,
                entries=counts.get(table.id, 0),
            )
            for table in reader.schema.tables
        ]
    return sorted(rows, key=lambda row: row.table)


async def table_dump(target: Target, table: str | None = None) -> list[EntryRow]:
    """The entries of a table, or of all; the defaults of tables last.  EntryTextError for a table that is not there."""
    async with reading(target) as reader:
        tables = list(reader.schema.tables)
        if table is not None:
            tables = [text.find("table", table, tables)]
        wanted: list[fy.P4TableEntry] = []
        for each in sorted(tables, key=lambda known: known.name):
            counted = fy.P4CounterData() if each.direct_counter else None
            wanted.append(fy.P4TableEntry(each.name, counter_data=counted))
            # Tables with an action profile have no default on BMv2.
            if each.action_profile is None:
                wanted.append(fy.P4TableEntry(each.name, is_default_action=True))
        found = [entity.table_entry for entity in await reader.read(wanted)]
        rows = [_row(entry, reader.schema) for entry in found]
    return sorted(rows, key=lambda row: (row.table, row.default))


def _row(entry: p4r.TableEntry, schema: fy.P4Schema) -> EntryRow:
    table = schema.tables[entry.table_id]
    counted = entry.HasField("counter_data")
    return EntryRow(
        table=table.name,
        match={} if entry.is_default_action else entries.match_texts(entry, table),
        priority=entry.priority,
        action=entries.action_text(entry.action, table),
        default=entry.is_default_action,
        packets=entry.counter_data.packet_count if counted else None,
        bytes=entry.counter_data.byte_count if counted else None,
    )


async def table_add(target: Target, table: str, match: Sequence[str], action: str, priority: int | None = None) -> None:
    """Adds an entry; EntryTextError for texts that cannot be understood, RefusedError if the switch refuses it."""
    async with _writing(target) as switch:
        entry = _entry(switch.p4info, table, match, priority)
        entry.action = _action(switch.p4info.tables[entry.table_id], action)
        await write(target, switch, [+entry])


async def table_set(target: Target, table: str, match: Sequence[str], action: str, priority: int | None = None) -> None:
    """Changes the action of an entry, or of the table's default where `match` is empty; errors as `table_add`."""
    async with _writing(target) as switch:
        if match:
            entry = _entry(switch.p4info, table, match, priority)
        else:
            entry = fy.P4TableEntry(text.find("table", table, switch.p4info.tables).name, is_default_action=True)
        entry.action = _action(switch.p4info.tables[entry.table_id], action, entry.is_default_action)
        await write(target, switch, [~entry])


async def table_del(target: Target, table: str, match: Sequence[str], priority: int | None = None) -> None:
    """Deletes an entry; errors as `table_add`."""
    async with _writing(target) as switch:
        await write(target, switch, [-_entry(switch.p4info, table, match, priority)])


def _writing(target: Target) -> Any:
    return controlling(target, fy.SwitchOptions(initial_election_id=defaults.personal_election_id()))


def _entry(schema: fy.P4Schema, table: str, match: Sequence[str], priority: int | None) -> fy.P4TableEntry:
    known: P4Table = text.find("table", table, schema.tables)
    if not text.key_fields(known):
        raise EntryTextError(f"{known.alias} has no keys and so no entries: `set` changes its default action")
    return fy.P4TableEntry(
        known.name, match=text.parse_match(known, match), priority=text.check_priority(known, priority)
    )


def _action(table: P4Table, action: str, default: bool = False) -> fy.P4TableAction | fy.P4IndirectAction:
    if not action.strip():
        known = ", ".join(known.alias for known in text.actions_of(table, default))
        raise EntryTextError(f"{table.alias}: an action is missing; there are {known}")
    return text.parse_action(table, action, default)
