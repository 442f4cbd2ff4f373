"""The k-ary fat-tree of Al-Fares, Loukissas and Vahdat (SIGCOMM 2008), with its addresses.

      core  s1 .. s(k²/4)                         port p + 1 leads to pod p
    /    |
 agg     |  k/2 a pod        ports 1..k/2 down to the edges, k/2+1..k up to the cores
  |  \\/  |
edge     |  k/2 a pod        ports 1..k/2 down to the hosts, k/2+1..k up to the aggregation switches
 |
hosts 10.pod.edge.(2+i)/24   k/2 an edge
"""

from __future__ import annotations

from mininet_topos.building import checked_wire, tier_wire
from mininet_topos.topology import Link, Node, Topology, TopologyError

# The pod is one byte of the address.
MAX_K = 254


def fattree(
    k: int,
    rate_bps: int,
    delay_ns: int,
    *,
    host_rate_bps: int | None = None,
    host_delay_ns: int | None = None,
    agg_rate_bps: int | None = None,
    agg_delay_ns: int | None = None,
    core_rate_bps: int | None = None,
    core_delay_ns: int | None = None,
    loss: float = 0.0,
) -> Topology:
    """A fat-tree of k-port switches: k³/4 hosts, k²/4 core, k²/2 aggregation and k²/2 edge switches.

    Rates are bits per second, delays nanoseconds one way, loss a probability per packet and link. `host`, `agg` and
    `core` name a link by its upper end but for the hosts' own; None is `rate_bps` or `delay_ns`. TopologyError unless
    k is even and from 2 to 254.
    """
    if k < 2 or k % 2 or k > MAX_K:
        raise TopologyError("k", f"must be even and from 2 to {MAX_K}, is {k}")
    wire = checked_wire(rate_bps, delay_ns, loss)
    to_host = tier_wire("host", wire, host_rate_bps, host_delay_ns)
    to_agg = tier_wire("agg", wire, agg_rate_bps, agg_delay_ns)
    to_core = tier_wire("core", wire, core_rate_bps, core_delay_ns)
    half = k // 2
    cores = [Node.switch(1 + i, "core", i, place=f"core {i}") for i in range(half * half)]
    aggs, edges, hosts = [], [], []
    for i in range(k * half):
        pod, position = divmod(i, half)
        aggs.append(Node.switch(1 + half * half + i, "agg", i, place=f"pod {pod}, aggregation {position}"))
        edges.append(Node.switch(1 + half * half + k * half + i, "edge", i, place=f"pod {pod}, rack {position}"))
        for n in range(half):
            place = f"pod {pod}, rack {position}, host {n}"
            hosts.append(Node.host(i * half + n, f"10.{pod}.{position}.{2 + n}/24", place=place))
    links: list[Link] = []
    for index, core in enumerate(cores):
        for pod in range(k):
            links.append(to_core.link(core, pod + 1, aggs[pod * half + index // half], half + index % half + 1))
    for index, agg in enumerate(aggs):
        pod, position = divmod(index, half)
        for down in range(half):
            links.append(to_agg.link(agg, down + 1, edges[pod * half + down], half + position + 1))
    for index, host in enumerate(hosts):
        edge, position = divmod(index, half)
        links.append(to_host.host_link(edges[edge], position + 1, host))
    return Topology((*cores, *aggs, *edges, *hosts), tuple(links), name=f"fattree-{k}")


def fattree_bisection_bps(topology: Topology) -> int:
    """Exact: any half of the hosts reaches the other at the rate of the slowest tier (Al-Fares et al., section 2)."""
    return len(topology.hosts) // 2 * min(link.rate_bps for link in topology.links)
