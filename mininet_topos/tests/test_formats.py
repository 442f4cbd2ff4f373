"""Topology files: what is read from small files written by hand, what is refused, and that what is written is read."""

import dataclasses
import json
import xml.etree.ElementTree
from collections import Counter

import networkx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mininet_topos import files
from mininet_topos.catalogue import choose, parse_choice
from mininet_topos.files import FORMATS, parse, read
from mininet_topos.tests.examples import random_topologies
from mininet_topos.topology import Topology, TopologyError

RATE, DELAY = 10**8, 50_000

CONWEAVE = """6 2 5
4 5
0 4 100Gbps 1000ns 0.000000
1 4 100Gbps 1000ns 0.000000
2 5 25Gbps 1us 0.01
3 5 25Gbps 1us
4 5 0.4Gbps 0.002ms 0
"""

HTSIM = """# a comment
Nodes 16
tiers 3
Podsize 4

Tier 0
Downlink_speed_Gbps 100
Radix_Down 2
Radix_Up 2
Downlink_Latency_ns 1000
Switch_Latency_ns 100

Tier 1
Downlink_speed_Gbps 100
Radix_Down 2
Radix_Up 2
Downlink_Latency_ns 2000
Switch_Latency_ns 200

Tier 2
Downlink_speed_Gbps 100
Radix_Down 4
Downlink_Latency_ns 3000
Switch_Latency_ns 300
"""

LEAFSPINE = """Nodes 12
Tiers 2
Podsize 12
Tier 0
Downlink_speed_Gbps 50
Radix_Down 4
Radix_Up 4
Oversubscribed 1
Downlink_Latency_ns 500
Tier 1
Downlink_speed_Gbps 50
Radix_Down 6
Downlink_Latency_ns 700
Bundle 2
"""

P4LANG = {
    "hosts": {
        "h1": {
            "ip": "10.0.1.1/24",
            "mac": "08:00:00:00:01:11",
            "commands": ["route add default gw 10.0.1.10 dev eth0", "arp -i eth0 -s 10.0.1.10 08:00:00:00:01:00"],
        },
        "h2": {"ip": "10.0.2.1/24"},
        "h3": {"ip": "10.0.3.1/31"},
    },
    "switches": {"s1": {"runtime_json": "s1-runtime.json"}, "s2": {}},
    "links": [["h1", "s1-p1"], ["s1-p2", "s2-p3", "5ms", 0.5], ["s2-p1", "h2", 2], ["h3", "s2-p2", "0"]],
}


def text_of(document):
    return json.dumps(document).encode()


def test_conweave_by_hand():
    name, topology = parse(CONWEAVE.encode(), RATE, DELAY, "net")
    assert (name, topology.name) == ("conweave", "net")
    assert [node.name for node in topology.nodes] == ["s1", "s2", "h1", "h2", "h3", "h4"]
    assert [(k.a, k.port_a, k.b, k.port_b, k.rate_bps, k.delay_ns, k.loss) for k in topology.links] == [
        ("h1", 0, "s1", 1, 100 * 10**9, 1000, 0.0),
        ("h2", 0, "s1", 2, 100 * 10**9, 1000, 0.0),
        ("h3", 0, "s2", 1, 25 * 10**9, 1000, 0.01),
        ("h4", 0, "s2", 2, 25 * 10**9, 1000, 0.0),
        ("s1", 3, "s2", 3, 400 * 10**6, 2000, 0.0),
    ]
    assert [host.ipv4 for host in topology.hosts] == ["10.0.0.2/24", "10.0.0.3/24", "10.0.1.2/24", "10.0.1.3/24"]
    assert {switch.layer for switch in topology.switches} == {"tier0"}


def test_conweave_switches_may_have_any_numbers():
    moved = CONWEAVE.replace("4 5\n", "0 3\n", 1)
    for old, new in (("0 4 ", "A "), ("1 4 ", "B "), ("2 5 ", "C "), ("3 5 ", "D "), ("4 5 ", "E ")):
        moved = moved.replace(f"\n{old}", f"\n{new}")
    for name, ends in (("A", "1 0"), ("B", "2 0"), ("C", "4 3"), ("D", "5 3"), ("E", "0 3")):
        moved = moved.replace(f"\n{name} ", f"\n{ends} ")
    assert parse(moved.encode(), RATE, DELAY)[1].links == parse(CONWEAVE.encode(), RATE, DELAY)[1].links


