"""A BMv2 fabric's links: the kernel's interface counters, and tcpdump."""

import ipaddress
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from controller.defaults import RUN_DIR
from lab.errors import MissingFeatureError
from lab.fabric_view import COUNTER_NAMES, Counters, Direction, FlowKey, Flows
from mininet_topos.network import LabNetwork
from mininet_topos.topology import Link, interface_name
from wire.codes import ROCEV2_UDP_PORT

# pcap file format and LINKTYPE_LINUX_SLL2, https://www.tcpdump.org/linktypes/LINKTYPE_LINUX_SLL2.html
_FILE_HEADER, _RECORD_HEADER = struct.Struct("<IHHiIII"), struct.Struct("<IIII")
_SLL2 = struct.Struct(">HHIHBB8s")
_IPV4_UDP = struct.Struct(">8xBB2x4s4sHH")  # from the TTL's group: see _flow_of
_OUTGOING = 4
_SNAP_BYTES = 80


class Bmv2View:
    """Sees each direction where it leaves a switch, and hosts' packets where they reach theirs."""

    def __init__(self, network: LabNetwork) -> None:
        self._topology = network.topology
        self._captures: list[subprocess.Popen[bytes]] = []
        self._flow_file = RUN_DIR / "flows.pcap"
        self._by_interface: dict[int, tuple[Direction, Direction | None]] = {}
        for link in self._topology.links:
            for (name, port), (other, _) in (link.ends, link.ends[::-1]):
                if not self._topology.node(name).is_host:
                    index = socket.if_nametoindex(interface_name(name, port))
                    inward = (other, name) if self._topology.node(other).is_host else None
                    self._by_interface[index] = ((name, other), inward)
        # Headers of data packets only, and from now on: what flows() reports.
        arguments = ["-i", "any", "-y", "LINUX_SLL2", "-s", str(_SNAP_BYTES), "-B", "65536"]
        self._flow_capture = self._tcpdump([*arguments, "-w", str(self._flow_file), f"udp dst port {ROCEV2_UDP_PORT}"])

    def counters(self) -> Counters:
        found: dict[Direction, dict[str, int]] = {}
        for index, (outward, inward) in self._by_interface.items():
            folder = Path("/sys/class/net", socket.if_indextoname(index), "statistics")
            for direction, prefix in ((outward, "tx"), (inward, "rx")):
                if direction is None:
                    continue
                cell = found.setdefault(direction, dict.fromkeys(COUNTER_NAMES, 0))
                cell["packets"] += int((folder / f"{prefix}_packets").read_text())
                cell["bytes"] += int((folder / f"{prefix}_bytes").read_text())
                cell["drops_queue"] += int((folder / f"{prefix}_dropped").read_text())
        return found

    def flows(self) -> Flows:
        time.sleep(1.1)  # the kernel hands a capture its last packets after at most a second
        self._end(self._flow_capture)
        found: dict[Direction, dict[FlowKey, tuple[int, int]]] = {}
        for interface, packet_type, packet, length in _sll2_records(self._flow_file):
            outward, inward = self._by_interface.get(interface, (None, None))
            direction = outward if packet_type == _OUTGOING else inward
            if direction is not None and (key := _flow_of(packet)):
                cells = found.setdefault(direction, {})
                packets, size = cells.get(key, (0, 0))
                cells[key] = (packets + 1, size + length)
        return found

    def capture(self, link: Link, path: Path) -> None:
        name, port = next(end for end in link.ends if not self._topology.node(end[0]).is_host)
        self._captures.append(self._tcpdump(["-i", interface_name(name, port), "-w", str(path)]))

    def stop_captures(self) -> None:
        time.sleep(1.1)
        for child in self._captures:
            self._end(child)
        self._captures.clear()

    def close(self) -> None:
        for child in (self._flow_capture, *self._captures):
            self._end(child)

    def _tcpdump(self, arguments: list[str]) -> subprocess.Popen[bytes]:
        try:
            child = subprocess.Popen(
                ["tcpdump", "-n", "-U", "--immediate-mode", *arguments], stderr=subprocess.PIPE, start_new_session=True
            )
        except FileNotFoundError as error:
            raise MissingFeatureError("captures of a BMv2 fabric need tcpdump, which is not on PATH.") from error
        assert child.stderr is not None
        child.stderr.readline()  # "listening on …": from now on it sees every packet
        return child

    @staticmethod
    def _end(child: subprocess.Popen[bytes]) -> None:
        if child.poll() is None:
            child.send_signal(signal.SIGINT)
            child.communicate()


def _sll2_records(path: Path) -> Iterator[tuple[int, int, bytes, int]]:
    """(interface index, packet type, bytes after the link-layer header, length on the wire) of each packet."""
    data = path.read_bytes()
    offset = _FILE_HEADER.size
    while offset + _RECORD_HEADER.size <= len(data):
        _, _, captured, length = _RECORD_HEADER.unpack_from(data, offset)
        start = offset + _RECORD_HEADER.size
        offset = start + captured
        if captured >= _SLL2.size:
            _, _, interface, _, packet_type, _, _ = _SLL2.unpack_from(data, start)
            yield interface, packet_type, data[start + _SLL2.size : offset], length - _SLL2.size


def _flow_of(packet: bytes) -> FlowKey | None:
    if len(packet) < 28 or packet[0] != 0x45:
        return None
    _, protocol, src, dst, src_port, dst_port = _IPV4_UDP.unpack_from(packet)
    return str(ipaddress.IPv4Address(src)), str(ipaddress.IPv4Address(dst)), protocol, src_port, dst_port
