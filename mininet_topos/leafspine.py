"""Two-tier networks: leaf-spine (folded Clos) and the testbed of the MP-RDMA paper.

spine  s1 .. s<spines>              ports in the order of the leaves, parallel links beside each other
  |  ×  |
leaf   s<spines + 1> ..             ports 1..n down to the hosts, n+1.. up in the order of the spines
  |
hosts  10.<leaf / 256>.<leaf % 256>.(2+i)/24
"""

from __future__ import annotations

from fractions import Fraction

from mininet_topos.building import (
    MAX_RACK_HOSTS,
    MAX_SWITCHES,
    Wire,
    check_count,
    checked_wire,
    rack_host,
    tier_wire,
)
from mininet_topos.topology import Link, Node, Topology, TopologyError

MAX_PARALLEL = 64

# Lu et al., "Multi-Path Transport for RDMA in Datacenters", NSDI 2018, section 5.1 and figure 10.
MPRDMA_PATHS = 4
MPRDMA_TOR_HOSTS = 5


def leafspine(
    spines: int,
    leaves: int,
    hosts_per_leaf: int,
    rate_bps: int,
    delay_ns: int,
    *,
    oversubscription: float | None = None,
    parallel: int = 1,
    host_rate_bps: int | None = None,
    host_delay_ns: int | None = None,
    spine_rate_bps: int | None = None,
    spine_delay_ns: int | None = None,
    loss: float = 0.0,
) -> Topology:
    """Every leaf has `parallel` links to every spine.

    Rates are bits per second, delays nanoseconds one way, loss a probability per packet and link; None is `rate_bps` or
    `delay_ns`. `oversubscription` (capacity of a leaf's hosts over that of its uplinks) sets the rate of the links to
    the spines, rounded to whole bits per second, in place of `spine_rate_bps`. TopologyError names the parameter.
    """
    check_count("spines", spines, 1, MAX_SWITCHES)
    check_count("leaves", leaves, 1, MAX_SWITCHES)
    check_count("hosts_per_leaf", hosts_per_leaf, 0, MAX_RACK_HOSTS)
    check_count("parallel", parallel, 1, MAX_PARALLEL)
    wire = checked_wire(rate_bps, delay_ns, loss)
    to_host = tier_wire("host", wire, host_rate_bps, host_delay_ns)
    if oversubscription is not None:
        if spine_rate_bps is not None:
            raise TopologyError("oversubscription", "sets the rate to the spines: give it or spine_rate, not both")
        spine_rate_bps = _uplink_rate(oversubscription, hosts_per_leaf * to_host.rate_bps, spines * parallel)
    to_spine = tier_wire("spine", wire, spine_rate_bps, spine_delay_ns)
    names = ("spine", "spine {}"), ("leaf", "rack {}")
    name = f"leafspine-{spines}x{leaves}"
    return _two_tiers(spines, leaves, hosts_per_leaf, parallel, to_host, to_spine, names, name)


def _uplink_rate(oversubscription: float, host_capacity_bps: int, uplinks: int) -> int:
    if not oversubscription > 0 or oversubscription == float("inf"):
        raise TopologyError("oversubscription", f"must be a positive number, is {oversubscription}")
    # Through the decimal text, so that 1.2 is twelve tenths.
    rate = round(host_capacity_bps / (Fraction(str(oversubscription)) * uplinks))
    if rate < 1:
        raise TopologyError("oversubscription", f"{oversubscription} leaves less than 1 bit/s for an uplink")
    return rate


def mprdma(
    rate_bps: int,
    delay_ns: int,
    *,
    paths: int = MPRDMA_PATHS,
    hosts_per_tor: int = MPRDMA_TOR_HOSTS,
    path_rate_bps: int | None = None,
    path_delay_ns: int | None = None,
    loss: float = 0.0,
) -> Topology:
    """The testbed of MP-RDMA (figure 10): two ToRs of five hosts each, joined by a switch for each of four paths.

    `path_rate_bps` and `path_delay_ns` are those of the links of the paths; None is `rate_bps` or `delay_ns`. The paper
    has 40 Gb/s everywhere, or paths of 10 Gb/s, and a base RTT across the ToRs of 12 µs: 1.5 µs for each of 8 links.
    """
    check_count("paths", paths, 1, MAX_SWITCHES)
    check_count("hosts_per_tor", hosts_per_tor, 1, MAX_RACK_HOSTS)
    wire = checked_wire(rate_bps, delay_ns, loss)
    to_path = tier_wire("path", wire, path_rate_bps, path_delay_ns)
    names = ("path", "path {}"), ("tor", "rack {}")
    return _two_tiers(paths, 2, hosts_per_tor, 1, wire, to_path, names, "mprdma")


def _two_tiers(
    uppers: int,
    lowers: int,
    rack_hosts: int,
    parallel: int,
    to_host: Wire,
    to_upper: Wire,
    names: tuple[tuple[str, str], tuple[str, str]],
    name: str,
) -> Topology:
    """`names`: of either tier, its layer and how a switch's place is told from its number."""
    (upper_layer, upper_place), (lower_layer, lower_place) = names
    above = [Node.switch(1 + i, upper_layer, i, place=upper_place.format(i)) for i in range(uppers)]
    below = [Node.switch(1 + uppers + i, lower_layer, i, place=lower_place.format(i)) for i in range(lowers)]
    hosts = [
        rack_host(rack * rack_hosts + i, rack, i, lower_place.format(rack))
        for rack in range(lowers)
        for i in range(rack_hosts)
    ]
    links: list[Link] = []
    for i, upper in enumerate(above):
        for j, lower in enumerate(below):
            for n in range(parallel):
                links.append(to_upper.link(upper, j * parallel + n + 1, lower, rack_hosts + i * parallel + n + 1))
    for index, host in enumerate(hosts):
        rack, position = divmod(index, rack_hosts)
        links.append(to_host.host_link(below[rack], position + 1, host))
    return Topology((*above, *below, *hosts), tuple(links), name=name)


def two_tier_bisection_bps(topology: Topology) -> int:
    """Exact for `leafspine` and `mprdma`.

    Let x leaves be on one side. A spine costs its links to the smaller side, whichever side it is on itself; the hosts
    that one side then has too many of cost a link each. Every partition costs at least that, so the least over x it is.
    """
    lowers = [switch.name for switch in topology.switches if topology.hosts_of(switch.name)]
    if not lowers:
        return 0
    hosts = topology.hosts_of(lowers[0])
    host_rate = topology.host_port(hosts[0].name).link.rate_bps
    uplinks = sum(n.link.rate_bps for n in topology.neighbors(lowers[0]) if not n.node.is_host)
    half = len(topology.hosts) // 2

    def misplaced(x: int) -> int:
        return min(abs(side - x * len(hosts)) for side in (half, len(topology.hosts) - half))

    return min(uplinks * min(x, len(lowers) - x) + host_rate * misplaced(x) for x in range(len(lowers) + 1))
