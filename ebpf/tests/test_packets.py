"""One packet a path through the NIC, natively and as XDP: verdict, bytes, counters and memory.

Packets and expected replies are scapy's, ICRC and IPv4 checksum included.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebpf.tests import packets as p
from ebpf.tests.rigs import DROP, MTU, PASS, PD, QPN, REGION_LENGTH, REMOTE_QPN, RKEY, TX, VA, Bench, NativeRig
from wire.codes import QpState

DATA = bytes(range(1, 201))


def write_only(psn: int = 100, data: bytes = DATA, va: int = VA, rkey: int = RKEY, **more: Any) -> bytes:
    length = more.pop("length", len(data))
    return p.frame(p.WRITE_ONLY, psn, more.pop("qpn", QPN), data, p.reth(va, rkey, length), **more)


def reply(syndrome: int, psn: int, msn: int = 0) -> bytes:
    return p.reply(syndrome, psn, msn, REMOTE_QPN)


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 255, 256])
def test_write_only_is_placed_and_acknowledged(bench: Bench, length: int) -> None:
    data = bytes(range(1, 256))[:length].ljust(length, b"x")
    assert bench.receive(write_only(data=data, va=VA + 11)) == (TX, reply(p.ACK, 100, 1))
    assert bytes(bench.data[:11]) == bytes(11)
    assert bytes(bench.data[11 : 11 + length]) == data
    assert not any(bench.data[11 + length :])
    assert bench.canaries_intact()
    assert bench.events() == {"REQUEST_PLACED": 1}
    assert bench.receiver.epsn == 101


def test_a_write_without_bytes_needs_no_key(bench: Bench) -> None:
    assert bench.receive(write_only(data=b"", rkey=0, va=0)) == (TX, reply(p.ACK, 100, 1))
    assert bench.events() == {"REQUEST_PLACED": 1}
    assert not any(bench.data)


def test_a_message_of_three_packets(bench: Bench) -> None:
    data = bytes(range(256)) * 2 + b"end"
    first = p.frame(p.WRITE_FIRST, 100, QPN, data[:MTU], p.reth(VA, RKEY, len(data)))
    assert bench.receive(first)[0] == DROP
    assert bench.receive(p.frame(p.WRITE_MIDDLE, 101, QPN, data[MTU : 2 * MTU], ackreq=1)) == (TX, reply(p.ACK, 101))
    assert bench.receive(p.frame(p.WRITE_LAST, 102, QPN, data[2 * MTU :])) == (TX, reply(p.ACK, 102, 1))
    assert bytes(bench.data[: len(data)]) == data
    assert bench.canaries_intact()
    counters = bench.rig.counters[bench.rig.host]
    assert (counters.bytes_placed, counters.replies_sent) == (len(data), 2)


def test_acknowledges_every_n_packets_if_told(bench: Bench) -> None:
    bench.qp.config.ack_every = 2
    body = bytes(MTU)
    actions = [bench.receive(p.frame(p.WRITE_FIRST, 100, QPN, body, p.reth(VA, RKEY, 6 * MTU)))[0]]
    actions += [bench.receive(p.frame(p.WRITE_MIDDLE, psn, QPN, body))[0] for psn in range(101, 105)]
    assert actions == [DROP, TX, DROP, TX, DROP]


def test_psn_wraps(bench: Bench) -> None:
    bench.reset(epsn=0xFFFFFF)
    assert bench.receive(write_only(psn=0xFFFFFF)) == (TX, reply(p.ACK, 0xFFFFFF, 1))
    assert bench.receive(write_only(psn=0)) == (TX, reply(p.ACK, 0, 2))
    assert bench.receive(write_only(psn=0xFFFFFF)) == (TX, reply(p.ACK, 0, 2))
    assert bench.events() == {"REQUEST_PLACED": 2, "REQUEST_DUPLICATE": 1}


def test_a_duplicate_is_acknowledged_and_not_placed(bench: Bench) -> None:
    bench.receive(write_only())
    assert bench.receive(write_only(data=bytes(200))) == (TX, reply(p.ACK, 100, 1))
    assert bytes(bench.data[: len(DATA)]) == DATA


def test_one_nak_for_a_gap(bench: Bench) -> None:
    assert bench.receive(write_only(psn=101)) == (TX, reply(p.NAK_SEQUENCE, 100))
    assert bench.receive(write_only(psn=102))[0] == DROP
    assert bench.receive(write_only(psn=100)) == (TX, reply(p.ACK, 100, 1))
    assert bench.receive(write_only(psn=105)) == (TX, reply(p.NAK_SEQUENCE, 101, 1))
    assert bench.events() == {"REQUEST_PLACED": 1, "REQUEST_SEQ_ERROR": 3}
    assert bench.receiver.gaps == 2


def test_ce_is_counted(bench: Bench) -> None:
    bench.receive(write_only(ip={"tos": 3}))
    bench.receive(write_only(psn=101))
    assert bench.rig.counters[bench.rig.host].ce_marked == 1


def test_the_path_is_echoed(bench: Bench) -> None:
    ends = p.with_ends(src_port=54321)
    assert bench.receive(write_only(ends=ends)) == (TX, p.reply(p.ACK, 100, 1, REMOTE_QPN, to=ends))


def test_link_padding_behind_the_packet_is_ignored(bench: Bench) -> None:
    assert bench.receive(write_only(data=b"x") + bytes(20)) == (TX, reply(p.ACK, 100, 1))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, (1 << 24) - 1), st.integers(0, (1 << 24) - 1), st.integers(0, 65535), st.booleans())
def test_the_icrc_of_any_reply(psn: int, msn: int, port: int, gap: bool) -> None:
    bench = Bench(NativeRig())
    bench.reset(epsn=psn)
    bench.receiver.msn = msn
    ends = p.with_ends(src_port=port)
    frame = write_only(psn=(psn + gap) % (1 << 24), ends=ends)
    syndrome, messages = (p.NAK_SEQUENCE, msn) if gap else (p.ACK, (msn + 1) % (1 << 24))
    assert bench.receive(frame) == (TX, p.reply(syndrome, psn, messages, REMOTE_QPN, to=ends))


Fault = tuple[str, bytes, int]  # event, frame, syndrome of the NAK
FATAL: dict[str, Fault] = {
    "no such key": ("NAK_RKEY", write_only(rkey=RKEY ^ 0x100), p.NAK_ACCESS),
    "key of a free slot": ("NAK_RKEY", write_only(rkey=0), p.NAK_ACCESS),
    "before the region": ("NAK_BOUNDS", write_only(va=VA - 1), p.NAK_ACCESS),
    "over the end": ("NAK_BOUNDS", write_only(va=VA + REGION_LENGTH - len(DATA) + 1), p.NAK_ACCESS),
    "far away": ("NAK_BOUNDS", write_only(va=0), p.NAK_ACCESS),
    "wrapping address": ("NAK_BOUNDS", write_only(va=(1 << 64) - 100), p.NAK_ACCESS),
    "shorter than said": ("NAK_LENGTH", write_only(length=len(DATA) + 1), p.NAK_INVALID),
    "longer than said": ("NAK_LENGTH", write_only(length=len(DATA) - 1), p.NAK_INVALID),
    "over the MTU": ("NAK_LENGTH", write_only(data=bytes(MTU + 1)), p.NAK_INVALID),
    "first not full": (
        "NAK_LENGTH",
        p.frame(p.WRITE_FIRST, 100, QPN, bytes(MTU - 4), p.reth(VA, RKEY, 1000)),
        p.NAK_INVALID,
    ),
    "first is all": (
        "NAK_LENGTH",
        p.frame(p.WRITE_FIRST, 100, QPN, bytes(MTU), p.reth(VA, RKEY, MTU)),
        p.NAK_INVALID,
    ),
    "message too long": (
        "NAK_LENGTH",
        p.frame(p.WRITE_FIRST, 100, QPN, bytes(MTU), p.reth(VA, RKEY, (1 << 31) + 1)),
        p.NAK_INVALID,
    ),
    "middle without first": ("NAK_OPCODE_SEQ", p.frame(p.WRITE_MIDDLE, 100, QPN, bytes(MTU)), p.NAK_INVALID),
    "last without first": ("NAK_OPCODE_SEQ", p.frame(p.WRITE_LAST, 100, QPN, b"abcd"), p.NAK_INVALID),
    "immediate without first": ("NAK_OPCODE_SEQ", p.frame(p.WRITE_LAST_IMM, 100, QPN, bytes(8)), p.NAK_INVALID),
    "read without the right": ("NAK_RKEY", p.frame(p.READ_REQUEST, 100, QPN, b"", p.reth(VA, RKEY, 4)), p.NAK_ACCESS),
}


@pytest.mark.parametrize("name", FATAL)
def test_a_fault_is_naked_and_ends_the_connection(bench: Bench, name: str) -> None:
    event, frame, syndrome = FATAL[name]
    assert bench.receive(frame) == (TX, reply(syndrome, 100))
    assert bench.events() == {event: 1}
    assert bench.qp.config.state == QpState.ERROR
    assert not any(bench.data) and bench.canaries_intact()
    assert bench.receive(write_only())[0] == DROP
    assert bench.events() == {event: 1, "DROP_QP_STATE": 1}


INSIDE: dict[str, Fault] = {
    "only": ("NAK_OPCODE_SEQ", write_only(psn=101), p.NAK_INVALID),
    "first": ("NAK_OPCODE_SEQ", p.frame(p.WRITE_FIRST, 101, QPN, bytes(MTU), p.reth(VA, RKEY, 1000)), p.NAK_INVALID),
    "middle not full": ("NAK_LENGTH", p.frame(p.WRITE_MIDDLE, 101, QPN, bytes(100)), p.NAK_INVALID),
    "last too early": ("NAK_LENGTH", p.frame(p.WRITE_LAST, 101, QPN, bytes(100)), p.NAK_INVALID),
}


@pytest.mark.parametrize("name", INSIDE)
def test_a_fault_inside_a_message(bench: Bench, name: str) -> None:
    event, frame, syndrome = INSIDE[name]
    bench.receive(p.frame(p.WRITE_FIRST, 100, QPN, bytes(MTU), p.reth(VA, RKEY, 3 * MTU)))
    assert bench.receive(frame) == (TX, reply(syndrome, 101))
    assert bench.events() == {"REQUEST_PLACED": 1, event: 1}


def test_middle_that_would_end_the_message(bench: Bench) -> None:
    bench.receive(p.frame(p.WRITE_FIRST, 100, QPN, bytes(MTU), p.reth(VA, RKEY, 2 * MTU)))
    assert bench.receive(p.frame(p.WRITE_MIDDLE, 101, QPN, bytes(MTU))) == (TX, reply(p.NAK_INVALID, 101))


def test_a_region_that_goes_away_inside_a_message(bench: Bench) -> None:
    bench.receive(p.frame(p.WRITE_FIRST, 100, QPN, bytes(MTU), p.reth(VA, RKEY, 2 * MTU)))
    bench.region.rkey = 0
    assert bench.receive(p.frame(p.WRITE_LAST, 101, QPN, bytes(MTU))) == (TX, reply(p.NAK_ACCESS, 101))
    assert bench.events() == {"REQUEST_PLACED": 1, "NAK_RKEY": 1}


def _no_access(bench: Bench) -> None:
    bench.region.access = 1


def _other_domain(bench: Bench) -> None:
    bench.region.pd = PD + 1


def _other_owner(bench: Bench) -> None:
    bench.region.owner_ip += 1


@pytest.mark.parametrize("change", [_no_access, _other_domain, _other_owner])
def test_a_region_that_is_not_the_queue_pairs(bench: Bench, change: Callable[[Bench], None]) -> None:
    change(bench)
    assert bench.receive(write_only()) == (TX, reply(p.NAK_ACCESS, 100))
    assert bench.events() == {"NAK_RKEY": 1}
    assert not any(bench.data)


def test_a_nak_that_does_not_fit_the_frame_is_counted_as_lost(native: Bench) -> None:
    """Under BPF_PROG_RUN frames can grow; on a wire they cannot, and natively neither."""
    assert native.receive(p.frame(p.WRITE_LAST, 100, QPN))[0] == DROP
    assert native.rig.counters[native.rig.host].replies_lost == 1
    assert native.qp.config.state == QpState.ERROR


def _cut(frame: bytes, to: int) -> bytes:
    """A frame that ends early, with lengths that agree."""
    cut = bytearray(frame[:to])
    cut[16:18] = struct.pack("!H", to - 14)
    cut[38:40] = struct.pack("!H", to - 34)
    cut[24:26] = b"\0\0"
    words = sum(struct.unpack("!10H", cut[14:34]))
    words = (words & 0xFFFF) + (words >> 16)
    cut[24:26] = struct.pack("!H", 0xFFFF & ~((words & 0xFFFF) + (words >> 16)))
    return bytes(cut)


def _bad_checksum() -> bytes:
    frame = bytearray(write_only())
    frame[22] -= 1  # time to live, as a switch that forgets the checksum would
    return bytes(frame)


DROPS: dict[str, tuple[str, bytes]] = {
    "ends in the BTH": ("DROP_TRUNCATED", _cut(write_only(), 50)),
    "ends in the RETH": ("DROP_TRUNCATED", _cut(write_only(), 66)),
    "no ICRC": ("DROP_TRUNCATED", _cut(write_only(), 70)),
    "ends before its length says": ("DROP_TRUNCATED", write_only()[:-1]),
    "IP and UDP lengths disagree": ("DROP_TRUNCATED", write_only(ip={"len": 100})),
    "BTH version": ("DROP_BAD_HEADER", write_only(version=1)),
    "pad count": ("DROP_BAD_HEADER", write_only(data=b"", padcount=3)),
    "not whole words": ("DROP_BAD_HEADER", _cut(write_only(), 14 + 20 + 8 + 12 + 16 + 4 + 3)),
    "P_Key": ("DROP_BAD_HEADER", write_only(pkey=0x7FFF)),
    "IPv4 checksum": ("DROP_BAD_HEADER", _bad_checksum()),
    "unknown queue pair": ("DROP_UNKNOWN_QP", write_only(qpn=QPN ^ 0x10)),
    "free slot": ("DROP_UNKNOWN_QP", write_only(qpn=0)),
    "wrong source": ("DROP_WRONG_PEER", write_only(ends=p.with_ends(src_ip="10.0.0.3"))),
    "wrong destination": ("DROP_WRONG_PEER", write_only(ends=p.with_ends(dst_ip="10.0.0.9"))),
    "reserved opcode": ("DROP_BAD_OPCODE", p.frame(0x1B, 100, QPN, bytes(8))),
    "unreliable datagram": ("DROP_BAD_OPCODE", p.frame(0x64, 100, QPN, bytes(8))),
    "response to no read": ("RESPONSE_DUPLICATE", p.frame(p.READ_RESPONSE_ONLY, 100, QPN, bytes(8))),
    "reserved syndrome": ("ACK_STALE", p.frame(p.ACKNOWLEDGE, 100, QPN, extension=p.aeth(0x40))),
}


@pytest.mark.parametrize("name", DROPS)
def test_drops(bench: Bench, name: str) -> None:
    event, frame = DROPS[name]
    assert bench.receive(frame)[0] == DROP
    assert bench.events() == {event: 1}
    assert bench.receiver.epsn == 100 and bench.qp.config.state == QpState.RTS
    assert not any(bench.data) and bench.canaries_intact()


@pytest.mark.parametrize("state", [QpState.RESET, QpState.INIT, QpState.SQE, QpState.ERROR])
def test_states_that_do_not_receive(bench: Bench, state: QpState) -> None:
    bench.qp.config.state = state
    assert bench.receive(write_only())[0] == DROP
    assert bench.events() == {"DROP_QP_STATE": 1}


def test_rtr_receives_requests_only(bench: Bench) -> None:
    bench.qp.config.state = QpState.RTR
    assert bench.receive(write_only())[0] == TX
    assert bench.receive(p.frame(p.ACKNOWLEDGE, 5000, QPN, extension=p.aeth(p.ACK)))[0] == DROP
    assert bench.events() == {"REQUEST_PLACED": 1, "DROP_QP_STATE": 1}


def test_a_queue_pair_of_another_host(bench: Bench) -> None:
    bench.qp.config.host = 3
    assert bench.receive(write_only())[0] == DROP
    assert bench.events() == {"DROP_WRONG_PEER": 1}


KERNELS: dict[str, bytes] = {
    "another port": write_only(ends=p.with_ends(dst_port=53)),
    "not IPv4": write_only()[:12] + b"\x86\xdd" + write_only()[14:],
    "fragment": write_only(ip={"frag": 10, "flags": 0}),
    "first fragment": write_only(ip={"flags": "MF"}),
    "IPv4 options": write_only()[:14] + b"\x46" + write_only()[15:],
    "TCP": write_only()[:23] + b"\x06" + write_only()[24:],
    "only Ethernet": write_only()[:14],
    "half an IPv4 header": write_only()[:30],
}


@pytest.mark.parametrize("name", KERNELS)
def test_what_is_not_rocev2_is_the_kernels(bench: Bench, name: str) -> None:
    frame = KERNELS[name]
    assert bench.receive(frame) == (PASS, frame)
    assert bench.events() == {"PASSED_TO_KERNEL": 1}


def test_frames_for_another_mac_are_nobodys(bench: Bench) -> None:
    frame = write_only(ends=p.with_ends(dst_mac="02:00:00:00:00:77"))
    assert bench.receive(frame) == (PASS, frame)
    assert bench.events() == {}
    assert bench.events(host=0) == {"PASSED_TO_KERNEL": 1}


def acknowledge(psn: int, syndrome: int = p.ACK, msn: int = 0) -> bytes:
    return p.frame(p.ACKNOWLEDGE, psn, QPN, extension=p.aeth(syndrome, msn))


@pytest.mark.parametrize(
    ("psn", "syndrome", "event", "una"),
    [
        (5000, p.ACK, "ACK_RECEIVED", 5001),
        (5009, p.ACK, "ACK_RECEIVED", 5010),
        (5010, p.ACK, "ACK_STALE", 5000),  # never sent
        (4999, p.ACK, "ACK_STALE", 5000),
        (5003, p.NAK_SEQUENCE, "NAK_RECEIVED", 5003),
        (4990, p.NAK_SEQUENCE, "ACK_STALE", 5000),
        (5003, p.NAK_ACCESS, "NAK_RECEIVED", 5003),
        (5003, p.RNR | 14, "NAK_RECEIVED", 5003),
        (5003, 0x40, "DROP_BAD_HEADER", 5000),
        (5003, 0x7F, "DROP_BAD_HEADER", 5000),
    ],
)
def test_acknowledgements(bench: Bench, psn: int, syndrome: int, event: str, una: int) -> None:
    bench.reset(snd_una=5000, snd_nxt=5010)
    assert bench.receive(acknowledge(psn, syndrome))[0] == DROP
    assert bench.events() == {event: 1}
    requester = bench.sender
    assert requester.snd_una == una
    assert requester.naks == (syndrome == p.NAK_SEQUENCE and event == "NAK_RECEIVED")
    assert requester.error == (p.NAK_ACCESS if syndrome == p.NAK_ACCESS else 0)
    assert requester.rnr_timer == (14 if syndrome == p.RNR | 14 else 0)
    assert bench.qp.config.state == (QpState.ERROR if requester.error else QpState.RTS)


def test_acknowledgement_across_the_wrap(bench: Bench) -> None:
    bench.reset(snd_una=0xFFFFF0, snd_nxt=0x10)
    bench.receive(acknowledge(0x5))
    assert bench.sender.snd_una == 6


def test_cnp_is_counted(bench: Bench) -> None:
    assert bench.receive(p.frame(p.CNP, 0, QPN, bytes(16), becn=1))[0] == DROP
    assert bench.events() == {"CNP_RECEIVED": 1}


def test_a_write_over_the_end_of_a_chunk(bench: Bench) -> None:
    """The XDP arena of the tests has chunks of 64 KB: a region may span them, and so may a packet."""
    bench.region.arena_offset = (1 << 16) - 100
    data = bytes(range(200))
    assert bench.receive(write_only(data=data)) == (TX, reply(p.ACK, 100, 1))
    at = (1 << 16) - 100
    assert bytes(bench.rig.arena[at : at + 200]) == data
    assert bench.rig.arena[at - 1] == bench.rig.arena[at + 200] == Bench.CANARY
