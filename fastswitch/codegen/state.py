"""What a program's tables hold before the control plane writes: default actions and constant entries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .load import load_program
from .model import ActionCallData, Program


@dataclass(frozen=True, slots=True)
class InitialDefault:
    """A table's default action.  `const`: the control plane may not change it."""

    table: int
    table_name: str
    action: int
    params: bytes  # big-endian, (width + 7) // 8 bytes each, in order
    const: bool


@dataclass(frozen=True, slots=True)
class InitialEntry:
    """A constant entry, in the terms of the engine's `entry_insert`."""

    table: int
    table_name: str
    key: bytes  # for a range: its low end
    mask: bytes | None  # tables with a ternary, optional or range key
    prefix_len: int | None  # tables with an lpm key and none of those
    range_high: bytes | None  # tables with a range key
    priority: int  # larger wins; 0 where entries have no order
    action: int
    params: bytes

    @property
    def target(self) -> tuple[str, int, bytes]:
        return ("action", self.action, self.params)


@dataclass(frozen=True, slots=True)
class InitialState:
    defaults: tuple[InitialDefault, ...]
    entries: tuple[InitialEntry, ...]


def initial_state(bmv2_json: dict[str, Any] | bytes | str | Program) -> InitialState:
    """Defaults and constant entries, tables and actions by index of the pipeline's descriptors."""
    program = bmv2_json if isinstance(bmv2_json, Program) else load_program(bmv2_json)
    defaults = []
    entries = []
    for table in program.tables:
        if table.default is not None:
            call: ActionCallData = table.default
            defaults.append(InitialDefault(table.index, table.name, call.action.index, call.params, call.const))
        for entry in table.entries:
            entries.append(
                InitialEntry(
                    table.index,
                    table.name,
                    entry.key,
                    entry.mask,
                    entry.prefix_length,
                    entry.range_high,
                    entry.priority,
                    entry.call.action.index,
                    entry.call.params,
                )
            )
    return InitialState(tuple(defaults), tuple(entries))
