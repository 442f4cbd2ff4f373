"""Counters of switches: those of ports on the whole fabric, and any other by its name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import finsy as fy

from controller import text
from controller.connection import each, reading
from controller.targets import Target

# Names in p4src/include/port_counters.p4; their ids come from P4Info.
PORT_RX, PORT_TX = "port_rx", "port_tx"


@dataclass(frozen=True, slots=True)
class CounterRow:
    """A cell of a counter."""

    counter: str
    index: int
    packets: int
    bytes: int


@dataclass(frozen=True, slots=True)
class PortCounters:
    """What a switch counted at a port: rx came in there, tx left there."""

    rx_packets: int = 0
    rx_bytes: int = 0
    tx_packets: int = 0
    tx_bytes: int = 0


async def counters_show(target: Target, counter: str | None = None, zeros: bool = False) -> list[CounterRow]:
    """The cells of a counter, or of all, that counted anything (`zeros`: all cells).

    EntryTextError for a counter that is not there.
    """
    async with reading(target) as reader:
        counters = list(reader.schema.counters)
        if counter is not None:
            counters = [text.find("counter", counter, counters)]
        found = await reader.read([fy.P4CounterEntry(known.name) for known in counters])
        names = {known.id: known.name for known in counters}
    cells = (entity.counter_entry for entity in found)
    rows = [
        CounterRow(names[cell.counter_id], cell.index.index, cell.data.packet_count, cell.data.byte_count)
        for cell in cells
    ]
    return [row for row in rows if zeros or row.packets or row.bytes]


async def read_port_counters(targets: Sequence[Target]) -> dict[str, dict[int, PortCounters]]:
    """Per switch and port, what was counted since the program was loaded; ports that saw nothing are left out."""

    async def of(target: Target) -> dict[int, PortCounters]:
        found: dict[int, dict[str, int]] = {}
        for counter, way in ((PORT_RX, "rx"), (PORT_TX, "tx")):
            for row in await counters_show(target, counter):
                found.setdefault(row.index, {}).update({f"{way}_packets": row.packets, f"{way}_bytes": row.bytes})
        return {port: PortCounters(**values) for port, values in sorted(found.items())}

    results = await each(targets, of)
    return {target.name: result for target, result in zip(targets, results, strict=True)}
