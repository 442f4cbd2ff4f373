"""Reordering against RFC 4737's definitions written out, and `plait inspect --reorder` on captures made by hand."""

import io
import json
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.layers.dot11 import RadioTap
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Packet, Raw
from scapy.utils import wrpcap

from lab.errors import UsageError
from lab.inspect import main
from lab.reorder import Order, orders, read_frames, read_request, report, summarize
from wire.codes import PSN_MASK, BthOpcode
from wire.decode import decode
from wire.layers import AETH, BTH


def frame(psn: int, opcode: BthOpcode = BthOpcode.RC_WRITE_MIDDLE, qpn: int = 17, sport: int = 49152, **ip) -> Packet:
    ends = {"src": "10.0.0.2", "dst": "10.1.0.2", **ip}
    return Ether() / IP(**ends) / UDP(sport=sport, chksum=0) / BTH(opcode=opcode, psn=psn, dest_qpn=qpn) / Raw(b"1234")


def by_definition(psns: list[int]) -> tuple[list[int], list[int]]:
    """RFC 4737, sections 3.3 and 4.2, for positions that do not wrap: degrees and extents in order of arrival."""
    first = list(dict.fromkeys(psns))
    degrees, extents = [], []
    for i, psn in enumerate(first):
        higher = [j for j in range(i) if first[j] > psn]
        if higher:
            degrees.append(len(higher))
            extents.append(i - min(higher))
    return degrees, extents


@settings(max_examples=200, deadline=None)
@given(
    start=st.integers(0, PSN_MASK),
    offsets=st.lists(st.integers(0, 60), max_size=80),
)
def test_every_definition_holds_and_psns_wrap(start: int, offsets: list[int]) -> None:
    # 1,000 in front, so that the first packet of the flow is its lowest.
    positions = [0, *(1000 + offset for offset in offsets)]
    order = Order()
    for position in positions:
        order.add((start + position) & PSN_MASK)
    degrees, extents = by_definition(positions)
    assert sorted(order.degrees.elements()) == sorted(degrees)
    assert sorted(order.extents.elements()) == sorted(extents)
    assert order.packets == len(set(positions))
    assert order.retransmissions == len(positions) - len(set(positions))


def test_packets_behind_one_that_overtook_them() -> None:
    """4, 5 and 6 each come after one higher packet, ever further behind it."""
    order = Order()
    for psn in (1, 2, 3, 7, 4, 5, 6, 8):
        order.add(psn)
    assert order.extents == {1: 1, 2: 1, 3: 1}
    assert order.degrees == {1: 3}


def test_a_flow_longer_than_the_psn_space_is_in_order() -> None:
    order = Order()
    for position in range(0, 3 << 24, 1 << 20):
        order.add(position & PSN_MASK)
    assert (order.packets, order.out_of_order, order.retransmissions) == (48, 0, 0)


def rows(tmp_path: Path, packets: list[Packet]) -> list[dict]:
    wrpcap(str(tmp_path / "x.pcap"), packets)
    out = io.StringIO()
    report(tmp_path / "x.pcap", out, as_json=True)
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_flows_are_told_apart_and_acknowledgements_left_out(tmp_path: Path) -> None:
    found = rows(tmp_path, [
        frame(10),
        frame(12, sport=50000, qpn=19),
        frame(12, sport=50001),
        frame(11, sport=50000, qpn=19),
        frame(5, BthOpcode.RC_ACKNOWLEDGE),
        frame(11),
        frame(12),
        frame(13, qpn=18),
        frame(9, BthOpcode.RC_READ_RESPONSE_MIDDLE),
        Ether() / ARP(),
    ])  # fmt: skip
    assert [(row["src_port"], row["dest_qpn"], row["carries"], row["packets"], row["paths"]) for row in found] == [
        (49152, 17, "requests", 3, 2),
        (50000, 19, "requests", 2, 1),
        (49152, 18, "requests", 1, 1),
        (49152, 17, "responses", 1, 1),
    ]
    first, second, *others = found
    assert (first["out_of_order"], first["fraction"], first["retransmissions"]) == (1, pytest.approx(1 / 3), 1)
    assert first["degrees"] == first["extents"] == {"1": 1}
    assert (second["out_of_order"], second["mean_degree"], second["max_extent"]) == (1, 1.0, 1)
    assert all(other["out_of_order"] == 0 for other in others)


