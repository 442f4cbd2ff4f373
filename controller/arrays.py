"""The verbs by which people meet counters, meters and registers: arrays of cells, or a cell for each entry of a table.

A cell of an array is named by its index; a direct counter's or meter's by the match of its entry.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import finsy as fy
from finsy.proto import p4r

from controller import entries, text
from controller.connection import Reader, reading
from controller.data import parse_data, plain
from controller.errors import EntryTextError, RefusedError
from controller.names import NO_NAMES, Names
from controller.targets import Target
from controller.writing import carry_out, modify

_MAX_COUNT = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class ArrayRow:
    """An array of the program; `table` has one cell an entry, and then no size."""

    name: str
    unit: str
    size: int | None
    table: str | None


@dataclass(frozen=True, slots=True)
class CounterCell:
    index: int | None
    match: dict[str, str] | None
    packets: int
    bytes: int


@dataclass(frozen=True, slots=True)
class MeterCell:
    """Rates are per second and bursts in the meter's unit; None where no limit is set."""

    index: int | None
    match: dict[str, str] | None
    cir: int | None
    cburst: int | None
    pir: int | None
    pburst: int | None


@dataclass(frozen=True, slots=True)
class RegisterCell:
    index: int
    value: Any


# --- what there is ---


async def counter_list(target: Target) -> list[ArrayRow]:
    async with reading(target) as reader:
        return _listed(reader.schema.counters, reader.schema.direct_counters, reader.schema)


async def meter_list(target: Target) -> list[ArrayRow]:
    async with reading(target) as reader:
        return _listed(reader.schema.meters, reader.schema.direct_meters, reader.schema)


async def register_list(target: Target) -> list[ArrayRow]:
    async with reading(target) as reader:
        found = [ArrayRow(each.name, each.type_spec.type_name, each.size, None) for each in reader.schema.registers]
    return sorted(found, key=lambda row: row.name)


def _listed(arrays: Iterable[Any], direct: Iterable[Any], schema: fy.P4Schema) -> list[ArrayRow]:
    rows = [ArrayRow(each.name, each.unit.name.lower(), each.size, None) for each in arrays]
    rows += [
        ArrayRow(each.name, each.unit.name.lower(), None, schema.tables[each.direct_table_id].name) for each in direct
    ]
    return sorted(rows, key=lambda row: row.name)


# --- cells ---


async def counter_show(
    target: Target, counter: str, index: int | None = None, zeros: bool = False
) -> list[CounterCell]:
    """The cells that counted anything (`zeros`: all of them), or the one."""
    async with reading(target) as reader:
        schema = reader.schema
        known = text.find("counter", counter, [*schema.counters, *schema.direct_counters])
        if known.id in {each.id for each in schema.direct_counters}:
            _no_index(known, index)
            table = schema.tables[known.direct_table_id]
            asked = fy.P4TableEntry(table.name, counter_data=fy.P4CounterData())
            found = [entity.table_entry for entity in await reader.read([asked])]
            cells = [
                CounterCell(None, entries.match_texts(e, table), e.counter_data.packet_count, e.counter_data.byte_count)
                for e in found
                if not e.is_default_action
            ]
            return [cell for cell in cells if zeros or cell.packets or cell.bytes]
        _check_index(known, index)
        entities = await reader.read([fy.P4CounterEntry(known.name, index=index)])
    counted = (entity.counter_entry for entity in entities)
    cells = [CounterCell(e.index.index, None, e.data.packet_count, e.data.byte_count) for e in counted]
    return [cell for cell in cells if zeros or index is not None or cell.packets or cell.bytes]


async def counter_set(
    target: Target,
    counter: str,
    index: int | None,
    packets: int,
    bytes_: int,
    match: Sequence[str] = (),
    priority: int | None = None,
    names: Names = NO_NAMES,
    dry_run: bool = False,
) -> list[str]:
    """Writes a cell: of an array by index, None for all cells; of a table's entry by match, none for all entries."""
    for count in (packets, bytes_):
        if not 0 <= count <= _MAX_COUNT:
            raise EntryTextError(f"a count is 0 to {_MAX_COUNT}, not {count}")
    data = fy.P4CounterData(packet_count=packets, byte_count=bytes_)

    async def plan(reader: Reader) -> Sequence[Any]:
        schema = reader.schema
        known = text.find("counter", counter, [*schema.counters, *schema.direct_counters])
        if known.id in {each.id for each in schema.direct_counters}:
            _no_index(known, index)
            return [
                modify(p4r.Entity(direct_counter_entry=p4r.DirectCounterEntry(table_entry=entry, data=data.encode())))
                for entry in await _entries_of(reader, known, match, priority, names)
            ]
        _no_match(known, match)
        _check_index(known, index)
        # BMv2 takes no write without index.
        return [fy.P4CounterEntry(known.name, index=cell, data=data) for cell in _cells(known, index)]

    return await carry_out(target, plan, dry_run)


async def meter_show(target: Target, meter: str, index: int | None = None, unset: bool = False) -> list[MeterCell]:
    """The cells with a limit (`unset`: all of them), or the one."""
    async with reading(target) as reader:
        schema = reader.schema
        known = text.find("meter", meter, [*schema.meters, *schema.direct_meters])
        if known.id in {each.id for each in schema.direct_meters}:
            _no_index(known, index)
            table = schema.tables[known.direct_table_id]
            asked = fy.P4TableEntry(table.name, meter_config=fy.P4MeterConfig(cir=0, cburst=0, pir=0, pburst=0))
            cells = [
                _meter_cell(None, entries.match_texts(entry, table), entry, "meter_config")
                for entry in (entity.table_entry for entity in await reader.read([asked]))
                if not entry.is_default_action
            ]
        else:
            _check_index(known, index)
            found = [entity.meter_entry for entity in await reader.read([fy.P4MeterEntry(known.name, index=index)])]
            cells = [_meter_cell(entry.index.index, None, entry, "config") for entry in found]
    return [cell for cell in cells if unset or index is not None or cell.cir is not None]


