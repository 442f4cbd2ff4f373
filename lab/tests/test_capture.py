"""Which link a person means."""

import pytest

from lab.capture import find_link
from lab.errors import UsageError
from mininet_topos.topology import Link, Node, Topology

SWITCHES = [Node.switch(1, "edge", 0), Node.switch(2, "edge", 1), Node.switch(3, "edge", 2, name="leaf_1")]
HOSTS = [Node.host(0, "10.0.1.2/24"), Node.host(1, "10.0.2.2/24")]
LINKS = (
    Link("h1", 0, "s1", 1, 10**9, 0),
    Link("h2", 0, "s2", 1, 10**9, 0),
    Link("s1", 2, "s2", 2, 10**9, 0),
    Link("s1", 3, "s2", 3, 10**9, 0),
    Link("s2", 4, "leaf_1", 1, 10**9, 0),
)
TOPOLOGY = Topology((*SWITCHES, *HOSTS), LINKS)


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("h1", 0), ("h1-s1", 0), ("s1-h1", 0), ("h1-eth0", 0), ("s2:1", 1), ("s2-eth3", 3), ("s1-eth3:s2-eth3", 3),
        ("s2-leaf_1", 4), ("leaf_1-s2", 4), ("leaf_1-eth1", 4),
    ],
)  # fmt: skip
def test_the_link_that_is_meant(name: str, index: int) -> None:
    assert find_link(TOPOLOGY, name) == LINKS[index]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("s1-s2", "there are 2 links s1-s2: say which by an end, s1-eth2, s1-eth3."),
        ("s1", "s1 is a switch: say which of its links, s1-h1, s1-s2, s1-s2."),
        ("h1-h2", "no link 'h1-h2' in the running laboratory; it has h1-s1, h2-s2, s1-s2, "),
        ("s1-eth9", "no link 's1-eth9' in the running laboratory; it has "),
    ],
)
def test_what_is_ambiguous_or_not_there(name: str, message: str) -> None:
    with pytest.raises(UsageError) as error:
        find_link(TOPOLOGY, name)
    assert str(error.value).startswith(message)