def test_the_table_has_a_distribution(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # 0 comes after 7 higher ones, 6 after 7.
    wrpcap(str(tmp_path / "x.pcap"), [frame(100 + psn) for psn in (1, 2, 3, 4, 5, 7, 6, 0)])
    assert main([str(tmp_path / "x.pcap"), "--reorder"]) == 0
    header, row = capsys.readouterr().out.splitlines()
    assert header.split("  ")[0] == "flow"
    assert "10.0.0.2:49152 -> 10.1.0.2" in row
    assert row.endswith("1: 1, 5-8: 1")
    assert main([str(tmp_path / "x.pcap"), "--reorder", "--count", "5", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["packets"] == 5


def test_mistakes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "none.pcap"), "--reorder"]) == 2
    assert "none.pcap: No such file or directory" in capsys.readouterr().err
    (tmp_path / "text.pcap").write_text("not a capture, but long enough to be one of them")
    assert main([str(tmp_path / "text.pcap"), "--reorder"]) == 2
    assert "text.pcap is not a pcap or pcapng file" in capsys.readouterr().err
    assert main([str(tmp_path / "text.pcap"), "--reorder", "--summary"]) == 2
    assert "--summary and --reorder are two views: give one" in capsys.readouterr().err
    wrpcap(str(tmp_path / "radio.pcap"), [RadioTap()])
    with pytest.raises(UsageError, match="link type 127; reordering is read from Ethernet captures only"):
        list(read_frames(tmp_path / "radio.pcap"))


def test_only_what_goes_to_an_address() -> None:
    frames = [bytes(frame(1)), bytes(frame(2, dst="10.9.0.2"))]
    assert len(orders(frames)) == 2
    ((key, order),) = orders(frames, bytes([10, 9, 0, 2])).items()
    assert key[1] == bytes([10, 9, 0, 2])
    assert order.packets == 1


def test_the_quick_look_sees_what_the_decoder_sees() -> None:
    """Every field against scapy's, also of frames with IP options, of other protocols, and cut anywhere."""
    rng = random.Random(1)
    whole = [
        bytes(packet)
        for packet in (
            *(frame(rng.getrandbits(24), opcode, rng.getrandbits(24), rng.getrandbits(16)) for opcode in BthOpcode),
            Ether() / IP(options=[b"\x01" * 4]) / UDP(sport=5, chksum=0) / BTH(opcode=6, psn=7, dest_qpn=8) / Raw(b"1"),
            Ether() / IP() / TCP(sport=4791, dport=4791) / Raw(bytes(40)),
            Ether() / IP() / UDP(sport=1, dport=53) / Raw(bytes(40)),
            Ether() / IP() / UDP(chksum=0) / BTH(opcode=BthOpcode.RC_ACKNOWLEDGE) / AETH(),
            Ether() / ARP(),
        )
    ]  # fmt: skip
    seen = 0
    for data in whole:
        roce, quick = decode(Ether(data)), read_request(data)
        acknowledgement = roce is not None and roce.opcode_name in ("RC_ACKNOWLEDGE", "RC_READ_ACKNOWLEDGE", "CNP")
        if roce is None or acknowledgement:
            assert quick is None
            continue
        seen += 1
        assert quick is not None
        assert (roce.src_port, roce.dest_qpn, roce.psn) == (
            quick.src_port, quick.dest_qpn, quick.psn
        )  # fmt: skip
        assert (roce.src, roce.dst) == (".".join(map(str, quick.src)), ".".join(map(str, quick.dst)))
        for length in range(len(data) - 4):
            cut = read_request(data[:length])
            assert cut is None or cut == quick
    assert seen == len(BthOpcode) - 3 + 1


def test_totals_over_flows() -> None:
    one, other = Order(), Order()
    for psn in (1, 3, 2):
        one.add(psn)
    for psn in (5, 8, 7, 6, 6):
        other.add(psn)
    totals = summarize([one, other])
    assert (totals.flows, totals.packets, totals.out_of_order, totals.retransmissions) == (2, 7, 3, 1)
    assert totals.mean_degree == pytest.approx((1 + 1 + 2) / 3)
    assert totals.mean_extent == pytest.approx((1 + 1 + 2) / 3)
    assert (totals.max_degree, totals.max_extent) == (2, 2)
    assert summarize([]).fraction == summarize([Order()]).mean_extent == 0
