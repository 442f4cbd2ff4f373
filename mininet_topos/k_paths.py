"""The k shortest paths between switches that hosts hang on, by number of links (Yen 1971, as igraph implements it).

Parallel links make distinct paths. A pair's paths are the same in both directions.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass

from mininet_topos import path_cache
from mininet_topos.topology import Link, Neighbor, Topology

# Fewer pairs than this take less than a tenth of a second.
_WORTH_KEEPING = 300


@dataclass(frozen=True, slots=True)
class Path:
    """A walk over switches: at each but the last, the neighbour that comes next."""

    first: str
    hops: tuple[Neighbor, ...]

    @property
    def last(self) -> str:
        return self.hops[-1].node.name

    @property
    def switches(self) -> tuple[str, ...]:
        """All switches in order; the i-th sends to `hops[i]`, the last to none."""
        return (self.first, *(hop.node.name for hop in self.hops))


def k_shortest_paths(
    topology: Topology,
    k: int,
    pairs: Container[tuple[str, str]] | None = None,
    between: Sequence[str] | None = None,
) -> Iterator[tuple[str, str, list[Path]]]:
    """Per ordered pair of different switches of `between`, up to `k` loop-free paths, the shortest first.

    between: by default the switches that hosts hang on. pairs: if given, all other pairs are left out; they hold both
    orders of a pair. Pairs without any path are left out. Cost: see docs/topologies.md; what takes long is kept on disk
    (`mininet_topos.path_cache`).
    """
    names = [switch.name for switch in topology.switches]
    number = {name: i for i, name in enumerate(names)}
    links = [link for link in topology.links if link.a in number and link.b in number]
    if between is None:
        between = [name for name in names if topology.hosts_of(name)]
    ends = [number[name] for name in between]
    wanted = [
        (ends[i], ends[j])
        for i, a in enumerate(between)
        for j, b in enumerate(between[i + 1 :], i + 1)
        if pairs is None or (a, b) in pairs
    ]
    edges = [(number[link.a], number[link.b]) for link in links]
    through = {(name, neighbor.link): neighbor for name in names for neighbor in topology.neighbors(name)}
    for (i, j), found in zip(wanted, _link_numbers(len(names), edges, wanted, k), strict=True):
        chosen = [[links[edge] for edge in path] for path in found]
        if chosen:
            yield names[i], names[j], [_path(names[i], path, through) for path in chosen]
            yield names[j], names[i], [_path(names[j], path[::-1], through) for path in chosen]


def _link_numbers(
    nodes: int, edges: list[tuple[int, int]], pairs: list[tuple[int, int]], k: int
) -> list[list[list[int]]]:
    """Per pair of nodes its paths, each as the numbers of its edges: from the cache where they are many."""
    if len(pairs) < _WORTH_KEEPING:
        return _yen(nodes, edges, pairs, k)
    key = path_cache.key(nodes, edges, pairs, k)
    found = path_cache.load(key, len(pairs))
    if found is None:
        found = _yen(nodes, edges, pairs, k)
        path_cache.store(key, found)
    return found


def _yen(nodes: int, edges: list[tuple[int, int]], pairs: list[tuple[int, int]], k: int) -> list[list[list[int]]]:
    import igraph  # late: it brings matplotlib with it, a second that every command would wait

    graph = igraph.Graph(n=nodes, edges=edges)
    island = graph.connected_components().membership
    return [
        graph.get_k_shortest_paths(a, b, k=k, output="epath") if island[a] == island[b] else [] for a, b in pairs
    ]


def _path(first: str, links: list[Link], through: dict[tuple[str, Link], Neighbor]) -> Path:
    here, hops = first, []
    for link in links:
        hop = through[here, link]
        hops.append(hop)
        here = hop.node.name
    return Path(first, tuple(hops))
