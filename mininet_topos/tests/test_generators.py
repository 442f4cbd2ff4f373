"""The generators: what their parameters promise, for any of them, and what they refuse."""

import networkx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mininet_topos.catalogue import GENERATORS, choose
from mininet_topos.dumbbell import dumbbell
from mininet_topos.fattree import fattree
from mininet_topos.jellyfish import check_degrees, jellyfish, spread
from mininet_topos.leafspine import leafspine, mprdma
from mininet_topos.paths import rtt_ns
from mininet_topos.topology import Topology, TopologyError

RATE, DELAY = 10**8, 50_000


def graph_of(topology, hosts=False):
    graph = networkx.MultiGraph()
    graph.add_nodes_from(node.name for node in topology.nodes if hosts or not node.is_host)
    graph.add_edges_from((link.a, link.b) for link in topology.links if link.a in graph and link.b in graph)
    return graph


def degrees(topology):
    return [len(topology.neighbors(switch.name)) for switch in topology.switches]


leafspines = st.builds(
    dict,
    spines=st.integers(1, 5),
    leaves=st.integers(1, 6),
    hosts_per_leaf=st.integers(0, 4),
    parallel=st.integers(1, 3),
)


@given(leafspines)
def test_leafspine_has_every_leaf_at_every_spine(given_):
    topology = leafspine(rate_bps=RATE, delay_ns=DELAY, **given_)
    spines, leaves, hosts, parallel = given_.values()
    layers = [switch.layer for switch in topology.switches]
    assert (layers.count("spine"), layers.count("leaf"), len(topology.hosts)) == (spines, leaves, leaves * hosts)
    assert degrees(topology) == [leaves * parallel] * spines + [hosts + spines * parallel] * leaves
    for spine in topology.switches[:spines]:
        for leaf in topology.switches[spines:]:
            assert len(topology.links_between(spine.name, leaf.name)) == parallel
    for switch in topology.switches:
        assert topology.ports(switch.name) == tuple(range(1, len(topology.neighbors(switch.name)) + 1))
    for host in topology.hosts:
        leaf = topology.host_port(host.name).node
        assert host.address.startswith(f"10.0.{leaf.index}.") and host.place.startswith(f"rack {leaf.index}, ")


@given(st.integers(2, 4), st.integers(1, 3), st.sampled_from([1, 1.5, 2, 3, 0.5]))
def test_oversubscription_is_hosts_over_uplinks(leaves, spines, ratio):
    topology = leafspine(spines, leaves, 6, 10**9, DELAY, oversubscription=ratio, parallel=2)
    leaf = topology.switches[-1].name
    rates = {True: 0, False: 0}
    for neighbor in topology.neighbors(leaf):
        rates[neighbor.node.is_host] += neighbor.link.rate_bps
    assert rates[True] / rates[False] == pytest.approx(ratio, rel=1e-6)


def test_oversubscription_of_the_papers_network():
    """Eunomia, section 5: 8 spines, 8 leaves, 128 hosts, 1:2, all links 100 Gb/s."""
    topology = leafspine(8, 8, 16, 100 * 10**9, 1000, oversubscription=2)
    assert len(topology.hosts) == 128 and {link.rate_bps for link in topology.links} == {100 * 10**9}


def test_the_testbed_of_mp_rdma():
    """Section 5.1: 10 servers under two ToRs, four switches between, four paths, 12 us of base RTT across."""
    topology = choose("mprdma").build()
    assert (len(topology.hosts), len(topology.switches)) == (10, 6)
    assert {link.rate_bps for link in topology.links} == {40 * 10**9}
    assert networkx.node_connectivity(networkx.Graph(graph_of(topology)), "s5", "s6") == 4
    empty_frames = rtt_ns(topology, "h1", "h10", 1, 1)
    assert 12_000 <= empty_frames <= 12_010
    # "The bandwidth delay product for a cross-ToR network path is around 60KB."
    assert topology.bdp_bytes("h1", "h10", 1024) == pytest.approx(60_000, rel=0.15)


