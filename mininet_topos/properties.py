"""What a topology is worth: distances, bisection bandwidth, diversity of paths.

Lengths are numbers of links. Bandwidths are bits per second in one direction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from mininet_topos.k_paths import k_shortest_paths
from mininet_topos.paths import hops_to_switch, next_hops
from mininet_topos.topology import Node, Topology

if TYPE_CHECKING:
    import igraph


@dataclass(frozen=True, slots=True)
class Bisection:
    """The least capacity between two halves of the hosts (sizes differ by at most one), switches on either side.

    It is between `low_bps` and `high_bps`, which are equal where it is known exactly; `method` says how.
    """

    low_bps: int
    high_bps: int
    method: str


@dataclass(frozen=True, slots=True)
class Diversity:
    """Of ordered pairs of different switches with hosts, their k shortest paths and their equal-cost shortest paths."""

    k: int
    pairs: int
    equal_cost_least: int  # shortest paths of a pair, parallel links counted
    equal_cost_mean: float
    equal_cost_most: int
    found_least: int  # of the k paths, how many there are
    mean_length: float  # of the k paths
    max_length: int
    disjoint_least: int  # links that must fail to part a pair: its edge-disjoint paths of any length
    disjoint_mean: float
    paths_per_link_least: int  # of the k paths of all pairs, how many a link between switches carries in one direction
    paths_per_link_mean: float
    paths_per_link_most: int


@dataclass(frozen=True, slots=True)
class Properties:
    name: str
    hosts: int
    switches: int
    links: int
    degrees: dict[int, int]  # ports in use of a switch -> switches
    layers: dict[str, int]  # layer -> switches
    connected: bool  # every host reaches every other
    diameter: int  # the longest shortest path between hosts
    mean_length: float  # over ordered pairs of hosts that reach each other
    lengths: dict[int, int]  # length -> ordered pairs of hosts


def properties(topology: Topology) -> Properties:
    lengths = host_lengths(topology)
    total = len(topology.hosts) * (len(topology.hosts) - 1)
    reached = sum(lengths.values())
    return Properties(
        name=topology.name,
        hosts=len(topology.hosts),
        switches=len(topology.switches),
        links=len(topology.links),
        degrees=_sorted(Counter(len(topology.neighbors(switch.name)) for switch in topology.switches)),
        layers=dict(Counter(switch.layer for switch in topology.switches)),
        connected=reached == total,
        diameter=max(lengths, default=0),
        mean_length=sum(length * pairs for length, pairs in lengths.items()) / max(1, reached),
        lengths=lengths,
    )


def host_lengths(topology: Topology) -> dict[int, int]:
    """Per length, how many ordered pairs of different hosts are that far apart."""
    found: Counter[int] = Counter()
    hosts = {switch.name: len(topology.hosts_of(switch.name)) for switch in topology.switches}
    for switch, here in hosts.items():
        if here:
            found[2] += here * (here - 1)
            for other, hops in hops_to_switch(topology, switch).items():
                if other != switch and hosts[other]:
                    found[hops + 2] += here * hosts[other]
    return _sorted(Counter({length: pairs for length, pairs in found.items() if pairs}))


def _sorted(counts: Counter[int]) -> dict[int, int]:
    return dict(sorted(counts.items()))


def equal_cost_counts(topology: Topology) -> dict[tuple[str, str], int]:
    """Per ordered pair of different switches with hosts, the number of shortest paths, parallel links distinct."""
    edges = [switch.name for switch in topology.switches if topology.hosts_of(switch.name)]
    found: dict[tuple[str, str], int] = {}
    for target in edges:
        ways = {target: 1}
        # next_hops comes in the order of distance, so what is nearer is already known.
        for name, hops in next_hops(topology, target).items():
            ways[name] = sum(ways[hop.node.name] for hop in hops)
        found |= {(source, target): ways[source] for source in edges if source != target and source in ways}
    return found


def diversity(topology: Topology, k: int) -> Diversity:
    equal = list(equal_cost_counts(topology).values()) or [0]
    carried = Counter(
        {
            (switch.name, neighbor.port): 0
            for switch in topology.switches
            for neighbor in topology.neighbors(switch.name)
            if not neighbor.node.is_host
        }
    )
    found: list[int] = []
    lengths: list[int] = []
    for _, _, paths in k_shortest_paths(topology, k):
        found.append(len(paths))
        lengths += [len(path.hops) + 2 for path in paths]
        for path in paths:
            carried.update((at, hop.port) for at, hop in zip(path.switches, path.hops, strict=False))
    disjoint = _disjoint(topology) or [0]
    loads = list(carried.values()) or [0]
    return Diversity(
        k=k,
        pairs=len(found),
        equal_cost_least=min(equal),
        equal_cost_mean=fmean(equal),
        equal_cost_most=max(equal),
        found_least=min(found, default=0),
        mean_length=fmean(lengths or [0]),
        max_length=max(lengths, default=0),
        disjoint_least=min(disjoint),
        disjoint_mean=fmean(disjoint),
        paths_per_link_least=min(loads),
        paths_per_link_mean=fmean(loads),
        paths_per_link_most=max(loads),
    )


def _disjoint(topology: Topology) -> list[int]:
    """Edge-disjoint paths over switches of every pair of switches with hosts (by maximum flow)."""
    graph, number = _graph(topology, topology.switches)
    edges = [number[switch.name] for switch in topology.switches if topology.hosts_of(switch.name)]
    return [int(graph.maxflow_value(a, b)) for i, a in enumerate(edges) for b in edges[i + 1 :]]


def _graph(topology: Topology, nodes: Iterable[Node]) -> tuple[igraph.Graph, dict[str, int]]:
    """The part of the network between these nodes, and their numbers; each link's rate is its edge's `rate`."""
    import igraph  # late: it brings matplotlib with it, a second that every command would wait

    number = {node.name: i for i, node in enumerate(nodes)}
    links = [link for link in topology.links if link.a in number and link.b in number]
    graph = igraph.Graph(n=len(number), edges=[(number[link.a], number[link.b]) for link in links])
    graph.es["rate"] = [float(link.rate_bps) for link in links]
    return graph, number


# --- bisection ---


def bisection(topology: Topology, exact_bps: int | None = None) -> Bisection:
    """`exact_bps`: what the topology's generator knows; without, bounds."""
    if exact_bps is not None:
        return Bisection(exact_bps, exact_bps, "exact: closed form")
    if len(topology.hosts) < 2:
        return Bisection(0, 0, "exact: fewer than two hosts")
    high = _best_cut(topology)
    low = min(high, _spectral_bound(topology))
    if low == high:
        return Bisection(low, high, "exact: the bounds meet")
    return Bisection(low, high, "bounds: spectral (below), best of several partitions (above)")


