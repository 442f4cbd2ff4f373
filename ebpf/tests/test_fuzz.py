"""Damaged packets: the XDP programs and the native core agree on every one, and nothing leaves its region."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections import Counter

import pytest

from ebpf.c_module import SANITIZE_VARIABLE, sanitizer_environment
from ebpf.loader import ROOT
from ebpf.tests import damage
from ebpf.tests.rigs import TRANSPORTS, Bench, NativeRig, XdpRig

GROUP = 6  # frames to a queue pair before it starts anew


def test_native_survives() -> None:
    chance = random.Random(1)
    bench = Bench(NativeRig())
    seen: dict[str, Counter[str]] = {transport: Counter() for transport in TRANSPORTS}
    for _ in range(1500):
        transport = damage.prepare(bench, chance)
        for number in range(GROUP):
            bench.receive(damage.frame(chance, transport))
            assert damage.counted(bench) == number + 1
        assert bench.canaries_intact()
        seen[transport].update(bench.events())
    # The damage is of every kind; otherwise this test would not be worth much.
    for transport, events in seen.items():
        assert len(events) >= 18, (transport, events)


def test_xdp_and_native_agree(xdp_rig: XdpRig) -> None:
    chance = random.Random(2)
    xdp, native = Bench(xdp_rig), Bench(NativeRig(grow=True))
    for _ in range(700):
        before = chance.getstate()
        transport = damage.prepare(xdp, chance)
        chance.setstate(before)
        damage.prepare(native, chance)
        for number in range(GROUP):
            frame = damage.frame(chance, transport)
            assert xdp.receive(frame) == native.receive(frame), (transport, frame.hex())
            assert damage.counted(xdp) == number + 1
        assert damage.state(xdp.rig) == damage.state(native.rig), transport
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
