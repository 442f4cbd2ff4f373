"""p4src/spray.p4: at random, and in turn."""

from collections import Counter

from ptf_tests import cases
from ptf_tests.packets import NEXT, write


class Spray(cases.ProgramTest):
    def ports(self, count: int, dst: str = "10.0.2.7") -> list[int]:
        return [self.port_of(write(dst, size=0)) for _ in range(count)]


globals().update(cases.common(Spray, __name__))


class SpraysAtRandom(Spray):
    """One flow over three ports. A share of 300 leaves [50, 150] with a probability below 1e-8 (6 standard deviations):
    switches draw from seeds of their own."""

    def runTest(self) -> None:
        self.route("10.0.2.0/24", list(NEXT))
        shares = Counter(self.ports(300))
        assert set(shares) == set(NEXT)
        assert all(50 <= share <= 150 for share in shares.values()), shares


class SpraysInTurn(Spray):
    """Each set of next hops has a turn of its own, and a smaller set that takes its place begins anew."""

    def runTest(self) -> None:
        self.set_default("spray_policy", "round_robin()")
        try:
            self.route("10.0.2.0/24", [3, 4, 2], group=2)
            self.route("10.0.3.0/24", [2, 3], group=3)
            ports = self.ports(9)
            begin = ports.index(3)
            assert ports == [[3, 4, 2][(i - begin) % 3] for i in range(9)]
            others = self.ports(1, "10.0.3.7") + self.ports(1) + self.ports(1, "10.0.3.7")
            assert others[1] == ports[0]
            assert {others[0], others[2]} == {2, 3}
        finally:
            self.set_default("spray_policy", "at_random()")