@given(st.integers(0, 5), st.integers(0, 5))
def test_dumbbell_has_one_link_in_the_middle(left, right):
    topology = dumbbell(left, right, RATE, DELAY, bottleneck_rate_bps=RATE // 10)
    assert [len(topology.hosts_of(name)) for name in ("s1", "s2")] == [left, right]
    (middle,) = topology.links_between("s1", "s2")
    assert middle.rate_bps == RATE // 10
    assert all(link.rate_bps == RATE for link in topology.links if link is not middle)


@st.composite
def equipment(draw):
    """Ports by switch and hosts of which `check_degrees` says that a network exists."""
    count = draw(st.integers(2, 14))
    unequal = st.lists(st.integers(1, 10), min_size=count, max_size=count)
    ports = draw(unequal | st.integers(2, 10).map(lambda each: [each] * count))
    hosts = draw(st.integers(0, sum(ports) - count))
    return ports, hosts


@given(equipment(), st.integers(0, 2**64))
@settings(max_examples=150)
def test_jellyfish_uses_every_port_once_or_is_refused(given_, seed):
    ports, hosts = given_
    down = spread(hosts, ports)
    wanted = [count - taken for count, taken in zip(ports, down, strict=True)]
    try:
        check_degrees(wanted)
    except TopologyError:
        odd = sum(wanted) % 2
        lowered = sorted(wanted, reverse=True)
        lowered[0] -= odd
        # networkx' own test of the same condition; connection needs a link more than there are switches to join.
        assert not networkx.is_graphical(lowered) or sum(lowered) < 2 * (len(ports) - 1) or min(wanted) < 1
        return
    topology = jellyfish(ports, hosts, seed, RATE, DELAY)
    graph = graph_of(topology)
    assert networkx.is_connected(graph)
    assert networkx.number_of_selfloops(graph) == 0 and graph.size() == networkx.Graph(graph).size()
    assert len(topology.hosts) == hosts
    free = [count - used for count, used in zip(ports, degrees(topology), strict=True)]
    assert sum(free) == sum(wanted) % 2 and min(free) >= 0
    assert [len(topology.hosts_of(switch.name)) for switch in topology.switches] == down
    # Ports are used from the first on, the hosts' before the others.
    for switch in topology.switches:
        seen = topology.neighbors(switch.name)
        assert [n.port for n in seen] == list(range(1, len(seen) + 1))
        assert [n.node.is_host for n in seen] == sorted((n.node.is_host for n in seen), reverse=True)


@given(st.integers(1, 300), st.integers(2, 12), st.data())
def test_hosts_are_spread_evenly(switches, ports, data):
    hosts = data.draw(st.integers(0, switches * ports))
    shares = spread(hosts, [ports] * switches)
    assert sum(shares) == hosts and max(shares) - min(shares) <= 1
    # Also over the order: any run of switches has its share, but for less than one host at either end.
    before = 0
    for index, share in enumerate(shares):
        assert abs(before - hosts * index / switches) < 1
        before += share


def test_jellyfish_with_the_equipment_of_a_fat_tree():
    tree = choose("fattree", {"k": 8}).build()
    fish = choose("jellyfish", {"like": "fattree:k=8", "seed": 3}).build()
    assert len(fish.switches) == len(tree.switches) == 80 and len(fish.hosts) == len(tree.hosts) == 128
    assert sorted(degrees(fish)) == sorted(degrees(tree))
    assert {len(fish.hosts_of(switch.name)) for switch in fish.switches} == {1, 2}


def test_jellyfish_is_its_seed():
    first, again, other = (jellyfish([6] * 20, 40, seed, RATE, DELAY) for seed in (1, 1, 2))
    assert first == again and first.links != other.links
    # On every machine and in every version: experiments name a seed.
    assert [(link.a, link.b) for link in jellyfish([3] * 6, 6, 1, RATE, DELAY).links[:6]] == JELLYFISH_6_3_SEED_1


JELLYFISH_6_3_SEED_1 = [("s1", "s3"), ("s1", "s4"), ("s2", "s4"), ("s2", "s6"), ("s3", "s5"), ("s5", "s6")]


@given(st.sampled_from(sorted(GENERATORS)), st.data())
def test_addresses_are_unique_and_json_returns_the_same(name, data):
    values = {
        "fattree": {"k": st.sampled_from([2, 4, 6])},
        "leafspine": leafspines,
        "jellyfish": {"switches": st.just(12), "ports": st.integers(4, 9), "hosts": st.integers(1, 20)},
        "dumbbell": {"left": st.integers(0, 4), "right": st.integers(0, 4)},
        "mprdma": {"paths": st.integers(1, 5), "hosts_per_tor": st.integers(1, 6)},
    }[name]
    drawn = data.draw(values if name == "leafspine" else st.fixed_dictionaries(values))
    topology = choose(name, drawn).build()
    for field in ("address", "mac"):
        assert len({getattr(host, field) for host in topology.hosts}) == len(topology.hosts)
    assert Topology.from_json(topology.to_json()) == topology


TIERS = [
    ("fattree", "core", {"host": 16, "agg": 16, "core": 16}),
    ("leafspine", "spine", {"host": 16, "spine": 8}),
    ("jellyfish", "host", {"host": 16}),
    ("dumbbell", "bottleneck", {"bottleneck": 1}),
    ("mprdma", "path", {"path": 8}),
]


@pytest.mark.parametrize(("name", "_tier", "tiers"), TIERS)
def test_rates_and_delays_of_each_tier(name, _tier, tiers):
    for tier, count in tiers.items():
        topology = choose(name, {f"{tier}_rate": "7M", f"{tier}_delay": "3us", "rate": "9M", "delay": "5us"}).build()
        kinds = [(link.rate_bps, link.delay_ns) for link in topology.links]
        assert kinds.count((7_000_000, 3_000)) == count
        assert kinds.count((9_000_000, 5_000)) == len(kinds) - count


REFUSALS = [
    ("fattree", {"k": 5}, "k: must be even and from 2 to 254, is 5"),
    ("fattree", {"rate": -1}, "rate: must be positive, is -1"),
    ("fattree", {"host_rate": 0}, "host_rate: must be positive, is 0"),
    ("fattree", {"delay": -5}, "delay: must not be negative, is -5"),
    ("fattree", {"core_delay": -5}, "core_delay: must not be negative, is -5"),
    ("fattree", {"loss": 1.5}, "loss: must be a probability from 0 to 1, is 1.5"),
    ("leafspine", {"spines": 0}, "spines: must be from 1 to 10000, is 0"),
    ("leafspine", {"leaves": 10**9}, "leaves: must be from 1 to 10000, is 1000000000"),
    ("leafspine", {"hosts_per_leaf": 254}, "hosts_per_leaf: must be from 0 to 253, is 254"),
    ("leafspine", {"parallel": 0}, "parallel: must be from 1 to 64, is 0"),
    ("leafspine", {"oversubscription": 0}, "oversubscription: must be a positive number, is 0.0"),
    ("leafspine", {"oversubscription": "nan"}, "oversubscription: must be a positive number, is nan"),
    ("leafspine", {"oversubscription": 1e30}, "oversubscription: 1e+30 leaves less than 1 bit/s for an uplink"),
    ("leafspine", {"oversubscription": 2, "spine_rate": "1G"}, "oversubscription: sets the rate to the spines: "),
    ("jellyfish", {"switches": 0}, "switches: must be 1 or more, is 0"),
    ("jellyfish", {"switches": 10**8}, "switches: must be from 1 to 10000, is 1048576"),
    ("jellyfish", {"ports": 0}, "ports: must be from 1 to 1024, is 0"),
    ("jellyfish", {"switches": 5, "ports": 4, "hosts": 21}, "hosts: must be from 0 to 20, is 21"),
    ("jellyfish", {"switches": 5, "ports": 4, "hosts": 16}, "hosts: they take all ports of s5: none is left for other"),
    ("jellyfish", {"switches": 5, "ports": 7, "hosts": 5}, "ports: 5 switches with 6 ports for other switches: no"),
    ("jellyfish", {"switches": 9, "ports": 3, "hosts": 14}, "ports: 12 ports for other switches cannot connect"),
    ("jellyfish", {"switches": 1, "ports": 3, "hosts": 2}, "ports: 1 switch has 1 ports for other switches, "),
    ("jellyfish", {"switches": 2, "ports": 300, "hosts": 598}, "hosts: 598 are 299 at s1: at most 253 can be"),
    ("jellyfish", {"like": "fattree:k=8", "ports": 4}, "like: says how many ports there are: give it or "),
    ("jellyfish", {"like": "fattree:k=7"}, "like: k: must be even and from 2 to 254, is 7"),
    ("jellyfish", {"like": "fattree:k"}, "like: k: has no value; write fattree:k=..."),
    ("jellyfish", {"like": "torus"}, "like: topology: 'torus' is no topology and no file; known are fattree,"),
    ("dumbbell", {"left": -1}, "left: must be from 0 to 253, is -1"),
    ("mprdma", {"paths": 0}, "paths: must be from 1 to 10000, is 0"),
]


@pytest.mark.parametrize(("name", "values", "message"), REFUSALS, ids=[message[:50] for *_, message in REFUSALS])
def test_impossible_parameters_are_named(name, values, message):
    with pytest.raises(TopologyError) as refused:
        choose(name, values).build()
    assert str(refused.value).startswith(message)


def test_fattree_names_tell_pod_and_rack():
    topology = fattree(4, RATE, DELAY)
    assert topology.node("s1").place == "core 0"
    assert topology.node("s6").place == "pod 0, aggregation 1"
    assert topology.node("s20").place == "pod 3, rack 1"
    assert topology.node("h16").place == "pod 3, rack 1, host 1"


def test_mprdma_paths_may_be_slower_than_hosts():
    topology = mprdma(40 * 10**9, 1500, path_rate_bps=10**10)
    assert sorted({link.rate_bps for link in topology.links}) == [10**10, 40 * 10**9]
