"""p4src/ecmp.p4: the exact packet that leaves, on every path through the program; spread, weights and failover."""

import subprocess
import time
from collections import Counter
from collections.abc import Sequence
from ipaddress import IPv4Network

import finsy as fy
from ptf.testutils import send_packet

from controller.routes import DESTINATION, FORWARD, ROUTES
from ptf_tests import cases
from ptf_tests.packets import NEXT, write


class Ecmp(cases.ProgramTest):
    selects = True

    def route(self, prefix: str, ports: Sequence[int], group: int = 1) -> None:
        members = ", ".join(f"forward(port={port})" for port in ports)
        self.add("ipv4_lpm", [f"hdr.ipv4.dst_addr={prefix}"], "{" + members + "}")

    def ports_of_flows(self, count: int) -> list[int]:
        return [self.port_of(write("10.0.2.7", sport=50000 + flow, size=0)) for flow in range(count)]


globals().update(cases.common(Ecmp, __name__))


class SpreadsFlows(Ecmp):
    """Three equal next hops: each flow keeps its port, and 300 flows spread evenly.

    Under a uniform hash a port's share of 300 flows leaves [70, 130] with a probability below 0.001 (binomial, n = 300,
    p = 1/3, 3.7 standard deviations); flows and seed are fixed, so the outcome is the same in every run.
    """

    def runTest(self) -> None:
        self.route("10.0.2.0/24", list(NEXT))
        first = self.ports_of_flows(300)
        assert self.ports_of_flows(20) == first[:20]
        shares = Counter(first)
        assert set(shares) == set(NEXT)
        assert all(70 <= share <= 130 for share in shares.values()), shares
        # Another seed is another choice, about as even.
        self.set_default("switch_seed", "set_seed(odd_multiplier=0x85ebca6b)")
        second = self.ports_of_flows(300)
        same = sum(one == other for one, other in zip(first, second, strict=True))
        assert 70 <= same <= 130, same
        self.set_default("switch_seed", "set_seed(odd_multiplier=0x9e3779b1)")


class SpreadsByWeight(Ecmp):
    """WCMP: a member of weight 3 beside one of weight 1.

    Its share of 300 flows leaves [195, 255] with a probability below 0.0001 (binomial, p = 3/4, 4 standard deviations);
    flows and seed are fixed.
    """

    def runTest(self) -> None:
        self.add("ipv4_lpm", ["hdr.ipv4.dst_addr=10.0.2.0/24"], "{forward(port=2)*3, forward(port=3)}")
        shares = Counter(self.ports_of_flows(300))
        assert set(shares) == {2, 3}
        assert 195 <= shares[2] <= 255, shares


class LeavesADeadMemberOut(Ecmp):
    """A member whose watch port has lost its carrier gets no more flows, and gets them again with its carrier.

    P4Runtime does not tell when the switch has seen it: rounds of 60 flows are sent until one loses nothing.
    """

    def runTest(self) -> None:
        prefix = "10.0.2.0/24"
        members = [((1, port), fy.Action(FORWARD, port=port)) for port in NEXT]
        match = fy.Match({DESTINATION: (int(IPv4Network(prefix).network_address), 24)})
        entry = fy.P4TableEntry(ROUTES, match=match, action=fy.IndirectAction(members))
        self.add_entry(ROUTES, f"{DESTINATION}={prefix}", entry)
        self._await({2, 3, 4})
        self.stop_reading(3)
        subprocess.run(["ip", "link", "set", "ptf3", "down"], check=True)
        self._await({2, 4})
        subprocess.run(["ip", "link", "set", "ptf3", "up"], check=True)
        self.dataplane.port_add("ptf3", 0, 3)
        self._await({2, 3, 4})

    def _await(self, ports: set[int]) -> None:
        end = time.monotonic() + 20
        while (taken := self._taken()) != ports:
            assert time.monotonic() < end, f"{taken} instead of {ports}"

    def _taken(self) -> set[int | None]:
        """Ports of 60 flows; None: one was lost."""
        found = set()
        for flow in range(60):
            send_packet(self, 1, bytes(write("10.0.2.7", sport=51000 + flow, size=0)))
            found.add(self.dataplane.poll(device_number=0, timeout=0.2)[1])
        return found
