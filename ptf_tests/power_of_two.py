"""p4src/power_of_two.p4, on empty queues; its choice among full ones is in tests/test_p4_statistics.py."""

from collections import Counter

from ptf_tests import cases
from ptf_tests.packets import NEXT, write


class PowerOfTwo(cases.ProgramTest):
    pass


globals().update(cases.common(PowerOfTwo, __name__))


class SpreadsOverEqualQueues(PowerOfTwo):
    """A share of 300 leaves [50, 150] with a probability below 1e-8 (6 standard deviations)."""

    def runTest(self) -> None:
        self.route("10.0.2.0/24", list(NEXT))
        shares = Counter(self.port_of(write("10.0.2.7", size=0)) for _ in range(300))
        assert set(shares) == set(NEXT)
        assert all(50 <= share <= 150 for share in shares.values()), shares
