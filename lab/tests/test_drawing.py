"""Pictures of topologies: where nodes stand, and that what is written is a picture of all of them."""

import xml.etree.ElementTree
from itertools import combinations

import pytest

from lab import drawing
from lab.drawing_layout import LAYOUTS, default_layout
from mininet_topos.catalogue import parse_choice

SPECS = ["fattree", "leafspine:parallel=2", "jellyfish", "dumbbell", "mprdma", "dumbbell:left=0,right=0"]


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_node_has_a_place_of_its_own(spec, layout):
    topology = parse_choice(spec).build()
    place = LAYOUTS[layout](topology)
    assert set(place) == {node.name for node in topology.nodes}
    for (_, (xa, ya)), (_, (xb, yb)) in combinations(place.items(), 2):
        assert abs(xa - xb) + abs(ya - yb) > 0.2


def test_trees_are_drawn_in_layers_and_others_in_circles():
    assert [default_layout(parse_choice(spec).build()) for spec in SPECS] == [
        *("layers", "layers", "circle", "circle", "layers", "circle")
    ]


def test_layers_stand_above_each_other():
    topology = parse_choice("fattree").build()
    place = LAYOUTS["layers"](topology)
    heights = {
        layer: {place[node.name][1] for node in topology.nodes if node.layer == layer}
        for layer in ("core", "agg", "edge", "host")
    }
    assert all(len(rows) == 1 for rows in heights.values())
    order = [rows.pop() for rows in heights.values()]
    assert order == sorted(order, reverse=True)
    # Hosts stand under their switch.
    for host in topology.hosts:
        edge = topology.host_port(host.name).node.name
        assert abs(place[host.name][0] - place[edge][0]) <= 1


@pytest.mark.parametrize("suffix", drawing.FORMATS)
def test_a_picture_is_written(tmp_path, suffix):
    file = tmp_path / f"net{suffix}"
    topology = parse_choice("leafspine").build()
    place = drawing.draw(topology, file, title="A & B")
    assert set(place) == {node.name for node in topology.nodes}
    begin = {".svg": b"<?xml", ".png": b"\x89PNG", ".pdf": b"%PDF"}[suffix]
    assert file.read_bytes().startswith(begin)


def test_an_svg_holds_all_links_and_is_the_same_each_time(tmp_path):
    topology = parse_choice("leafspine:parallel=2").build()
    files = [tmp_path / name for name in ("a.svg", "b.svg")]
    for file in files:
        drawing.draw(topology, file)
    assert files[0].read_bytes() == files[1].read_bytes()
    root = xml.etree.ElementTree.parse(files[0]).getroot()
    # Links are the patches without fill that are drawn as quadratic curves.
    paths = root.iter("{http://www.w3.org/2000/svg}path")
    curves = [path for path in paths if "Q" in path.get("d", "") and "fill: none" in path.get("style", "")]
    assert len(curves) == len(topology.links)


def test_a_caption_tells_the_links():
    topology = parse_choice("dumbbell:bottleneck_rate=10M").build()
    assert drawing.caption(topology) == "dumbbell-4x4: 8 hosts, 2 switches, 9 links (10Mb/s 50us; 100Mb/s 50us)"
