"""The verbs by which people meet tables: list, show, dump, add, set, default, del, clear.

Reading takes no part in the election of a controller; how writing does is in `controller.writing`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import finsy as fy
from finsy.p4schema import P4ActionRef, P4ActionScope, P4Table
from finsy.proto import p4r

from controller import entries, text
from controller.connection import Reader, reading
from controller.errors import EntryTextError, RefusedError
from controller.names import NO_NAMES, Names
from controller.render import as_json, as_text
from controller.targets import Target
from controller.writing import carry_out, delete

__all__ = [
    "EntryRow",
    "TableRow",
    "Target",
    "as_json",
    "as_text",
    "table_add",
    "table_clear",
    "table_default",
    "table_del",
    "table_dump",
    "table_list",
    "table_set",
    "table_show",
]


@dataclass(frozen=True, slots=True)
class TableRow:
    """A table of a program; `keys` are (field, kind of match, bits); entries: None where the switch does not tell."""

    table: str
    keys: list[tuple[str, str, int]]
    actions: list[str]
    size: int
    entries: int | None


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
        tables = list(reader.schema.tables)
        found = await _read_each(reader, [[fy.P4TableEntry(table.name)] for table in tables])
        rows = [
            TableRow(
                table=table.name,
                keys=[(field.name, text.kind(field), field.bitwidth) for field in text.key_fields(table)],
                actions=[action.alias for action in text.actions_of(table)],
                size=table.size,
                entries=None if told is None else sum(not entry.is_default_action for entry in told),
            )
            for table, told in zip(tables, found, strict=True)
        ]
    return sorted(rows, key=lambda row: row.table)


@dataclass(frozen=True, slots=True)
class TableDetail:
    """All that a program says of a table. `actions` are signatures: `forward(port/9)`."""

    table: str
    keys: list[tuple[str, str, int]]
    actions: list[str]
    default: str
    size: int
    entries: int | None
    constant: bool
    action_profile: str | None
    direct_counter: str | None
    direct_meter: str | None


async def table_show(target: Target, table: str) -> TableDetail:
    """EntryTextError for a table that is not there."""
    async with reading(target) as reader:
        known: P4Table = text.find("table", table, reader.schema.tables)
        wanted = [[fy.P4TableEntry(known.name)]]
        if known.action_profile is None:  # with one, a table has no default on BMv2
            wanted.append([fy.P4TableEntry(known.name, is_default_action=True)])
        answers = await _read_each(reader, wanted[:1]) + await _read_each(reader, wanted[1:])
        told = answers[0]
        default = next((entry for answer in answers for entry in answer or () if entry.is_default_action), None)
        return TableDetail(
            table=known.name,
            keys=[(field.name, text.kind(field), field.bitwidth) for field in text.key_fields(known)],
            actions=[_signature(action) for action in known.actions],
            default=entries.action_text(default.action, known) if default is not None else "none",
            size=known.size,
            entries=None if told is None else sum(not entry.is_default_action for entry in told),
            constant=known.is_const,
            action_profile=known.action_profile.name if known.action_profile else None,
            direct_counter=known.direct_counter.name if known.direct_counter else None,
            direct_meter=known.direct_meter.name if known.direct_meter else None,
        )


def _signature(action: P4ActionRef) -> str:
    scope = {P4ActionScope.TABLE_ONLY: " (entries only)", P4ActionScope.DEFAULT_ONLY: " (default only)"}
    params = ", ".join(f"{param.name}/{param.bitwidth or 'text'}" for param in action.params)
    return f"{action.alias}({params}){scope.get(action.scope, '')}"


async def table_dump(target: Target, table: str | None = None) -> list[EntryRow]:
    """The entries of a table, or of all; the defaults of tables last.  EntryTextError for a table that is not there."""
    async with reading(target) as reader:
        tables = list(reader.schema.tables)
        if table is not None:
            tables = [text.find("table", table, tables)]
        wanted = []
        for each in tables:
            counted = fy.P4CounterData() if each.direct_counter else None
            wanted.append([fy.P4TableEntry(each.name, counter_data=counted)])
            # Tables with an action profile have no default on BMv2.
            if each.action_profile is None:
                wanted[-1].append(fy.P4TableEntry(each.name, is_default_action=True))
        found = await _read_each(reader, wanted, strict=table is not None)
        rows = [_row(entry, reader.schema) for told in found for entry in told or ()]
    return sorted(rows, key=lambda row: (row.table, row.default))


async def _read_each(
    reader: Reader, wanted: Sequence[Sequence[fy.P4TableEntry]], strict: bool = False
) -> list[list[p4r.TableEntry] | None]:
    """What each of several questions gives; unless `strict`, None for one that is refused.

    BMv2 refuses to tell of a table that has entries of the program, and any question that has such a table in it.
    """
    try:
        together = await reader.read([asked for question in wanted for asked in question])
    except RefusedError:
        if strict:
            raise
    else:
        ids = [reader.schema.tables[question[0].table_id].id for question in wanted]
        told: dict[int, list[p4r.TableEntry]] = {table_id: [] for table_id in ids}
        for entity in together:
            told[entity.table_entry.table_id].append(entity.table_entry)
        return [told[table_id] for table_id in ids]
    found: list[list[p4r.TableEntry] | None] = []
    for question in wanted:
        try:
            found.append([entity.table_entry for entity in await reader.read(question)])
        except RefusedError:
            found.append(None)
    return found


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


async def table_add(
    target: Target,
    table: str,
    match: Sequence[str],
    action: str,
    priority: int | None = None,
    names: Names = NO_NAMES,
    dry_run: bool = False,
) -> list[str]:
    """Adds an entry; EntryTextError for texts that cannot be understood, RefusedError if the switch refuses it.

    Returns what was written in words, as all verbs that write; with `dry_run` nothing is written.
    """

    async def plan(reader: Reader) -> list[Any]:
        entry = _entry(reader.schema, table, match, priority, names)
        entry.action = _action(reader.schema.tables[entry.table_id], action, names=names)
        return [+entry]

    return await carry_out(target, plan, dry_run)


async def table_set(
    target: Target,
    table: str,
    match: Sequence[str],
    action: str,
    priority: int | None = None,
    names: Names = NO_NAMES,
    dry_run: bool = False,
) -> list[str]:
    """Changes the action of an entry; errors as `table_add`."""

    async def plan(reader: Reader) -> list[Any]:
        entry = _entry(reader.schema, table, match, priority, names)
        entry.action = _action(reader.schema.tables[entry.table_id], action, names=names)
        return [~entry]

    return await carry_out(target, plan, dry_run)


async def table_default(
    target: Target, table: str, action: str | None, names: Names = NO_NAMES, dry_run: bool = False
) -> list[str]:
    """Changes the default action of a table, or with None gives back the program's; errors as `table_add`."""

    async def plan(reader: Reader) -> list[Any]:
        known = text.find("table", table, reader.schema.tables)
        entry = fy.P4TableEntry(known.name, is_default_action=True)
        if action is not None:
            entry.action = _action(known, action, default=True, names=names)
        return [~entry]

    return await carry_out(target, plan, dry_run)


