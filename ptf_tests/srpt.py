"""p4src/srpt.p4: the queue of a packet follows from its DSCP."""

from ptf_tests import cases
from ptf_tests.ecmp import Ecmp
from ptf_tests.packets import write


class Srpt(Ecmp):
    pass


globals().update(cases.common(Srpt, __name__))


class ChoosesTheQueueByDscp(Srpt):
    """Class 5 to queue 7, class 63 to queue 1; a class without an entry stays in queue 0."""

    def runTest(self) -> None:
        self.add("remaining_priority", ["hdr.ipv4.dscp=5"], "set_priority(priority=7)")
        self.add("remaining_priority", ["hdr.ipv4.dscp=63"], "set_priority(priority=1)")
        for dscp, queue in ((5, 7), (63, 1), (6, 0)):
            before = self.counted("queue_tx").get(16 + queue, (0, 0))[0]
            self.expect(write("10.0.1.7", tos=dscp << 2 | 2), 2)
            assert self.counted("queue_tx")[16 + queue][0] == before + 1, dscp
