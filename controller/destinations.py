"""Where every switch sends every destination, before any program's encoding: prefix, next hops, distance.

Per destination, a switch's next hops are strictly nearer to it, so that walks are free of loops on any topology. A
switch that a host hangs on has a /32 for it; elsewhere the hosts of a network share its prefix, where all of them hang
on one switch, and have a /32 each where not. Nothing depends on what a topology or a layer is called.

"shortest": all neighbours on shortest paths. "up-down": on the shortest of the paths that go up, away from the hosts,
and then only down, as in a tree of layers; packets that wait for each other's buffers then never do so in a circle, and
a failure does not send traffic through a third pod. What has no such path left has no route.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ipaddress import IPv4Address, IPv4Network
from typing import Literal, NamedTuple

from controller.errors import ControllerError
from mininet_topos import paths
from mininet_topos.topology import Link, Neighbor, Node, Topology

Routing = Literal["shortest", "up-down"]
ROUTINGS: tuple[Routing, ...] = ("shortest", "up-down")


class Route(NamedTuple):
    """The neighbours through which a prefix is reached, and the links from there to the switch it hangs on, at most."""

    prefix: IPv4Network
    hops: tuple[Neighbor, ...]
    distance: int


Destinations = dict[str, list[Route]]

NextHops = Mapping[str, tuple[Neighbor, ...]]


def destinations(
    topology: Topology, down: frozenset[Link] = frozenset(), routing: Routing = "shortest"
) -> Destinations:
    """Routes over the links that are not `down`. A host's own link counts as up: there is no way around it.

    ControllerError where `routing` is up-down and the topology is no tree of layers.
    """
    levels = levels_of(topology) if routing == "up-down" else {}
    left = remaining(topology, down)
    found: Destinations = {switch.name: [] for switch in topology.switches}
    owners = owners_of(topology)
    for switch in topology.switches:
        hosts = topology.hosts_of(switch.name)
        if not hosts:
            continue
        for neighbor in topology.neighbors(switch.name):
            if neighbor.node.is_host:
                found[switch.name].append(Route(IPv4Network(neighbor.node.address), (neighbor,), 0))
        next_hops = _up_down(left, switch.name, levels) if levels else paths.next_hops(left, switch.name)
        distance = {switch.name: 0}
        for name, hops in next_hops.items():
            distance[name] = 1 + distance[hops[0].node.name]
        for prefix in prefixes(hosts, owners):
            for name, hops in next_hops.items():
                found[name].append(Route(prefix, hops, distance[name]))
    return found


def remaining(topology: Topology, down: frozenset[Link]) -> Topology:
    """The topology without those links between switches that are down."""
    dead = [link for link in down if not any(topology.node(name).is_host for name, _ in link.ends)]
    return topology.without(dead) if dead else topology


def levels_of(topology: Topology) -> dict[str, int]:
    """Per switch, the links to the nearest switch with hosts; ControllerError unless all links join adjacent levels."""
    levels = {switch.name: 0 for switch in topology.switches if topology.hosts_of(switch.name)}
    queue = list(levels)
    for name in queue:
        for neighbor in topology.neighbors(name):
            if not neighbor.node.is_host and neighbor.node.name not in levels:
                levels[neighbor.node.name] = levels[name] + 1
                queue.append(neighbor.node.name)
    for link in topology.links:
        if link.a in levels and link.b in levels and abs(levels[link.a] - levels[link.b]) != 1:
            raise ControllerError(
                f"routing up-down: {topology.name or 'this topology'} is no tree of layers: {link.name} joins two "
                f"switches that are {levels[link.a]} and {levels[link.b]} links from hosts"
            )
    return levels


def _up_down(topology: Topology, switch: str, levels: Mapping[str, int]) -> NextHops:
    """As `paths.next_hops`, in the order of distance, over paths that go down only after they went up."""
    found: dict[str, tuple[Neighbor, ...]] = {}
    distance = {switch: 0}
    below = [switch]  # switches from which every path that goes down leads to `switch`, nearest first
    for name in below:
        for neighbor in topology.neighbors(name):
            upper = neighbor.node.name
            if levels.get(upper, -1) == levels[name] + 1 and upper not in distance:
                distance[upper] = distance[name] + 1
                below.append(upper)
    for name in below[1:]:
        found[name] = tuple(
            hop
            for hop in topology.neighbors(name)
            if levels.get(hop.node.name) == levels[name] - 1 and distance.get(hop.node.name) == distance[name] - 1
        )
    # The others go up. What is above them is settled before them, level by level from the top.
    goes_up = [name for name in levels if name not in distance]
    for name in sorted(goes_up, key=lambda name: -levels[name]):
        above = [hop for hop in topology.neighbors(name) if levels.get(hop.node.name) == levels[name] + 1]
        reached = [distance[hop.node.name] for hop in above if hop.node.name in distance]
        if reached:
            distance[name] = 1 + min(reached)
            found[name] = tuple(hop for hop in above if distance.get(hop.node.name) == distance[name] - 1)
    return dict(sorted(found.items(), key=lambda item: distance[item[0]]))


def owners_of(topology: Topology) -> dict[IPv4Network, set[str]]:
    """Per network of hosts, the switches that hosts with an address inside hang on."""
    lengths = {host.network.prefixlen for host in topology.hosts}
    owners: dict[tuple[int, int], set[str]] = {}
    for host in topology.hosts:
        switch, address = topology.host_port(host.name).node.name, int(IPv4Address(host.address))
        for length in lengths:
            owners.setdefault((address >> (32 - length), length), set()).add(switch)
    return {IPv4Network((bits << (32 - length), length)): names for (bits, length), names in owners.items()}


def prefixes(hosts: Sequence[Node], owners: dict[IPv4Network, set[str]]) -> list[IPv4Network]:
    """By which prefixes other switches know the hosts of one: their networks, where nobody else's address is inside."""
    networks = {host: host.network for host in hosts}
    own = (networks[host] if len(owners[networks[host]]) == 1 else IPv4Network(host.address) for host in hosts)
    return list(dict.fromkeys(own))
