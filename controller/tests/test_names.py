"""Names of hosts and switches in the place of values."""

import pytest

from controller import text
from controller.errors import EntryTextError
from controller.names import names_of
from controller.tests.programs import schema
from mininet_topos.fattree import fattree
from mininet_topos.topology import Topology

TOPOLOGY: Topology = fattree(4, 10**9, 1000)
EDGE = TOPOLOGY.host_port("h1").node.name
PORT = TOPOLOGY.host_port("h1").node_port


def tables():
    return schema().tables


def test_a_host_is_its_address_its_mac_and_the_port_to_it():
    names = names_of(TOPOLOGY, EDGE)
    host = TOPOLOGY.node("h1")
    match = text.parse_match(tables()["ipv4_lpm"], ["dst_addr=h1/24"], names)
    assert text.parse_match(tables()["ipv4_lpm"], [f"dst_addr={host.address}/24"]) == match
    action = text.parse_action(tables()["dmac"], f"deliver({EDGE}-eth{PORT}, h1, h1)", names=names)
    written = f"deliver({TOPOLOGY.mac(EDGE, PORT)}, {host.mac}, {PORT})"
    assert text.parse_action(tables()["dmac"], written) == action


def test_a_switch_is_the_mac_and_the_port_of_the_first_link_to_it():
    names = names_of(TOPOLOGY, EDGE)
    above = next(near for near in TOPOLOGY.neighbors(EDGE) if not near.node.is_host)
    action = text.parse_action(tables()["dmac"], f"deliver(1, {above.node.name}, {above.node.name})", names=names)
    written = f"deliver(1, {TOPOLOGY.mac(above.node.name, above.node_port)}, {above.port})"
    assert text.parse_action(tables()["dmac"], written) == action


@pytest.mark.parametrize(
    ("table", "match", "message"),
    [
        ("ipv4_lpm", "dst_addr=s1", "hdr.ipv4.dst_addr: s1 has no IPv4 address that this switch knows"),
        ("neighbor", "egress_spec=h16", "standard_metadata.egress_spec: h16 has no port that this switch knows"),
        ("zoo", "ether_type=h1", "hdr.ethernet.ether_type: h1 has no value of 16 bits that this switch knows"),
        ("neighbor", "egress_spec=h99", "standard_metadata.egress_spec: 'h99' is not a number"),
    ],
)
def test_a_name_that_means_nothing_there(table, match, message):
    with pytest.raises(EntryTextError) as error:
        text.parse_match(tables()[table], [match], names_of(TOPOLOGY, EDGE))
    assert str(error.value) == message
