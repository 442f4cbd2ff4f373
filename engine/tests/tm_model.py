"""A reference model of one switch's traffic manager in plain Python, written from docs/traffic-manager.md.

What can be summed up from the packets that wait is summed up, never kept: the model has no books to get wrong, but for
the parts of an account in pool and headroom, which depend on the past.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

SECOND = 10**9
PAUSE_BYTES = 60
QUANTUM_BITS = 512


class TieError(Exception):
    """Two ports do something at the same nanosecond: which comes first is not specified."""


@dataclass
class Packet:
    tag: int
    length: int
    came_in: int


@dataclass
class Clock:
    """N units of work at `rate` a second take floor(N / rate) from the start of a busy period."""

    rate: int
    start: int = 0
    units: int = 0

    @property
    def end(self) -> int:
        return self.start + self.units * SECOND // self.rate if self.rate else self.start

    def occupy(self, now: int, units: int) -> int:
        if now > self.end:
            self.start, self.units = now, 0
        self.units += units
        return self.end


@dataclass
class Queue:
    packets: list[Packet] = field(default_factory=list)
    depth_packets: int = 1024
    depth_bytes: int | None = None
    shaper: Clock | None = None
    counts_packets: bool = False
    held: bool = False
    paused_until: int = 0
    drops: dict[str, int] = field(default_factory=lambda: dict.fromkeys(("packets", "bytes", "shared", "headroom"), 0))

    @property
    def size(self) -> int:
        return sum(p.length for p in self.packets)

    def free_from(self) -> int | None:
        """When the queue may next be served; None: not before the control plane says so."""
        if self.held:
            return None
        return max(self.paused_until, self.shaper.end if self.shaper else 0)


@dataclass
class Pool:
    total: int
    alpha: Fraction
    reserved: int
    lossless: frozenset[int] = frozenset()
    headroom: int = 0
    xoff_bytes: int | None = None
    xoff_alpha: Fraction | None = None
    gap: int = 0
    quanta: int = 65535


@dataclass
class Account:
    pool: int = 0
    headroom: int = 0
    xoff: bool = False


class Model:
    """Ports are linked, with these rates (bits/s) and one delay (ns). `sent`: by port, (time of arrival, what)."""

    def __init__(self, rates: dict[int, int], priorities: int, delay: int, pool: Pool | None) -> None:
        self.priorities = priorities
        self.delay = delay
        self.pool = pool
        self.now = 0
        self.clocks = {port: Clock(rate) for port, rate in rates.items()}
        self.queues = {(port, p): Queue() for port in rates for p in range(priorities)}
        self.accounts = {(port, p): Account() for port in rates for p in range(priorities)}
        self.refresh: dict[int, int] = {}
        self.sent: dict[int, list[tuple[int, object]]] = {port: [] for port in rates}

    # --- the buffer ---------------------------------------------------------------------------------------------

    def is_lossless(self, priority: int, came_in: int) -> bool:
        return self.pool is not None and priority in self.pool.lossless and came_in in self.clocks

    def lossy_bytes(self, port: int, priority: int) -> int:
        packets = self.queues[port, priority].packets
        return sum(p.length for p in packets if not self.is_lossless(priority, p.came_in))

    def free(self) -> int:
        assert self.pool is not None
        size = self.pool.total - self.pool.reserved * len(self.queues)
        size -= self.pool.headroom * len(self.clocks) * len(self.pool.lossless)
        used = sum(max(0, self.lossy_bytes(*key) - self.pool.reserved) for key in self.queues)
        return size - used - sum(account.pool for account in self.accounts.values())

    def xoff_threshold(self) -> int:
        assert self.pool is not None
        if self.pool.xoff_alpha is None:
            assert self.pool.xoff_bytes is not None
            return self.pool.xoff_bytes
        return int(self.pool.xoff_alpha * self.free())

    def reason_to_drop(self, port: int, priority: int, packet: Packet) -> str | None:
        """None: the packet is in, and charged."""
        queue = self.queues[port, priority]
        if self.pool is not None and self.is_lossless(priority, packet.came_in):
            account = self.accounts[packet.came_in, priority]
            if account.pool + packet.length <= self.xoff_threshold() and packet.length <= self.free():
                account.pool += packet.length
                return None
            if account.headroom + packet.length > self.pool.headroom:
                return "headroom"
            account.headroom += packet.length
            if not account.xoff:
                account.xoff = True
                self.repeat_pauses(packet.came_in)
            return None
        if len(queue.packets) >= queue.depth_packets:
            return "packets"
        if queue.depth_bytes is not None and queue.size + packet.length > queue.depth_bytes:
            return "bytes"
        if self.pool is not None:
            before = max(0, self.lossy_bytes(port, priority) - self.pool.reserved)
            after = max(0, self.lossy_bytes(port, priority) + packet.length - self.pool.reserved)
            if after > before and (after > int(self.pool.alpha * self.free()) or after - before > self.free()):
                return "shared"
        return None

    def leave(self, priority: int, packet: Packet) -> None:
        """The packet is out of its queue."""
        if self.pool is None or not self.is_lossless(priority, packet.came_in):
            return
        account = self.accounts[packet.came_in, priority]
        from_headroom = min(packet.length, account.headroom)
        account.headroom -= from_headroom
        account.pool -= packet.length - from_headroom
        low = account.pool == 0 or account.pool + self.pool.gap <= self.xoff_threshold()
        if account.xoff and account.headroom == 0 and low:
            account.xoff = False
            self.send_pause(packet.came_in, {priority: 0})
            if not any(self.accounts[packet.came_in, p].xoff for p in range(self.priorities)):
                del self.refresh[packet.came_in]

    # --- pauses -------------------------------------------------------------------------------------------------

    def repeat_pauses(self, port: int) -> None:
        assert self.pool is not None
        classes = {p: self.pool.quanta for p in range(self.priorities) if self.accounts[port, p].xoff}
        self.send_pause(port, classes)
        self.refresh[port] = self.now + self.pause_time(port, self.pool.quanta) // 2

    def pause_time(self, port: int, quanta: int) -> int:
        return quanta * QUANTUM_BITS * SECOND // (self.clocks[port].rate or 10**10)

    def send_pause(self, port: int, classes: dict[int, int]) -> None:
        if self.next_service(port) == self.now and self.now != self.arrival_time:
            raise TieError
        end = self.clocks[port].occupy(self.now, PAUSE_BYTES * 8)
        self.sent[port].append((end + self.delay, ("pause", classes)))

    # --- time ---------------------------------------------------------------------------------------------------

    arrival_time = -1

    def next_service(self, port: int) -> int | None:
        """When the port next starts a packet."""
        times = [
            free
            for p in range(self.priorities)
            if self.queues[port, p].packets and (free := self.queues[port, p].free_from()) is not None
        ]
        return max(self.now, self.clocks[port].end, min(times)) if times else None

    def serve(self, port: int) -> None:
        """Precondition: the port is free, and a queue may go."""
        for p in reversed(range(self.priorities)):
            queue = self.queues[port, p]
            free = queue.free_from()
            if queue.packets and free is not None and free <= self.now:
                packet = queue.packets.pop(0)
                self.leave(p, packet)
                if queue.shaper:
                    queue.shaper.occupy(self.now, 1 if queue.counts_packets else packet.length * 8)
                end = self.clocks[port].occupy(self.now, packet.length * 8)
                self.sent[port].append((end + self.delay, packet.tag))
                return
        raise AssertionError("nothing to serve")

    def advance(self, until: int) -> None:
        """Everything that happens up to `until` happens."""
        while True:
            due = [(t, 1, port) for port in self.clocks if (t := self.next_service(port)) is not None]
            due += [(t, 0, port) for port, t in self.refresh.items()]
            due = sorted(d for d in due if d[0] <= until)
            if not due:
                break
            if len(due) > 1 and due[0][0] == due[1][0] and self.pool is not None and self.pool.lossless:
                raise TieError
            time, is_service, port = due[0]
            self.now = time
            if is_service:
                self.serve(port)
            else:
                self.repeat_pauses(port)
        self.now = until

    # --- what a test does, after advance ------------------------------------------------------------------------

    def arrive(self, port: int, priority: int, packet: Packet) -> None:
        self.arrival_time = self.now
        queue = self.queues[port, priority]
        reason = self.reason_to_drop(port, priority, packet)
        if reason is not None:
            queue.drops[reason] += 1
        else:
            queue.packets.append(packet)
            if self.next_service(port) == self.now:
                self.serve(port)
        self.arrival_time = -1

    def obey(self, port: int, classes: dict[int, int]) -> None:
        assert self.pool is not None
        for c, quanta in classes.items():
            if c in self.pool.lossless:
                self.queues[port, c].paused_until = self.now + self.pause_time(port, quanta)
