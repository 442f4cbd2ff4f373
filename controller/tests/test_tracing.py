"""Paths put together from the copies that switches make: against the walks that the packets took."""

import random

from hypothesis import assume, given
from hypothesis import strategies as st

from controller.tracing import Hop, Selection, Sighting, packet_paths
from mininet_topos.tests.examples import dumbbell, random_topologies


@st.composite
def walks(draw):
    """A topology, and per walk its host and hops: anywhere, through loops as well, to a host or into the void."""
    topology = draw(random_topologies())
    assume(topology.hosts)
    found = []
    for _ in range(draw(st.integers(1, 6))):
        host = draw(st.sampled_from(topology.hosts))
        here, hops = topology.host_port(host.name), []
        while not here.node.is_host and len(hops) < 12:
            out = draw(st.sampled_from(topology.neighbors(here.node.name)))
            hops.append(
                Hop(here.node.name, here.node_port, out.port, draw(st.integers(0, 99)), draw(st.integers(0, 99)))
            )
            here = out
        found.append((host.name, hops, here.node.name if here.node.is_host else None))
    return topology, found


def sightings_of(packet, hops, ttl=63):
    return [Sighting(packet, ttl - i, hop) for i, hop in enumerate(hops)]


@given(walks(), st.randoms(use_true_random=False))
def test_every_walk_is_found_again_from_its_shuffled_hops(drawn, shuffle):
    topology, taken = drawn
    seen = [each for packet, (_, hops, _) in enumerate(taken) for each in sightings_of(packet, hops)]
    shuffle.shuffle(seen)
    paths = {path.packet: path for path in packet_paths(seen, topology)}
    assert len(paths) == len(taken) == len(packet_paths(seen, topology))
    for packet, (source, hops, destination) in enumerate(taken):
        assert paths[packet].hops == tuple(hops)
        assert (paths[packet].source, paths[packet].destination) == (source, destination)


@given(walks(), st.integers(2, 4), st.randoms(use_true_random=False))
def test_transmissions_of_one_packet_stay_apart(drawn, times, shuffle):
    """The same walk several times: switches mix at will, each tells its copies in the order in which they left."""
    topology, ((source, hops, _), *_) = drawn
    runs = [[Hop(h.switch, h.ingress_port, h.egress_port, run, i) for i, h in enumerate(hops)] for run in range(times)]
    of_place = [[sightings_of("p", run)[i] for run in runs] for i in range(len(hops))]
    order = [i for i in range(len(hops)) for _ in runs]
    shuffle.shuffle(order)
    seen = [of_place[i].pop(0) for i in order]
    paths = packet_paths(seen, topology)
    assert [path.hops for path in paths] == [tuple(run) for run in runs]
    assert {path.source for path in paths} == {source}


@given(st.integers(3, 12), st.data())
def test_a_lost_copy_leaves_two_parts(length, data):
    """h1 to a host of the dumbbell, to and fro over the link between its switches (ports 3)."""
    hops = [Hop(f"s{1 + i % 2}", 3 if i else 1, 3 if i < length - 1 else 2, 0, 0) for i in range(length)]
    lost = data.draw(st.integers(1, length - 2))
    seen = sightings_of("p", hops)
    del seen[lost]
    random.Random(lost).shuffle(seen)
    parts = {path.hops: path for path in packet_paths(seen, dumbbell())}
    first, rest = parts.pop(tuple(hops[:lost])), parts.pop(tuple(hops[lost + 1 :]))
    assert parts == {}
    assert (first.source, first.destination) == ("h1", None)
    assert (rest.source, rest.destination) == (None, "h4" if length % 2 == 0 else "h2")


def test_what_is_not_a_link_does_not_continue():
    topology = dumbbell()
    first, other = Hop("s1", 1, 3, 0, 0), Hop("s2", 1, 2, 0, 0)  # s1's port 3 leads to s2's port 3
    paths = packet_paths([Sighting("p", 63, first), Sighting("p", 62, other)], topology)
    assert [path.hops for path in paths] == [(first,), (other,)]
    unknown = Hop("s9", 1, 2, 0, 0)
    (path,) = packet_paths([Sighting("p", 63, unknown)], topology)
    assert (path.source, path.destination) == (None, None)


def test_a_selection_matches_what_it_names_and_nothing_else():
    every = {"hdr.ipv4.src_addr": ("10.0.1.2", 0xFFFFFFFF), "hdr.ipv4.dst_addr": ("10.0.2.2", 0xFFFFFFFF)}
    every |= {"meta.l4_dst_port": (4791, 0xFFFF)}
    assert dict(Selection("10.0.1.2", "10.0.2.2", 4791).entry().match) == every
    chosen = every | {"meta.l4_src_port": (5, 0xFFFF), "meta.trace.psn": (0, 0xFFFFFF)}
    assert dict(Selection("10.0.1.2", "10.0.2.2", 4791, 5, 0).entry().match) == chosen
