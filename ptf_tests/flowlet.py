"""p4src/flowlet.p4: a flow keeps its port within the gap, and draws anew after it."""

from collections import Counter

from ptf_tests import cases
from ptf_tests.packets import NEXT, write

_HOUR_US = 3_600_000_000


class Flowlet(cases.ProgramTest):
    def ports(self, count: int, sport: int) -> list[int]:
        return [self.port_of(write("10.0.2.7", size=0, sport=sport)) for _ in range(count)]


globals().update(cases.common(Flowlet, __name__))


class KeepsItsPortWithinTheGap(Flowlet):
    def runTest(self) -> None:
        self.route("10.0.2.0/24", list(NEXT))
        self.set_default("flowlet_parameters", f"set_gap(us={_HOUR_US})")
        try:
            firsts = []
            for sport in range(50000, 50040):
                ports = self.ports(5, sport)
                assert len(set(ports)) == 1, (sport, ports)
                firsts.append(ports[0])
            # 40 flows all at one of three ports: 3 * (1/3)^40.
            assert len(set(firsts)) > 1
        finally:
            self.set_default("flowlet_parameters", "set_gap(us=50)")


class DrawsAnewAfterTheGap(Flowlet):
    """With a gap of 0 every packet is a flowlet. A share of 300 leaves [50, 150] with a probability below 1e-8."""

    def runTest(self) -> None:
        self.route("10.0.2.0/24", list(NEXT))
        self.set_default("flowlet_parameters", "set_gap(us=0)")
        try:
            shares = Counter(self.ports(300, 50000))
            assert set(shares) == set(NEXT)
            assert all(50 <= share <= 150 for share in shares.values()), shares
        finally:
            self.set_default("flowlet_parameters", "set_gap(us=50)")
