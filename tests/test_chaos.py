"""Links, switches and the controller fail at random under RDMA traffic: every byte arrives, and the tables heal.

Ten seconds of it for all programs together; PLAIT_CHAOS_SECONDS=120 makes it a minute for each, and PLAIT_CHAOS_SEED
another course of events.
"""

import asyncio
import hashlib
import os
import random
import select
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from controller.control import Program, install
from controller.defaults import personal_election_id
from controller.errors import ControllerError
from controller.snapshot import dump_all
from fastswitch.control import Client
from lab import controller_process, running
from lab.config import LabConfig
from lab.emulation import Emulation
from mininet_topos.catalogue import choose
from mininet_topos.fabric import CONTROL_SOCKET
from mininet_topos.system import Child, last_lines
from rdma.verbs import CQ, MR, QP, Access, Device, Opcode, SendWR
from tests.conftest import ROOT, needs_root

PROGRAMS = ["ecmp", "ksp"]
SECONDS = float(os.environ.get("PLAIT_CHAOS_SECONDS", "10")) / len(PROGRAMS)
SEED = int(os.environ.get("PLAIT_CHAOS_SEED", "1"))

# A host behind a switch without power is cut off for longer than a queue pair tries: then its owner connects anew.
BYTES = 300_000
MOST_FAILURES = 3
LONGEST_S = 1.0
PATIENCE_S = 60.0


@dataclass
class Stream:
    """One pair of hosts: a WRITE of new random bytes whenever the last one has arrived; again if it failed."""

    lab: Emulation
    numbers: random.Random
    src: str
    dst: str
    devices: dict[str, Device]
    source: MR = field(init=False)
    destination: MR = field(init=False)
    completions: CQ = field(init=False)
    pairs: tuple[QP, QP] | None = None
    arrived: int = 0
    failed: int = 0

    def __post_init__(self) -> None:
        here, there = (self.devices[host].alloc_pd() for host in (self.src, self.dst))
        self.source = here.reg_mr(BYTES)
        self.destination = there.reg_mr(BYTES, Access.LOCAL_WRITE | Access.REMOTE_WRITE)
        self.completions = self.devices[self.src].create_cq()
        self.far = self.devices[self.dst].create_cq()

    def begin(self) -> None:
        self.source.buf[:] = self.numbers.randbytes(BYTES)
        self._post()

    def _post(self) -> None:
        if self.pairs is None:
            self.pairs = (self.source.pd.create_qp(self.completions), self.destination.pd.create_qp(self.far))
            self.lab.connect(self.src, self.pairs[0], self.dst, self.pairs[1])
        self.pairs[0].post_send(
            SendWR(1, Opcode.RDMA_WRITE, self.source.sge(), self.destination.addr, self.destination.rkey)
        )

    def take(self, go_on: bool) -> bool:
        """Takes a completion, if there is one; True when the last WRITE has arrived and no other is begun."""
        for completion in self.completions.wait(timeout=0):
            if completion.ok:
                sent, there = (hashlib.sha256(region.buf).digest() for region in (self.source, self.destination))
                assert sent == there, f"{self.src} -> {self.dst}: other bytes arrived"
                self.arrived += 1
                if not go_on:
                    return True
                self.begin()
            else:
                self.failed += 1
                for pair in self.pairs or ():
                    pair.destroy()
                self.pairs = None
                self._post()
        return False