def test_htsim_tree_by_hand():
    name, topology = parse(HTSIM.encode(), RATE, DELAY)
    assert name == "htsim" and (len(topology.hosts), len(topology.switches)) == (16, 20)
    tree = choose("fattree", {"k": 4}).build()
    assert networkx.is_isomorphic(plain_graph(topology), plain_graph(tree))
    # Host to ToR, ToR to aggregation, aggregation to core: half of what the switches at the ends take is added.
    delays = Counter(link.delay_ns for link in topology.links)
    assert delays == {1000 + 50: 16, 2000 + 150: 16, 3000 + 250: 16}


def test_htsim_leaf_spine_with_bundles_by_hand():
    topology = parse(LEAFSPINE.encode(), RATE, DELAY)[1]
    made = choose("leafspine", {"spines": 2, "leaves": 3, "hosts_per_leaf": 4, "parallel": 2}).build()
    assert networkx.is_isomorphic(plain_graph(topology), plain_graph(made))
    assert Counter((link.rate_bps, link.delay_ns) for link in topology.links) == {
        (50 * 10**9, 500): 12,
        (50 * 10**9, 700): 12,
    }


def test_p4lang_by_hand():
    name, topology = parse(text_of(P4LANG), RATE, DELAY)
    assert name == "p4lang"
    assert [(host.ipv4, host.gateway) for host in topology.hosts] == [
        ("10.0.1.1/24", "10.0.1.10"),
        ("10.0.2.1/24", "10.0.2.254"),  # .1 is taken by the host itself
        ("10.0.3.1/31", "10.0.3.0"),
    ]
    assert topology.node("h1").mac == "08:00:00:00:01:11" and topology.node("s2").device_id == 2
    assert [(k.name, k.rate_bps, k.delay_ns) for k in topology.links] == [
        ("h1-eth0:s1-eth1", RATE, DELAY),
        ("s1-eth2:s2-eth3", 500_000, 5_000_000),
        ("s2-eth1:h2-eth0", RATE, 2_000_000),
        ("h3-eth0:s2-eth2", RATE, 0),
    ]


def plain_graph(topology):
    """For comparisons that names, ports and addresses play no part in."""
    graph = networkx.MultiGraph()
    graph.add_nodes_from((node.name, {"kind": node.kind}) for node in topology.nodes)
    graph.add_edges_from((link.a, link.b) for link in topology.links)
    # is_isomorphic looks at attributes only if told to, and hosts are told by their one link.
    return graph


def links_of(topology):
    return Counter((frozenset((k.a, k.b)), k.rate_bps, k.delay_ns, k.loss) for k in topology.links)


def renumbered(topology):
    """Hosts and switches named in their order, as importers of formats without names do."""
    names = {host.name: f"h{i}" for i, host in enumerate(topology.hosts, 1)}
    names |= {switch.name: f"s{i}" for i, switch in enumerate(topology.switches, 1)}
    return Counter(
        (frozenset((names[k.a], names[k.b])), k.rate_bps, k.delay_ns, k.loss) for k in topology.links
    )  # fmt: skip


@given(random_topologies())
def test_conweave_returns_all_links(topology):
    read_back = parse(FORMATS["conweave"].render(topology).encode(), 1, 1)[1]
    assert links_of(read_back) == renumbered(topology)


@given(random_topologies())
def test_p4lang_returns_all_but_losses_and_layers(topology):
    read_back = parse(FORMATS["p4lang"].render(topology).encode(), 1, 1)[1]
    assert [dataclasses.replace(link, loss=0.0) for link in topology.links] == list(read_back.links)
    kept = [(n.name, n.mac, n.ipv4) for n in (*topology.switches, *topology.hosts)]
    assert kept == [(n.name, n.mac, n.ipv4) for n in read_back.nodes]
    assert [host.gateway for host in topology.hosts] == [host.gateway for host in read_back.hosts]