def _meter_cell(index: int | None, match: dict[str, str] | None, entry: Any, name: str) -> MeterCell:
    config = getattr(entry, name)
    # BMv2 tells of a meter without limit as of one whose numbers are the largest there are.
    if not entry.HasField(name) or config.cir < 0 or config.cir == _MAX_COUNT:
        return MeterCell(index, match, None, None, None, None)
    return MeterCell(index, match, config.cir, config.cburst, config.pir, config.pburst)


async def meter_set(
    target: Target,
    meter: str,
    index: int | None,
    config: tuple[int, int, int, int] | None,
    match: Sequence[str] = (),
    priority: int | None = None,
    names: Names = NO_NAMES,
    dry_run: bool = False,
) -> list[str]:
    """Sets (cir, cburst, pir, pburst) of a cell, per second and in the meter's unit; None takes the limit away.

    index, match: as for counters.
    """
    if config is not None:
        cir, cburst, pir, pburst = config
        if min(config) < 0 or max(config) > _MAX_COUNT:
            raise EntryTextError(f"rates and bursts are 0 to {_MAX_COUNT}, not {min(config)}, {max(config)}")
        if pir < cir:
            raise EntryTextError(f"pir: the peak rate {pir} is below the committed rate {cir}")
    made = None if config is None else p4r.MeterConfig(cir=cir, cburst=cburst, pir=pir, pburst=pburst)

    async def plan(reader: Reader) -> Sequence[Any]:
        schema = reader.schema
        known = text.find("meter", meter, [*schema.meters, *schema.direct_meters])
        if known.id in {each.id for each in schema.direct_meters}:
            _no_index(known, index)
            return [
                modify(p4r.Entity(direct_meter_entry=p4r.DirectMeterEntry(table_entry=entry, config=made)))
                for entry in await _entries_of(reader, known, match, priority, names)
            ]
        _no_match(known, match)
        _check_index(known, index)
        return [
            modify(p4r.Entity(meter_entry=p4r.MeterEntry(meter_id=known.id, index=p4r.Index(index=cell), config=made)))
            for cell in _cells(known, index)
        ]

    return await carry_out(target, plan, dry_run)


async def register_show(
    target: Target, register: str, index: int | None = None, zeros: bool = True
) -> list[RegisterCell]:
    """All cells, or the one; without `zeros` those that hold something."""
    async with reading(target) as reader:
        known = text.find("register", register, reader.schema.registers)
        _check_index(known, index)
        with _registers_explained():
            found = await reader.read([fy.P4RegisterEntry(known.name, index=index)])
        cells = [
            RegisterCell(entry.index.index, plain(known.type_spec.decode_data(entry.data)))
            for entry in (entity.register_entry for entity in found)
        ]
    return [cell for cell in cells if zeros or index is not None or cell.value != 0]


async def register_set(
    target: Target, register: str, index: int | None, value: str, dry_run: bool = False
) -> list[str]:
    """Writes a cell, or all of them where `index` is None."""

    async def plan(reader: Reader) -> Sequence[Any]:
        known = text.find("register", register, reader.schema.registers)
        _check_index(known, index)
        entry = p4r.RegisterEntry(register_id=known.id, data=parse_data(known.type_spec, value, known.alias))
        if index is not None:
            entry.index.index = index
        return [modify(p4r.Entity(register_entry=entry))]

    with _registers_explained():
        return await carry_out(target, plan, dry_run)


class _registers_explained:  # noqa: N801 (reads as a statement)
    """BMv2 answers UNIMPLEMENTED to everything about registers."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, RefusedError) and "UNIMPLEMENTED" in str(error):
            raise RefusedError(f"{error} (BMv2 has no registers over P4Runtime; plait-switch has)") from None


# --- which cells ---


def _cells(known: Any, index: int | None) -> Iterable[int]:
    return range(known.size) if index is None else (index,)


def _check_index(known: Any, index: int | None) -> None:
    if index is not None and not 0 <= index < known.size:
        raise EntryTextError(f"{known.alias}: index {index}; it has {known.size} cells, from 0")


def _no_index(known: Any, index: int | None) -> None:
    if index is not None:
        raise EntryTextError(f"{known.alias} has no indices: its cells are named by their entries' match")


def _no_match(known: Any, match: Sequence[str]) -> None:
    if match:
        raise EntryTextError(f"{known.alias} is an array: its cells are named by an index, not by {match[0]!r}")


async def _entries_of(
    reader: Reader, known: Any, match: Sequence[str], priority: int | None, names: Names
) -> list[p4r.TableEntry]:
    """The entries, without their actions, whose cells are meant."""
    table = reader.schema.tables[known.direct_table_id]
    if match:
        chosen = fy.P4TableEntry(
            table.name, match=text.parse_match(table, match, names), priority=text.check_priority(table, priority)
        )
        return [chosen.encode(reader.schema).table_entry]
    found = (entity.table_entry for entity in await reader.read([fy.P4TableEntry(table.name)]))
    return [
        p4r.TableEntry(table_id=entry.table_id, match=entry.match, priority=entry.priority)
        for entry in found
        if not entry.is_default_action
    ]
