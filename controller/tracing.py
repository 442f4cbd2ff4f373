"""The path of chosen packets: the switches' programs copy them to the controller, which puts the copies in order.

A copy says how its packet passed one switch (p4src/include/path_trace.p4). Copies of one packet are put in order by its
TTL and by the links: where a copy left is where the next one, with a TTL less by one, came in.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Hashable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import finsy as fy

from controller import defaults
from controller.connection import controlling, each, translated, write
from controller.errors import ControllerError
from controller.frames import ether_type
from controller.targets import Target
from mininet_topos.topology import Neighbor, Topology
from wire.codes import EtherType

# Names in p4src/include/path_trace.p4; their ids come from P4Info.
TRACE, TRACE_TO = "trace", "trace_to"
SRC_ADDR, DST_ADDR, SRC_PORT = "hdr.ipv4.src_addr", "hdr.ipv4.dst_addr", "meta.l4_src_port"
DST_PORT, PSN = "meta.l4_dst_port", "meta.trace.psn"

_PRIORITY = 1


# --- order ---


@dataclass(frozen=True, slots=True)
class Hop:
    """How a packet passed a switch: ports, packets found in the egress queue, microseconds spent there."""

    switch: str
    ingress_port: int
    egress_port: int
    queue_packets: int
    queued_us: int


@dataclass(frozen=True, slots=True)
class Sighting:
    """A hop of a packet: `packet` is equal at all its hops, and `ttl` is the one it left with."""

    packet: Hashable
    ttl: int
    hop: Hop


@dataclass(frozen=True, slots=True)
class PacketPath:
    """The hops of a packet in order.

    source, destination: the hosts at its ends; None where the copy of a first or last hop is missing.
    """

    packet: Hashable
    hops: tuple[Hop, ...]
    source: str | None
    destination: str | None


def packet_paths(sightings: Iterable[Sighting], topology: Topology) -> list[PacketPath]:
    """The paths that sightings make up, in the order in which their packets were first seen.

    Sightings may come in any order; those of one switch in the order in which packets left it, if one packet was sent
    more than once. Whose hops are whose where two transmissions of a packet met is settled by that order.
    """
    of_packet: dict[Hashable, list[Sighting]] = {}
    for sighting in sightings:
        of_packet.setdefault(sighting.packet, []).append(sighting)
    ends = {(switch.name, n.port): n for switch in topology.switches for n in topology.neighbors(switch.name)}
    paths = []
    for packet, seen in of_packet.items():
        for chain in _chains(sorted(seen, key=lambda each: -each.ttl), ends):
            hops = tuple(sighting.hop for sighting in chain)
            source = _host(ends.get((hops[0].switch, hops[0].ingress_port)))
            destination = _host(ends.get((hops[-1].switch, hops[-1].egress_port)))
            paths.append(PacketPath(packet, hops, source, destination))
    return paths


def _chains(seen: Sequence[Sighting], ends: dict[tuple[str, int], Neighbor]) -> list[list[Sighting]]:
    """Sightings of one packet, by falling TTL, as the longest chains that the links allow."""
    chains: list[list[Sighting]] = []
    for sighting in seen:
        for chain in chains:
            before, end = chain[-1], ends.get((chain[-1].hop.switch, chain[-1].hop.egress_port))
            arrived = (sighting.hop.switch, sighting.hop.ingress_port)
            if before.ttl == sighting.ttl + 1 and end is not None and (end.node.name, end.node_port) == arrived:
                chain.append(sighting)
                break
        else:
            chains.append([sighting])
    return chains


def _host(end: Neighbor | None) -> str | None:
    return end.node.name if end is not None and end.node.is_host else None


# --- copies ---


@dataclass(frozen=True, slots=True)
class Selection:
    """Which packets are copied; addresses as text, None for any."""

    src_addr: str
    dst_addr: str
    dst_port: int
    src_port: int | None = None
    psn: int | None = None

    def entry(self) -> fy.P4TableEntry:
        match: dict[str, object] = {
            SRC_ADDR: (self.src_addr, 0xFFFFFFFF),
            DST_ADDR: (self.dst_addr, 0xFFFFFFFF),
            DST_PORT: (self.dst_port, 0xFFFF),
        }
        if self.src_port is not None:
            match[SRC_PORT] = (self.src_port, 0xFFFF)
        if self.psn is not None:
            match[PSN] = (self.psn, 0xFFFFFF)
        action = fy.Action(TRACE_TO, session=defaults.TRACE_SESSION)
        return fy.P4TableEntry(TRACE, match=fy.Match(match), action=action, priority=_PRIORITY)


@dataclass(frozen=True, slots=True)
class Copy:
    """A packet as it left a switch, and how it passed it."""

    hop: Hop
    packet: bytes


@asynccontextmanager
async def tracing(targets: Sequence[Target], selection: Selection) -> AsyncIterator[asyncio.Queue[Copy]]:
    """Copies of the selected packets from all these switches, until the context ends; then the switches are as before.

    ControllerError if a switch cannot be reached, refuses, or runs a program that traces nothing.
    """
    copies: asyncio.Queue[Copy] = asyncio.Queue()
    options = fy.SwitchOptions(initial_election_id=defaults.personal_election_id())
    async with AsyncExitStack() as stack:
        switches: dict[str, fy.Switch] = {}

        async def connect(target: Target) -> None:
            switch = await stack.enter_async_context(controlling(target, options))
            if TRACE not in {table.alias for table in switch.p4info.tables}:
                raise ControllerError(f"{target.name}: its program has no table {TRACE!r}, so it traces nothing")
            switches[target.name] = switch

        await each(targets, connect)
        readers = [asyncio.create_task(_collect(name, switch, copies)) for name, switch in switches.items()]
        try:
            await asyncio.sleep(0)  # every reader has its queue before the first copy can come
            await each(targets, lambda target: _begin(target, switches[target.name], selection))
            yield copies
        finally:
            for reader in readers:
                reader.cancel()
            await each(targets, lambda target: _end(target, switches[target.name]))


async def _collect(name: str, switch: fy.Switch, copies: asyncio.Queue[Copy]) -> None:
    async for packet in switch.read_packets():
        if ether_type(packet.payload) != EtherType.IPV4:
            continue  # LLDP or ARP: the switch hands up more than copies
        found = {field: int(packet[field]) for field in ("ingress_port", "egress_port", "queue_packets", "queued_us")}
        copies.put_nowait(Copy(Hop(name, **found), packet.payload))


async def _begin(target: Target, switch: fy.Switch, selection: Selection) -> None:
    await _end(target, switch)  # what a killed one left
    session = fy.P4CloneSessionEntry(defaults.TRACE_SESSION, replicas=[defaults.CPU_PORT])
    await write(target, switch, [+session])
    await write(target, switch, [+selection.entry()])


async def _end(target: Target, switch: fy.Switch) -> None:
    """Removes the entries that lead to our session, and then the session."""
    found: Any = switch.read([fy.P4TableEntry(TRACE)])  # its overloads are not declared as what it is
    with translated(target, "to end a trace", switch.p4info):
        ours = [
            entry
            async for entry in found
            if isinstance(entry.action, fy.Action) and entry.action.args.get("session") == defaults.TRACE_SESSION
        ]
        await switch.delete(ours)
        await switch.delete([fy.P4CloneSessionEntry(defaults.TRACE_SESSION)], strict=False)
