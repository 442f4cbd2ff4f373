"""Parameters of the load balancers: derived from rates and round trips, and the text of every refusal."""

import pytest

from controller.errors import ControllerError
from controller.load_balancing import (
    Balancing,
    deflection_entries,
    flowlet_entries,
    least_remaining_bytes,
    srpt_entries,
)
from mininet_topos.tests.examples import dumbbell

TOPOLOGY = dumbbell(rate_bps=10**9, delay_ns=100_000)


def test_the_flowlet_gap_is_a_round_trip():
    # 1000-byte frames: round trip 3 * (100000 + 8000) + 3 * (100000 + 496) = 625488 ns.
    (entry,) = flowlet_entries(TOPOLOGY, Balancing(), 1000)["s1"]
    assert entry.action.args == {"us": 625}
    (entry,) = flowlet_entries(TOPOLOGY, Balancing(flowlet_rtts=0.2), 1000)["s1"]
    assert entry.action.args == {"us": 125}


def test_deflection_goes_to_switches_from_every_port():
    ports, *limits = deflection_entries(TOPOLOGY, Balancing(), 1000)["s1"]
    assert ports.action.args == {"min_ttl": 40, "count": 1, "ports_0_7": 3, "ports_8_15": 0}
    assert {entry.match["standard_metadata.egress_spec"] for entry in limits} == {1, 2, 3}
    assert {entry.action.args["bytes"] for entry in limits} == {2 * 78186}


def remaining_class(length):
    """What a NIC writes: from the definition in p4src/include/codes.p4."""
    units = -(-length // 256)
    top = units.bit_length() - 1
    return 1 + 2 * top + (units >> (top - 1) & 1 if top else 0)


def test_the_least_size_of_a_class_is_in_it_and_no_smaller_one_is():
    for each in [1, *range(3, 50)]:  # 2 is between one unit and two: nothing is in it
        least = least_remaining_bytes(each)
        assert remaining_class(least) == each
        assert least == 1 or remaining_class(least - 1) < each


def test_less_left_is_never_a_lower_priority():
    entries = srpt_entries(TOPOLOGY, Balancing())["s1"]
    priority = {entry.match["hdr.ipv4.dscp"]: entry.action.args["priority"] for entry in entries}
    assert set(priority) == set(range(64))
    assert priority[0] == 7  # acknowledgements
    ordered = [priority[each] for each in range(1, 64)]
    assert ordered == sorted(ordered, reverse=True)
    sizes = {1: 7, 1024: 7, 4096: 6, 16384: 5, 65536: 4, 2**18: 3, 2**20: 2, 2**22: 1, 2**26: 0}
    assert {size: priority[remaining_class(size)] for size in sizes} == sizes


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"flowlet_rtts": -1}, "flowlet_rtts: -1; it is at least 0"),
        ({"srpt_factor": 1}, "srpt_factor: 1; it is at least 2"),
        ({"deflection_min_ttl": 256}, "deflection_min_ttl: 256; 0 to 255 can be"),
    ],
)
def test_what_cannot_be_is_refused(wrong, text):
    with pytest.raises(ControllerError) as refused:
        Balancing(**wrong)
    assert str(refused.value) == text
