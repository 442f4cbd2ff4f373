"""Damaged RoCEv2 packets of every transport through the NIC core, under the sanitizers."""

from __future__ import annotations

import random
from pathlib import Path

from ebpf.tests import damage
from ebpf.tests.rigs import Bench, NativeRig
from fuzz.target import Fault, Target

_QUEUE_PAIRS = 50
_FRAMES = 12


class Nic(Target):
    """Queue pairs in random states, each with some frames; the memory around its region stays as it was."""

    name = "nic"

    def __init__(self, keep: Path | None = None) -> None:
        super().__init__(keep)
        self._bench = Bench(NativeRig())

    def case(self, rng: random.Random) -> int:
        bench = self._bench
        for _ in range(_QUEUE_PAIRS):
            transport = damage.prepare(bench, rng)
            self.save("transport.txt", transport)
            for number in range(_FRAMES):
                frame = damage.frame(rng, transport)
                self.save(f"frame{number}.bin", frame)
                bench.receive(frame)
                if damage.counted(bench) != number + 1:
                    raise Fault(f"{transport}: a frame was not counted as exactly one event")
            if not bench.canaries_intact():
                raise Fault(f"{transport}: bytes outside the region have changed")
        return _QUEUE_PAIRS * _FRAMES
