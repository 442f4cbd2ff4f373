"""Entries for p4src/ksp.p4: k shortest paths, named at the first switch and followed by name.

A pair of switches with hosts has k consecutive names ("labels") for a set of k paths: the i-th path has the first one
plus i, as the program computes it from the group number of its next hops.

A pair keeps its paths while all of them are up. When one fails, the pair gets the k shortest paths that are left, under
other names: packets that are under way go on by the old names until these are removed. Which names a set of paths has
follows from the pair and the paths alone, so that every controller that sees the same failures wants the same entries.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from ipaddress import IPv4Network

import finsy as fy

from controller.destinations import owners_of, prefixes, remaining
from controller.errors import ControllerError
from controller.routes import MAX_NEXT_HOPS, Entries, next_hop_route
from mininet_topos.k_paths import Path, k_shortest_paths
from mininet_topos.topology import Link, Topology

# Names in p4src/lb/ksp.p4.
PATH_LABEL, LABEL, FOLLOW = "path_label", "meta.path_label", "follow"

_LABELS = (1 << 24) - 1  # 0 names no path
_OWN_HOSTS = 0  # the group of a switch's own hosts: their packets have no name
_MAX_BLOCKS = 1 << 12

Paths = dict[tuple[str, str], list[Path]]


def all_paths(topology: Topology, k: int) -> Paths:
    """The paths of every ordered pair of switches with hosts; ControllerError for an impossible k."""
    if not 1 <= k <= MAX_NEXT_HOPS:
        raise ControllerError(f"k: {k} paths; 1 to {MAX_NEXT_HOPS} can be")
    return {(first, last): paths for first, last, paths in k_shortest_paths(topology, k)}


def paths_left(topology: Topology, k: int, whole: Paths, down: frozenset[Link]) -> Paths:
    """The paths while these links are down: those in `whole`, and others for pairs that lost one of them."""
    if not down:
        return whole
    hit = {pair for pair, paths in whole.items() if any(hop.link in down for path in paths for hop in path.hops)}
    found = {(first, last): paths for first, last, paths in k_shortest_paths(remaining(topology, down), k, hit)}
    return {pair: found.get(pair, []) if pair in hit else paths for pair, paths in whole.items()}


def named_path_entries(topology: Topology, k: int, whole: Paths | None = None, left: Paths | None = None) -> Entries:
    """Routes of every switch, and where each name that passes goes on.

    whole: `all_paths` of the topology; left: those in use now, `whole` where nothing is down. ControllerError for an
    impossible k, or where a topology has too many pairs for the names.
    """
    whole = all_paths(topology, k) if whole is None else whole
    left = whole if left is None else left
    found: Entries = {switch.name: [] for switch in topology.switches}
    for switch in topology.switches:
        for neighbor in topology.neighbors(switch.name):
            if neighbor.node.is_host:
                host = IPv4Network(neighbor.node.address)
                found[switch.name].append(next_hop_route(switch.name, host, _OWN_HOSTS, [neighbor.port]))
    owners = owners_of(topology)
    prefixes_of = {switch.name: prefixes(topology.hosts_of(switch.name), owners) for switch in topology.switches}
    for first_label, (first, last), paths in _named(k, whole, left):
        ports = [path.hops[0].port for path in paths]
        found[first] += [next_hop_route(first, prefix, first_label, ports) for prefix in prefixes_of[last]]
        for label, path in enumerate(paths, first_label):
            for switch_name, hop in zip(path.switches[1:], path.hops[1:], strict=False):
                found[switch_name].append(
                    fy.P4TableEntry(PATH_LABEL, match=fy.Match({LABEL: label}), action=fy.Action(FOLLOW, port=hop.port))
                )
    return found


def _named(k: int, whole: Paths, left: Paths) -> Iterator[tuple[int, tuple[str, str], list[Path]]]:
    """Per pair with paths, the first of its names. A pair has a block of k names for `whole`'s paths, and others."""
    blocks = min(_MAX_BLOCKS, _LABELS // max(1, k * len(whole)))
    if blocks < 2:
        raise ControllerError(f"k: {k} paths for every pair of switches need more than {_LABELS} names")
    for number, (pair, usual) in enumerate(whole.items()):
        paths = left.get(pair, [])
        block = 0 if paths is usual or paths == usual else 1 + _digest(paths) % (blocks - 1)
        if paths:
            yield 1 + (number * blocks + block) * k, pair, paths


def _digest(paths: Sequence[Path]) -> int:
    """A number that two sets of paths hardly share, and that is the same in every process."""
    return zlib.crc32(" ".join(hop.link.name for path in paths for hop in path.hops).encode())
