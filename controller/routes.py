"""Routes for `ecmp.p4`: from a topology to the entries of every switch.  Pure: nothing here talks to a switch.

Per destination, a switch's next hops are all neighbours on shortest paths, so that walks are free of loops on any
topology. A switch that a host hangs on has a /32 for it; elsewhere the hosts of a network share its prefix, where all
of them hang on one switch, and have a /32 each where not. No entry depends on what a topology or a layer is called.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network

import finsy as fy

from controller.errors import ControllerError
from mininet_topos import paths
from mininet_topos.topology import Neighbor, Node, Topology

# Names in p4src/lb/ecmp.p4, p4src/include/flow_hash.p4 and p4src/aqm/step_ecn.p4; their ids come from P4Info.
ROUTES, DESTINATION, FORWARD = "ipv4_lpm", "hdr.ipv4.dst_addr", "forward"
SEED, SET_SEED = "switch_seed", "set_seed"
ECN, EGRESS_PORT, SET_THRESHOLD = "ecn_threshold", "standard_metadata.egress_port", "set_threshold"

Entries = dict[str, list[fy.P4TableEntry]]


@dataclass(frozen=True, slots=True)
class EcmpPolicy:
    """What the topology does not say.

    seed: draws every switch's hash multiplier. packet_bytes: the frames that queues are counted in. ecn_bdps: the
    marking threshold in bandwidth-delay products of a port (its rate times the topology's largest round-trip time);
    DCTCP needs 1/7 (RFC 8257, section 4.1) for long flows, one whole leaves room for bursts. min_ecn_packets: no
    threshold is lower, since the burst of a single sender would be marked.
    """

    seed: int = 1
    packet_bytes: int = 1086
    ecn_bdps: float = 1.0
    min_ecn_packets: int = 8


def ecmp_entries(topology: Topology, p4info: fy.P4Schema, policy: EcmpPolicy | None = None) -> Entries:
    """All entries of all switches for `ecmp.p4`; ControllerError if they do not fit in the program's tables."""
    policy = policy or EcmpPolicy()
    found: Entries = {switch.name: [] for switch in topology.switches}
    for part in (route_entries(topology), seed_entries(topology, policy), ecn_entries(topology, p4info, policy)):
        for name, entries in part.items():
            found[name] += entries
    for name, entries in found.items():
        _check_room(name, entries, p4info)
    return found


# --- routes ---


def route_entries(topology: Topology) -> Entries:
    """The forwarding entries: one-shot action sets with one member for every next hop."""
    found: Entries = {switch.name: [] for switch in topology.switches}
    owners = _owners(topology)
    for switch in topology.switches:
        hosts = topology.hosts_of(switch.name)
        if not hosts:
            continue
        for neighbor in topology.neighbors(switch.name):
            if neighbor.node.is_host:
                prefix = IPv4Network(neighbor.node.address)
                found[switch.name].append(_route(topology, switch.name, prefix, [neighbor]))
        next_hops = paths.next_hops(topology, switch.name)
        for prefix in _prefixes(hosts, owners):
            for name, hops in next_hops.items():
                found[name].append(_route(topology, name, prefix, hops))
    return found


def _owners(topology: Topology) -> dict[IPv4Network, set[str]]:
    """Per network of hosts, the switches that hosts with an address inside hang on."""
    lengths = {host.network.prefixlen for host in topology.hosts}
    owners: dict[tuple[int, int], set[str]] = {}
    for host in topology.hosts:
        switch, address = topology.host_port(host.name).node.name, int(IPv4Address(host.address))
        for length in lengths:
            owners.setdefault((address >> (32 - length), length), set()).add(switch)
    return {IPv4Network((bits << (32 - length), length)): names for (bits, length), names in owners.items()}


def _prefixes(hosts: Sequence[Node], owners: dict[IPv4Network, set[str]]) -> list[IPv4Network]:
    """By which prefixes other switches know the hosts of one: their networks, where nobody else's address is inside."""
    networks = {host: host.network for host in hosts}
    own = (networks[host] if len(owners[networks[host]]) == 1 else IPv4Network(host.address) for host in hosts)
    return list(dict.fromkeys(own))


def _route(topology: Topology, switch: str, prefix: IPv4Network, hops: Sequence[Neighbor]) -> fy.P4TableEntry:
    members = [
        (
            1,
            fy.Action(
                FORWARD,
                src_mac=topology.mac(switch, hop.port),
                dst_mac=topology.mac(hop.node.name, hop.node_port),
                port=hop.port,
            ),
        )
        for hop in hops
    ]
    match = fy.Match({DESTINATION: (int(prefix.network_address), prefix.prefixlen)})
    return fy.P4TableEntry(ROUTES, match=match, action=fy.IndirectAction(members))


# --- hash seeds ---


def seed_entries(topology: Topology, policy: EcmpPolicy) -> Entries:
    """An odd multiplier for every switch's flow hash, so that switches of consecutive stages choose independently."""
    return {
        switch.name: [
            fy.P4TableEntry(
                SEED,
                is_default_action=True,
                action=fy.Action(SET_SEED, odd_multiplier=_odd_multiplier(policy.seed, switch.device_id or 0)),
            )
        ]
        for switch in topology.switches
    }


def _odd_multiplier(seed: int, device_id: int) -> int:
    # By device id and not by order, so that a switch keeps its seed when others come or go.
    return random.Random(f"{seed}/{device_id}").getrandbits(32) | 1


# --- ECN ---


def ecn_entries(topology: Topology, p4info: fy.P4Schema, policy: EcmpPolicy) -> Entries:
    """A marking threshold for every egress port, from its rate and the topology's largest round-trip time."""
    largest = (1 << p4info.actions[SET_THRESHOLD].params["packets"].bitwidth) - 1
    rtt_ns = paths.max_rtt_ns(topology, policy.packet_bytes)

    def threshold(neighbor: Neighbor) -> int:
        bdp_packets = paths.link_bdp_packets(neighbor.link, rtt_ns, policy.packet_bytes)
        return min(largest, max(policy.min_ecn_packets, round(policy.ecn_bdps * bdp_packets)))

    return {
        switch.name: [
            fy.P4TableEntry(
                ECN,
                match=fy.Match({EGRESS_PORT: neighbor.port}),
                action=fy.Action(SET_THRESHOLD, packets=threshold(neighbor)),
            )
            for neighbor in topology.neighbors(switch.name)
        ]
        for switch in topology.switches
    }


# --- room ---


def _check_room(switch: str, entries: Sequence[fy.P4TableEntry], p4info: fy.P4Schema) -> None:
    """Refuses what the switch would refuse in the middle of a write, with the reason."""
    for name in (ROUTES, ECN):
        count = sum(entry.table_id == name for entry in entries)
        if count > p4info.tables[name].size:
            raise ControllerError(f"{switch}: {name} needs {count} entries and has room for {p4info.tables[name].size}")
    profile = p4info.tables[ROUTES].action_profile
    if profile is None:
        return
    sizes = [
        len(entry.action.action_set)
        for entry in entries
        if isinstance(entry.action, fy.IndirectAction) and entry.action.action_set
    ]
    if profile.max_group_size and max(sizes, default=0) > profile.max_group_size:
        raise ControllerError(f"{switch}: {max(sizes)} next hops, and groups of {ROUTES} hold {profile.max_group_size}")
    if sum(sizes) > profile.size:
        raise ControllerError(f"{switch}: {ROUTES} needs {sum(sizes)} group members and has room for {profile.size}")
