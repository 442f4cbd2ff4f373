"""Routes on fat-trees and on arbitrary graphs: everything reachable is reached, over shortest paths only, no loops."""

import networkx
import pytest
from hypothesis import given, settings

from controller.errors import ControllerError
from controller.routes import EcmpPolicy, ecmp_entries, route_entries, seed_entries
from controller.tests.programs import schema
from controller.tests.walk import all_walks, lookup
from mininet_topos.fattree import fattree
from mininet_topos.tests.examples import dumbbell, random_topologies
from mininet_topos.topology import Link, Node, Topology


def _graph(topology):
    graph = networkx.MultiGraph()
    graph.add_nodes_from(node.name for node in topology.nodes)
    graph.add_edges_from((link.a, link.b) for link in topology.links)
    return graph


def _switch_distance(topology, src, dst):
    graph = _graph(topology)
    graph.remove_nodes_from(host.name for host in topology.hosts if host.name not in (src, dst))
    try:
        return networkx.shortest_path_length(graph, src, dst)
    except networkx.NetworkXNoPath:
        return None


@settings(deadline=None, max_examples=60)
@given(random_topologies())
def test_every_walk_on_any_graph_is_shortest_and_arrives(topology):
    entries = route_entries(topology)
    for src in topology.hosts:
        for dst in topology.hosts:
            if src is dst:
                continue
            walks = all_walks(topology, entries, src.name, dst.name)
            distance = _switch_distance(topology, src.name, dst.name)
            if distance is None:
                assert {walk[-1] for walk in walks} == {None} and {len(walk) for walk in walks} == {2}
            else:
                assert {walk[-1] for walk in walks} == {dst.name}
                assert {len(walk) for walk in walks} == {distance}


@pytest.mark.parametrize("k", [2, 4, 6])
def test_fattree_uses_all_shortest_paths(k):
    topology = fattree(k, 10**9, 1000)
    entries = route_entries(topology)
    half = k // 2
    other_pod = f"h{half * half + 1}"
    assert len(set(all_walks(topology, entries, "h1", other_pod))) == half * half
    if half > 1:
        assert len(set(all_walks(topology, entries, "h1", f"h{half + 1}"))) == half
        assert len(set(all_walks(topology, entries, "h1", "h2"))) == 1


def test_fattree_with_a_failed_link_still_reaches_everything():
    topology = fattree(4, 10**9, 1000)
    left = topology.without([*topology.links_between("s5", "s13"), *topology.links_between("s1", "s7")])
    entries = route_entries(left)
    for src in left.hosts:
        for dst in left.hosts:
            if src is not dst:
                walks = all_walks(left, entries, src.name, dst.name)
                assert walks and {walk[-1] for walk in walks} == {dst.name}


def test_fattree_entries_are_aggregated():
    topology = fattree(4, 10**9, 1000)
    entries = route_entries(topology)
    # 7 other edges' networks, and own hosts where there are any.
    assert {switch.layer: len(entries[switch.name]) for switch in topology.switches} == {"core": 8, "agg": 8, "edge": 9}


def test_hosts_of_one_network_on_two_switches_have_routes_of_their_own():
    base = dumbbell()
    nodes = (*base.nodes[:5], Node.host(3, "10.0.1.9/24"))
    entries = route_entries(Topology(nodes, base.links))
    lengths = sorted(entry.match["hdr.ipv4.dst_addr"][1] for entry in entries["s1"])
    # own two, then h3's network (nobody else is in it) and h4 alone.
    assert lengths == [24, 32, 32, 32]


def test_parallel_links_are_members_each():
    base = dumbbell()
    topology = Topology(base.nodes, (*base.links, Link("s1", 4, "s2", 7, 10**9, 1000)))
    members = lookup(route_entries(topology)["s1"], "10.0.2.2")
    assert [member["port"] for member in members] == [3, 4]
    assert [member["dst_mac"] for member in members] == [topology.mac("s2", 3), topology.mac("s2", 7)]


def test_seeds_are_odd_differ_and_depend_on_seed_and_device_only():
    topology = fattree(4, 10**9, 1000)

    def drawn(seed):
        made = seed_entries(topology, EcmpPolicy(seed=seed))
        return {name: entry.action.args["odd_multiplier"] for name, [entry] in made.items()}

    first = drawn(1)
    assert all(value % 2 for value in first.values())
    assert len(set(first.values())) == len(first)
    assert drawn(1) == first and drawn(2) != first
    assert first["s1"] == 2124926405  # the same on every machine and version


def _thresholds(topology, **policy):
    entries = ecmp_entries(topology, schema(), EcmpPolicy(**policy))
    return {
        (name, entry.match["standard_metadata.egress_port"]): entry.action.args["packets"]
        for name, found in entries.items()
        for entry in found
        if entry.table_id == "ecn_threshold"
    }


def test_ecn_thresholds_follow_rate_and_round_trip():
    topology = dumbbell(rate_bps=10**9, delay_ns=100_000)
    # 1000-byte frames: round trip 3 * (100000 + 8000) + 3 * (100000 + 496) = 625488 ns = 78186 bytes = 79 frames.
    assert set(_thresholds(topology, packet_bytes=1000).values()) == {79}
    assert set(_thresholds(topology, packet_bytes=1000, ecn_bdps=1 / 7).values()) == {11}
    assert set(_thresholds(topology, packet_bytes=1000, ecn_bdps=0.01).values()) == {8}
    assert set(_thresholds(topology, packet_bytes=1000, ecn_bdps=1e9).values()) == {(1 << 19) - 1}
    assert len(_thresholds(topology)) == 6


def test_slower_ports_mark_earlier():
    topology = fattree(4, 10**10, 50_000, host_rate_bps=10**9)
    thresholds = _thresholds(topology)
    assert thresholds["s13", 1] < thresholds["s13", 3]


@pytest.mark.parametrize(
    ("sizes", "text"),
    [
        ({"routes_size": 8}, "s13: ipv4_lpm needs 9 entries and has room for 8"),
        ({"members": 10}, "s5: ipv4_lpm needs 14 group members and has room for 10"),
        ({"group": 1}, "s5: 2 next hops, and groups of ipv4_lpm hold 1"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_written(sizes, text):
    with pytest.raises(ControllerError) as refused:
        ecmp_entries(fattree(4, 10**9, 1000), schema(**sizes))
    assert str(refused.value) == text


def test_entries_encode_with_the_programs_names():
    p4info = schema()
    for entries in ecmp_entries(fattree(4, 10**9, 1000), p4info).values():
        for entry in entries:
            entry.encode(p4info)
