"""p4src/ksp.p4: a path is named at the first switch, followed by its name, and forgotten at the last."""

from collections import Counter

from ptf.testutils import send_packet
from scapy.packet import Packet

from ptf_tests import cases
from ptf_tests.packets import NEXT, forwarded, write

_PREFIX = "0a:50:4c"


def label_mac(label: int) -> str:
    return f"{_PREFIX}:{label >> 16:02x}:{label >> 8 & 0xFF:02x}:{label & 0xFF:02x}"


class Ksp(cases.ProgramTest):
    def route(self, prefix: str, ports: list[int], group: int = 0) -> None:  # type: ignore[override]
        super().route(prefix, ports, 0 if len(ports) == 1 else group)

    def labelled(self, packet: Packet, labels: dict[int, str]) -> int:
        """By which port a packet leaves; its destination must be that port's name."""
        send_packet(self, 1, bytes(packet))
        _, port, received, _ = self.dataplane.poll(device_number=0, timeout=2)
        assert received is not None
        assert received == forwarded(packet, port, dst_mac=labels[port]), f"by port {port}: {received.hex()}"
        return int(port)


globals().update(cases.common(Ksp, __name__))

GROUP = 0x010FFE
LABELS = {3: label_mac(GROUP), 4: label_mac(GROUP + 1), 2: label_mac(GROUP + 2)}


class NamesThePathOfAFlow(Ksp):
    """Per flow: a flow keeps its path, and 200 flows use all of them."""

    def runTest(self) -> None:
        self.route("10.0.2.0/24", [3, 4, 2], group=GROUP)
        first = [self.labelled(write("10.0.2.7", size=0, sport=50000 + flow), LABELS) for flow in range(200)]
        again = [self.labelled(write("10.0.2.7", size=0, sport=50000 + flow), LABELS) for flow in range(20)]
        assert again == first[:20]
        # Fixed flows and seed; under a uniform hash a share leaves [40, 94] with a probability below 0.0002.
        assert all(40 <= share <= 94 for share in Counter(first).values()), Counter(first)


class NamesThePathOfAPacket(Ksp):
    """Per packet, and by two choices on empty queues.

    A share of 300 leaves [50, 150] with a probability below 1e-8.
    """

    def runTest(self) -> None:
        self.route("10.0.2.0/24", [3, 4, 2], group=GROUP)
        try:
            for policy in ("per_packet_path", "two_choices"):
                self.set_default("path_policy", f"{policy}()")
                shares = Counter(self.labelled(write("10.0.2.7", size=0), LABELS) for _ in range(300))
                assert set(shares) == set(NEXT)
                assert all(50 <= share <= 150 for share in shares.values()), (policy, shares)
        finally:
            self.set_default("path_policy", "per_flow_path()")


class FollowsAName(Ksp):
    """A named packet goes where its name leads, with its name, whatever the route of its destination says."""

    def runTest(self) -> None:
        self.add("path_label", [f"meta.path_label={GROUP}"], "follow(port=3)")
        packet = write("10.0.1.7", mac=label_mac(GROUP))
        assert self.labelled(packet, {3: label_mac(GROUP)}) == 3


class EndsAPathWithoutAnEntry(Ksp):
    """The last switch does not know the name: it forwards by destination, to the host's own address."""

    def runTest(self) -> None:
        self.expect(write("10.0.1.7", mac=label_mac(GROUP + 9)), 2)