@pytest.mark.parametrize(
    "spec",
    [
        "fattree:k=4,rate=1G",
        "fattree:k=6,rate=10G,delay=1us,core_delay=5us",
        "leafspine:spines=3,leaves=5,hosts_per_leaf=6,rate=1G",
        "leafspine:spines=2,leaves=4,hosts_per_leaf=8,rate=1G,parallel=2,oversubscription=2",
        "mprdma:hosts_per_tor=4",
    ],
)
def test_htsim_returns_regular_trees(spec):
    topology = parse_choice(spec).build()
    read_back = parse(FORMATS["htsim"].render(topology).encode(), 1, 1)[1]
    assert networkx.faster_could_be_isomorphic(*map(plain_graph, (topology, read_back)))
    if len(topology.hosts) <= 32:
        assert networkx.is_isomorphic(*map(plain_graph, (topology, read_back)))
    kinds = [Counter((k.rate_bps, k.delay_ns) for k in each.links) for each in (topology, read_back)]
    assert kinds[0] == kinds[1]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("jellyfish:rate=1G,hosts=40", "topology: jellyfish-20-1 is no regular tree as htsim's .topo describes them"),
        ("dumbbell:rate=1G", "topology: dumbbell-4x4 is no regular tree as htsim's .topo describes them"),
        ("fattree:rate=100M", "rate_bps: 100000000 is no whole number of Gb/s, as .topo needs it"),
        ("mprdma", "rate_bps: tier 0 is oversubscribed 200000000000:160000000000; .topo has whole numbers only"),
    ],
)
def test_htsim_is_for_regular_trees(spec, message):
    with pytest.raises(TopologyError) as refused:
        FORMATS["htsim"].render(parse_choice(spec).build())
    assert str(refused.value) == message


def test_a_tree_with_one_link_gone_is_not_regular():
    whole = parse_choice("fattree:rate=1G").build()
    with pytest.raises(TopologyError, match="no regular tree"):
        FORMATS["htsim"].render(whole.without(whole.links_between("s1", "s5")))


@given(random_topologies())
@settings(max_examples=30)
def test_graphs_hold_every_node_and_link(topology):
    root = xml.etree.ElementTree.fromstring(FORMATS["graphml"].render(topology))
    space = {"g": "http://graphml.graphdrawing.org/xmlns"}
    assert [node.get("id") for node in root.iterfind(".//g:node", space)] == [node.name for node in topology.nodes]
    graph = networkx.parse_graphml(FORMATS["graphml"].render(topology), force_multigraph=True)
    edges = Counter((frozenset((a, b)), e["rate_bps"], e["delay_ns"], e["loss"]) for a, b, e in graph.edges(data=True))
    assert edges == links_of(topology)
    dot = FORMATS["dot"].render(topology)
    assert dot.count(" -- ") == len(topology.links) and dot.count("[shape=") == len(topology.nodes)


def changed(*path, value):
    document = json.loads(json.dumps(P4LANG))
    *outer, last = path
    target = document
    for key in outer:
        target = target[key]
    target[last] = value
    return text_of(document)


