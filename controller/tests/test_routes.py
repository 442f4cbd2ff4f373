"""Routes on fat-trees and on arbitrary graphs: everything reachable is reached, over shortest paths only, no loops."""

import networkx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.destinations import destinations
from controller.errors import ControllerError
from controller.policy import Policy, fabric_entries, seed_entries
from controller.ports import Marking, RedCurve, neighbor_entries
from controller.routes import next_hop_routes, pack_ports, selector_routes
from controller.tests.programs import schema
from controller.tests.walk import all_walks, lookup
from mininet_topos.fattree import fattree
from mininet_topos.tests.examples import dumbbell, random_topologies
from mininet_topos.topology import Link, Node, Topology


def route_entries(topology):
    return selector_routes(destinations(topology))


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
@given(random_topologies(), st.sampled_from([selector_routes, next_hop_routes]))
def test_every_walk_on_any_graph_is_shortest_and_arrives(topology, encode):
    entries = encode(destinations(topology))
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
    assert members == [3, 4]
    macs = {
        entry.match["standard_metadata.egress_spec"]: entry.action.args for entry in neighbor_entries(topology)["s1"]
    }
    assert [macs[port]["dst_mac"] for port in members] == [topology.mac("s2", 3), topology.mac("s2", 7)]
    assert [macs[port]["src_mac"] for port in members] == [topology.mac("s1", 3), topology.mac("s1", 4)]


def test_seeds_are_odd_differ_and_depend_on_seed_and_device_only():
    topology = fattree(4, 10**9, 1000)

    def drawn(seed):
        made = seed_entries(topology, seed)
        return {name: entry.action.args["odd_multiplier"] for name, [entry] in made.items()}

    first = drawn(1)
    assert all(value % 2 for value in first.values())
    assert len(set(first.values())) == len(first)
    assert drawn(1) == first and drawn(2) != first
    assert first["s1"] == 2124926405  # the same on every machine and version


def _curves(topology, packet_bytes=1086, **marking):
    entries = fabric_entries(topology, schema(), Policy(packet_bytes=packet_bytes, marking=Marking(**marking)))
    return {
        (name, entry.match["standard_metadata.egress_port"]): tuple(entry.action.args.values())
        for name, found in entries.items()
        for entry in found
        if entry.table_id == "red_curve"
    }


def test_curves_follow_rate_and_round_trip():
    topology = dumbbell(rate_bps=10**9, delay_ns=100_000)
    # 1000-byte frames: round trip 3 * (100000 + 8000) + 3 * (100000 + 496) = 625488 ns = 78186 bytes.
    assert set(_curves(topology, 1000).values()) == {(78186, 78186, 0)}
    assert set(_curves(topology, 1000, kmin_bdps=1 / 7, kmax_bdps=1 / 7).values()) == {(11169, 11169, 0)}
    # The slope of Pmax 0.5 over 78186 bytes: 0.5 * 2^32 / 78186 = 27466.4.
    assert set(_curves(topology, 1000, kmin_bdps=1, kmax_bdps=2, pmax=0.5).values()) == {(78186, 156372, 27466)}
    assert set(_curves(topology, 1000, kmin_bdps=0.01, kmax_bdps=0.01).values()) == {(8000, 8000, 0)}
    assert set(_curves(topology, 1000, kmin_bdps=1e9, kmax_bdps=1e9).values()) == {(2**32 - 1, 2**32 - 1, 0)}
    assert len(_curves(topology)) == 6


def test_slower_ports_mark_earlier():
    curves = _curves(fattree(4, 10**10, 50_000, host_rate_bps=10**9))
    assert curves["s13", 1] < curves["s13", 3]


@pytest.mark.parametrize("pmax", [1e-5, 0.2, 0.25, 1.0])
def test_a_curve_is_read_back_from_its_action(pmax):
    read = RedCurve.from_action(**RedCurve(20_000, 200_000, pmax).action().args)
    assert (read.kmin_bytes, read.kmax_bytes) == (20_000, 200_000)
    assert abs(read.pmax - pmax) <= 180_000 / 2**32  # the slope's unit over the curve's width
    assert RedCurve.from_action(**RedCurve(5, 5, pmax).action().args) == RedCurve(5, 5, 1.0)


@pytest.mark.parametrize(
    ("curve", "text"),
    [
        ((-1, 5), "kmin: -1 bytes; 0 to 4294967295 can be"),
        ((6, 5), "kmax: 5 bytes; 6 (kmin) to 4294967295 can be"),
        ((5, 2**32), "kmax: 4294967296 bytes; 5 (kmin) to 4294967295 can be"),
        ((5, 6, 0), "pmax: 0; it is a probability above 0"),
        ((5, 6, 1.5), "pmax: 1.5; it is a probability above 0"),
    ],
)
def test_a_curve_that_cannot_be_is_refused(curve, text):
    with pytest.raises(ControllerError) as refused:
        RedCurve(*curve)
    assert str(refused.value) == text


def test_sets_of_next_hops_hold_16_ports_of_a_byte():
    assert pack_ports("s1", [7, 255]) == {"count": 2, "ports_0_7": 0xFF07, "ports_8_15": 0}
    assert pack_ports("s1", list(range(1, 17)))["ports_8_15"] == 0x100F0E0D0C0B0A09
    for ports, text in (
        (range(1, 18), "s1: 17 next hops, and a set holds 16"),
        ([256], "s1: port 256 does not fit in a set of next hops, whose ports are bytes"),
    ):
        with pytest.raises(ControllerError) as refused:
            pack_ports("s1", list(ports))
        assert str(refused.value) == text


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
        fabric_entries(fattree(4, 10**9, 1000), schema(**sizes))
    assert str(refused.value) == text


def test_entries_encode_with_the_programs_names():
    p4info = schema()
    for entries in fabric_entries(fattree(4, 10**9, 1000), p4info).values():
        for entry in entries:
            entry.encode(p4info)