async def table_del(
    target: Target,
    table: str,
    match: Sequence[str],
    priority: int | None = None,
    names: Names = NO_NAMES,
    dry_run: bool = False,
) -> list[str]:
    """Deletes an entry; errors as `table_add`."""

    async def plan(reader: Reader) -> list[Any]:
        return [-_entry(reader.schema, table, match, priority, names)]

    return await carry_out(target, plan, dry_run)


async def table_clear(target: Target, table: str | None, dry_run: bool = False) -> list[str]:
    """Deletes all entries of a table, or with None of all tables; those that the program has as `const` stay."""

    async def plan(reader: Reader) -> list[Any]:
        wanted = [text.find("table", table, reader.schema.tables)] if table is not None else list(reader.schema.tables)
        changeable = [known for known in wanted if not known.is_const and text.key_fields(known)]
        if table is not None and not changeable:
            raise EntryTextError(f"{wanted[0].alias} has no entries that could be deleted: the program fixes them")
        questions = [[fy.P4TableEntry(known.name)] for known in changeable]
        found = await _read_each(reader, questions, strict=table is not None)
        return [delete(_identity(entry)) for told in found for entry in told or () if not entry.is_const]

    return await carry_out(target, plan, dry_run)


def _identity(entry: p4r.TableEntry) -> p4r.Entity:
    bare = p4r.TableEntry(table_id=entry.table_id, match=entry.match, priority=entry.priority)
    return p4r.Entity(table_entry=bare)


def _entry(
    schema: fy.P4Schema, table: str, match: Sequence[str], priority: int | None, names: Names
) -> fy.P4TableEntry:
    known: P4Table = text.find("table", table, schema.tables)
    if not text.key_fields(known):
        raise EntryTextError(f"{known.alias} has no keys and so no entries: `default` changes its action")
    if not match:
        fields = ", ".join(field.name for field in text.key_fields(known))
        raise EntryTextError(f"{known.alias}: a match is missing: FIELD=VALUE for {fields}; `*` is any value")
    return fy.P4TableEntry(
        known.name, match=text.parse_match(known, match, names), priority=text.check_priority(known, priority)
    )


def _action(
    table: P4Table, action: str, default: bool = False, names: Names = NO_NAMES
) -> fy.P4TableAction | fy.P4IndirectAction:
    if not action.strip():
        known = ", ".join(known.alias for known in text.actions_of(table, default))
        raise EntryTextError(f"{table.alias}: an action is missing; there are {known}")
    return text.parse_action(table, action, default, names)