NOT_READ = [
    (b"", "document: is empty"),
    (b"\xff\xfe", "document: not text: invalid start byte at byte 0"),
    (b"hello world", "document: 'hello' begins none of the formats: JSON, conweave, htsim"),
    (b"{", "document: not JSON: "),
    (b"{}", "document: has neither \"format\": \"plait-topology-1\" nor p4lang's"),
    (b"[" * 100_000, "document: not JSON: "),
    # conweave
    (b"6 2", "line 1: must be the numbers of nodes, switches and links, has 2 numbers"),
    (b"6 2 x", "line 1: 'x' is not a number"),
    (b"2 3 0", "line 1: says 3 switches of 2 nodes"),
    (b"6 2 5\n4\n", "line 1: says 2 switches, and 1 are listed"),
    (b"6 2 5\n4 6\n", "line 2: switch 6 is none of the 6 nodes, which count from 0"),
    (b"6 2 5\n4 4\n", "line 2: lists 1 different switches, the first line says 2"),
    (CONWEAVE.replace("3 5 25Gbps 1us\n", "").encode(), "line 1: says 5 links, and there are 4"),
    ((CONWEAVE + "0 5 1Gbps 1us 0\n").encode(), "line 8: the first line says 5 links, and here is one more"),
    (CONWEAVE.replace("0 4 100Gbps", "0 100Gbps").encode(), "line 3: '100Gbps' is not a number"),
    (CONWEAVE.replace(" 1us\n", "\n").encode(), "line 6: a link is `end end rate delay loss`, such as `0 4 100Gbps"),
    (CONWEAVE.replace("0 4 100Gbps", "0 9 100Gbps").encode(), "line 3: 9 is none of the 6 nodes, which count from 0"),
    (CONWEAVE.replace("0.4Gbps", "-4Gbps").encode(), "line 7: rate '-4Gbps' is not a number with a unit"),
    (CONWEAVE.replace("0.002ms", "2").encode(), "line 7: time '2': the unit must be ns, us, ms or s."),
    (CONWEAVE.replace("0.01", "1.01").encode(), "line 5: loss 1.01 is no probability from 0 to 1"),
    (CONWEAVE.replace("0.01", "nan").encode(), "line 5: loss nan is no probability from 0 to 1"),
    (CONWEAVE.replace("3 5 25", "2 4 25").encode(), "h3: has a second link; a host has one, to a switch"),
    (CONWEAVE.replace("3 5 25", "3 2 25").encode(), "h4: has a link to another host; a host has one, to a switch"),
    (b"999999999 1 0\n4\n", "hosts: 999999998 of them need a link each, and there are 0 links"),
    (b"3 2 1\n1 2\n1 2 1Gbps 1us\n", "h1: has no link"),
    # htsim
    (HTSIM.replace("Nodes 16", "Nodes 0").encode(), "Nodes: must be 1 to 1000000, is 0"),
    (HTSIM.replace("tiers 3", "tiers 2").encode(), "Tiers: must be 2 or 3, each with a section, is 2 and has"),
    (HTSIM.replace("Tier 2", "Tier 1").encode(), "line 20: tier 1 is there already"),
    (HTSIM.replace("Tier 2", "Tier 3").encode(), "line 20: tier 3 is none of 0, 1 and 2"),
    (HTSIM.replace("Radix_Up 2", "Radix_Up two", 1).encode(), "line 9: must be a key and a whole number, is"),
    (HTSIM.replace("Radix_Up 2", "Radix_Upp 2", 1).encode(), "line 9: unknown key 'Radix_Upp'; known are"),
    (HTSIM.replace("Radix_Up 2", "Radix_Down 2", 1).encode(), "line 9: Radix_Down is there already"),
    (HTSIM.replace("Radix_Up 2", "Radix_Up 4", 1).encode(), "tier 0.Radix_Up: is 4, and there are 2 links to the"),
    (HTSIM.replace("Radix_Down 4", "Radix_Down 8").encode(), "tier 2.Radix_Down: is 8, and there are 4 links to the"),
    (HTSIM.replace("Radix_Down 4", "Radix_Down 3").encode(), "tier 2.Radix_Down: 16 uplinks of tier 1 do not fill"),
    (HTSIM.replace("Podsize 4", "Podsize 5").encode(), "Podsize: 16 nodes are not a multiple of 5"),
    (HTSIM.replace("Radix_Down 2", "Radix_Down 3", 1).encode(), "Podsize: 4 is not a multiple of Radix_Down 3 of"),
    (HTSIM.replace("Radix_Down 2\nRadix_Up 2\n", "Radix_Up 2\n", 1).encode(), "tier 0.Radix_down: missing"),
    (HTSIM.replace("Downlink_speed_Gbps 100", "Downlink_speed_Gbps 0").encode(), "tier 0.Downlink_speed_gbps: must"),
    (HTSIM.replace("Radix_Down 2\n", "Radix_Down 2\nBundle 2\n", 1).encode(), "tier 0.Bundle: hosts have one link"),
    (LEAFSPINE.replace("Oversubscribed 1", "Oversubscribed 7").encode(), "tier 0: speeds and Oversubscribed give no"),
    (LEAFSPINE.replace("Gbps 50", "Gbps 900000000", 1).encode(), "tier 0: has 216000000 uplinks: at most 1000000"),
    # p4lang
    (text_of({**P4LANG, "nodes": {}}), "document: unknown field 'nodes'; known are hosts, links, switches"),
    (text_of({**P4LANG, "switches": []}), "switches: must be an object"),
    (text_of({**P4LANG, "links": {}}), "links: must be a list"),
    (changed("hosts", "h1", value=3), "hosts.h1: must be an object"),
    (changed("hosts", "h1", "ipv6", value="::1"), "hosts.h1: unknown field 'ipv6'; known are commands, ip, mac"),
    (changed("hosts", "h1", "ip", value="10.0.1"), "hosts.h1.ip: "),
    (changed("hosts", "h1", "mac", value=5), "hosts.h1.mac: must be text"),
    (changed("hosts", "h1", "commands", value="ls"), "hosts.h1.commands: must be a list of texts"),
    (changed("hosts", "h1", value={}), "hosts.h1.ip: missing"),
    (changed("hosts", "h2", "ip", value="10.0.1.1/24"), "nodes[3].ipv4: '10.0.1.1' is already taken by nodes[2], 'h1'"),
    (changed("switches", "s1", "colour", value="red"), "switches.s1: unknown field 'colour'; known are cli_input,"),
    (changed("links", 0, value=["h1"]), 'links[0]: must be ["end", "end", latency, Mb/s], of which the last two may'),
    (changed("links", 0, value=["h1", 3]), "links[0][1]: must be a node, such as h1 or s1-p2, not 3"),
    (changed("links", 0, value=["h1", "s3-p1"]), "links[0][1]: 's3-p1' is no host, and no switch with a port such as"),
    (changed("links", 1, 2, value="soon"), "links[1][2]: 'soon' is no latency, such as 5 (ms) or \"50us\""),
    (changed("links", 1, 2, value=-1), "links[1][2]: latency -1 is not from 0 to 10^9 ms"),
    (changed("links", 1, 3, value="fast"), "links[1][3]: 'fast' is no bandwidth in Mb/s"),
    (changed("links", 1, 3, value=0), "links[1][3]: 0 is no bandwidth in Mb/s"),
    (changed("links", 3, value=["h3", "s2-p1"]), "links[3].port_b: port 1 of 's2' is used by links[2]"),
]


