"""The load balancers' parameters, derived from a topology's rates and round trips; each can be changed at run time."""

from __future__ import annotations

from dataclasses import dataclass

import finsy as fy

from controller.errors import ControllerError
from controller.routes import Entries, pack_ports
from mininet_topos import paths
from mininet_topos.topology import Topology

# Names in p4src/lb/flowlet.p4, p4src/lb/dibs.p4 and p4src/sched/srpt.p4.
FLOWLET, SET_GAP = "flowlet_parameters", "set_gap"
DEFLECTION_PORTS, SET_DETOURS = "deflection_ports", "set_detours"
DEFLECTION_LIMIT, EGRESS_SPEC, SET_LIMIT = "deflection_limit", "standard_metadata.egress_spec", "set_limit"
REMAINING, DSCP, SET_PRIORITY = "remaining_priority", "hdr.ipv4.dscp", "set_priority"

_UNSAID, _CLASSES = 0, 64
_PRIORITIES = 8
_MAX_BYTES = (1 << 32) - 1
_NS_PER_US = 1000


@dataclass(frozen=True, slots=True)
class Balancing:
    """What load balancers need beyond routes.

    flowlet_rtts: the flowlet gap in round trips of the topology; after a pause longer than the paths' difference in
    delay nothing is overtaken (Vanini et al., NSDI 2017, section 2.2), and one round trip is more than that without
    queues. deflection_bdps: DIBS deflects from a queue deeper than this many bandwidth-delay products.
    deflection_min_ttl: below this TTL nothing is deflected. srpt_first_bytes, srpt_factor: a message with at most
    srpt_first_bytes left has the highest priority, and each lower one begins where srpt_factor times as much is left.
    Packets that do not say it have the highest as well: they are the acknowledgements.
    """

    flowlet_rtts: float = 1.0
    deflection_bdps: float = 2.0
    deflection_min_packets: int = 32
    deflection_min_ttl: int = 40
    srpt_first_bytes: int = 1024
    srpt_factor: int = 4

    def __post_init__(self) -> None:
        for name, least in (("flowlet_rtts", 0), ("deflection_bdps", 0), ("srpt_first_bytes", 1), ("srpt_factor", 2)):
            if getattr(self, name) < least:
                raise ControllerError(f"{name}: {getattr(self, name)}; it is at least {least}")
        if not 0 <= self.deflection_min_ttl <= 255:
            raise ControllerError(f"deflection_min_ttl: {self.deflection_min_ttl}; 0 to 255 can be")


def flowlet_entries(topology: Topology, balancing: Balancing, packet_bytes: int) -> Entries:
    gap_us = round(balancing.flowlet_rtts * paths.max_rtt_ns(topology, packet_bytes) / _NS_PER_US)
    return {switch.name: [_default(FLOWLET, fy.Action(SET_GAP, us=gap_us))] for switch in topology.switches}


def deflection_entries(topology: Topology, balancing: Balancing, packet_bytes: int) -> Entries:
    """Every port may overflow; only ports to other switches take what does."""
    rtt_ns = paths.max_rtt_ns(topology, packet_bytes)
    least = balancing.deflection_min_packets * packet_bytes
    found: Entries = {}
    for switch in topology.switches:
        neighbors = topology.neighbors(switch.name)
        detours = pack_ports(switch.name, [hop.port for hop in neighbors if not hop.node.is_host])
        action = fy.Action(SET_DETOURS, min_ttl=balancing.deflection_min_ttl, **detours)
        found[switch.name] = [_default(DEFLECTION_PORTS, action)]
        for hop in neighbors:
            deep = round(balancing.deflection_bdps * paths.link_bdp_bytes(hop.link, rtt_ns))
            limit = min(_MAX_BYTES, max(least, deep))
            found[switch.name].append(
                fy.P4TableEntry(
                    DEFLECTION_LIMIT, match=fy.Match({EGRESS_SPEC: hop.port}), action=fy.Action(SET_LIMIT, bytes=limit)
                )
            )
    return found


def srpt_entries(topology: Topology, balancing: Balancing) -> Entries:
    entries = [
        fy.P4TableEntry(
            REMAINING,
            match=fy.Match({DSCP: remaining_class}),
            action=fy.Action(SET_PRIORITY, priority=_priority(least_remaining_bytes(remaining_class), balancing)),
        )
        for remaining_class in range(1, _CLASSES)
    ]
    entries.append(
        fy.P4TableEntry(
            REMAINING, match=fy.Match({DSCP: _UNSAID}), action=fy.Action(SET_PRIORITY, priority=_PRIORITIES - 1)
        )
    )
    return {switch.name: list(entries) for switch in topology.switches}


def least_remaining_bytes(remaining_class: int) -> int:
    """The smallest remaining size of a class (1 to 63): 256 bytes times 1, 1.5, 2, 3, 4, 6, 8, …, less what rounds up.

    Class c holds ceil(bytes / 256) from (2 + (c - 1) % 2) * 2^((c - 1) // 2) / 2 on; see p4src/include/codes.p4.
    """
    units = (2 + (remaining_class - 1) % 2 << (remaining_class - 1) // 2) // 2
    return max(1, 256 * (units - 1) + 1)


def _priority(remaining_bytes: int, balancing: Balancing) -> int:
    priority, bound = _PRIORITIES - 1, balancing.srpt_first_bytes
    while priority and remaining_bytes > bound:
        priority, bound = priority - 1, bound * balancing.srpt_factor
    return priority


def _default(table: str, action: fy.Action) -> fy.P4TableEntry:
    return fy.P4TableEntry(table, is_default_action=True, action=action)
