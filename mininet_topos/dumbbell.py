"""Two switches with hosts on both sides of one link, the bottleneck.

left hosts 10.0.0.(2+i)/24 -- s1 ======= s2 -- right hosts 10.0.1.(2+i)/24
"""

from __future__ import annotations

from mininet_topos.building import MAX_RACK_HOSTS, check_count, checked_wire, rack_host, tier_wire
from mininet_topos.topology import Node, Topology


def dumbbell(
    left: int,
    right: int,
    rate_bps: int,
    delay_ns: int,
    *,
    bottleneck_rate_bps: int | None = None,
    bottleneck_delay_ns: int | None = None,
    loss: float = 0.0,
) -> Topology:
    """`left` hosts on s1 and `right` hosts on s2, on ports 1.., and the bottleneck on the ports after those.

    Rates are bits per second, delays nanoseconds one way, loss a probability per packet and link; None is `rate_bps` or
    `delay_ns`. TopologyError names the parameter.
    """
    check_count("left", left, 0, MAX_RACK_HOSTS)
    check_count("right", right, 0, MAX_RACK_HOSTS)
    wire = checked_wire(rate_bps, delay_ns, loss)
    bottleneck = tier_wire("bottleneck", wire, bottleneck_rate_bps, bottleneck_delay_ns)
    switches = Node.switch(1, "left", 0, place="rack 0"), Node.switch(2, "right", 0, place="rack 1")
    hosts: list[Node] = []
    links = [bottleneck.link(switches[0], left + 1, switches[1], right + 1)]
    for rack, count in enumerate((left, right)):
        for position in range(count):
            hosts.append(rack_host(len(hosts), rack, position, f"rack {rack}"))
            links.append(wire.host_link(switches[rack], position + 1, hosts[-1]))
    return Topology((*switches, *hosts), tuple(links), name=f"dumbbell-{left}x{right}")


def dumbbell_bisection_bps(topology: Topology) -> int:
    """Exact: the switches are on different sides and hosts change sides until these are equal, or on the same side."""
    left, right = (len(topology.hosts_of(switch.name)) for switch in topology.switches)
    rate = topology.host_port(topology.hosts[0].name).link.rate_bps if topology.hosts else 0
    half = (left + right) // 2
    apart = topology.links_between("s1", "s2")[0].rate_bps + rate * min(abs(left - half), abs(right - half))
    return min(apart, half * rate)
