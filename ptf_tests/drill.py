"""p4src/drill.p4, on empty queues; its choice among full ones is in tests/test_p4_statistics.py."""

from collections import Counter

from ptf_tests import cases
from ptf_tests.packets import NEXT, write


class Drill(cases.ProgramTest):
    pass


globals().update(cases.common(Drill, __name__))


class SpreadsOverEqualQueues(Drill):
    """With any (d, m) the first draw wins a tie. A share of 200 leaves [27, 107] with a probability below 1e-8."""

    def runTest(self) -> None:
        self.route("10.0.2.0/24", list(NEXT))
        try:
            for samples, memory in ((1, 0), (2, 1), (4, 2)):
                self.set_default("drill_parameters", f"set_drill(d={samples}, m={memory})")
                shares = Counter(self.port_of(write("10.0.2.7", size=0)) for _ in range(200))
                assert set(shares) == set(NEXT)
                assert all(27 <= share <= 107 for share in shares.values()), (samples, memory, shares)
        finally:
            self.set_default("drill_parameters", "set_drill(d=2, m=1)")
