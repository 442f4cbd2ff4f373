"""What `plait path` does: collects copies of chosen packets from the switches, and tells the path of each."""

import asyncio
import struct
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import Any

from controller import render
from controller.targets import Target
from controller.tracing import Copy, PacketPath, Selection, Sighting, packet_paths, tracing
from lab.errors import UsageError
from mininet_topos.topology import Node, Topology
from wire.codes import ROCEV2_UDP_PORT

# Of a copy: Ethernet, IPv4 without options, UDP, BTH (p4src/include/headers.p4).
_HEADERS = struct.Struct(">12xH8xBBH4s4sHH4xB8x3s")


@dataclass(frozen=True, slots=True)
class Packet:
    """What all copies of a packet have in common. A retransmission is the same packet again."""

    src: str
    dst: str
    sport: int
    opcode: int
    psn: int

    def __str__(self) -> str:
        return f"UDP port {self.sport}, opcode 0x{self.opcode:02x}, PSN {self.psn}"


@dataclass(frozen=True, slots=True)
class Row:
    """A hop, for people: the ports with the neighbours they lead to."""

    switch: str
    came_in: str
    left_by: str
    queue_packets: int
    queued_us: int


def find_host(topology: Topology, name: str) -> Node:
    """The host with this name or address; UsageError."""
    for host in topology.hosts:
        if name in (host.name, host.address):
            return host
    names = [host.name for host in topology.hosts]
    some = ", ".join(names[:8]) + (f", … ({len(names)} in all)" if len(names) > 8 else "")
    raise UsageError(f"no host {name!r} in the running laboratory; it has {some}.")


async def collect(
    targets: list[Target], selection: Selection, topology: Topology, count: int, patience_s: float
) -> list[PacketPath]:
    """The first `count` whole paths; all that begin at a host where time ends before."""
    sightings: list[Sighting] = []
    async with tracing(targets, selection) as copies:
        with suppress(TimeoutError):
            async with asyncio.timeout(patience_s):
                await _take(copies, sightings, topology, count)
    # A packet that was on its way when the trace began is seen from the middle on.
    found = [each for each in packet_paths(sightings, topology) if each.source]
    return sorted(found, key=complete, reverse=True)[:count]


async def _take(copies: "asyncio.Queue[Copy]", into: list[Sighting], topology: Topology, count: int) -> None:
    """Takes copies until they make up `count` whole paths."""
    last_hops = {(end.node.name, end.node_port) for end in map(topology.host_port, (h.name for h in topology.hosts))}
    ended = 0
    while ended < count or sum(map(complete, packet_paths(into, topology))) < count:
        if sighting := sighting_of(await copies.get()):
            into.append(sighting)
            ended += (sighting.hop.switch, sighting.hop.egress_port) in last_hops


def complete(path: PacketPath) -> bool:
    return path.source is not None and path.destination is not None


def sighting_of(copy: Copy) -> Sighting | None:
    """What a copy tells; None for a packet that is not RoCEv2."""
    if len(copy.packet) < _HEADERS.size:
        return None
    _, ttl, _, _, src, dst, sport, dport, opcode, psn = _HEADERS.unpack_from(copy.packet)
    if dport != ROCEV2_UDP_PORT:
        return None
    packet = Packet(str(IPv4Address(src)), str(IPv4Address(dst)), sport, opcode, int.from_bytes(psn, "big"))
    return Sighting(packet, ttl, copy.hop)


def text(found: PacketPath, topology: Topology) -> str:
    """A path for people: a line for the packet, and a row a hop."""
    nodes = [found.source or "…", *(hop.switch for hop in found.hops), found.destination or "…"]
    rows: list[Any] = [
        Row(hop.switch, _port(topology, hop.switch, hop.ingress_port), _port(topology, hop.switch, hop.egress_port),
            hop.queue_packets, hop.queued_us)
        for hop in found.hops
    ]  # fmt: skip
    end = "" if found.destination else "\n(its trace ends here: the packet or a copy was lost)"
    return f"{' -> '.join(nodes)}  ({found.packet})\n{render.as_text(rows)}{end}"


def _port(topology: Topology, switch: str, port: int) -> str:
    neighbor = next((each for each in topology.neighbors(switch) if each.port == port), None)
    return f"{port} ({neighbor.node.name})" if neighbor else str(port)
