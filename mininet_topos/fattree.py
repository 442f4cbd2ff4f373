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

from mininet_topos.topology import HOST_PORT, Link, Node, Topology, TopologyError

# The pod is one byte of the address.
MAX_K = 254


def fattree(k: int, rate_bps: int, delay_ns: int, host_rate_bps: int | None = None, loss: float = 0.0) -> Topology:
    """A fat-tree of k-port switches: k³/4 hosts, k²/4 core, k²/2 aggregation and k²/2 edge switches.

    Rates are bits per second (hosts' links take `rate_bps` unless told otherwise), `delay_ns` is one way per link,
    `loss` a probability per packet and link. TopologyError unless k is even and from 2 to 254.
    """
    if k < 2 or k % 2 or k > MAX_K:
        raise TopologyError("k", f"must be even and from 2 to {MAX_K}, is {k}")
    half = k // 2
    cores = [Node.switch(1 + i, "core", i) for i in range(half * half)]
    aggs = [Node.switch(1 + half * half + i, "agg", i) for i in range(k * half)]
    edges = [Node.switch(1 + half * half + k * half + i, "edge", i) for i in range(k * half)]
    hosts = [
        Node.host((pod * half + edge) * half + i, f"10.{pod}.{edge}.{2 + i}/24")
        for pod in range(k)
        for edge in range(half)
        for i in range(half)
    ]
    links: list[Link] = []
    for index, core in enumerate(cores):
        for pod in range(k):
            agg = aggs[pod * half + index // half]
            links.append(Link(core.name, pod + 1, agg.name, half + index % half + 1, rate_bps, delay_ns, loss))
    for index, agg in enumerate(aggs):
        pod, position = divmod(index, half)
        for down in range(half):
            edge_switch = edges[pod * half + down]
            links.append(Link(agg.name, down + 1, edge_switch.name, half + position + 1, rate_bps, delay_ns, loss))
    for index, host in enumerate(hosts):
        edge_index, position = divmod(index, half)
        rate = rate_bps if host_rate_bps is None else host_rate_bps
        links.append(Link(edges[edge_index].name, position + 1, host.name, HOST_PORT, rate, delay_ns, loss))
    return Topology((*cores, *aggs, *edges, *hosts), tuple(links), name=f"fattree-{k}")
