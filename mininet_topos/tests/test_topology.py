"""The topology model: derived values, JSON, and the text of every refusal."""

import dataclasses
import json

import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mininet_topos import paths
from mininet_topos.fattree import fattree
from mininet_topos.tests.examples import dumbbell, random_topologies
from mininet_topos.topology import Link, Node, Topology, TopologyError, host_mac, port_mac


def test_macs_are_derived_unicast_and_locally_administered():
    assert host_mac("10.3.1.2") == "02:00:0a:03:01:02"
    assert port_mac(20, 3) == "06:00:00:14:00:03"
    for mac in (host_mac("255.255.255.255"), port_mac(65535, 65535)):
        assert int(mac[:2], 16) & 0b11 == 0b10


def test_host_knows_its_gateway():
    topology = dumbbell()
    assert topology.node("h1").gateway == "10.0.1.1"
    assert topology.gateway_mac("h1") == topology.mac("s1", topology.host_port("h1").node_port)
    assert topology.port_of("s1", "s2") == 3
    assert [host.name for host in topology.hosts_of("s1")] == ["h1", "h2"]


def test_links_that_failed_are_left_out():
    topology = fattree(4, 10**9, 1000)
    (failed,) = topology.links_between("s5", "s13")
    left = topology.without([failed])
    assert left.links_between("s13", "s5") == ()
    assert len(left.links) == len(topology.links) - 1 and left.nodes == topology.nodes
    assert left.path_rtt_ns("h1", "h3", 1000) == topology.path_rtt_ns("h1", "h3", 1000)
    assert topology.links_between("s1", "s2") == ()
    with pytest.raises(TopologyError, match=r"nodes\[20\]: host 'h1' has no link to a switch"):
        topology.without(topology.links_between("h1", "s13"))


@given(random_topologies())
def test_json_round_trip(topology):
    assert Topology.from_json(topology.to_json()) == topology


@given(random_topologies())
def test_next_hops_are_exactly_the_first_links_of_shortest_paths(topology):
    graph = networkx.MultiGraph()
    graph.add_nodes_from(switch.name for switch in topology.switches)
    for link in topology.links:
        if link.a in graph and link.b in graph:
            graph.add_edge(link.a, link.b)
    for target in topology.switches:
        distance = networkx.single_source_shortest_path_length(graph, target.name)
        found = paths.next_hops(topology, target.name)
        assert set(found) == set(distance) - {target.name}
        for name, hops in found.items():
            expected = [
                n.port
                for n in topology.neighbors(name)
                if n.node.name in graph and distance[n.node.name] + 1 == distance[name]
            ]
            assert [hop.port for hop in hops] == expected


