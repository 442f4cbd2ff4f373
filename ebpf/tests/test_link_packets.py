"""Pause frames and damaged packets, natively and as XDP."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator

import pytest

from ebpf.loader import NicError
from ebpf.tests import packets as p
from ebpf.tests.rigs import DROP, PARTNER_MAC, PASS, QPN, RATE_BPS, REMOTE_QPN, RKEY, TX, VA, Bench, NativeRig, XdpRig

QUANTUM_NS = 512 * 10**9 // RATE_BPS
PRIORITIES = range(8)


def pause(opcode: int, body: bytes, source: str = PARTNER_MAC, to: str = "0180c2000001", kind: int = 0x8808) -> bytes:
    frame = bytes.fromhex(to + source.replace(":", "")) + struct.pack("!HH", kind, opcode) + body
    return frame.ljust(60, b"\0")


def pfc(vector: int, times: list[int]) -> bytes:
    return pause(0x0101, struct.pack("!H8H", vector, *times))


def pauses(bench: Bench, frame: bytes) -> list[tuple[int, int]]:
    """How long each priority is paused after the frame, in ns: at least, at most."""
    if isinstance(bench.rig, NativeRig):
        bench.rig.now = 10**12
        before = after = 10**12
        bench.receive(frame)
    else:
        before = time.monotonic_ns()
        bench.receive(frame)
        after = time.monotonic_ns()
    until = bench.rig.counters[bench.rig.host].pause_until
    return [(until[i] - after, until[i] - before) if until[i] else (0, 0) for i in PRIORITIES]


def test_pfc_pauses_the_priorities_it_names(bench: Bench) -> None:
    times = [10, 0xFFFF, 30, 40, 50, 60, 70, 80]
    for priority, (least, most) in enumerate(pauses(bench, pfc(0b10100010, times))):
        asked = times[priority] * QUANTUM_NS if priority in (1, 5, 7) else 0
        assert least <= asked <= most
    assert bench.receive(pfc(1, times)) == (DROP, pfc(1, times))
    assert bench.events() == {"PAUSE_RECEIVED": 2}


def test_a_time_of_zero_ends_the_pause(bench: Bench) -> None:
    bench.receive(pfc(0xFF, [1000] * 8))
    for least, most in pauses(bench, pfc(0xFF, [0] * 8)):
        assert least <= 0 <= most


def test_8023x_pauses_all_priorities(bench: Bench) -> None:
    for least, most in pauses(bench, pause(0x0001, struct.pack("!H", 77))):
        assert least <= 77 * QUANTUM_NS <= most


@pytest.mark.parametrize(
    "frame",
    [
        pause(0x0101, bytes(18), source="02:00:00:00:00:66"),
        pause(0x0101, bytes(18), to="0180c2000002"),
        pause(0x0102, bytes(18)),
        pause(0x0101, bytes(18), kind=0x8809),
        pause(0x0101, bytes(18))[:33],
    ],
    ids=["stranger", "address", "opcode", "EtherType", "short"],
)
def test_what_is_no_pause_is_the_kernels(bench: Bench, frame: bytes) -> None:
    assert bench.receive(frame) == (PASS, frame)
    assert not any(bench.rig.counters[bench.rig.host].pause_until)
    assert bench.events(host=0) == {"PASSED_TO_KERNEL": 1}


@pytest.fixture(scope="module")
def xdp_checking(xdp_rig: XdpRig) -> Iterator[XdpRig]:
    try:
        rig = XdpRig(("gbn",), check_icrc=True)
    except NicError as error:
        pytest.skip(f"no XDP here: {error}")
    yield rig
    rig.close()


@pytest.fixture(params=["native", "xdp"])
def checking(request: pytest.FixtureRequest) -> Bench:
    return Bench(NativeRig(check_icrc=True) if request.param == "native" else request.getfixturevalue("xdp_checking"))


@pytest.mark.parametrize("length", [0, 1, 4, 63, 255, 256])
@pytest.mark.parametrize("padding", [0, 6])
def test_a_right_icrc_passes(checking: Bench, length: int, padding: int) -> None:
    data = bytes(range(256))[:length]
    frame = p.frame(p.WRITE_ONLY, 100, QPN, data, p.reth(VA, RKEY, length), ip={"tos": 3, "ttl": 7}, fecn=1)
    assert checking.receive(frame + bytes(padding)) == (TX, p.reply(p.ACK, 100, 1, REMOTE_QPN))
    assert bytes(checking.data[:length]) == data


def _changed(at: int, bits: int) -> bytes:
    """A WRITE with one byte changed, and an IPv4 checksum that is right again."""
    frame = bytearray(p.frame(p.WRITE_ONLY, 100, QPN, bytes(range(64)), p.reth(VA, RKEY, 64)))
    assert len(frame) == 138
    frame[at] ^= bits
    frame[24:26] = b"\0\0"
    words = sum(struct.unpack("!10H", frame[14:34]))
    words = (words & 0xFFFF) + (words >> 16)
    frame[24:26] = struct.pack("!H", 0xFFFF & ~((words & 0xFFFF) + (words >> 16)))
    return bytes(frame)


@pytest.mark.parametrize(
    ("at", "bits"),
    [(18, 1), (34, 1), (43, 0x80), (50, 0x80), (53, 1), (58, 1), (69, 1), (70, 1), (133, 0x80), (134, 1), (137, 0x80)],
)
def test_one_wrong_bit_does_not(checking: Bench, at: int, bits: int) -> None:
    """IPv4 identification, source port, BTH, RETH, payload, the ICRC itself."""
    assert checking.receive(_changed(at, bits))[0] == DROP
    assert checking.events() == {"DROP_BAD_ICRC": 1}
    assert checking.receiver.epsn == 100 and not any(checking.data)


@pytest.mark.parametrize(("at", "bits"), [(15, 0xFC), (22, 1), (40, 1), (46, 0xC0)])
def test_what_switches_change_may_be_anything(checking: Bench, at: int, bits: int) -> None:
    """DSCP, time to live, UDP checksum, FECN and BECN."""
    assert checking.receive(_changed(at, bits))[0] == TX
    assert checking.events() == {"REQUEST_PLACED": 1}


def test_unchecked_a_wrong_icrc_passes(bench: Bench) -> None:
    assert bench.receive(_changed(137, 1))[0] == TX
