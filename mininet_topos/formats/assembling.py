"""A topology from what a file without ports, addresses or layers says: which nodes there are and what is linked."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mininet_topos.building import MAX_RACK_HOSTS, MAX_RACKS, MAX_SWITCHES, rack_host
from mininet_topos.topology import HOST_PORT, Link, Node, Topology, TopologyError


@dataclass(frozen=True, slots=True)
class Wired:
    """Two linked nodes, each the number of a host (from 0) or of a switch (from 0)."""

    a: tuple[str, int]  # ("host", 3) or ("switch", 0)
    b: tuple[str, int]
    rate_bps: int
    delay_ns: int
    loss: float


def assemble(hosts: int, switches: int, wires: Sequence[Wired], name: str) -> Topology:
    """Hosts h1.. and switches s1.. in their order, ports in the order of the links, addresses by the hosts' switch.

    Layers are `tier0` for switches with hosts, `tier1` for those one link above them, and so on.
    """
    if switches > MAX_SWITCHES:
        raise TopologyError("switches", f"{switches} are too many: at most {MAX_SWITCHES} can be")
    if hosts > len(wires):
        raise TopologyError("hosts", f"{hosts} of them need a link each, and there are {len(wires)} links")
    next_port = {("host", i): HOST_PORT for i in range(hosts)} | {("switch", i): 1 for i in range(switches)}
    rack_of: dict[int, int] = {}  # host -> switch
    links = []
    for wire in wires:
        ends = []
        for end, other in ((wire.a, wire.b), (wire.b, wire.a)):
            kind, number = end
            if kind == "host":
                if number in rack_of or other[0] == "host":
                    why = "a second link" if number in rack_of else "a link to another host"
                    raise TopologyError(f"h{number + 1}", f"has {why}; a host has one, to a switch")
                rack_of[number] = other[1]
            ends.append((f"{'h' if kind == 'host' else 's'}{number + 1}", next_port[end]))
            next_port[end] += 1
        links.append(Link(*ends[0], *ends[1], wire.rate_bps, wire.delay_ns, wire.loss))
    lonely = next((i for i in range(hosts) if i not in rack_of), None)
    if lonely is not None:
        raise TopologyError(f"h{lonely + 1}", "has no link")
    nodes = _switches(switches, set(rack_of.values()), wires) + _hosts(hosts, rack_of)
    return Topology(tuple(nodes), tuple(links), name=name)


def _hosts(count: int, rack_of: Mapping[int, int]) -> list[Node]:
    racks = {switch: rack for rack, switch in enumerate(sorted(set(rack_of.values())))}
    if len(racks) > MAX_RACKS:
        raise TopologyError("switches", f"{len(racks)} have hosts: at most {MAX_RACKS} can")
    held: dict[int, int] = {}
    nodes = []
    for number in range(count):
        rack = racks[rack_of[number]]
        position = held.get(rack, 0)
        if position == MAX_RACK_HOSTS:
            raise TopologyError(f"s{rack_of[number] + 1}", f"has more than {MAX_RACK_HOSTS} hosts")
        held[rack] = position + 1
        nodes.append(rack_host(number, rack, position, f"rack {rack}"))
    return nodes


def _switches(count: int, with_hosts: Iterable[int], wires: Sequence[Wired]) -> list[Node]:
    racks = {switch: rack for rack, switch in enumerate(sorted(with_hosts))}
    tiers = tiers_above(count, racks, [(w.a[1], w.b[1]) for w in wires if w.a[0] == w.b[0] == "switch"])
    held: dict[int, int] = {}
    nodes = []
    for number, tier in enumerate(tiers):
        place = f"rack {racks[number]}" if number in racks else None
        nodes.append(Node.switch(1 + number, f"tier{tier}", held.get(tier, 0), place=place))
        held[tier] = held.get(tier, 0) + 1
    return nodes


def tiers_above(count: int, lowest: Iterable[int], links: Iterable[tuple[int, int]]) -> list[int]:
    """Per switch, how many links it is away from the nearest of `lowest`; 0 where there is no way."""
    neighbors: list[list[int]] = [[] for _ in range(count)]
    for a, b in links:
        neighbors[a].append(b)
        neighbors[b].append(a)
    tier = dict.fromkeys(lowest, 0)
    waiting = deque(tier)
    while waiting:
        here = waiting.popleft()
        for there in neighbors[here]:
            if there not in tier:
                tier[there] = tier[here] + 1
                waiting.append(there)
    return [tier.get(number, 0) for number in range(count)]