class Chaos:
    """Draws failures, and mends each after a while.  `events` counts them by kind."""

    def __init__(self, lab: Emulation, fabric: Client, seed: int) -> None:
        self.events: Counter[str] = Counter()
        self._lab, self._fabric = lab, fabric
        self._draw = random.Random(seed)
        self._mend: list[tuple[float, str, Callable[[], None]]] = []
        self.controllers: list[Child] = []

    def step(self, now: float) -> None:
        for due in [entry for entry in self._mend if entry[0] <= now]:
            self._mend.remove(due)
            due[2]()
        if len(self._mend) < MOST_FAILURES and self._draw.random() < 0.3:
            self._fail(now)

    def _fail(self, now: float) -> None:
        kind = self._draw.choice(["link", "link", "switch", "controller"])
        topology = self._lab.topology
        if kind == "controller":
            what, (fail, mend) = kind, (self._kill, self._start)
        elif kind == "switch":
            what = self._draw.choice(topology.switches).name
            fail, mend = (lambda up=up: self._fabric.switch_set(what, up=up) for up in (False, True))
        else:
            link = self._draw.choice(topology.links)
            (end,) = [end for end in link.ends if not topology.node(end[0]).is_host][:1]
            what = f"{end[0]}:{end[1]}"
            fail, mend = (lambda up=up: self._fabric.link_set(what, up=up) for up in (False, True))
        if all(what != other for _, other, _ in self._mend):
            fail()
            self.events[kind] += 1
            self._mend.append((now + self._draw.uniform(0.05, LONGEST_S), what, mend))

    def _kill(self) -> None:
        pid = controller_process.running_pid()
        assert pid is not None, f"the controller ended by itself:\n{last_lines(controller_process.OUTPUT)}"
        os.kill(pid, signal.SIGKILL)

    def _start(self) -> None:
        self.controllers.append(controller_process.start(self._lab.topology.name))

    def end(self) -> None:
        for _, _, mend in self._mend:
            mend()
        self._mend.clear()


def tables(lab: Emulation) -> dict[str, list[str]]:
    """What all switches hold, in an order that does not depend on when it was written."""
    document = asyncio.run(dump_all(lab.network.targets))
    return {name: sorted(map(str, state["entities"])) for name, state in document["switches"].items()}


def healed(lab: Emulation, wanted: dict[str, list[str]]) -> bool:
    try:
        return tables(lab) == wanted
    except ControllerError:
        return False  # a switch runs no program yet


@needs_root
@pytest.mark.parametrize("program", PROGRAMS)
def test_every_transfer_arrives_and_tables_heal(program: str) -> None:
    config = LabConfig.from_options(
        choose("fattree", {"k": 4}), program=ROOT / "p4src" / f"{program}.p4", nic_memory_bytes=16 << 20
    )
    with Emulation(config, lambda text: None, controller_stays=True) as lab:
        fresh = tables(lab)
        hosts = [host.name for host in lab.topology.hosts]
        pairs = [(hosts[i], hosts[(i + 5) % len(hosts)]) for i in range(0, len(hosts), 4)]
        devices = {host: Device.open(lab.verbs_socket(host)) for pair in pairs for host in pair}
        numbers = random.Random(SEED)
        streams = [Stream(lab, numbers, *pair, devices) for pair in pairs]
        with Client(running.RUN_DIR / CONTROL_SOCKET) as fabric:
            chaos = Chaos(lab, fabric, SEED)
            _carry(streams, chaos, lab)
        print(f"{SECONDS:g} s of {program}: {dict(chaos.events)}, {[(s.arrived, s.failed) for s in streams]}")
        assert all(chaos.events[kind] for kind in ("link", "switch", "controller"))
        assert all(stream.arrived for stream in streams)
        end = time.monotonic() + PATIENCE_S
        while not healed(lab, fresh):
            log = controller_process.LOG.read_text()
            assert time.monotonic() < end, f"the tables did not heal:\n{log}"
        program_files = (Path(running.RUN_DIR, f"{program}.{kind}") for kind in ("p4info.txtpb", "json"))
        report = asyncio.run(
            install(lab.topology, lab.network.targets, Program(*program_files), election_id=personal_election_id())
        )
        assert report.written == 0
        for device in devices.values():
            device.close()
    for child in chaos.controllers:
        child.wait()


def _carry(streams: list[Stream], chaos: Chaos, lab: Emulation) -> None:
    """Traffic for SECONDS under chaos, and then until all that was begun has arrived."""
    for stream in streams:
        stream.begin()
    going = {stream.completions.fileno(): stream for stream in streams}
    started = time.monotonic()
    ended = False
    while going:
        now = time.monotonic()
        if now < started + SECONDS:
            chaos.step(now)
        elif not ended:
            ended = True
            chaos.end()
        assert now < started + SECONDS + PATIENCE_S, f"late: {[(s.src, s.dst) for s in going.values()]}"
        ready, _, _ = select.select(list(going), [], [], 0.1)
        assert not lab.fault(), lab.fault()
        for descriptor in ready:
            if going[descriptor].take(go_on=not ended):
                del going[descriptor]
