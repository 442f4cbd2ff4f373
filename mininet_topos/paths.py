"""Shortest paths, round-trip times and bandwidth-delay products of a topology.

Every timer, window and threshold of the laboratory is derived from these numbers, so that a topology nobody has seen
before needs no tuning. A path is shortest by number of links; hosts do not forward.
"""

from __future__ import annotations

from collections import deque
from math import ceil

from mininet_topos.topology import Link, Neighbor, Topology, TopologyError

BITS_PER_BYTE = 8
NS_PER_S = 1_000_000_000

# Ethernet, IPv4, UDP, BTH, AETH and ICRC: what acknowledges a data packet.
ACK_FRAME_BYTES = 14 + 20 + 8 + 12 + 4 + 4


def serialisation_ns(frame_bytes: int, rate_bps: int) -> int:
    """Time that a frame of this length (Ethernet header to the last byte) occupies a link, rounded up."""
    return -(-frame_bytes * BITS_PER_BYTE * NS_PER_S // rate_bps)


def hops_to_switch(topology: Topology, switch: str) -> dict[str, int]:
    """Number of links from every switch that reaches `switch` over switches alone."""
    distance = {switch: 0}
    queue = deque([switch])
    while queue:
        name = queue.popleft()
        for neighbor in topology.adjacency[name]:
            if not neighbor.node.is_host and neighbor.node.name not in distance:
                distance[neighbor.node.name] = distance[name] + 1
                queue.append(neighbor.node.name)
    return distance


def check_connected(topology: Topology) -> None:
    """TopologyError, with two hosts that prove it, unless every host reaches every other."""
    if not topology.hosts:
        return
    first = topology.hosts[0]
    reached = hops_to_switch(topology, topology.host_port(first.name).node.name)
    for host in topology.hosts:
        if topology.host_port(host.name).node.name not in reached:
            raise TopologyError("links", f"no path from {first.name!r} to {host.name!r}: the network is in parts")


def next_hops(topology: Topology, switch: str) -> dict[str, tuple[Neighbor, ...]]:
    """Per other switch that reaches `switch`, its neighbours on shortest paths, in the order of its ports.

    Parallel links count as neighbours each. Every next hop is strictly closer, so that walks are free of loops.
    """
    distance = hops_to_switch(topology, switch)
    return {
        name: tuple(
            neighbor
            for neighbor in topology.adjacency[name]
            if not neighbor.node.is_host and distance.get(neighbor.node.name, hops) == hops - 1
        )
        for name, hops in distance.items()
        if name != switch
    }


def delay_ns(topology: Topology, src: str, dst: str, frame_bytes: int) -> int:
    """One-way time of a frame over the slowest shortest path with empty queues: delays and store-and-forward.

    Raises TopologyError where `dst` cannot be reached.
    """
    if src == dst:
        return 0
    first, last = topology.host_port(src), topology.host_port(dst)
    ends = _link_ns(first.link, frame_bytes) + _link_ns(last.link, frame_bytes)
    worst = _slowest_to(topology, last.node.name, frame_bytes)
    if first.node.name not in worst:
        raise TopologyError("links", f"no path from {src!r} to {dst!r}")
    return ends + worst[first.node.name]


def rtt_ns(topology: Topology, src: str, dst: str, frame_bytes: int, reply_bytes: int = ACK_FRAME_BYTES) -> int:
    """Time until the reply to a frame is back, over the slowest shortest paths with empty queues."""
    return delay_ns(topology, src, dst, frame_bytes) + delay_ns(topology, dst, src, reply_bytes)


def max_rtt_ns(topology: Topology, frame_bytes: int, reply_bytes: int = ACK_FRAME_BYTES) -> int:
    """The largest `rtt_ns` of any two hosts that reach each other; 0 with fewer than two hosts."""
    edges = [switch.name for switch in topology.switches if topology.hosts_of(switch.name)]

    def slowest_hosts(switch: str, size: int) -> list[int]:
        links = [n.link for n in topology.adjacency[switch] if n.node.is_host]
        return sorted((_link_ns(link, size) + _link_ns(link, reply_bytes) for link in links), reverse=True)[:2]

    at_edge = {edge: slowest_hosts(edge, frame_bytes) for edge in edges}
    largest = max((sum(times) for times in at_edge.values() if len(times) == 2), default=0)
    for edge in edges:
        there = _slowest_to(topology, edge, frame_bytes)
        back = _slowest_to(topology, edge, reply_bytes)
        for other in edges:
            if other != edge and other in there:
                largest = max(largest, at_edge[edge][0] + at_edge[other][0] + there[other] + back[other])
    return largest


def bottleneck_bps(topology: Topology, src: str, dst: str) -> int:
    """The rate of the slower of the two hosts' own links: what one flow gets of a fabric that is not oversubscribed."""
    return min(topology.host_port(src).link.rate_bps, topology.host_port(dst).link.rate_bps)


def bdp_bytes(topology: Topology, src: str, dst: str, frame_bytes: int) -> int:
    """Bandwidth-delay product of two hosts: what is on its way when the pipe is just full."""
    return ceil(bottleneck_bps(topology, src, dst) * rtt_ns(topology, src, dst, frame_bytes) / NS_PER_S / BITS_PER_BYTE)


def _link_ns(link: Link, frame_bytes: int) -> int:
    return link.delay_ns + serialisation_ns(frame_bytes, link.rate_bps)


def _slowest_to(topology: Topology, switch: str, frame_bytes: int) -> dict[str, int]:
    """Per switch that reaches `switch`, the time of a frame over the slowest of its shortest paths."""
    worst = {switch: 0}
    # next_hops comes in the order of distance, so what is nearer is already known.
    for name, nearer in next_hops(topology, switch).items():
        worst[name] = max(_link_ns(hop.link, frame_bytes) + worst[hop.node.name] for hop in nearer)
    return worst


def link_bdp_bytes(link: Link, rtt_ns: int) -> int:
    """Bytes that a link carries in a round-trip time, rounded up."""
    return -(-link.rate_bps * rtt_ns // (NS_PER_S * BITS_PER_BYTE))


def link_bdp_packets(link: Link, rtt_ns: int, packet_bytes: int) -> int:
    """Packets of this length that a link carries in a round-trip time, rounded up."""
    return -(-link.rate_bps * rtt_ns // (NS_PER_S * BITS_PER_BYTE * packet_bytes))
