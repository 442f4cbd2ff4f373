"""What every switch of a fabric counted at its ports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from controller.arrays import counter_show
from controller.connection import each
from controller.targets import Target

# Names in p4src/include/port_counters.p4; their ids come from P4Info.
PORT_RX, PORT_TX = "port_rx", "port_tx"


@dataclass(frozen=True, slots=True)
class PortCounters:
    """What a switch counted at a port: rx came in there, tx left there."""

    rx_packets: int = 0
    rx_bytes: int = 0
    tx_packets: int = 0
    tx_bytes: int = 0


async def read_port_counters(targets: Sequence[Target]) -> dict[str, dict[int, PortCounters]]:
    """Per switch and port, what was counted since the program was loaded; ports that saw nothing are left out."""

    async def of(target: Target) -> dict[int, PortCounters]:
        found: dict[int, dict[str, int]] = {}
        for counter, way in ((PORT_RX, "rx"), (PORT_TX, "tx")):
            for row in await counter_show(target, counter):
                assert row.index is not None
                found.setdefault(row.index, {}).update({f"{way}_packets": row.packets, f"{way}_bytes": row.bytes})
        return {port: PortCounters(**values) for port, values in sorted(found.items())}

    results = await each(targets, of)
    return {target.name: result for target, result in zip(targets, results, strict=True)}
