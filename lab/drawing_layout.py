"""Where the nodes of a topology stand in a picture: rows for trees, a circle or springs for everything else.

Places are (x, y) in any unit; one unit is about the room that a switch needs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from mininet_topos.formats.assembling import tiers_above
from mininet_topos.topology import Node, Topology

Place = tuple[float, float]

# Between the rows of a tree; wide ones are higher, or their links would be too flat to follow.
_ROW_HEIGHT, _WIDTH_A_HEIGHT = 2.4, 12

# From a switch to its hosts.
_HOST_DISTANCE = 1.3

# What a host needs, with its name and where there are so many that names are small.
_HOST_WIDTH, _SMALL_HOST_WIDTH = 1.0, 0.42
SMALL_FROM = 20


def tiers(topology: Topology) -> list[list[Node]] | None:
    """The switches by tier, the lowest (with hosts) first, if the network is a tree of tiers: links between
    neighbouring tiers only, and more than one tier.  None otherwise."""
    number = {switch.name: i for i, switch in enumerate(topology.switches)}
    pairs = [(number[link.a], number[link.b]) for link in topology.links if link.a in number and link.b in number]
    racks = [number[switch.name] for switch in topology.switches if topology.hosts_of(switch.name)]
    tier = tiers_above(len(number), racks, pairs)
    if max(tier, default=0) == 0 or any(abs(tier[a] - tier[b]) != 1 for a, b in pairs):
        return None
    return [[s for s, t in zip(topology.switches, tier, strict=True) if t == row] for row in range(max(tier) + 1)]


def layers(topology: Topology) -> dict[str, Place]:
    """A row for each tier, the hosts under their switches; switches that are in no tree share the lowest row."""
    rows = tiers(topology) or [list(topology.switches)]
    width, place = 0.0, {}
    for switch in rows[0]:
        hosts = topology.hosts_of(switch.name)
        room = max(1.0, len(hosts) * _host_width(topology))
        place[switch.name] = (width + room / 2, 0.0)
        for i, host in enumerate(hosts):
            place[host.name] = (width + (i + 0.5) * room / len(hosts), -_HOST_DISTANCE)
        width += room + 0.25
    height = max(_ROW_HEIGHT, width / _WIDTH_A_HEIGHT)
    for row, switches in enumerate(rows[1:], 1):
        for i, switch in enumerate(switches):
            place[switch.name] = ((i + 0.5) * width / len(switches), row * height)
    return place


def _host_width(topology: Topology) -> float:
    return _HOST_WIDTH if len(topology.hosts) <= SMALL_FROM else _SMALL_HOST_WIDTH


def circle(topology: Topology) -> dict[str, Place]:
    """The switches on a circle, in their order, the hosts of each outside of it."""
    count = max(1, len(topology.switches))
    radius = max(1.2, count * 1.1 / math.tau)
    place = {}
    for i, switch in enumerate(topology.switches):
        # The first at the left, and then clockwise.
        angle = math.pi - math.tau * i / count
        place[switch.name] = (radius * math.cos(angle), radius * math.sin(angle))
        spread = min(math.tau / count * 0.5, math.radians(100))
        _fan(topology.hosts_of(switch.name), place[switch.name], angle, spread, radius, place, _host_width(topology))
    return place


def _fan(
    hosts: Sequence[Node],
    centre: Place,
    angle: float,
    spread: float,
    radius: float,
    place: dict[str, Place],
    room: float,
) -> None:
    """Puts hosts outwards of a switch, `room` apart; `spread` is the angle at the circle's centre that is theirs."""
    # As seen from the switch the same arc is a wider angle.
    own = min(math.radians(140), spread * (radius + _HOST_DISTANCE) / _HOST_DISTANCE)
    distance = max(_HOST_DISTANCE, (len(hosts) - 1) * 0.6 * room / own)
    for i, host in enumerate(hosts):
        turn = angle + (0.0 if len(hosts) == 1 else own * (0.5 - i / (len(hosts) - 1)))
        place[host.name] = (centre[0] + distance * math.cos(turn), centre[1] + distance * math.sin(turn))


def spring(topology: Topology) -> dict[str, Place]:
    """By Kamada and Kawai: distances in the picture as near as can be to those in the network; always the same."""
    import igraph

    number = {node.name: i for i, node in enumerate(topology.nodes)}
    edges = [(number[link.a], number[link.b]) for link in topology.links]
    graph = igraph.Graph(n=len(number), edges=edges)
    # A circle of all nodes is a start without chance.
    found = graph.layout_kamada_kawai(seed=graph.layout_circle().coords)
    size = 1.6
    return {name: (size * found[i][0], size * found[i][1]) for name, i in number.items()}


LAYOUTS: dict[str, Callable[[Topology], dict[str, Place]]] = {"layers": layers, "circle": circle, "spring": spring}


def default_layout(topology: Topology) -> str:
    """Layers for trees of tiers, a circle for everything else."""
    return "layers" if tiers(topology) else "circle"
