"""What every program must do whatever its load balancer: mixed into each program's own test class.

Ports 1 to 4; 10.0.1.0/24 lies behind port 2. A program's class says how its routes are written.
"""

import asyncio
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import finsy as fy
from ptf.testutils import send_packet, test_param_get, verify_no_other_packets
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Packet, Raw

from controller.connection import controlling
from controller.defaults import personal_election_id
from controller.errors import RefusedError
from controller.routes import pack_ports
from controller.tables import table_dump
from controller.tracing import Copy, Hop, Selection, tracing
from ptf_tests.base import SwitchTest
from ptf_tests.packets import NEXT, SRC_IP, SRC_MAC, SWITCH_MAC, forwarded, write
from wire.codes import ROCEV2_UDP_PORT


class ProgramTest(SwitchTest):
    """A switch with neighbours on ports 2 to 4 and one route.

    selects: the program's next hops are members of a selector, which has its own way around dead ports (watch ports).
    """

    selects = False

    def setUp(self) -> None:
        super().setUp()
        for port, (own, theirs) in NEXT.items():
            macs = f"set_macs(src_mac={own}, dst_mac={theirs})"
            self.add("neighbor", [f"standard_metadata.egress_spec={port}"], macs)
        self.route("10.0.1.0/24", [2])

    def route(self, prefix: str, ports: Sequence[int], group: int = 1) -> None:
        """Next hops as the data of an action; programs with a selector do otherwise."""
        packed = ", ".join(f"{name}={value}" for name, value in pack_ports("s1", ports).items())
        self.add("ipv4_lpm", [f"hdr.ipv4.dst_addr={prefix}"], f"set_next_hops(group={group}, {packed})")

    def expect_nothing(self, packet: Packet | bytes) -> None:
        """The next thing to leave is a packet that was sent after this one."""
        send_packet(self, 1, bytes(packet))
        self.expect(write("10.0.1.7", psn=0xABCDEF), 2)

    def expect(self, packet: Packet, port: int) -> None:
        """The next thing to leave is this packet, by this port."""
        left = self.port_of(packet)
        assert left == port, f"port {left} instead of {port}: {packet.summary()}"

    def port_of(self, packet: Packet) -> int:
        """By which port a packet leaves; it must be what forwarding makes of it."""
        send_packet(self, 1, bytes(packet))
        _, port, received, _ = self.dataplane.poll(device_number=0, timeout=2)
        assert received is not None, f"lost: {packet.summary()}"
        assert received == forwarded(packet, port), f"by port {port}: {received.hex()}"
        return int(port)

    @contextmanager
    def dead_port(self, port: int) -> Iterator[None]:
        """A port without carrier; BMv2, which tells its programs nothing of links, is told by its controller."""
        if test_param_get("target") == "bmv2":
            self.set_default("port_liveness", f"set_dead_ports(mask={1 << port})")
            yield
            self.set_default("port_liveness", "set_dead_ports(mask=0)")
            return
        self.stop_reading(port)
        self._set_carrier(port, "down")
        yield
        self._set_carrier(port, "up")
        self.dataplane.port_add(f"ptf{port}", 0, port)

    def stop_reading(self, port: int) -> None:
        """ptf's reader of all ports ends if the interface of one goes down."""
        self.dataplane.port_remove(0, port)
        for _ in range(2):  # the first may come from a wait that still includes the port, the second cannot
            self.expect(write("10.0.1.7"), 2)

    def _set_carrier(self, port: int, state: str) -> None:
        """Returns when the switch has seen it."""
        subprocess.run(["ip", "link", "set", f"ptf{port}", state], check=True)
        end = time.monotonic() + 5
        while self.register("plait.port_up", port) != (state == "up"):
            assert time.monotonic() < end, f"the switch does not see that port {port} is {state}"

    def refused(self, code: str, verb: Callable[..., None], *arguments: object) -> None:
        """The switch itself must refuse, with this P4Runtime code."""
        try:
            verb(*arguments)
        except RefusedError as error:
            assert code in str(error), f"{code} is not in: {error}"
        else:
            raise AssertionError(f"{arguments} was accepted")


Base = ProgramTest if TYPE_CHECKING else object


