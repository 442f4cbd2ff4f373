"""Damaged packets: the XDP program and the native core agree on every one, and nothing leaves its region."""

from __future__ import annotations

import os
import random
import struct
import subprocess
import sys
from collections.abc import Iterator

import pytest

from ebpf.c_module import SANITIZE_VARIABLE, sanitizer_environment
from ebpf.loader import ROOT
from ebpf.tests import packets as p
from ebpf.tests.rigs import (
    COUNTER_BYTES,
    MTU,
    QP_BYTES,
    QPN,
    REGION_LENGTH,
    RKEY,
    SLOTS,
    VA,
    Bench,
    NativeRig,
    XdpRig,
    ffi,
)

BODY = bytes(range(256))
SEEDS = [
    p.frame(p.WRITE_ONLY, 100, QPN, BODY[:77], p.reth(VA, RKEY, 77)),
    p.frame(p.WRITE_ONLY, 100, QPN, BODY, p.reth(VA + REGION_LENGTH - MTU, RKEY, MTU)),
    p.frame(p.WRITE_ONLY, 100, QPN, b"", p.reth(VA, RKEY, 0)),
    p.frame(p.WRITE_FIRST, 100, QPN, BODY, p.reth(VA, RKEY, 2 * MTU + 9)),
    p.frame(p.WRITE_MIDDLE, 101, QPN, BODY, ackreq=1),
    p.frame(p.WRITE_LAST, 102, QPN, BODY[:9]),
    p.frame(p.ACKNOWLEDGE, 5003, QPN, extension=p.aeth(p.ACK)),
    p.frame(p.ACKNOWLEDGE, 5004, QPN, extension=p.aeth(p.NAK_SEQUENCE)),
    p.frame(p.CNP, 0, QPN, bytes(16)),
]
HEADERS = range(14, 70)


def _mend(frame: bytearray) -> None:
    """A right IPv4 checksum, so that the damage gets past it."""
    frame[24:26] = b"\0\0"
    total = sum(struct.unpack("!10H", frame[14:34]))
    total = (total & 0xFFFF) + (total >> 16)
    frame[24:26] = struct.pack("!H", 0xFFFF & ~((total & 0xFFFF) + (total >> 16)))


def damaged(seed: int, count: int) -> Iterator[bytes]:
    chance = random.Random(seed)
    for _ in range(count):
        frame = bytearray(chance.choice(SEEDS))
        for _ in range(chance.choice([0, 1, 1, 2, 4])):
            at = chance.choice(HEADERS)
            if at < len(frame):
                frame[at] = chance.choice([0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256), frame[at] ^ 1])
        if chance.random() < 0.3:
            length = chance.randrange(14, len(frame) + 40)
            frame = (frame + chance.randbytes(40))[:length]
            if length >= 42 and chance.random() < 0.7:
                frame[16:18] = struct.pack("!H", length - 14)
                frame[38:40] = struct.pack("!H", length - 34)
        if len(frame) >= 34 and chance.random() < 0.9:
            _mend(frame)
        yield bytes(frame)


def _state(bench: Bench) -> tuple[bytes, ...]:
    rig = bench.rig
    return bytes(ffi.buffer(rig.qps, SLOTS * QP_BYTES)), bytes(ffi.buffer(rig.counters, 4 * COUNTER_BYTES))


def test_native_survives() -> None:
    bench = Bench(NativeRig())
    seen: dict[str, int] = {}
    for number, frame in enumerate(damaged(1, 4000)):
        if number % 4 == 0:
            bench.reset(snd_una=5000, snd_nxt=5010)
        before = sum(bench.events().values()) + sum(bench.events(host=0).values())
        bench.receive(frame)
        assert sum(bench.events().values()) + sum(bench.events(host=0).values()) == before + 1
        if number % 4 == 3:
            assert bench.canaries_intact()
            for event, count in bench.events().items():
                seen[event] = seen.get(event, 0) + count
    # The damage is of every kind; otherwise this test would not be worth much.
    assert len(seen) >= 15, seen


def test_xdp_and_native_agree(xdp_rig: XdpRig) -> None:
    xdp, native = Bench(xdp_rig), Bench(NativeRig(grow=True))
    for number, frame in enumerate(damaged(2, 3000)):
        if number % 4 == 0:
            for bench in (xdp, native):
                bench.reset(snd_una=5000, snd_nxt=5010)
        assert xdp.receive(frame) == native.receive(frame), frame.hex()
        if number % 4 == 3:
            assert _state(xdp) == _state(native)
            assert xdp.rig.arena == native.rig.arena
            assert xdp.canaries_intact()


@pytest.mark.skipif(SANITIZE_VARIABLE in os.environ, reason="this is the sanitized run")
def test_native_tests_pass_with_sanitizers() -> None:
    sanitizers = sanitizer_environment()
    if sanitizers is None:
        pytest.skip("the C compiler has no sanitizers")
    which = "not xdp and not once"  # all of the native ones but the longest
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "ebpf/tests", "-k", which]
    result = subprocess.run(command, cwd=ROOT, env={**os.environ, **sanitizers}, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
