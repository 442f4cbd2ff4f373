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

from controller.destinations import destinations
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
from controller.named_paths import PATH_LABEL, named_path_entries
from controller.ports import NEIGHBOR, RED, Marking, neighbor_entries, red_entries
from controller.routes import ROUTES, Entries, next_hop_routes, selector_routes
from mininet_topos.topology import Topology

# Names in p4src/include/flow_hash.p4.
SEED, SET_SEED = "switch_seed", "set_seed"


@dataclass(frozen=True, slots=True)
class Policy:
    """What the topology does not say.

    seed: draws every switch's hash multiplier. packet_bytes: the frame that round-trip times are computed for. paths: k
    of the k shortest paths. weights: WCMP's, see `routes.selector_routes`; only for programs with an action selector.
    """

    seed: int = 1
    packet_bytes: int = 1086
    marking: Marking = field(default_factory=Marking)
    balancing: Balancing = field(default_factory=Balancing)
    paths: int = 8
    weights: tuple[int, ...] = ()


def fabric_entries(topology: Topology, p4info: fy.P4Schema, policy: Policy | None = None) -> Entries:
    """All entries of all switches for a program; ControllerError if they do not fit in the program's tables."""
    policy = policy or Policy()
    found: Entries = {switch.name: [] for switch in topology.switches}
    for part in _parts(topology, p4info, policy):
        for name, entries in part.items():
            found[name] += entries
    for name, entries in found.items():
        _check_room(name, entries, p4info)
    return found


def _parts(topology: Topology, p4info: fy.P4Schema, policy: Policy) -> list[Entries]:
    tables = {table.alias for table in p4info.tables}
    parts: list[Entries] = []
    if policy.weights and (ROUTES not in tables or p4info.tables[ROUTES].action_profile is None):
        raise ControllerError(f"weights: the program has no groups of next hops at {ROUTES} that could have them")
    if PATH_LABEL in tables:
        parts.append(named_path_entries(topology, policy.paths))
    elif ROUTES in tables:
        indirect = p4info.tables[ROUTES].action_profile is not None
        if indirect:
            parts.append(selector_routes(destinations(topology), policy.weights))
        else:
            parts.append(next_hop_routes(destinations(topology)))
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
    return parts


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


def _check_room(switch: str, entries: Sequence[fy.P4TableEntry], p4info: fy.P4Schema) -> None:
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