def test_times_of_a_dumbbell_by_hand():
    topology = dumbbell(rate_bps=1_000_000_000, delay_ns=10_000)
    # Three links: 1000 bytes take 8 us on each; the reply of 62 bytes takes 496 ns.
    assert paths.delay_ns(topology, "h1", "h3", 1000) == 3 * (10_000 + 8_000)
    assert topology.path_rtt_ns("h1", "h3", 1000) == 3 * (10_000 + 8_000) + 3 * (10_000 + 496)
    assert topology.path_rtt_ns("h1", "h2", 1000) == 2 * (10_000 + 8_000) + 2 * (10_000 + 496)
    assert topology.bdp_bytes("h1", "h3", 1000) == -(-(54_000 + 31_488) // 8)
    assert topology.path_rtt_ns("h1", "h1", 1000) == 0


@given(random_topologies(), st.integers(64, 4096))
def test_max_rtt_is_the_largest_rtt(topology, frame_bytes):
    def reached(a, b):
        return topology.host_port(b).node.name in paths.hops_to_switch(topology, topology.host_port(a).node.name)

    pairs = [(a.name, b.name) for a in topology.hosts for b in topology.hosts if a != b and reached(a.name, b.name)]
    largest = max((topology.path_rtt_ns(a, b, frame_bytes) for a, b in pairs), default=0)
    assert paths.max_rtt_ns(topology, frame_bytes) == largest


def test_unreachable_host_is_named():
    base = dumbbell()
    topology = Topology(base.nodes, tuple(link for link in base.links if {link.a, link.b} != {"s1", "s2"}))
    with pytest.raises(TopologyError, match="links: no path from 'h1' to 'h3'"):
        topology.path_rtt_ns("h1", "h3", 100)


def _changed(**changes):
    """A dumbbell with fields of one node or link changed: `node_h1={...}`, `link_0={...}`."""
    base = dumbbell()
    nodes = tuple(dataclasses.replace(n, **changes.get(f"node_{n.name}", {})) for n in base.nodes)
    links = tuple(dataclasses.replace(link, **changes.get(f"link_{i}", {})) for i, link in enumerate(base.links))
    return lambda: Topology(nodes, links)


# nodes: s1 s2 h1 h2 h3 h4; links: 0 h1-s1, 1 h2-s1, 2 h3-s2, 3 h4-s2, 4 s1-s2
REFUSALS = [
    (_changed(node_h2={"name": "h1"}), "nodes[3].name: 'h1' is already taken by nodes[2], 'h1'"),
    (_changed(node_h2={"mac": host_mac("10.0.1.2")}), "nodes[3].mac: '02:00:0a:00:01:02' is already taken by nodes[2]"),
    (_changed(node_h2={"ipv4": "10.0.1.2/16"}), "nodes[3].ipv4: '10.0.1.2' is already taken by nodes[2], 'h1'"),
    (_changed(node_s2={"device_id": 1}), "nodes[1].device_id: 1 is already taken by nodes[0], 's1'"),
    (_changed(node_s2={"device_id": None}), "nodes[1].device_id: of a switch must be 1 to 65535, is None"),
    (_changed(node_s2={"device_id": 0}), "nodes[1].device_id: of a switch must be 1 to 65535, is 0"),
    (_changed(node_s2={"ipv4": "10.0.0.1/24"}), "nodes[1].ipv4: a switch has no IPv4 address"),
    (_changed(node_s2={"kind": "router"}), "nodes[1].kind: must be 'host' or 'switch', not 'router'"),
    (_changed(node_h1={"device_id": 7}), "nodes[2].device_id: a host has no device id"),
    (_changed(node_h1={"ipv4": None}), "nodes[2].ipv4: of a host must be address/prefix length, is None"),
    (_changed(node_h1={"ipv4": "10.0.1.2"}), "nodes[2].ipv4: of a host must be address/prefix length, is '10.0.1.2'"),
    (_changed(node_h1={"ipv4": "10.0.1.300/24"}), "nodes[2].ipv4: "),
    (_changed(node_h1={"ipv4": "10.0.1.2/32"}), "nodes[2].ipv4: 10.0.1.2/32: must be a plain address with a prefix"),
    (_changed(node_h1={"gateway_ipv4": "10.0.2.9"}), "gateway_ipv4: 10.0.2.9 is no host's address of 10.0.1.0/24"),
    (_changed(node_h1={"gateway_ipv4": "10.0.1.0"}), "nodes[2].gateway_ipv4: 10.0.1.0 is no host's address of"),
    (_changed(node_h1={"gateway_ipv4": "10.0.1.2"}), "nodes[2].gateway_ipv4: 10.0.1.2 is the host's own address"),
    (_changed(node_h1={"gateway_ipv4": "here"}), "nodes[2].gateway_ipv4: "),
    (_changed(node_h1={"gateway_ipv4": "10.0.1.3"}), "nodes[2].ipv4: its gateway 10.0.1.3 is the address of 'h2'"),
    (_changed(node_s1={"gateway_ipv4": "10.0.1.9"}), "nodes[0].gateway_ipv4: a switch has no IPv4 address"),
    (_changed(node_h1={"ipv4": "10.0.1.2/255.255.255.0"}), "10.0.1.2/255.255.255.0: must be a plain address"),
    (_changed(node_h1={"ipv4": "10.0.1.0/24"}), "nodes[2].ipv4: 10.0.1.0/24 is the network or broadcast address"),
    (_changed(node_h1={"ipv4": "10.0.1.1/24"}), "nodes[2].ipv4: 10.0.1.1 is the gateway of 10.0.1.0/24"),
    (_changed(node_h1={"ipv4": "10.0.0.5/22"}, node_h3={"ipv4": "10.0.0.1/28"}), "is the gateway of 10.0.0.0/28"),
    (_changed(node_h1={"ipv4": "10.0.0.5/22"}, node_h3={"ipv4": "10.0.0.1/8"}), "is the gateway of 10.0.0.0/8"),
    (_changed(node_h1={"mac": "02:00:0A:00:01:02"}), "nodes[2].mac: '02:00:0A:00:01:02' must be six lower-case"),
    (_changed(node_h1={"mac": "01:00:0a:00:01:02"}), "nodes[2].mac: 01:00:0a:00:01:02 is a multicast address"),
    (_changed(node_h1={"mac": port_mac(1, 3)}), "nodes[2].mac: 06:00:00:01:00:03 is the MAC of port 3 of 's1'"),
    (_changed(node_h1={"name": "h1; rm -r"}), "nodes[2].name: 'h1; rm -r' must be a letter and up to 31 letters"),
    (_changed(node_h1={"index": -1}), "nodes[2].index: must not be negative, is -1"),
    (_changed(link_4={"b": "s9"}), "links[4].b: no node named 's9' among s1, s2, h1, h2, h3, h4"),
    (_changed(link_4={"b": "s1", "port_b": 9}), "links[4]: connects 's1' with itself"),
    (_changed(link_4={"port_a": 1}), "links[4].port_a: port 1 of 's1' is used by links[0]"),
    (_changed(link_4={"port_a": 0}), "links[4].port_a: ports of switches count from 1, not 0"),
    (_changed(link_0={"port_a": 1}), "links[0].port_a: a host's port is 0, not 1"),
    (_changed(link_0={"b": "h2", "port_b": 0}), "links[0]: connects the hosts 'h1' and 'h2' without a switch"),
    (_changed(link_0={"a": "s2", "port_a": 9}), "nodes[2]: host 'h1' has no link to a switch"),
    (_changed(link_4={"rate_bps": 0}), "links[4].rate_bps: must be positive, is 0"),
    (_changed(link_4={"delay_ns": -1}), "links[4].delay_ns: must not be negative, is -1"),
    (_changed(link_4={"loss": 1.5}), "links[4].loss: must be a probability from 0 to 1, is 1.5"),
    (_changed(link_4={"loss": float("nan")}), "links[4].loss: must be a probability from 0 to 1, is nan"),
    (lambda: dumbbell().node("s7"), "node: no node named 's7' among s1, s2"),
    (lambda: dumbbell().port_of("h1", "s2"), "link: no link between 'h1' and 's2'"),
    (lambda: dumbbell().host_port("s1"), "host: 's1' is a switch"),
    (lambda: dumbbell().node("s1").address, "s1: only hosts have IPv4 addresses"),
]


@pytest.mark.parametrize(("make", "text"), REFUSALS, ids=[text[:60] for _, text in REFUSALS])
def test_refusals(make, text):
    with pytest.raises(TopologyError) as refused:
        make()
    assert text in str(refused.value)


def test_gateway_that_is_a_host():
    base = dumbbell()
    nodes = (*base.nodes[:5], dataclasses.replace(base.nodes[5], ipv4="10.0.1.1/8"))
    with pytest.raises(TopologyError, match=r"nodes\[2\].ipv4: its gateway 10.0.1.1 is the address of 'h4'"):
        Topology(nodes, base.links)


def _edited(**edits):
    document = json.loads(dumbbell().to_json())
    document.update(edits)
    return json.dumps(document)


def _edited_item(key, position, **edits):
    document = json.loads(dumbbell().to_json())
    document[key][position].update(edits)
    return json.dumps(document)


def _without(key, position, field):
    document = json.loads(dumbbell().to_json())
    del document[key][position][field]
    return json.dumps(document)


JSON_REFUSALS = [
    ("{", "document: not JSON: "),
    (b"\xff\xfe\xfd", "document: not JSON: "),
    ("[" * 100_000, "document: not JSON: "),
    ("[]", "document: must be a JSON object"),
    ("{}", "format: must be 'plait-topology-1', not None"),
    (_edited(nodes={}), "nodes: must be a list"),
    (_edited(name=3), "name: must be a string"),
    (_edited(colour="red"), "document: unknown field 'colour'; known are format, links, name, nodes"),
    (_edited(links=["s1-s2"]), "links[0]: must be an object"),
    (_edited_item("links", 1, bandwidth=3), "links[1]: unknown field 'bandwidth'; known are a, b,"),
    (_edited_item("links", 1, rate_bps="10G"), "links[1].rate_bps: must be int, not '10G'"),
    (_edited_item("links", 1, rate_bps=1e9), "links[1].rate_bps: must be int, not 1000000000.0"),
    (_edited_item("links", 1, port_b=True), "links[1].port_b: must be int, not True"),
    (_edited_item("nodes", 0, device_id="1"), "nodes[0].device_id: must be int, not '1'"),
    (_without("links", 2, "rate_bps"), "links[2].rate_bps: missing"),
    (_without("nodes", 2, "mac"), "nodes[2].mac: missing"),
]


@pytest.mark.parametrize(("text", "message"), JSON_REFUSALS, ids=[message[:60] for _, message in JSON_REFUSALS])
def test_json_refusals(text, message):
    with pytest.raises(TopologyError) as refused:
        Topology.from_json(text)
    assert message in str(refused.value)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=5), children, max_size=3),
    max_leaves=5,
)