def cut_bps(topology: Topology, side: Iterable[str]) -> int:
    """The least capacity between these hosts and all others, over all ways to put the switches (maximum flow)."""
    graph, number = _graph(topology, topology.nodes)
    return _cut(graph, number, [host.name for host in topology.hosts], set(side))


def _cut(graph: igraph.Graph, number: dict[str, int], hosts: Sequence[str], side: set[str]) -> int:
    source, sink = graph.vcount(), graph.vcount() + 1
    flow = graph.copy()
    flow.add_vertices(2)
    ends = [(source if host in side else sink, number[host]) for host in hosts]
    flow.add_edges(ends)
    unlimited = 1.0 + sum(graph.es["rate"])
    return round(flow.maxflow_value(source, sink, capacity=[*graph.es["rate"], *[unlimited] * len(ends)]))


def _best_cut(topology: Topology) -> int:
    """The least of the cuts between halves of the hosts, by address and by each of the slowest modes of the network."""
    import numpy

    graph, number = _graph(topology, topology.nodes)
    hosts = [host.name for host in topology.hosts]
    orders = [hosts]
    _, modes = _host_modes(topology)
    for mode in modes.T[1:9]:
        orders.append([hosts[i] for i in numpy.argsort(mode, kind="stable")])
    return min(_improved(topology, graph, number, set(order[: len(hosts) // 2])) for order in orders)


def _improved(topology: Topology, graph: igraph.Graph, number: dict[str, int], side: set[str]) -> int:
    """The cut, after whole racks have changed sides for as long as that makes it smaller and keeps the halves."""
    hosts = [host.name for host in topology.hosts]
    racks = [[host.name for host in topology.hosts_of(switch.name)] for switch in topology.switches]
    racks = [rack for rack in racks if rack]
    best = _cut(graph, number, hosts, side)
    for _ in range(2):
        before = best
        inside = [rack for rack in racks if side.issuperset(rack)]
        outside = [rack for rack in racks if side.isdisjoint(rack)]
        # With many racks, a sample of the swaps: what is found is a bound in any case.
        swaps = [(a, b) for a in inside for b in outside if len(a) == len(b)]
        for a, b in swaps[:: max(1, len(swaps) // 200)]:
            if not side.issuperset(a) or not side.isdisjoint(b):
                continue
            other = (side - set(a)) | set(b)
            if (cut := _cut(graph, number, hosts, other)) < best:
                best, side = cut, other
        if best == before:
            break
    return best


def _spectral_bound(topology: Topology) -> int:
    """A quarter of hosts times the second eigenvalue of the network as hosts see it.

    Put +1 on one half of the hosts, -1 on the other, and any values on the switches: the sum over links of rate times
    squared difference is four times the cut where switches have +1 or -1, and its least value over all of them is the
    quadratic form of the Schur complement on the hosts, which is at least its second eigenvalue times the hosts (their
    values sum to 0; where the halves differ by one, nearly, and the exact sum is subtracted).
    """
    values, _ = _host_modes(topology)
    hosts = len(topology.hosts)
    norm = hosts - (hosts % 2) / hosts
    return max(0, int(values[1] * norm / 4 * (1 - 1e-9)))


def _host_modes(topology: Topology):  # type: ignore[no-untyped-def] # two arrays
    """Eigenvalues, ascending, and eigenvectors of the Laplacian (by rate) after the switches are eliminated."""
    import numpy

    nodes = (*topology.hosts, *topology.switches)
    number = {node.name: i for i, node in enumerate(nodes)}
    laplacian = numpy.zeros((len(nodes), len(nodes)))
    for link in topology.links:
        a, b = number[link.a], number[link.b]
        laplacian[a, a] += link.rate_bps
        laplacian[b, b] += link.rate_bps
        laplacian[a, b] -= link.rate_bps
        laplacian[b, a] -= link.rate_bps
    hosts = len(topology.hosts)
    outer, across, inner = laplacian[:hosts, :hosts], laplacian[:hosts, hosts:], laplacian[hosts:, hosts:]
    return numpy.linalg.eigh(outer - across @ numpy.linalg.pinv(inner) @ across.T)
