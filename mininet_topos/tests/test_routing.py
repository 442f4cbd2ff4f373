"""Routes of every topology, whole and after any one link has failed: complete, free of loops, reaching every host."""

from ipaddress import IPv4Address

import networkx
import pytest
from hypothesis import given

from controller.destinations import destinations
from mininet_topos.catalogue import parse_choice
from mininet_topos.k_paths import k_shortest_paths
from mininet_topos.paths import check_connected
from mininet_topos.tests.examples import random_topologies
from mininet_topos.topology import TopologyError

SPECS = [
    "fattree:k=4",
    "leafspine:spines=3,leaves=4,hosts_per_leaf=2",
    "leafspine:spines=2,leaves=3,hosts_per_leaf=1,parallel=2",
    "jellyfish:switches=12,ports=5,hosts=14,seed=1",
    "jellyfish:switches=12,ports=5,hosts=14,seed=2",
    "dumbbell:left=2,right=1",
    "mprdma",
]


def distances(topology):
    """Switch to switch, by networkx."""
    graph = networkx.Graph()
    graph.add_nodes_from(switch.name for switch in topology.switches)
    graph.add_edges_from((link.a, link.b) for link in topology.links if link.a in graph and link.b in graph)
    return dict(networkx.all_pairs_shortest_path_length(graph))


def check_routes(topology, down=frozenset()):
    """Longest-prefix lookups at every switch, against shortest paths of networkx over the links that are left."""
    left = topology.without(down)
    far = distances(left)
    routes = {name: sorted(found, key=lambda route: -route.prefix.prefixlen)
              for name, found in destinations(topology, frozenset(down)).items()}  # fmt: skip
    for host in topology.hosts:
        address, edge = IPv4Address(host.address), topology.host_port(host.name).node.name
        for switch in topology.switches:
            hops = next((route.hops for route in routes[switch.name] if address in route.prefix), ())
            if switch.name == edge:
                assert [hop.node.name for hop in hops] == [host.name]
                continue
            # Each strictly nearer, so that no walk returns; and all that are, so that sets are complete.
            expected = {
                n.port
                for n in left.neighbors(switch.name)
                if not n.node.is_host and far[n.node.name].get(edge) == far[switch.name].get(edge, 0) - 1
            }
            assert {hop.port for hop in hops} == expected
            assert expected or edge not in far[switch.name]


@pytest.mark.parametrize("spec", SPECS)
def test_routes_of_the_whole_network_and_after_any_failure(spec):
    topology = parse_choice(spec).build()
    check_routes(topology)
    for link in topology.links:
        if any(topology.node(name).is_host for name, _ in link.ends):
            continue
        check_routes(topology, {link})


@pytest.mark.parametrize("spec", SPECS)
def test_k_shortest_paths_are_the_first_of_all_simple_paths(spec):
    """Against networkx, which lists every simple path in the order of length; parallel links are paths of their own."""
    topology = parse_choice(spec).build()
    graph = networkx.Graph()
    for link in topology.links:
        if not any(topology.node(name).is_host for name, _ in link.ends):
            graph.add_edge(link.a, link.b)
    k = 6
    for a, b, paths in list(k_shortest_paths(topology, k))[:12]:
        assert len({tuple(hop.link for hop in path.hops) for path in paths}) == len(paths)
        for path in paths:
            assert path.switches[0] == a and path.switches[-1] == b
            assert len(set(path.switches)) == len(path.switches)
        lengths = []
        for nodes in networkx.shortest_simple_paths(graph, a, b):
            ways = 1
            for here, there in zip(nodes, nodes[1:], strict=False):
                ways *= len(topology.links_between(here, there))
            lengths += [len(nodes) - 1] * ways
            if len(lengths) >= k:
                break
        assert [len(path.hops) for path in paths] == lengths[:k]


@given(random_topologies())
def test_a_network_in_parts_is_told_with_two_hosts_of_them(topology):
    far = distances(topology)
    edges = {topology.host_port(host.name).node.name for host in topology.hosts}
    if all(b in far[a] for a in edges for b in edges):
        check_connected(topology)
        return
    with pytest.raises(TopologyError, match="links: no path from 'h1' to '(h.)': the network is in parts") as refused:
        check_connected(topology)
    other = str(refused.value).split("'")[3]
    assert topology.host_port(other).node.name not in far[topology.host_port("h1").node.name]


def test_a_host_cannot_lose_its_only_link():
    topology = parse_choice("dumbbell").build()
    with pytest.raises(TopologyError, match="host 'h1' has no link to a switch"):
        topology.without(topology.links_between("h1", "s1"))
