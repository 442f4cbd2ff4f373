"""`plait inspect`: its lines, its summary, its errors; and that it sees as many packets as tcpdump."""

import gzip
import io
import json
import random
import shutil
import subprocess
from pathlib import Path

import pytest
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Packet, Raw
from scapy.utils import PcapNgWriter, PcapWriter

from lab.errors import UsageError
from lab.inspect import inspect, main
from wire.codes import BthOpcode
from wire.layers import AETH, BTH, RETH

A, B = "10.0.0.1", "10.0.0.2"


def frame(opcode: BthOpcode, psn: int, *above: Packet, back: bool = False, **bth: int) -> Packet:
    source, destination = (B, A) if back else (A, B)
    packet = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / IP(src=source, dst=destination, tos=2)
    packet = packet / UDP(sport=49152, chksum=0) / BTH(opcode=opcode, psn=psn, dest_qpn=17, **bth)
    for layer in above:
        packet /= layer
    return packet


def write(path: Path, packets: list[Packet | bytes], snaplen: int | None = None) -> Path:
    with PcapWriter(str(path), linktype=1, nano=True) as writer:
        writer.write_header(None)
        for index, packet in enumerate(packets):
            data = bytes(packet)
            at = 1_000_000_500 + index * 1_500  # ns
            writer.write_packet(
                data[:snaplen], sec=at // 10**9, usec=at % 10**9, caplen=len(data[:snaplen]), wirelen=len(data)
            )
    return path


@pytest.fixture
def capture(tmp_path):
    reth = RETH(virtual_address=0x7F00, rkey=5, dma_length=8)
    return write(tmp_path / "capture.pcap", [
        frame(BthOpcode.RC_WRITE_ONLY, 100, reth, Raw(b"12345678"), ack_req=1),
        frame(BthOpcode.RC_ACKNOWLEDGE, 100, AETH(syndrome=0x1F, msn=1), back=True),
        frame(BthOpcode.RC_ACKNOWLEDGE, 101, AETH(syndrome=0x60, msn=1), back=True),
        frame(BthOpcode.RC_SEND_ONLY, 101, Raw(b"1234"), icrc=0),
        frame(BthOpcode.CNP, 0, Raw(bytes(16)), back=True, becn=1),
        Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / ARP(),
    ])  # fmt: skip


def run(path: Path, **options) -> list[str]:
    out = io.StringIO()
    inspect(path, out, **options)
    return out.getvalue().splitlines()


def test_lines(capture):
    there, back = "10.0.0.1:49152 -> 10.0.0.2:4791  ECT_0 ttl 64", "10.0.0.2:49152 -> 10.0.0.1:4791  ECT_0 ttl 64"
    assert run(capture)[:5] == [
        f"         0.000  {there}  RC_WRITE_ONLY  qpn 17 psn 100 A  va 0x7f00 rkey 0x5 len 8  payload 8  icrc ok",
        f"         1.500  {back}  RC_ACKNOWLEDGE  qpn 17 psn 100  ACK msn 1  payload 0  icrc ok",
        f"         3.000  {back}  RC_ACKNOWLEDGE  qpn 17 psn 101  NAK PSN_SEQUENCE_ERROR msn 1  payload 0  icrc ok",
        f"         4.500  {there}  RC_SEND_ONLY  qpn 17 psn 101  payload 4  icrc bad",
        f"         6.000  {back}  CNP  qpn 17 psn 0 BECN  payload 16  icrc ok",
    ]
    assert run(capture)[5].startswith("         7.500  Ether / ARP ")


def test_count(capture):
    assert run(capture, count=2) == run(capture)[:2]
    assert run(capture, count=0) == []


def test_json(capture):
    rows = [json.loads(line) for line in run(capture, as_json=True)]
    assert [row["time_us"] for row in rows] == [0.0, 1.5, 3.0, 4.5, 6.0, 7.5]
    assert rows[0]["reth"] == {"virtual_address": 0x7F00, "rkey": 5, "dma_length": 8}
    assert rows[0]["bytes"] == 14 + 20 + 8 + 12 + 16 + 8 + 4
    assert rows[1]["aeth"] == {"syndrome": 0x1F, "meaning": "ACK", "msn": 1}
    assert rows[5]["summary"].startswith("Ether / ARP")


def test_pcapng(tmp_path, capture):
    path = tmp_path / "capture.pcapng"
    with PcapNgWriter(str(path)) as writer:
        for index in range(3):
            packet = frame(BthOpcode.RC_SEND_ONLY, index, Raw(b"1234"))
            packet.time = 1 + index / 10**6
            writer.write(packet)
    lines = run(path)
    assert len(lines) == 3
    assert lines[2].split()[0] == "2.000" and "psn 2" in lines[2]


def test_compressed(tmp_path, capture):
    path = tmp_path / "capture.pcap.gz"
    path.write_bytes(gzip.compress(capture.read_bytes()))
    assert run(path) == run(capture)


def test_a_cut_packet_is_not_called_bad(tmp_path):
    lines = run(write(tmp_path / "cut.pcap", [frame(BthOpcode.RC_SEND_ONLY, 1, Raw(bytes(1000)))], snaplen=96))
    assert lines[0].endswith("payload 1000  icrc cut")


def summary(tmp_path: Path, packets: list[Packet | bytes]) -> list[dict]:
    return [json.loads(line) for line in run(write(tmp_path / "s.pcap", packets), as_json=True, summary=True)]


