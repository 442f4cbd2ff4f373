"""Entries for p4src/ksp.p4: k shortest paths, named at the first switch and followed by name.

A pair of switches with hosts has k consecutive names ("labels"): the i-th path's is the pair's first plus i, as the
program computes it from the group number of its next hops.
"""

from __future__ import annotations

from ipaddress import IPv4Network

import finsy as fy

from controller.destinations import owners_of, prefixes
from controller.errors import ControllerError
from controller.routes import MAX_NEXT_HOPS, Entries, next_hop_route
from mininet_topos.k_paths import k_shortest_paths
from mininet_topos.topology import Topology

# Names in p4src/lb/ksp.p4.
PATH_LABEL, LABEL, FOLLOW = "path_label", "meta.path_label", "follow"

_LABELS = 1 << 24
_OWN_HOSTS = 0  # the group of a switch's own hosts: their packets have no name


def named_path_entries(topology: Topology, k: int) -> Entries:
    """Routes of every switch, and where each name that passes goes on; ControllerError for an impossible k."""
    if not 1 <= k <= MAX_NEXT_HOPS:
        raise ControllerError(f"k: {k} paths; 1 to {MAX_NEXT_HOPS} can be")
    found: Entries = {switch.name: [] for switch in topology.switches}
    for switch in topology.switches:
        for neighbor in topology.neighbors(switch.name):
            if neighbor.node.is_host:
                host = IPv4Network(neighbor.node.address)
                found[switch.name].append(next_hop_route(switch.name, host, _OWN_HOSTS, [neighbor.port]))
    owners = owners_of(topology)
    prefixes_of = {switch.name: prefixes(topology.hosts_of(switch.name), owners) for switch in topology.switches}
    first_label = 1
    for first, last, paths in k_shortest_paths(topology, k):
        if first_label + k > _LABELS:
            raise ControllerError(f"k: {k} paths for every pair of switches need more than {_LABELS} names")
        ports = [path.hops[0].port for path in paths]
        found[first] += [next_hop_route(first, prefix, first_label, ports) for prefix in prefixes_of[last]]
        for label, path in enumerate(paths, first_label):
            for switch_name, hop in zip(path.switches[1:], path.hops[1:], strict=False):
                found[switch_name].append(
                    fy.P4TableEntry(PATH_LABEL, match=fy.Match({LABEL: label}), action=fy.Action(FOLLOW, port=hop.port))
                )
        first_label += k
    return found
