"""p4src/ecmp.p4: the exact packet that leaves, on every path through the program.

Ports 1 to 4; 10.0.1.0/24 lies behind port 2, 10.0.2.0/24 behind ports 2, 3 and 4 at equal cost.
"""

from collections import Counter

from ptf.mask import Mask
from ptf.testutils import send_packet, verify_no_other_packets, verify_packet
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Packet, Raw

from ptf_tests.base import SwitchTest
from wire.layers import BTH, RETH

SRC_MAC, SWITCH_MAC = "02:00:0a:00:00:02", "06:00:00:01:00:01"
NEXT = {port: (f"06:00:00:01:00:{port:02x}", f"02:00:0a:00:01:{port:02x}") for port in (2, 3, 4)}


def forward(port: int) -> str:
    return f"forward(port={port})"


def write(dst: str, *, ttl: int = 64, tos: int = 2, sport: int = 50000, size: int = 256) -> Packet:
    """An RDMA WRITE with its ICRC (computed by wire.layers)."""
    headers = Ether(src=SRC_MAC, dst=SWITCH_MAC) / IP(src="10.0.0.2", dst=dst, ttl=ttl, tos=tos, flags="DF")
    headers /= UDP(sport=sport, dport=4791, chksum=0) / BTH(opcode=0x0A, dest_qpn=0x123456, psn=0xFFFFFF, ack_req=1)
    built = (
        headers / RETH(virtual_address=0x1000, rkey=0xCAFE, dma_length=size) / Raw(bytes(i % 251 for i in range(size)))
    )
    return Ether(bytes(built))


def forwarded(packet: Packet, port: int) -> bytes:
    """What must leave by `port`, computed on the bytes: nothing but MACs, TTL and the header checksum may change."""
    frame = bytearray(bytes(packet))
    frame[0:6] = bytes.fromhex(NEXT[port][1].replace(":", ""))
    frame[6:12] = bytes.fromhex(NEXT[port][0].replace(":", ""))
    frame[22] -= 1
    frame[24:26] = bytes(2)
    total = sum(int.from_bytes(frame[i : i + 2], "big") for i in range(14, 34, 2))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    frame[24:26] = (0xFFFF - total).to_bytes(2, "big")
    return bytes(frame)


class EcmpTest(SwitchTest):
    def setUp(self) -> None:
        super().setUp()
        for port, (own, theirs) in NEXT.items():
            self.add(
                "neighbor", [f"standard_metadata.egress_spec={port}"], f"set_macs(src_mac={own}, dst_mac={theirs})"
            )
        self.add("ipv4_lpm", ["hdr.ipv4.dst_addr=10.0.1.0/24"], "{" + forward(2) + "}")

    def expect_nothing(self, packet: Packet) -> None:
        send_packet(self, 1, bytes(packet))
        verify_no_other_packets(self, timeout=0.3)


class ForwardsAWrite(EcmpTest):
    """MACs of the next hop, TTL less one, checksum updated; payload and ICRC untouched, to the last byte."""

    def runTest(self) -> None:
        for size in (0, 1, 256, 1024):
            packet = write("10.0.1.7", size=size)
            send_packet(self, 1, bytes(packet))
            verify_packet(self, forwarded(packet, 2), 2)
        verify_no_other_packets(self, timeout=0.3)


class ForwardsWhatIsNotRoce(EcmpTest):
    def runTest(self) -> None:
        head = Ether(src=SRC_MAC, dst=SWITCH_MAC) / IP(src="10.0.0.2", dst="10.0.1.9", ttl=9)
        options = Ether(src=SRC_MAC, dst=SWITCH_MAC) / IP(src="10.0.0.2", dst="10.0.1.9", frag=100) / Raw(b"fragment")
        for packet in (
            head / ICMP() / Raw(b"ping"),
            head / TCP(dport=80) / Raw(b"GET"),
            head / UDP(dport=53) / Raw(b"q"),
            options,
        ):
            packet = Ether(bytes(packet))
            send_packet(self, 1, bytes(packet))
            verify_packet(self, forwarded(packet, 2), 2)