def sends(*psns: int) -> list[Packet]:
    return [frame(BthOpcode.RC_SEND_ONLY, psn, Raw(b"1234")) for psn in psns]


@pytest.mark.parametrize(
    ("psns", "retransmitted", "out_of_order"),
    [
        ((1, 2, 3, 4), [], 0),
        ((1, 3, 2, 4), [], 1),
        ((1, 4, 2, 3, 5), [], 2),
        ((1, 2, 3, 2, 3, 4), [2, 3], 0),
        ((5, 5, 5), [5], 0),
        ((0xFFFFFE, 0xFFFFFF, 0, 1), [], 0),
        ((0xFFFFFE, 0, 0xFFFFFF, 1), [], 1),
        ((0xFFFFFF, 0, 0xFFFFFF, 0), [0, 0xFFFFFF], 0),
    ],
)
def test_summary_of_psns(tmp_path, psns, retransmitted, out_of_order):
    (flow,) = summary(tmp_path, sends(*psns))
    assert flow == {
        "src": A, "src_port": 49152, "paths": 1, "dst": B, "dest_qpn": 17, "carries": "requests",
        "packets": len(psns), "bytes": len(psns) * 62, "first_psn": psns[0], "last_psn": psns[-1],
        "retransmitted": retransmitted, "out_of_order": out_of_order,
    }  # fmt: skip


def test_summary_separates_psn_spaces(tmp_path):
    """Read responses carry the peer's PSNs, and may go to the queue pair that own requests go to."""
    response = frame(BthOpcode.RC_READ_RESPONSE_ONLY, 2, AETH(), Raw(b"1234"))
    acknowledge = frame(BthOpcode.RC_ACKNOWLEDGE, 2, AETH())
    requests, responses = summary(tmp_path, [*sends(1, 2), response, acknowledge, acknowledge])
    assert (requests["carries"], requests["packets"], requests["retransmitted"]) == ("requests", 2, [])
    assert (responses["carries"], responses["packets"], responses["retransmitted"]) == ("responses", 3, [])


def test_summary_table(tmp_path):
    path = write(tmp_path / "s.pcap", sends(1, *range(1, 8), *range(1, 8)))
    assert run(path, summary=True) == [
        "flow                        qpn  carries   packets  bytes  first psn  last psn  "
        "retransmitted         out of order",
        "10.0.0.1:49152 -> 10.0.0.2  17   requests  15       930    1          7         7 (1, 2, 3, 4, 5, …)  0",
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot read {path}: No such file or directory"),
        (b"", "{path} is not a pcap or pcapng file"),
        (b"abc", "{path} is not a pcap or pcapng file"),
        (b"#!/bin/sh\necho this is no capture\n", "{path} is not a pcap or pcapng file"),
        (b"\xd4\xc3\xb2\xa1\x02\x00", "{path} is not a pcap or pcapng file"),
        (b"\x0a\x0d\x0d\x0a" + bytes(40), "{path} is not a pcap or pcapng file"),
        (b"\x1f\x8b" + bytes(40), "{path} is not a pcap or pcapng file"),
    ],
)
def test_bad_file(tmp_path, capsys, content, message):
    path = tmp_path / "bad.pcap"
    if content is not None:
        path.write_bytes(content)
    assert main([str(path)]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.splitlines()[-1] == "error: " + message.format(path=path)
    with pytest.raises(UsageError):
        inspect(path, io.StringIO())


def test_a_directory_is_no_file(tmp_path, capsys):
    assert main([str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"error: cannot read {tmp_path}: Is a directory\n"


def test_negative_count(capture, capsys):
    assert main([str(capture), "--count", "-1"]) == 2
    assert capsys.readouterr().err == "error: --count must not be negative, but is -1\n"


def test_main(capture, capsys):
    assert main([str(capture), "--count", "1"]) == 0
    assert "RC_WRITE_ONLY" in capsys.readouterr().out
    assert main([str(capture), "--summary", "--json"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_noise_is_printed(tmp_path):
    rng = random.Random(1)
    good = bytes(frame(BthOpcode.RC_WRITE_ONLY, 1, RETH(), Raw(b"1234")))
    frames = []
    for _ in range(200):
        data = bytearray(good[: rng.randint(1, len(good))])
        for _ in range(rng.randint(0, 5)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        frames.append(bytes(data))
    path = write(tmp_path / "noise.pcap", frames)
    assert len(run(path)) == len(run(path, as_json=True)) == 200
    run(path, summary=True)


def test_as_many_packets_as_tcpdump(tmp_path, capture):
    if shutil.which("tcpdump") is None:
        pytest.skip("tcpdump is not installed")
    path = write(tmp_path / "many.pcap", [*sends(*range(40)), Ether() / IP(dst=B) / TCP(), Ether() / ARP(), bytes(20)])
    for file in (path, capture):
        seen = subprocess.run(["tcpdump", "-nn", "-r", file], check=True, capture_output=True, text=True).stdout
        assert len(run(file)) == len([line for line in seen.splitlines() if not line.startswith((" ", "\t"))])
    to_4791 = subprocess.run(
        ["tcpdump", "-nn", "-r", path, "udp dst port 4791"], check=True, capture_output=True, text=True
    ).stdout
    assert len(to_4791.splitlines()) == sum(" qpn " in line for line in run(path)) == 40