@pytest.mark.parametrize(("data", "message"), NOT_READ, ids=[message[:45] for _, message in NOT_READ])
def test_what_is_wrong_is_named_with_its_place(data, message):
    with pytest.raises(TopologyError) as refused:
        parse(data, RATE, DELAY)
    assert str(refused.value).startswith(message)


@given(st.sampled_from([CONWEAVE, HTSIM, LEAFSPINE, json.dumps(P4LANG)]), st.data())
@settings(max_examples=200)
def test_damaged_files_are_refused_or_read(text, data):
    at = data.draw(st.integers(0, len(text)))
    new = data.draw(st.text(alphabet="0123456789-. \n{}[]\",:xG", max_size=4))
    cut = data.draw(st.integers(0, 6))
    try:
        topology = parse((text[:at] + new + text[at + cut :]).encode(), RATE, DELAY)[1]
    except TopologyError as error:
        assert error.field and error.reason
    else:
        assert Topology.from_json(topology.to_json()) == topology


def test_a_file_is_named_in_its_errors(tmp_path):
    file = tmp_path / "net.txt"
    file.write_text("6 2\n")
    with pytest.raises(TopologyError) as refused:
        read(file, RATE, DELAY)
    assert str(refused.value).startswith(f"{file}: line 1: must be")
    with pytest.raises(TopologyError, match="none.txt: cannot be read: No such file or directory"):
        read(tmp_path / "none.txt", RATE, DELAY)


def test_a_huge_file_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_MAX_BYTES", 100)
    (tmp_path / "net.txt").write_text("1" * 101)
    with pytest.raises(TopologyError, match="net.txt: is longer than 0 MiB"):
        read(tmp_path / "net.txt", RATE, DELAY)


def test_rates_are_scaled(tmp_path):
    file = tmp_path / "net.txt"
    file.write_text(CONWEAVE)
    rates = [link.rate_bps for link in choose(str(file), {"scale": 0.001}).build().links]
    assert rates == [100 * 10**6] * 2 + [25 * 10**6] * 2 + [400_000]
    for wrong in (0, -1, "nan", "inf"):
        with pytest.raises(TopologyError, match="scale: must be a positive number, is"):
            choose(str(file), {"scale": wrong}).build()


def test_a_file_gives_what_it_has_and_the_user_the_rest(tmp_path):
    file = tmp_path / "topology.json"
    file.write_text(json.dumps(P4LANG))
    topology = choose(str(file), {"rate": "7M", "delay": "1us"}).build()
    assert [(k.rate_bps, k.delay_ns) for k in topology.links][:2] == [(7_000_000, 1_000), (500_000, 5_000_000)]
