"""k shortest paths: the shortest there are by networkx, followed by name to their destination on every switch."""

import itertools

import networkx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.errors import ControllerError
from controller.named_paths import named_path_entries
from mininet_topos.fattree import fattree
from mininet_topos.k_paths import k_shortest_paths
from mininet_topos.tests.examples import dumbbell, random_topologies
from mininet_topos.topology import Link, Topology


def _switch_graph(topology):
    graph = networkx.Graph()
    graph.add_nodes_from(switch.name for switch in topology.switches)
    names = set(graph)
    graph.add_edges_from((link.a, link.b) for link in topology.links if {link.a, link.b} <= names)
    return graph


@settings(deadline=None, max_examples=40)
@given(random_topologies(), st.integers(1, 5))
def test_paths_are_simple_distinct_and_as_short_as_networkx_finds(topology, k):
    graph = _switch_graph(topology)
    parallel = len(graph.edges) < len({link for link in topology.links if {link.a, link.b} <= set(graph)})
    seen = set()
    for a, b, paths in k_shortest_paths(topology, k):
        seen.add((a, b))
        walks = [tuple(hop.link for hop in path.hops) for path in paths]
        assert len(set(walks)) == len(walks) <= k
        assert all(len(set(path.switches)) == len(path.switches) for path in paths)
        assert {(path.switches[0], path.last) for path in paths} == {(a, b)}
        lengths = [len(walk) for walk in walks]
        assert lengths == sorted(lengths)
        if not parallel:
            known = itertools.islice(networkx.shortest_simple_paths(graph, a, b), k)
            assert lengths == [len(path) - 1 for path in known]
    edges = [switch.name for switch in topology.switches if topology.hosts_of(switch.name)]
    assert seen == {(a, b) for a in edges for b in edges if a != b and networkx.has_path(graph, a, b)}


def _follow(topology, entries, first, port, label):
    """The switches that a named packet passes, by the entries alone."""
    here, walk = first, [first]
    while True:
        (hop,) = [n for n in topology.neighbors(here) if n.port == port]
        here = hop.node.name
        assert here not in walk, f"loop: {walk}"
        walk.append(here)
        known = [e for e in entries[here] if e.table_id == "path_label" and e.match["meta.path_label"] == label]
        if not known:
            return walk
        (entry,) = known
        port = entry.action.args["port"]


def _check_names(topology, k):
    entries = named_path_entries(topology, k)
    hosts_behind = {}
    for switch in topology.switches:
        for host in topology.hosts_of(switch.name):
            hosts_behind[int(host.network.network_address), host.network.prefixlen] = switch.name
            hosts_behind[int.from_bytes(bytes(map(int, host.address.split("."))), "big"), 32] = switch.name
    labels = set()
    for name, found in entries.items():
        for entry in found:
            if entry.table_id != "ipv4_lpm" or not entry.action.args["group"]:
                continue
            args = entry.action.args
            ports = (args["ports_0_7"].to_bytes(8, "little") + args["ports_8_15"].to_bytes(8, "little"))[
                : args["count"]
            ]
            for label, port in enumerate(ports, args["group"]):
                labels.add(label)
                walk = _follow(topology, entries, name, port, label)
                assert walk[-1] == hosts_behind[entry.match["hdr.ipv4.dst_addr"]]
    return labels


@settings(deadline=None, max_examples=25)
@given(random_topologies())
def test_a_name_leads_to_its_destination_without_a_loop(topology):
    _check_names(topology, 3)


def test_names_in_a_fattree():
    # 8 edge switches, 56 ordered pairs with 4 names each; within a pod 2 shortest paths and 2 longer ones.
    assert len(_check_names(fattree(4, 10**9, 1000), 4)) == 56 * 4


def test_parallel_links_are_paths_each():
    base = dumbbell()
    topology = Topology(base.nodes, (*base.links, Link("s1", 4, "s2", 7, 10**9, 1000)))
    [(_, _, there), (_, _, back)] = k_shortest_paths(topology, 8)
    assert sorted(path.hops[0].port for path in there) == [3, 4]
    assert [path.hops[0].link for path in back] == [path.hops[0].link for path in there]


@pytest.mark.parametrize("k", [0, 17])
def test_an_impossible_k_is_refused(k):
    with pytest.raises(ControllerError, match=f"k: {k} paths; 1 to 16 can be"):
        named_path_entries(dumbbell(), k)
