"""Properties of topologies against networkx, closed formulas, and all partitions of small networks."""

from collections import Counter
from itertools import combinations, pairwise

import networkx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mininet_topos.catalogue import GENERATORS, choose, parse_choice
from mininet_topos.k_paths import k_shortest_paths
from mininet_topos.properties import bisection, cut_bps, diversity, equal_cost_counts, host_lengths, properties
from mininet_topos.tests.examples import random_topologies


def switch_graph(topology):
    """Parallel links are edges of their own."""
    graph = networkx.MultiGraph()
    graph.add_nodes_from(switch.name for switch in topology.switches)
    graph.add_edges_from((link.a, link.b) for link in topology.links if link.a in graph and link.b in graph)
    return graph


def shortest_paths(graph, a, b):
    """Number of shortest paths with parallel edges distinct."""
    if not networkx.has_path(graph, a, b):
        return 0
    total = 0
    for path in networkx.all_shortest_paths(networkx.Graph(graph), a, b):
        ways = 1
        for here, there in pairwise(path):
            ways *= graph.number_of_edges(here, there)
        total += ways
    return total


@given(random_topologies())
def test_lengths_between_hosts_are_networkx(topology):
    graph = networkx.Graph((link.a, link.b) for link in topology.links)
    graph.add_nodes_from(node.name for node in topology.nodes)
    switches = {switch.name for switch in topology.switches}
    expected = Counter()
    for a in topology.hosts:
        # A host forwards nothing, but with one link it could not either.
        for b, length in networkx.single_source_shortest_path_length(graph, a.name).items():
            if b not in switches and b != a.name:
                expected[length] += 1
    assert host_lengths(topology) == expected
    found = properties(topology)
    assert found.connected == (sum(expected.values()) == len(topology.hosts) * (len(topology.hosts) - 1))
    assert found.diameter == max(expected, default=0)


@given(random_topologies())
def test_equal_cost_paths_are_networkx(topology):
    graph = switch_graph(topology)
    edges = [switch.name for switch in topology.switches if topology.hosts_of(switch.name)]
    expected = {(a, b): shortest_paths(graph, a, b) for a in edges for b in edges if a != b}
    assert equal_cost_counts(topology) == {pair: count for pair, count in expected.items() if count}


