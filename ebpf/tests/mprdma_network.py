"""A small network in virtual time: MP-RDMA connections of the core over parallel paths with queues, RED and loss.

Data packets wait in a path's queue, and then in that of the link to the receiver if there is one; acknowledgements come
back after the path's delay, as on an idle way back.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ebpf.models.mprdma import Config
from ebpf.tests.mprdma_history import AGAIN, HAS_XACK, ffi, lib

PACKET_BITS = 8 * 1024
ENDLESS = 1 << 22  # packets


@dataclass(slots=True)
class Path:
    """`delay_ns`: one way, without queueing.  RED as in equation 5, in packets."""

    gbps: float
    delay_ns: int
    k_min: float = 20
    k_max: float = 200
    p_max: float = 0.8
    loss: float = 0.0
    up: bool = True
    free_at: float = 0.0
    arrived: int = 0
    marked: int = 0
    sent: int = 0

    @property
    def service_ns(self) -> float:
        return PACKET_BITS / self.gbps

    def enqueue(self, now: float, chance: random.Random) -> tuple[float, bool] | None:
        """When the packet is at the other end and whether it is marked; None if it is lost."""
        self.sent += 1
        if not self.up or chance.random() < self.loss:
            return None
        queue = max(0.0, self.free_at - now) / self.service_ns
        mark = queue > self.k_max or (
            queue > self.k_min and chance.random() < self.p_max * (queue - self.k_min) / (self.k_max - self.k_min)
        )
        self.free_at = max(now, self.free_at) + self.service_ns
        self.arrived += 1
        self.marked += mark
        return self.free_at + self.delay_ns, mark


@dataclass(slots=True)
class Connection:
    config: Config
    first_psn: int
    endless: bool = True
    a: Any = field(init=False)
    b: Any = field(init=False)
    rung: bool = False
    wake_at: float | None = None
    again: int = 0
    degrees: list[int] = field(default_factory=list)  # how far each packet came ahead of its turn

    def __post_init__(self) -> None:
        config = self.config
        self.a, self.b = ffi.new("struct nic_qp *"), ffi.new("struct nic_qp *")
        for end in (self.a, self.b):
            c = end.config
            c.path_mtu, c.slots, c.delta, c.window = 256, config.slots, config.delta, config.window
            c.initial_window, c.probe_per_mille = config.initial_window, config.probe_per_mille
            c.alpha_per_mille, c.rtt_ns, c.timeout_ns = config.alpha_per_mille, config.rtt_ns, config.timeout_ns
            c.source_port, c.random_seed = config.source_port, config.random_seed
            c.first_psn[0] = self.first_psn
        self.a.sender[0].snd_una = self.b.receiver[0].epsn = self.first_psn
        self.a.emitter[0].snd_nxt = self.a.emitter[0].posted = self.first_psn
        if self.endless:
            self.post(ENDLESS)

    def post(self, packets: int) -> None:
        emitter = self.a.emitter[0]
        emitter.posted = (emitter.posted + packets) % (1 << 24)

    @property
    def cwnd(self) -> float:
        return self.a.sender[0].transport.mprdma.cwnd / 65536

    @property
    def delivered(self) -> int:
        return (self.b.receiver[0].epsn - self.first_psn) % (1 << 24)


class Network:
    """`last`: the link that all paths end in."""

    def __init__(self, paths: list[Path], connections: list[Connection], seed: int, last: Path | None = None) -> None:
        self.paths, self.connections, self.last = paths, connections, last
        self.chance = random.Random(seed)
        self.acks_lost = 0.0  # on the way back, beside what the path loses
        self.now = 0.0
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self._send = ffi.new("struct mprdma_sent *")
        self._ack = ffi.new("struct mprdma_ack *")
        for connection in connections:
            self._transmit(connection)

    def way(self, connection: Connection, port: int) -> Path:
        """The path that a virtual path takes: any fixed mapping that spreads neighbours, as ECMP's is."""
        index = (port * 40503 + connection.config.random_seed * 2654435761) >> 7
        return self.paths[index % len(self.paths)]

    def at(self, when: float, what: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._queue, (when, self._count, what))

    def run(self, until: float) -> None:
        while self._queue and self._queue[0][0] <= until:
            self.now, _, what = heapq.heappop(self._queue)
            what()
        self.now = until

    def _transmit(self, c: Connection) -> None:
        send = self._send
        while lib.mprdma_next(c.a, int(self.now) + 1, c.rung, send):
            c.rung = False
            path = self.way(c, send.path)
            c.again += send.flags & AGAIN
            arrival = path.enqueue(self.now, self.chance)
            if arrival is None:
                continue
            when, marked = arrival
            packet = (send.psn, send.path, send.flags)
            step = self._arrive if self.last is None else self._pass_last
            self.at(when, lambda step=step, packet=packet, path=path, marked=marked: step(c, packet, path, marked))
        c.rung = False
        deadline = c.a.emitter[0].deadline
        if deadline and deadline != c.wake_at:
            c.wake_at = deadline
            self.at(max(deadline, self.now), lambda: self._wake(c, deadline))

    def _wake(self, c: Connection, deadline: int) -> None:
        if c.wake_at == deadline:
            c.wake_at = None
            self._transmit(c)

    def _pass_last(self, c: Connection, packet: tuple[int, int, int], path: Path, marked: bool) -> None:
        assert self.last
        arrival = self.last.enqueue(self.now, self.chance)
        if arrival:
            when, again = arrival
            self.at(when, lambda: self._arrive(c, packet, path, marked or again))

    def _arrive(self, c: Connection, packet: tuple[int, int, int], path: Path, marked: bool) -> None:
        send, ack = self._send, self._ack
        send.psn, send.path, send.flags = packet
        ahead = (send.psn - c.b.receiver[0].epsn) % (1 << 24)
        if ahead < 1 << 23:
            c.degrees.append(ahead)
        lib.mprdma_data(c.b, send, marked, ack)
        assert ack.placed < 2
        if ack.flags & HAS_XACK and path.up and self.chance.random() >= max(path.loss, self.acks_lost):
            copy = ffi.new("struct mprdma_ack *", ack[0])
            self.at(self.now + path.delay_ns, lambda: self._acknowledged(c, copy))

    def _acknowledged(self, c: Connection, ack: Any) -> None:
        lib.mprdma_take(c.a, ack)
        c.rung = True
        self._transmit(c)
