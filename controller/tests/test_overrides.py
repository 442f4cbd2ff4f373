"""Overrides: what they do to routes, also when ports are down, and what a file may not say."""

from ipaddress import IPv4Network

import pytest

from controller.errors import ControllerError
from controller.overrides import Override, load_overrides
from controller.policy import Policy, Router
from controller.tests.programs import schema
from controller.tests.walk import lookup
from mininet_topos.fattree import fattree

TOPOLOGY = fattree(4, 10**9, 1000)
P4INFO = schema()


def ports(overrides, switch, address, down=()):
    policy = Policy(overrides=tuple(overrides))
    return lookup(Router(TOPOLOGY, P4INFO, policy).entries(frozenset(down))[switch], address)


def override(switch, destination, *ports):
    return Override(switch, IPv4Network(destination), ports)


def test_routes_inside_the_destination_have_its_ports_and_others_stay():
    wanted = [override("s13", "10.1.0.0/16", 4)]
    assert ports(wanted, "s13", "10.1.0.2") == ports(wanted, "s13", "10.1.1.3") == [4]
    assert ports(wanted, "s13", "10.2.0.2") == ports(wanted, "s14", "10.1.0.2") == [3, 4]


def test_a_host_inside_a_network_gets_a_route_of_its_own():
    wanted = [override("s13", "10.1.0.3/32", 3)]
    assert ports(wanted, "s13", "10.1.0.3") == [3]
    assert ports(wanted, "s13", "10.1.0.2") == [3, 4]


def test_the_last_override_wins():
    assert ports([override("s13", "10.0.0.0/8", 3), override("s13", "10.1.0.0/24", 4)], "s13", "10.1.0.2") == [4]


def test_dead_ports_are_left_out_and_without_any_the_policys_own_hold():
    links = {port: TOPOLOGY.neighbors("s13")[port - 1].link for port in (3, 4)}
    wanted = [override("s13", "10.1.0.0/24", 3, 4)]
    assert ports(wanted, "s13", "10.1.0.2", [links[3]]) == [4]
    assert ports([override("s13", "10.1.0.0/24", 3)], "s13", "10.1.0.2", [links[3]]) == [4]


def test_a_file(tmp_path):
    path = tmp_path / "overrides.toml"
    path.write_text(
        '[[route]]\nswitch = "s5"\ndestination = "10.1.0.0/24"\nports = [3]\n'
        '[[route]]\nswitch = "s5"\ndestination = "h16"\nports = [3, 4]\n'
    )
    assert load_overrides(path, TOPOLOGY) == (override("s5", "10.1.0.0/24", 3), override("s5", "10.3.1.3/32", 3, 4))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[route", "Expected"),
        ("[routes]", "holds [[route]] sections only"),
        ("route = 3", "holds [[route]] sections only"),
        ('[[route]]\nswitch = "s5"', "route 1: has exactly switch, destination, ports"),
        (
            '[[route]]\nswitch = "s55"\ndestination = "h1"\nports = [1]',
            "route 1: switch: no switch 's55'; there are s1,",
        ),
        (
            '[[route]]\nswitch = "s5"\ndestination = "h1"\nports = [9]',
            "ports: [9]; a list of some of s5's ports [1, 2,",
        ),
        ('[[route]]\nswitch = "s5"\ndestination = "h1"\nports = []', "ports: []; a list of some of s5's ports"),
        (
            '[[route]]\nswitch = "s5"\ndestination = "s1"\nports = [1]',
            "destination: 's1' is no host and no prefix such",
        ),
        ('[[route]]\nswitch = "s5"\ndestination = 5\nports = [1]', "destination: 5 is no host and no prefix such"),
        ('[[route]]\nswitch = "s5"\ndestination = "10.0.0.1/8"\nports = [1]', "is no host and no prefix such"),
    ],
)
def test_files_that_cannot_be_are_refused_by_field(tmp_path, text, message):
    path = tmp_path / "overrides.toml"
    path.write_text(text)
    with pytest.raises(ControllerError) as refused:
        load_overrides(path, TOPOLOGY)
    assert str(refused.value).startswith(str(path)) and message in str(refused.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ControllerError, match="nowhere.toml: No such file"):
        load_overrides(tmp_path / "nowhere.toml", TOPOLOGY)
