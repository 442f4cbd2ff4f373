"""Topologies for tests: one small enough to compute by hand, and arbitrary ones for properties."""

from hypothesis import strategies as st

from mininet_topos.topology import Link, Node, Topology


def dumbbell(rate_bps: int = 10**9, delay_ns: int = 1000) -> Topology:
    """h1, h2 on s1 (ports 1, 2), h3, h4 on s2 (ports 1, 2), one link between (ports 3)."""
    switches = [Node.switch(1, "left", 0), Node.switch(2, "right", 0)]
    hosts = [Node.host(i, f"10.0.{1 + i // 2}.{2 + i % 2}/24") for i in range(4)]
    links = [Link(f"h{1 + i}", 0, f"s{1 + i // 2}", 1 + i % 2, rate_bps, delay_ns) for i in range(4)]
    links.append(Link("s1", 3, "s2", 3, rate_bps, delay_ns))
    return Topology((*switches, *hosts), tuple(links), name="dumbbell")


@st.composite
def random_topologies(draw: st.DrawFn) -> Topology:
    """Any multigraph of up to 7 switches, perhaps in parts, with hosts anywhere and addresses in no order of place."""
    switches = [Node.switch(1 + i, "any", i) for i in range(draw(st.integers(1, 7)))]
    next_port = dict.fromkeys((switch.name for switch in switches), 0)
    links = []

    def port(name: str) -> int:
        next_port[name] += 1
        return next_port[name]

    def link(a: str, port_a: int, b: str, port_b: int) -> Link:
        rate = draw(st.integers(10**6, 10**11))
        return Link(a, port_a, b, port_b, rate, draw(st.integers(0, 10**6)), draw(st.floats(0, 1)))

    pairs = [(a.name, b.name) for i, a in enumerate(switches) for b in switches[:i]]
    if pairs:
        for a, b in draw(st.lists(st.sampled_from(pairs), max_size=14)):
            links.append(link(a, port(a), b, port(b)))
    subnets = st.integers(0, 2)
    places = draw(st.lists(st.tuples(st.sampled_from(switches), subnets), max_size=8))
    hosts = []
    for index, (switch, subnet) in enumerate(places):
        host = Node.host(index, f"10.0.{subnet}.{2 + index}/{draw(st.sampled_from([22, 24]))}")
        hosts.append(host)
        links.append(link(host.name, 0, switch.name, port(switch.name)))
    return Topology((*switches, *hosts), tuple(links))
