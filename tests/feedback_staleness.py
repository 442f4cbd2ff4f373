"""How stale a queue register is that egress writes (p4src/include/live_state.p4 compiled with PLAIT_FEEDBACK).

    python -m tests.feedback_staleness

tests/data/feedback_probe.p4 writes into every packet what ingress read, how old it was, and the queue that the packet
then joined. It runs on plait-switch in virtual time at chosen loads of one port, and on BMv2, where it is on PATH, at
whatever queue its own speed leaves. What staleness costs is measured by power_of_two.p4 with and without it.
"""

from __future__ import annotations

import asyncio
import json
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import fmean

from controller.control import Program
from lab.compiling import compile_with
from mininet_topos.system import isolated
from ptf_tests.runner import load, make_ports, running_switch
from tests.conftest import ROOT
from tests.p4_rig import NS_PER_S, Rig, frame, rig

PROBE = "../tests/data/feedback_probe"  # from p4src/
RATE_BPS = 100_000_000
FRAME_BYTES = 1086
TX_NS = 8 * FRAME_BYTES * NS_PER_S // RATE_BPS
PACKETS = 20_000
WARM_UP = 200  # before the first value is written, nothing has an age

_SO_RCVBUFFORCE = 33  # asm-generic/socket.h
PROBE_FRAME = bytes(12) + b"\x88\xb5" + bytes(FRAME_BYTES - 14)


@dataclass(frozen=True, slots=True)
class Seen:
    """What one packet tells; fed and found are packets in the queue."""

    fed: float
    found: int
    age_us: int
    age_packets: int

    @classmethod
    def of(cls, data: bytes) -> Seen:
        fields = [int.from_bytes(data[a:b], "big") for a, b in pairwise((14, 18, 22, 26, 30))]
        return cls(fields[0] / FRAME_BYTES, *fields[1:])


def arrivals_ns(load: float, burst: int, seed: int) -> Iterator[int]:
    """Bursts of `burst` frames at ten times the port's rate, pauses exponential: `load` of that rate in the mean."""
    draw, now, spacing = random.Random(seed), 0.0, TX_NS / 10
    pause = burst * TX_NS / load - (burst - 1) * spacing
    while True:
        now += draw.expovariate(1 / pause)
        yield from (int(now + i * spacing) for i in range(burst))
        now += (burst - 1) * spacing


def on_plait(load: float, burst: int = 1) -> list[Seen]:
    made = Rig(PROBE, 2, feedback=True)
    try:
        made.switch.set_queue(2, rate_bps=RATE_BPS)
        seen: list[Seen] = []
        for _, now in zip(range(PACKETS), arrivals_ns(load, burst, 7), strict=False):
            made.fabric.run_until(max(now, made.fabric.now_ns))
            made.switch.inject(1, PROBE_FRAME)
            seen += (Seen.of(data) for _, data in made.sent())
        return seen[WARM_UP:]
    finally:
        made.close()


def mean_queue(program: str, feedback: bool, load: float, ports: int = 4) -> float:
    """Packets that a packet finds in the queue that it joins, at this load of each port."""
    with rig(program, ports, feedback=feedback) as made:
        made.route("10.0.2.7", list(made.ports), group=7)
        for port in made.ports:
            made.switch.set_queue(port, rate_bps=RATE_BPS)
        data = frame("10.0.2.7") + bytes(FRAME_BYTES - len(frame("10.0.2.7")))
        found, draw, now = [], random.Random(3), 0.0
        for _ in range(PACKETS // 2):
            now += draw.expovariate(load * ports / TX_NS)
            made.fabric.run_until(int(now))
            depths, before = made.depths(), made.enqueued()
            made.send(data)
            found += [depths[port] / FRAME_BYTES for port, count in made.enqueued().items() if count > before[port]]
    return fmean(found)


# --- BMv2 ---


def on_bmv2(pause_s: float) -> list[Seen]:
    """In a namespace of this process's own: frames with a pause between two, or as fast as one process sends."""
    make_ports()
    with tempfile.TemporaryDirectory(prefix="plait-staleness-") as folder:
        compiled = compile_with(ROOT / "p4src" / f"{PROBE}.p4", "p4c").write(Path(folder))
        with running_switch("bmv2", Path(folder, "switch.log")):
            asyncio.run(load(Program(compiled.p4info, compiled.json)))
            into, out = (_raw(name) for name in ("ptf1", "ptf2"))
            for _ in range(PACKETS):
                into.send(PROBE_FRAME)
                if pause_s:
                    time.sleep(pause_s)
            seen = []
            out.settimeout(1.0)
            try:
                while True:
                    seen.append(Seen.of(out.recv(2048)))
            except TimeoutError:
                return seen[WARM_UP:]


def _raw(interface: str) -> socket.socket:
    made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x88B5))
    made.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, 256 << 20)
    made.bind((interface, 0))
    return made


# --- report ---


def quantile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


HEAD = f"{'':34}{'queue':>8}{'error, packets':>20}{'age, packets':>18}{'age, us':>20}\n" + (
    f"{'':34}{'mean':>8}{'mean':>8}{'p99':>6}{'max':>6}{'median':>12}{'p99':>6}{'median':>12}{'p99':>8}"
)


def line(name: str, seen: Sequence[Seen]) -> str:
    errors = [abs(each.fed - each.found) for each in seen]
    packets, ages = [each.age_packets for each in seen], [each.age_us for each in seen]
    return (
        f"{name:34}{fmean(each.found for each in seen):8.2f}{fmean(errors):8.2f}{quantile(errors, 0.99):6.0f}"
        f"{max(errors):6.0f}{quantile(packets, 0.5):12.0f}{quantile(packets, 0.99):6.0f}"
        f"{quantile(ages, 0.5):12,.0f}{quantile(ages, 0.99):8,.0f}"
    )


def main(arguments: Sequence[str]) -> None:
    if arguments:
        print(line(arguments[0], on_bmv2(float(arguments[1]))), flush=True)
        return
    print(f"{PACKETS:,} frames of {FRAME_BYTES} bytes through one port; error: |read - found|\n{HEAD}", flush=True)
    for load_ in (0.3, 0.6, 0.9, 0.95):
        print(line(f"plait, 100 Mb/s, Poisson, load {load_}", on_plait(load_)), flush=True)
    for burst in (8, 32):
        print(line(f"plait, bursts of {burst}, load 0.6", on_plait(0.6, burst)), flush=True)
    if shutil.which("simple_switch_grpc") and shutil.which("p4c-bm2-ss"):
        for name, pause_s in (("BMv2, a frame a ms or more", "0.001"), ("BMv2, saturated", "0")):
            command = [sys.executable, "-m", "tests.feedback_staleness", name, pause_s]
            subprocess.run(isolated(command), cwd=ROOT, check=True)
    else:
        print("BMv2: simple_switch_grpc and p4c-bm2-ss are not both on PATH")
    print("\nmean queue that a packet joins, 4 ports, Poisson, in packets")
    for load_ in (0.5, 0.9):
        found = {
            "spray": mean_queue("spray", False, load_),
            "power of two, feedback": mean_queue("power_of_two", True, load_),
            "power of two, live": mean_queue("power_of_two", False, load_),
        }
        print(f"  load {load_}: {json.dumps({name: round(depth, 2) for name, depth in found.items()})}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
