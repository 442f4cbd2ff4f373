"""p4src/dibs.p4 on empty queues; what happens at full ones is in tests/test_p4_statistics.py."""

from controller.routes import pack_ports
from ptf_tests import cases
from ptf_tests.ecmp import Ecmp


class Dibs(Ecmp):
    def detours(self, ports: list[int], min_ttl: int) -> str:
        packed = ", ".join(f"{name}={value}" for name, value in pack_ports("s1", ports).items())
        return f"set_detours(min_ttl={min_ttl}, {packed})"


globals().update(cases.common(Dibs, __name__))


class LeavesAlone(Dibs):
    """With room in the queue nothing is deflected, whatever the detours."""

    def runTest(self) -> None:
        self.add("deflection_limit", ["standard_metadata.egress_spec=2"], "set_limit(bytes=0)")
        self.set_default("deflection_ports", self.detours([3, 4], 0))
        try:
            cases.ForwardsAWrite.runTest(self)
            assert self.counted("deflected") == {}
        finally:
            self.set_default("deflection_ports", self.detours([], 0))
