"""A loaded program's descriptors (pipeline.h) as dataclasses, by index and by name."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from engine._library import ffi


class Match(IntEnum):
    EXACT = 0
    LPM = 1
    TERNARY = 2
    RANGE = 3
    OPTIONAL = 4


class TableKind(IntEnum):
    SIMPLE = 0
    INDIRECT = 1
    INDIRECT_SELECTOR = 2


@dataclass(frozen=True, slots=True)
class Param:
    name: str
    width: int


@dataclass(frozen=True, slots=True)
class Action:
    index: int
    name: str
    id: int
    params: tuple[Param, ...]

    @property
    def params_length(self) -> int:
        """Bytes of the parameters as entries give them."""
        return sum((p.width + 7) // 8 for p in self.params)


@dataclass(frozen=True, slots=True)
class Key:
    name: str
    match: Match
    width: int
    offset: int


@dataclass(frozen=True, slots=True)
class Table:
    index: int
    name: str
    kind: TableKind
    size: int
    keys: tuple[Key, ...]
    key_bytes: int
    with_counters: bool
    support_timeout: bool
    direct_meter: int


@dataclass(frozen=True, slots=True)
class Array:
    index: int
    name: str
    size: int
    width: int
    direct: bool


@dataclass(frozen=True, slots=True)
class Learn:
    id: int
    widths: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Pipeline:
    program: str
    tables: tuple[Table, ...]
    actions: tuple[Action, ...]
    counters: tuple[Array, ...]
    registers: tuple[Array, ...]
    meters: tuple[Array, ...]
    learn: tuple[Learn, ...]
    table: dict[str, Table] = field(repr=False)
    counter: dict[str, Array] = field(repr=False)
    register: dict[str, Array] = field(repr=False)
    meter: dict[str, Array] = field(repr=False)

    def actions_named(self, name: str) -> list[Action]:
        """All actions of that name: a JSON may hold one action several times."""
        return [action for action in self.actions if action.name == name]


def _text(pointer: Any) -> str:
    return "" if pointer == ffi.NULL else ffi.string(pointer).decode("utf-8", "replace")


def _arrays(pointer: Any, count: int) -> tuple[Array, ...]:
    return tuple(
        Array(i, _text(pointer[i].name), pointer[i].size, pointer[i].width, bool(pointer[i].direct))
        for i in range(count)
    )


def _table(index: int, t: Any) -> Table:
    keys = tuple(
        Key(_text(t.keys[i].name), Match(int(t.keys[i].match)), t.keys[i].width, t.keys[i].offset)
        for i in range(t.n_keys)
    )
    return Table(
        index,
        _text(t.name),
        TableKind(int(t.kind)),
        t.size,
        keys,
        t.key_bytes,
        bool(t.with_counters),
        bool(t.support_timeout),
        t.direct_meter,
    )


def _action(index: int, a: Any) -> Action:
    return Action(
        index, _text(a.name), a.id, tuple(Param(_text(a.params[i].name), a.params[i].width) for i in range(a.n_params))
    )


def read_pipeline(p: Any) -> Pipeline:
    """Copies everything out of the shared object, so that nothing refers to it when it is replaced."""
    tables = tuple(_table(i, p.tables[i]) for i in range(p.n_tables))
    counters = _arrays(p.counters, p.n_counters)
    registers = _arrays(p.registers, p.n_registers)
    meters = _arrays(p.meters, p.n_meters)
    return Pipeline(
        program=_text(p.program),
        tables=tables,
        actions=tuple(_action(i, p.actions[i]) for i in range(p.n_actions)),
        counters=counters,
        registers=registers,
        meters=meters,
        learn=tuple(
            Learn(p.learn[i].id, tuple(p.learn[i].widths[j] for j in range(p.learn[i].n_fields)))
            for i in range(p.n_learn)
        ),
        table={t.name: t for t in tables},
        counter={c.name: c for c in counters},
        register={r.name: r for r in registers},
        meter={m.name: m for m in meters},
    )
