"""Where every switch sends every destination: shortest paths as (prefix, next hops), before any program's encoding.

Per destination, a switch's next hops are all neighbours on shortest paths, so that walks are free of loops on any
topology. A switch that a host hangs on has a /32 for it; elsewhere the hosts of a network share its prefix, where all
of them hang on one switch, and have a /32 each where not. Nothing depends on what a topology or a layer is called.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network

from mininet_topos import paths
from mininet_topos.topology import Neighbor, Node, Topology

# Per switch: a prefix, and the neighbours through which it is reached.
Destinations = dict[str, list[tuple[IPv4Network, tuple[Neighbor, ...]]]]


def destinations(topology: Topology) -> Destinations:
    found: Destinations = {switch.name: [] for switch in topology.switches}
    owners = owners_of(topology)
    for switch in topology.switches:
        hosts = topology.hosts_of(switch.name)
        if not hosts:
            continue
        for neighbor in topology.neighbors(switch.name):
            if neighbor.node.is_host:
                found[switch.name].append((IPv4Network(neighbor.node.address), (neighbor,)))
        next_hops = paths.next_hops(topology, switch.name)
        for prefix in prefixes(hosts, owners):
            for name, hops in next_hops.items():
                found[name].append((prefix, hops))
    return found


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
