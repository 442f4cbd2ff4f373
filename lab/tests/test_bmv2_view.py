"""The reader of tcpdump's captures, against frames that scapy wrote."""

import struct
from pathlib import Path

from scapy.layers.inet import IP, TCP, UDP

from lab.bmv2_view import _flow_of, _sll2_records


def test_flows_of_packets() -> None:
    packet = bytes(IP(src="10.0.0.2", dst="10.3.1.3") / UDP(sport=50000, dport=4791) / b"data")
    assert _flow_of(packet) == ("10.0.0.2", "10.3.1.3", 17, 50000, 4791)
    assert _flow_of(bytes(IP(src="1.2.3.4", dst="5.6.7.8") / TCP(sport=1, dport=2))) == ("1.2.3.4", "5.6.7.8", 6, 1, 2)
    assert _flow_of(packet[:20]) is None
    assert _flow_of(b"\x60" + packet[1:]) is None


def test_records_of_a_capture_that_was_cut_off(tmp_path: Path) -> None:
    frame = struct.pack(">HHIHBB8s", 0x0800, 0, 7, 1, 4, 6, bytes(8)) + bytes(IP() / UDP())
    whole = struct.pack("<IIII", 0, 0, len(frame), len(frame) + 1000) + frame
    file = tmp_path / "x.pcap"
    file.write_bytes(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 80, 276) + whole + whole[:10])
    assert list(_sll2_records(file)) == [(7, 4, frame[20:], len(frame) - 20 + 1000)]