class ForwardsAWrite(Base):
    """MACs of the next hop, TTL less one, checksum updated; payload and ICRC untouched, to the last byte."""

    def runTest(self) -> None:
        for size in (0, 1, 256, 1024):
            self.expect(write("10.0.1.7", size=size), 2)
        verify_no_other_packets(self, timeout=0.2)


class ForwardsWhatIsNotRoce(Base):
    def runTest(self) -> None:
        head = Ether(src=SRC_MAC, dst=SWITCH_MAC) / IP(src="10.0.0.2", dst="10.0.1.9", ttl=9)
        fragment = Ether(src=SRC_MAC, dst=SWITCH_MAC) / IP(src="10.0.0.2", dst="10.0.1.9", frag=100) / Raw(b"fragment")
        for packet in (
            head / ICMP() / Raw(b"ping"),
            head / TCP(dport=80) / Raw(b"GET"),
            head / UDP(dport=53) / Raw(b"q"),
            fragment,
        ):
            self.expect(Ether(bytes(packet)), 2)


class LongestPrefixWins(Base):
    def runTest(self) -> None:
        self.route("10.0.1.128/25", [3], group=2)
        self.route("10.0.1.200/32", [4], group=3)
        for address, port in (("10.0.1.127", 2), ("10.0.1.128", 3), ("10.0.1.200", 4), ("10.0.1.201", 3)):
            self.expect(write(address), port)


class DropsOnMiss(Base):
    def runTest(self) -> None:
        self.expect_nothing(write("10.9.9.9"))


class DropsWhenTheTtlEnds(Base):
    def runTest(self) -> None:
        self.expect(write("10.0.1.7", ttl=2), 2)
        self.expect_nothing(write("10.0.1.7", ttl=1))
        self.expect_nothing(write("10.0.1.7", ttl=0))


class DropsABadChecksum(Base):
    def runTest(self) -> None:
        for bit in (0, 7, 15):
            packet = write("10.0.1.7")
            packet[IP].chksum ^= 1 << bit
            self.expect_nothing(packet)


class DropsWhatIsNotIpv4(Base):
    def runTest(self) -> None:
        who_has = ARP(hwsrc=SRC_MAC, psrc="10.0.0.2", pdst="10.0.1.7")
        self.expect_nothing(Ether(src=SRC_MAC, dst="ff:ff:ff:ff:ff:ff") / who_has / Raw(bytes(18)))
        self.expect_nothing(Ether(src=SRC_MAC, dst=SWITCH_MAC, type=0x86DD) / Raw(bytes(60)))


class DropsATruncatedHeader(Base):
    """The parser's error is not forwarded as if it were a packet."""

    def runTest(self) -> None:
        whole = bytes(write("10.0.1.7"))
        for length in (20, 33, 41, 53):
            self.expect_nothing(whole[:length])


class MarksNothingOnAnEmptyQueue(Base):
    """With Kmin = 0 a packet that finds an empty queue is still not marked; not-ECT never is."""

    def runTest(self) -> None:
        curve = "set_red(kmin_bytes=0, kmax_bytes=0, slope_per_byte=0)"
        self.add("red_curve", ["standard_metadata.egress_port=2"], curve)
        for tos in (0, 1, 2, 3):
            self.expect(write("10.0.1.7", tos=tos), 2)


class CountsPortsAndQueues(Base):
    """Packets and bytes of the frame on arrival, per port and per queue."""

    def runTest(self) -> None:
        names = ("port_rx", "port_tx", "queue_tx")
        before = {name: self.counted(name) for name in names}
        sizes = [len(bytes(write("10.0.1.7", size=size))) for size in (10, 1000)]
        for size in (10, 1000):
            self.expect(write("10.0.1.7", size=size), 2)
        for name, index in (("port_rx", 1), ("port_tx", 2), ("queue_tx", 16)):
            packets, octets = before[name].get(index, (0, 0))
            assert self.counted(name)[index] == (packets + 2, octets + sum(sizes)), name


