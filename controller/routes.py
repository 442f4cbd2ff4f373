"""Routes, from a topology to the entries of `ipv4_lpm` on every switch. Pure: nothing here talks to a switch.

Programs keep next hops in one of two ways. `ecmp` has an action selector: every next hop is a member, with the port
it watches, and the switch's hash picks one. The others have the ports of a destination in the data of one action, and
their load balancer picks an index.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from ipaddress import IPv4Network

import finsy as fy

from controller.destinations import Destinations, Route
from controller.errors import ControllerError
from mininet_topos.topology import Neighbor

# Names in p4src/lb/ecmp.p4 and p4src/include/next_hops.p4; their ids come from P4Info.
ROUTES, DESTINATION, FORWARD, SET_NEXT_HOPS = "ipv4_lpm", "hdr.ipv4.dst_addr", "forward", "set_next_hops"

MAX_NEXT_HOPS, MAX_PORT, PORTS_A_WORD, PORT_BITS = 16, 255, 8, 8

Entries = dict[str, list[fy.P4TableEntry]]


def selector_routes(found: Destinations, weights: Sequence[int] = (), whole: Destinations | None = None) -> Entries:
    """One-shot action sets with one member for every next hop, which leaves its set while its port is down.

    weights: WCMP's, of a set's members in the order of their ports, from the first again where they are too few. A
    member keeps its weight while others are gone: its place is that in `whole`, the routes over all links.
    """
    entries: Entries = {}
    for switch, routes in found.items():
        sets = _sets(whole[switch]) if whole is not None and weights else {}
        entries[switch] = [
            fy.P4TableEntry(
                ROUTES,
                match=_match(route.prefix),
                action=fy.IndirectAction(_members(route.hops, weights, sets.get(route.prefix, ()))),
            )
            for route in routes
        ]
    return entries


def _sets(routes: Sequence[Route]) -> dict[IPv4Network, tuple[int, ...]]:
    return {route.prefix: tuple(hop.port for hop in route.hops) for route in routes}


def _members(
    hops: Sequence[Neighbor], weights: Sequence[int], places: Sequence[int]
) -> list[tuple[tuple[int, int], fy.Action]]:
    single = len(places or hops) == 1
    members = []
    for index, hop in enumerate(hops):
        place = places.index(hop.port) if hop.port in places else index
        weight = weights[place % len(weights)] if weights and not single else 1
        members.append(((weight, hop.port), _forward(hop.port)))
    return members


def next_hop_routes(found: Destinations, whole: Destinations | None = None) -> Entries:
    """Sets of ports as action data. Equal sets of a switch have one group number, from 1: state is kept by it.

    Sets that are also in `whole`, the routes over all links, have the numbers that they have there, so that a failure
    elsewhere leaves them as they are.
    """
    entries: Entries = {}
    for switch, routes in found.items():
        groups: dict[tuple[int, ...], int] = {}
        for ports in _sets(whole[switch]).values() if whole is not None else ():
            groups.setdefault(ports, len(groups) + 1)
        entries[switch] = []
        for route in routes:
            ports = tuple(hop.port for hop in route.hops)
            group = groups.setdefault(ports, len(groups) + 1)
            entries[switch].append(next_hop_route(switch, route.prefix, group, ports))
    return entries


def next_hop_route(switch: str, prefix: IPv4Network, group: int, ports: Sequence[int]) -> fy.P4TableEntry:
    return fy.P4TableEntry(
        ROUTES, match=_match(prefix), action=fy.Action(SET_NEXT_HOPS, group=group, **pack_ports(switch, ports))
    )


def pack_ports(switch: str, ports: Sequence[int]) -> dict[str, int]:
    """A set of ports as `set_next_hops` and `set_detours` take it: count, and a byte a port, the first one lowest."""
    if len(ports) > MAX_NEXT_HOPS:
        raise ControllerError(f"{switch}: {len(ports)} next hops, and a set holds {MAX_NEXT_HOPS}")
    if max(ports, default=0) > MAX_PORT:
        raise ControllerError(f"{switch}: port {max(ports)} does not fit in a set of next hops, whose ports are bytes")
    packed = sum(port << (PORT_BITS * i) for i, port in enumerate(ports))
    word = PORT_BITS * PORTS_A_WORD
    return {"count": len(ports), "ports_0_7": packed & ((1 << word) - 1), "ports_8_15": packed >> word}


@functools.cache
def _forward(port: int) -> fy.Action:
    """One object for a port: a fabric has tens of thousands of members."""
    return fy.Action(FORWARD, port=port)


def _match(prefix: IPv4Network) -> fy.Match:
    return fy.Match({DESTINATION: (int(prefix.network_address), prefix.prefixlen)})