@pytest.mark.parametrize("k", [4, 6])
def test_path_counts_of_a_fat_tree(k):
    """(k/2)^2 between pods, k/2 within one (Al-Fares et al., section 3)."""
    topology = choose("fattree", {"k": k}).build()
    half = k // 2
    counts = equal_cost_counts(topology)
    for (a, b), count in counts.items():
        pods = {topology.node(name).index // half for name in (a, b)}
        assert count == (half if len(pods) == 1 else half * half)
    assert len(counts) == (k * half) * (k * half - 1)
    lengths = host_lengths(topology)
    hosts = k**3 // 4
    assert lengths == {
        2: hosts * (half - 1),
        4: hosts * half * (half - 1),
        6: hosts * (hosts - half * half),
    }


@given(st.integers(1, 4), st.integers(2, 5), st.integers(1, 3))
def test_path_counts_of_a_leaf_spine(spines, leaves, parallel):
    values = {"spines": spines, "leaves": leaves, "parallel": parallel, "hosts_per_leaf": 1}
    counts = equal_cost_counts(choose("leafspine", values).build())
    assert set(counts.values()) == {spines * parallel**2} and len(counts) == leaves * (leaves - 1)


def test_diversity_of_the_testbed():
    found = diversity(choose("mprdma").build(), 8)
    assert (found.pairs, found.equal_cost_least, found.equal_cost_most) == (2, 4, 4)
    # Four paths of one switch each is all there is; each link carries one path in either direction.
    assert (found.found_least, found.max_length, found.disjoint_least) == (4, 4, 4)
    assert (found.paths_per_link_least, found.paths_per_link_most) == (1, 1)


@given(random_topologies(), st.integers(1, 4))
@settings(max_examples=60)
def test_diversity_counts_what_networkx_finds(topology, k):
    graph = switch_graph(topology)
    edges = [switch.name for switch in topology.switches if topology.hosts_of(switch.name)]
    disjoint = []
    single = networkx.Graph()
    single.add_nodes_from(graph)
    for a, b, *_ in graph.edges:
        single.add_edge(a, b, capacity=graph.number_of_edges(a, b))
    for a, b in combinations(edges, 2):
        disjoint.append(networkx.maximum_flow_value(single, a, b) if networkx.has_path(graph, a, b) else 0)
    found = diversity(topology, k)
    assert found.disjoint_least == min(disjoint, default=0)
    lengths = [len(path.hops) + 2 for _, _, paths in k_shortest_paths(topology, k) for path in paths]
    assert found.max_length == max(lengths, default=0)
    carried = found.paths_per_link_mean * 2 * graph.size()
    assert carried == pytest.approx(sum(length - 2 for length in lengths))


# --- bisection ---


def least_cut(topology):
    """Over all halves of the hosts, the switches on whichever side is cheaper: by networkx' maximum flow."""
    hosts = [host.name for host in topology.hosts]
    graph = networkx.Graph()
    graph.add_nodes_from(node.name for node in topology.nodes)
    for link in topology.links:
        before = graph.edges[link.a, link.b]["capacity"] if graph.has_edge(link.a, link.b) else 0
        graph.add_edge(link.a, link.b, capacity=before + link.rate_bps)
    least = None
    for side in combinations(hosts, len(hosts) // 2):
        flow = graph.copy()
        for host in hosts:
            flow.add_edge("one side" if host in side else "other side", host)  # without capacity: unlimited
        value = networkx.maximum_flow_value(flow, "one side", "other side")
        least = value if least is None else min(least, value)
    return least


SMALL = [
    "fattree:k=2",
    "fattree:k=2,host_rate=10M",
    "leafspine:spines=2,leaves=2,hosts_per_leaf=3",
    "leafspine:spines=1,leaves=3,hosts_per_leaf=2",
    "leafspine:spines=2,leaves=3,hosts_per_leaf=3,oversubscription=4",
    "leafspine:spines=3,leaves=3,hosts_per_leaf=2,spine_rate=7M",
    "leafspine:spines=1,leaves=4,hosts_per_leaf=2,spine_rate=1G,parallel=2",
    "dumbbell:left=2,right=5",
    "dumbbell:left=1,right=6,bottleneck_rate=5M",
    "dumbbell:left=4,right=4,bottleneck_rate=1G",
    "mprdma:hosts_per_tor=3,paths=2",
    "mprdma:hosts_per_tor=4,path_rate=10G",
]


@pytest.mark.parametrize("spec", SMALL)
def test_closed_forms_are_the_least_of_all_cuts(spec):
    chosen = parse_choice(spec)
    topology = chosen.build()
    assert chosen.generator.bisection_bps(topology) == least_cut(topology)


IRREGULAR = ["jellyfish:switches=5,ports=4,hosts=8", "jellyfish:switches=6,ports=3,hosts=6"]


@pytest.mark.parametrize("spec", [*SMALL, *IRREGULAR])
def test_bounds_hold(spec):
    topology = parse_choice(spec).build()
    found = bisection(topology)
    assert found.low_bps <= least_cut(topology) <= found.high_bps


@pytest.mark.parametrize("k", [4, 8])
def test_a_fat_tree_has_full_bisection(k):
    topology = choose("fattree", {"k": k}).build()
    assert GENERATORS["fattree"].bisection_bps(topology) == k**3 // 8 * 10**8
    # The cut between the first and the last half of the pods.
    assert cut_bps(topology, [host.name for host in topology.hosts[: k**3 // 8]]) == k**3 // 8 * 10**8


def test_bisection_of_nothing():
    found = bisection(choose("dumbbell", {"left": 1, "right": 0}).build())
    assert (found.low_bps, found.high_bps, found.method) == (0, 0, "exact: fewer than two hosts")