class TracesAPacket(Base):
    """The chosen PSN is copied to the controller with its ports and queue; it leaves as all others do, and once the
    trace has ended nothing is copied."""

    def runTest(self) -> None:
        self.wait_for(self._trace())

    async def _trace(self) -> None:
        chosen = write("10.0.1.7", psn=77)
        async with tracing([self.target], Selection(SRC_IP, "10.0.1.7", ROCEV2_UDP_PORT, psn=77)) as copies:
            self.expect(write("10.0.1.7", psn=76), 2)
            self.expect(chosen, 2)
            self.expect(write("10.0.1.8", psn=77), 2)
            async with asyncio.timeout(5):
                copy = await copies.get()
        assert copy == Copy(Hop("s1", 1, 2, 0, copy.hop.queued_us), forwarded(chosen, 2)), copy
        assert all(row.default for row in await table_dump(self.target, "trace"))


class TalksToTheController(Base):
    """LLDP and ARP go up with their port and are not forwarded; what the controller sends leaves as it is."""

    def runTest(self) -> None:
        self.wait_for(self._talk())

    async def _talk(self) -> None:
        options = fy.SwitchOptions(initial_election_id=personal_election_id())
        lldp = Ether(src=SRC_MAC, dst="01:80:c2:00:00:0e", type=0x88CC) / Raw(bytes(range(46)))
        asked = (
            Ether(src=SRC_MAC, dst="ff:ff:ff:ff:ff:ff")
            / ARP(hwsrc=SRC_MAC, psrc=SRC_IP, pdst="10.0.0.1")
            / Raw(bytes(18))
        )
        async with controlling(self.target, options) as switch:
            packets = aiter(switch.read_packets())
            for port, packet in ((1, lldp), (3, asked)):
                coming = asyncio.ensure_future(anext(packets))
                await asyncio.sleep(0)  # it listens
                send_packet(self, port, bytes(packet))
                async with asyncio.timeout(5):
                    found = await coming
                assert (found["ingress_port"], found.payload) == (port, bytes(packet)), found
            for packet in (lldp, write("10.0.1.7", ttl=1)):  # also what the switch would not route
                await switch.write([fy.P4PacketOut(bytes(packet), egress_port=4, padding=0)])
                _, port, received, _ = self.dataplane.poll(device_number=0, timeout=2)
                assert (port, received) == (4, bytes(packet)), (port, received)
        verify_no_other_packets(self)


class SkipsADeadPort(Base):
    """No packet leaves by a port that is down, and the others carry on; it is used again as soon as it is up.

    That 60 draws of three ports miss one has a probability below 1e-10.
    """

    def runTest(self) -> None:
        self.route("10.0.2.0/24", list(NEXT), group=0)
        with self.dead_port(3):
            assert self._taken() == {2, 4}
        assert self._taken() == {2, 3, 4}

    def _taken(self) -> set[int]:
        return {self.port_of(write("10.0.2.7", sport=51000 + flow, size=0)) for flow in range(60)}


class RefusesBadEntries(Base):
    """Twice the same, and what is not there: the codes of the P4Runtime specification, section 12."""

    def runTest(self) -> None:
        macs = "set_macs(src_mac=1, dst_mac=2)"
        self.refused("ALREADY_EXISTS", self.add, "neighbor", ["standard_metadata.egress_spec=2"], macs)
        self.refused("NOT_FOUND", self.delete, "neighbor", ["standard_metadata.egress_spec=9"])
        self.refused("NOT_FOUND", self.delete, "ipv4_lpm", ["hdr.ipv4.dst_addr=10.7.0.0/16"])


ALL = (
    ForwardsAWrite,
    ForwardsWhatIsNotRoce,
    LongestPrefixWins,
    DropsOnMiss,
    DropsWhenTheTtlEnds,
    DropsABadChecksum,
    DropsWhatIsNotIpv4,
    DropsATruncatedHeader,
    MarksNothingOnAnEmptyQueue,
    CountsPortsAndQueues,
    TracesAPacket,
    TalksToTheController,
    RefusesBadEntries,
)


def common(program: type[ProgramTest], module: str) -> dict[str, type]:
    """Every case for a program, to be put into its module: ptf finds tests by the module they are in."""
    cases = ALL if program.selects else (*ALL, SkipsADeadPort)
    return {
        case.__name__: type(case.__name__, (case, program), {"__doc__": case.__doc__, "__module__": module})
        for case in cases
    }
