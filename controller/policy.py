"""From a topology and a program to the entries of every switch. Pure: nothing here talks to a switch.

A program is known by its tables: each table that p4src/ has gets its entries from one function, and tables of the
user's own are left to the user.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import finsy as fy

from controller.destinations import Destinations, Routing, destinations
from controller.errors import ControllerError
from controller.load_balancing import (
    DEFLECTION_PORTS,
    FLOWLET,
    REMAINING,
    Balancing,
    deflection_entries,
    flowlet_entries,
    srpt_entries,
)
from controller.named_paths import PATH_LABEL, Paths, all_paths, named_path_entries, paths_left
from controller.overrides import Override, overridden
from controller.ports import NEIGHBOR, RED, Marking, neighbor_entries, red_entries
from controller.routes import ROUTES, Entries, next_hop_routes, selector_routes
from mininet_topos.topology import Link, Topology

# Names in p4src/include/flow_hash.p4.
SEED, SET_SEED = "switch_seed", "set_seed"


@dataclass(frozen=True, slots=True)
class Policy:
    """What the topology does not say.

    seed: draws every switch's hash multiplier. packet_bytes: the frame that round-trip times are computed for. paths: k
    of the k shortest paths. weights: WCMP's, see `routes.selector_routes`; only for programs with an action selector.
    routing: see `controller.destinations`; overrides: routes that people want otherwise. Neither is for named paths.
    """

    seed: int = 1
    packet_bytes: int = 1086
    marking: Marking = field(default_factory=Marking)
    balancing: Balancing = field(default_factory=Balancing)
    paths: int = 8
    weights: tuple[int, ...] = ()
    routing: Routing = "shortest"
    overrides: tuple[Override, ...] = ()


def fabric_entries(topology: Topology, p4info: fy.P4Schema, policy: Policy | None = None) -> Entries:
    """All entries of all switches for a program; ControllerError if they do not fit in the program's tables."""
    policy = policy or Policy()
    found = parameter_entries(topology, p4info, policy)
    for name, entries in Router(topology, p4info, policy).entries().items():
        found[name] += entries
    for name, entries in found.items():
        check_room(name, entries, p4info)
    return found


def parameter_entries(topology: Topology, p4info: fy.P4Schema, policy: Policy) -> Entries:
    """The entries of a program that do not change when links fail: all but routes."""
    tables = {table.alias for table in p4info.tables}
    parts: list[Entries] = []
    if NEIGHBOR in tables:
        parts.append(neighbor_entries(topology))
    if SEED in tables:
        parts.append(seed_entries(topology, policy.seed))
    if RED in tables:
        parts.append(red_entries(topology, policy.marking, policy.packet_bytes))
    if FLOWLET in tables:
        parts.append(flowlet_entries(topology, policy.balancing, policy.packet_bytes))
    if DEFLECTION_PORTS in tables:
        parts.append(deflection_entries(topology, policy.balancing, policy.packet_bytes))
    if REMAINING in tables:
        parts.append(srpt_entries(topology, policy.balancing))
    return {switch.name: [entry for part in parts for entry in part[switch.name]] for switch in topology.switches}


class Router:
    """The routes of a topology's switches for a program, over whatever links are up."""

    def __init__(self, topology: Topology, p4info: fy.P4Schema, policy: Policy) -> None:
        """ControllerError for a policy that the program or the topology does not fit."""
        self._topology = topology
        self._policy = policy
        tables = {table.alias for table in p4info.tables}
        self._named = PATH_LABEL in tables
        self._routed = ROUTES in tables
        self._indirect = self._routed and p4info.tables[ROUTES].action_profile is not None
        if policy.weights and not self._indirect:
            raise ControllerError(f"weights: the program has no groups of next hops at {ROUTES} that could have them")
        for given, name in (
            (policy.overrides, "overrides"),
            (policy.routing != "shortest", f"routing {policy.routing}"),
        ):
            if given and (self._named or not self._routed):
                raise ControllerError(f"{name}: the program does not choose next hops by destination")
        self._whole_paths: Paths = all_paths(topology, policy.paths) if self._named else {}
        self._whole: Destinations = {} if self._named else self._destinations(frozenset())

    def entries(self, down: frozenset[Link] = frozenset()) -> Entries:
        """The routes over the links that are not `down`; the same for every caller, whatever happened before."""
        return {name: [entry for _, entry in ranked] for name, ranked in self.ranked(down).items()}

    def ranked(self, down: frozenset[Link] = frozenset()) -> dict[str, list[tuple[int, fy.P4TableEntry]]]:
        """As `entries`, each with its rank: an entry sends packets on only to switches whose entries have lower ones.

        Names of paths are the exception: they have rank 0, since nothing leads to a new name before a route does.
        """
        if self._named:
            left = paths_left(self._topology, self._policy.paths, self._whole_paths, down)
            found = named_path_entries(self._topology, self._policy.paths, self._whole_paths, left)
            return {name: [(int(e.table_id == ROUTES), e) for e in entries] for name, entries in found.items()}
        if not self._routed:
            return {switch.name: [] for switch in self._topology.switches}
        routes = self._destinations(down) if down else self._whole
        if self._indirect:
            encoded = selector_routes(routes, self._policy.weights, self._whole)
        else:
            encoded = next_hop_routes(routes, self._whole)
        return {
            name: [(1 + route.distance, entry) for route, entry in zip(routes[name], entries, strict=True)]
            for name, entries in encoded.items()
        }

    def _destinations(self, down: frozenset[Link]) -> Destinations:
        found = destinations(self._topology, down, self._policy.routing)
        return overridden(found, self._topology, self._policy.overrides, down)


def seed_entries(topology: Topology, seed: int) -> Entries:
    """An odd multiplier for every switch's flow hash, so that switches of consecutive stages choose independently."""
    return {
        switch.name: [
            fy.P4TableEntry(
                SEED,
                is_default_action=True,
                action=fy.Action(SET_SEED, odd_multiplier=_odd_multiplier(seed, switch.device_id or 0)),
            )
        ]
        for switch in topology.switches
    }


def _odd_multiplier(seed: int, device_id: int) -> int:
    # By device id and not by order, so that a switch keeps its seed when others come or go.
    return random.Random(f"{seed}/{device_id}").getrandbits(32) | 1


def check_room(switch: str, entries: Sequence[fy.P4TableEntry], p4info: fy.P4Schema) -> None:
    """Refuses what the switch would refuse in the middle of a write, with the reason."""
    for name, count in Counter(e.table_id for e in entries if not e.is_default_action).items():
        if count > p4info.tables[name].size:
            raise ControllerError(f"{switch}: {name} needs {count} entries and has room for {p4info.tables[name].size}")
    profile = next((table.action_profile for table in p4info.tables if table.alias == ROUTES), None)
    if profile is None:
        return
    sizes = [
        sum(weight[0] if isinstance(weight, tuple) else weight for weight, _ in entry.action.action_set)
        for entry in entries
        if isinstance(entry.action, fy.IndirectAction) and entry.action.action_set
    ]
    if profile.max_group_size and max(sizes, default=0) > profile.max_group_size:
        raise ControllerError(f"{switch}: {max(sizes)} next hops, and groups of {ROUTES} hold {profile.max_group_size}")
    if sum(sizes) > profile.size:
        raise ControllerError(f"{switch}: {ROUTES} needs {sum(sizes)} group members and has room for {profile.size}")