@given(st.sampled_from(["nodes", "links"]), st.integers(0, 4), st.data())
def test_one_wrong_value_is_named_or_accepted(key, position, data):
    document = json.loads(dumbbell().to_json())
    field = data.draw(st.sampled_from(sorted(document[key][position])))
    document[key][position][field] = data.draw(json_values)
    try:
        topology = Topology.from_json(json.dumps(document))
    except TopologyError as refused:
        assert refused.field.split("[")[0] in ("nodes", "links")
    else:
        assert Topology.from_json(topology.to_json()) == topology


def test_absent_optional_fields_take_their_defaults():
    assert Topology.from_json(_without("links", 4, "loss")).links[4].loss == 0.0


def test_lists_are_frozen_into_tuples():
    switch = Node.switch(1, "edge", 0)
    topology = Topology([switch, Node.host(0, "10.0.0.2/24")], [Link("h1", 0, "s1", 1, 1, 0)])
    assert isinstance(topology.nodes, tuple) and isinstance(topology.links, tuple)
    with pytest.raises(dataclasses.FrozenInstanceError):
        topology.name = "other"
    assert hash(topology) == hash(Topology(topology.nodes, topology.links))


# --- fat-tree ---

small_even = st.sampled_from([2, 4, 6, 8])


@given(small_even)
def test_fattree_counts_and_degrees(k):
    topology = fattree(k, 10**9, 1000)
    layers = [switch.layer for switch in topology.switches]
    assert len(topology.hosts) == k**3 // 4
    assert (layers.count("core"), layers.count("agg"), layers.count("edge")) == (k * k // 4, k * k // 2, k * k // 2)
    assert len(topology.links) == 3 * k**3 // 4
    for switch in topology.switches:
        assert topology.ports(switch.name) == tuple(range(1, k + 1))
    assert [switch.device_id for switch in topology.switches] == list(range(1, 5 * k * k // 4 + 1))
    assert len({host.address for host in topology.hosts}) == len(topology.hosts)


@given(small_even)
def test_fattree_path_counts_have_their_closed_form(k):
    topology = fattree(k, 10**9, 1000)
    graph = networkx.Graph((link.a, link.b) for link in topology.links)
    half = k // 2

    def count(a, b):
        return len(list(networkx.all_shortest_paths(graph, a, b)))

    if half > 1:
        assert count("h1", "h2") == 1  # same edge
        assert count("h1", f"h{half + 1}") == half  # same pod
    assert count("h1", f"h{half * half + 1}") == half * half  # another pod


def test_fattree_addresses_are_those_of_the_paper():
    topology = fattree(4, 10**9, 1000)
    assert [host.ipv4 for host in topology.hosts[:5]] == [
        "10.0.0.2/24",
        "10.0.0.3/24",
        "10.0.1.2/24",
        "10.0.1.3/24",
        "10.1.0.2/24",
    ]
    for host in topology.hosts:
        edge = topology.host_port(host.name).node
        assert edge.layer == "edge"
        pod, position = divmod(edge.index, 2)
        assert host.address.startswith(f"10.{pod}.{position}.")


def test_fattree_host_rate_and_loss():
    topology = fattree(2, 10**9, 1000, host_rate_bps=10**8, loss=0.01)
    rates = {link.rate_bps for link in topology.links if "h" in link.a + link.b}
    assert rates == {10**8}
    assert all(link.loss == 0.01 for link in topology.links)


@pytest.mark.parametrize("k", [-2, 0, 1, 3, 7, 256])
def test_fattree_refuses_other_k(k):
    with pytest.raises(TopologyError, match=f"k: must be even and from 2 to 254, is {k}"):
        fattree(k, 10**9, 1000)