class LongestPrefixWins(EcmpTest):
    def runTest(self) -> None:
        self.add("ipv4_lpm", ["hdr.ipv4.dst_addr=10.0.1.128/25"], "{" + forward(3) + "}")
        self.add("ipv4_lpm", ["hdr.ipv4.dst_addr=10.0.1.200/32"], "{" + forward(4) + "}")
        for address, port in (("10.0.1.127", 2), ("10.0.1.128", 3), ("10.0.1.200", 4), ("10.0.1.201", 3)):
            packet = write(address)
            send_packet(self, 1, bytes(packet))
            verify_packet(self, forwarded(packet, port), port)


class DropsOnMiss(EcmpTest):
    def runTest(self) -> None:
        self.expect_nothing(write("10.9.9.9"))


class DropsWhenTheTtlEnds(EcmpTest):
    def runTest(self) -> None:
        packet = write("10.0.1.7", ttl=2)
        send_packet(self, 1, bytes(packet))
        verify_packet(self, forwarded(packet, 2), 2)
        self.expect_nothing(write("10.0.1.7", ttl=1))
        self.expect_nothing(write("10.0.1.7", ttl=0))


class DropsABadChecksum(EcmpTest):
    def runTest(self) -> None:
        for bit in (0, 7, 15):
            packet = write("10.0.1.7")
            packet[IP].chksum ^= 1 << bit
            self.expect_nothing(packet)


class DropsWhatIsNotIpv4(EcmpTest):
    def runTest(self) -> None:
        self.expect_nothing(Ether(src=SRC_MAC, dst="ff:ff:ff:ff:ff:ff") / ARP(pdst="10.0.1.7") / Raw(bytes(18)))
        self.expect_nothing(Ether(src=SRC_MAC, dst=SWITCH_MAC, type=0x86DD) / Raw(bytes(60)))


class DropsATruncatedHeader(EcmpTest):
    """The parser's error is not forwarded as if it were a packet."""

    def runTest(self) -> None:
        whole = bytes(write("10.0.1.7"))
        for length in (20, 33, 41, 53):
            self.expect_nothing(Raw(whole[:length]))


class SpreadsFlows(EcmpTest):
    """Three equal next hops: each flow keeps its port, and 300 flows spread evenly.

    Under a uniform hash a port's share of 300 flows leaves [70, 130] with a probability below 0.001 (binomial, n = 300,
    p = 1/3, 3.7 standard deviations); flows and seed are fixed, so the outcome is the same in every run.
    """

    def runTest(self) -> None:
        self.add("ipv4_lpm", ["hdr.ipv4.dst_addr=10.0.2.0/24"], "{" + ", ".join(map(forward, NEXT)) + "}")
        first = [self.port_of(sport) for sport in range(50000, 50300)]
        assert [self.port_of(sport) for sport in range(50000, 50020)] == first[:20]
        shares = Counter(first)
        assert set(shares) == set(NEXT)
        assert all(70 <= share <= 130 for share in shares.values()), shares
        # Another seed is another choice, about as even.
        self.set_default("switch_seed", "set_seed(odd_multiplier=0x85ebca6b)")
        second = [self.port_of(sport) for sport in range(50000, 50300)]
        same = sum(one == other for one, other in zip(first, second, strict=True))
        assert 70 <= same <= 130, same
        self.set_default("switch_seed", "set_seed(odd_multiplier=0x9e3779b1)")

    def port_of(self, sport: int) -> int:
        packet = write("10.0.2.7", sport=sport, size=0)
        send_packet(self, 1, bytes(packet))
        _, port, received, _ = self.dataplane.poll(device_number=0, timeout=2)
        assert received is not None, f"flow {sport} was lost"
        assert received == forwarded(packet, port)
        return int(port)


class MarksNothingOnAnEmptyQueue(EcmpTest):
    """With a threshold of 0 bytes a packet that finds an empty queue is still not marked; not-ECT never is."""

    def runTest(self) -> None:
        self.add(
            "red_curve", ["standard_metadata.egress_port=2"], "set_red(kmin_bytes=0, kmax_bytes=0, slope_per_byte=0)"
        )
        for tos in (0, 1, 2, 3):
            packet = write("10.0.1.7", tos=tos)
            send_packet(self, 1, bytes(packet))
            verify_packet(self, Mask(forwarded(packet, 2)), 2)
