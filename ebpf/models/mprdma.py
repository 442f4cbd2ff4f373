"""MP-RDMA as its paper has it (NSDI 2018, sections 3.2 to 3.5): a plain model to hold the NIC core against.

Packets are numbered from 0 without end, so nothing wraps; sender and NIC are one machine, so nothing is shared.
Windows are in 65536ths of a packet, as the core states them, so that both round alike.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from itertools import accumulate

ONE = 65536
RING = 64


@dataclass(frozen=True, slots=True)
class Config:
    initial_window: int
    window: int
    slots: int
    delta: int
    probe_per_mille: int = 10
    alpha_per_mille: int = 1000
    rtt_ns: int = 16000
    timeout_ns: int = 64000
    source_port: int = 0xC000
    random_seed: int = 1

    @property
    def first_window(self) -> int:
        return min(self.initial_window, self.window)


@dataclass(frozen=True, slots=True)
class Message:
    packets: int
    completes: bool = False  # a SEND: it needs a receive
    synchronise: bool = False


@dataclass(frozen=True, slots=True)
class Data:
    number: int
    path: int
    again: bool


@dataclass(frozen=True, slots=True)
class Reply:
    """`cumulative`: everything before it has come."""

    kind: str  # "ack"; "nack"; "rnr": no receive is posted for the packet
    cumulative: int
    sack: int
    ece: bool
    path: int
    again: bool


class Random:
    """xorshift32 (Marsaglia 2003)."""

    def __init__(self, seed: int, writer: int) -> None:
        self.state = (seed + writer) * 2654435761 % 2**32 | 1

    def draw(self) -> int:
        x = self.state
        x ^= x << 13 & 0xFFFFFFFF
        x ^= x >> 17
        x ^= x << 5 & 0xFFFFFFFF
        self.state = x
        return x


class Receiver:
    """Section 3.3: a set of packets ahead of their turn."""

    def __init__(self, config: Config, messages: list[Message]) -> None:
        self.slots = config.slots
        self.messages = messages
        self.ends = [sum(message.packets for message in messages[: i + 1]) for i in range(len(messages))]
        self.starts_of = [
            start
            for message, end in zip(messages, self.ends, strict=True)
            for start in [end - message.packets] * message.packets
        ]
        self.synchronise = [message.synchronise for message in messages for _ in range(message.packets)]
        self.is_send = [message.completes for message in messages for _ in range(message.packets)]
        self.early: set[int] = set()
        self.next = 0
        self.msn = 0
        self.completed = 0
        self.placed: list[int] = []

    def receive(self, data: Data, marked: bool, ready: bool = True) -> tuple[str, Reply | None]:
        """`ready`: there is a receive for the packet if it is a SEND's."""
        number = data.number

        def answer(kind: str) -> Reply:
            return Reply(kind, self.next, number, marked, data.path, data.again)

        if number >= self.next + self.slots:
            return "REQUEST_BEYOND", answer("nack")
        if self.synchronise[number] and number >= self.next and self.next < self.starts_of[number]:
            return "SYNCHRONISE_REFUSED", answer("nack")
        if number < self.next or number in self.early:
            return "REQUEST_DUPLICATE", answer("ack")
        if self.is_send[number] and not ready:
            # A NAK acknowledges all before it, so ahead of its turn there is none.
            return ("RNR_NAK_SENT", answer("rnr")) if number == self.next else ("REQUEST_EARLY_FAULT", None)
        self.placed.append(number)
        self.early.add(number)
        event = "REQUEST_OUT_OF_ORDER" if number > self.next else "REQUEST_PLACED"
        while self.next in self.early:
            self.early.remove(self.next)
            self.next += 1
            if self.msn < len(self.ends) and self.next == self.ends[self.msn]:
                self.completed += self.messages[self.msn].completes
                self.msn += 1
        return event, answer("ack")


@dataclass(slots=True)
class Credit:
    path: int
    count: int = 1
    number: int | None = None  # of a retransmission


@dataclass(slots=True)
class Sender:
    config: Config
    messages: list[Message]
    posted: int = 0       # packets
    una: int = 0          # all before it are acknowledged
    allowed: int = 0      # snd_nxt: all before it have been let go
    sent: int = 0         # all before it have left
    cwnd: int = field(init=False)
    inflate: int = 0
    ooh: int = -1
    retx: int = 0
    recovery: int | None = None
    timed_out: int | None = None  # a timeout that no acknowledgement has followed yet: where retransmission goes on
    uncounted: int = 0    # acknowledgements of packets before this one are settled
    round_end: int = 0
    round_inflate: int = 0
    ring: deque[Credit] = field(default_factory=deque)
    hand: Credit | None = None
    after_timeout: list[int] = field(default_factory=list)
    early: int = 0
    burst_at: int = 0
    timeout_at: int | None = None
    backoff: int = 0
    fresh_at: int = 0
    active: int = 0
    wake_at: int | None = None
    news: bool = False
    not_ready: bool = False
    una_before: int = 0
    nic_random: Random = field(init=False)
    agent_random: Random = field(init=False)
    synchronise: set[int] = field(init=False)  # first packets of such messages

    def __post_init__(self) -> None:
        self.cwnd = self.config.first_window * ONE
        self.nic_random = Random(self.config.random_seed, 1)
        self.agent_random = Random(self.config.random_seed, 3)
        starts = accumulate((message.packets for message in self.messages), initial=0)
        self.synchronise = {at for at, message in zip(starts, self.messages, strict=False) if message.synchronise}

    # ---- the window ----

    @property
    def outstanding(self) -> int:
        return self.allowed - self.una

    @property
    def awnd(self) -> int:
        return self.cwnd // ONE + self.inflate - self.outstanding

    def limit_inflate(self) -> None:
        self.inflate = min(self.inflate, self.outstanding)

    def settle(self) -> None:
        self.inflate = self.round_inflate = 0
        self.uncounted = self.una

    def reduce(self) -> None:
        self.cwnd = max(ONE, self.cwnd - ONE)

    def advance(self, cumulative: int) -> None:
        if cumulative > self.una:
            self.inflate -= cumulative - self.una
            self.una = cumulative
            self.limit_inflate()
        self.retx = max(self.retx, self.una)
        if self.recovery is not None and self.una >= self.recovery:
            self.recovery = None
            self.settle()
        if self.outstanding == 0:
            self.settle()

    def random_path(self, random: Random) -> int:
        return self.config.source_port & 0xC000 | random.draw() >> 18

    # ---- acknowledgements ----

    def acknowledge(self, reply: Reply) -> str:
        if reply.cumulative > self.sent or (reply.kind == "ack" and reply.sack >= self.sent):
            return "ACK_STALE"
        if reply.kind == "rnr" and not self.una <= reply.cumulative < self.sent:
            return "ACK_STALE"
        self.news = True
        if self.timed_out is not None:
            self.cwnd = min(self.cwnd, self.config.first_window * ONE)
            self.recovery, self.retx = self.sent, self.timed_out
            self.inflate = self.outstanding
            self.timed_out = None
        if reply.kind == "rnr":
            self.advance(reply.cumulative)
            self.not_ready = True
            return "NAK_RECEIVED"
        if reply.kind == "nack":
            self.advance(reply.cumulative)
            if self.recovery is None and reply.cumulative == self.una < self.sent:
                self.recovery, self.retx = self.sent, reply.cumulative
            if self.recovery is not None:
                self.clock_again(reply.path)
            return "NAK_RECEIVED"
        event = "ACK_RECEIVED" if reply.cumulative > self.una else "SACK_RECEIVED"
        if reply.sack >= self.uncounted:
            self.inflate += 1
        self.advance(reply.cumulative)
        self.limit_inflate()
        # Section 3.2: +1/cwnd, or -1/2 with ECN.
        if reply.ece:
            self.cwnd = max(ONE, self.cwnd - ONE // 2)
        else:
            self.cwnd = min(self.config.window * ONE, self.cwnd + (ONE * ONE + self.cwnd // 2) // self.cwnd)
        # Section 3.3: slow paths.
        self.ooh = max(self.ooh, reply.sack, self.una - 1)
        slow = not reply.again and reply.sack < self.ooh - self.config.delta
        if slow:
            self.reduce()
        # Once a round trip: inflate was never positive, so acknowledgements were lost.
        self.round_inflate = max(self.round_inflate, self.inflate)
        if self.una > self.round_end:
            self.inflate -= min(self.round_inflate, 0)
            self.round_inflate = self.inflate
            self.round_end = self.allowed
        if not slow:
            self.clock(reply.path)
        return event

    def clock(self, path: int) -> None:
        if self.awnd < 1:
            return
        fresh = self.posted - self.allowed
        if self.recovery is not None:
            self.clock_again(path)
        elif fresh:
            count = min(2, fresh, self.awnd)
            if self.nic_random.draw() % (1000 * (self.cwnd // ONE)) < self.config.probe_per_mille:
                count, path = 1, self.random_path(self.nic_random)
            if len(self.ring) < RING:
                self.ring.append(Credit(path, count))
                self.allowed += count
        elif self.retx < self.ooh:
            self.clock_again(path)
        else:
            self.reduce()

    def clock_again(self, path: int) -> None:
        number = self.retx
        if self.recovery is not None and number >= self.recovery:
            number = self.una
        if len(self.ring) < RING:
            self.ring.append(Credit(path, 1, number))
            self.retx = number + 1

    # ---- the agent ----

    def timer(self, now: int, rnr_ns: int = 0) -> bool:
        """`rnr_ns`: what an RNR NAK asks for."""
        if self.news:
            self.burst_at = now + self.config.rtt_ns // 2
            self.news = False
        if self.una != self.una_before:
            self.una_before = self.una
            self.backoff = 0
            self.timeout_at = now + self.config.timeout_ns if self.sent > self.una else None
        self.wake_at = None
        not_ready, self.not_ready = self.not_ready, False
        if not_ready and self.sent > self.una:
            self.timeout_at = now + rnr_ns + self.config.timeout_ns
            self._go_back()
            return False
        if self.timeout_at is None or now < self.timeout_at or self.sent == self.una:
            return False
        self.backoff = min(self.backoff + 1, 6)
        self.timeout_at = now + (self.config.timeout_ns << self.backoff)
        self._go_back()
        return True

    def _go_back(self) -> None:
        self.timed_out = min(self.sent, self.una + self.config.first_window)
        self.after_timeout = list(range(self.una, self.timed_out))

    def _send(self, now: int, number: int, path: int, again: bool) -> Data:
        self.active = now
        self.wake_at = None
        if self.timeout_at is None:
            self.timeout_at = now + (self.config.timeout_ns << self.backoff)
        if not again:
            self.fresh_at = now
            self.sent += 1
        return Data(number, path, again)

    def _held_until(self, now: int) -> int | None:
        """Section 3.4."""
        if self.sent not in self.synchronise or self.una == self.sent:
            return None
        config = self.config
        until = self.fresh_at + config.rtt_ns * config.delta * config.alpha_per_mille // 1000 * ONE // self.cwnd_seen
        return until if now < until else None

    @property
    def cwnd_seen(self) -> int:
        return self.cwnd if self.timed_out is None else min(self.cwnd, self.config.first_window * ONE)

    def poll(self, now: int) -> Data | None:
        """The next packet to leave, or None."""
        while self.after_timeout:
            number = self.after_timeout.pop(0)
            if number >= self.una:
                return self._send(now, number, self.random_path(self.agent_random), True)
        while self.hand or self.ring:
            credit = self.hand or self.ring.popleft()
            self.hand = None
            if credit.number is not None:
                if credit.number >= self.una:
                    return self._send(now, credit.number, credit.path, True)
                continue
            self.hand = credit
            if until := self._held_until(now):
                self.wake_at = until
                return None
            credit.count -= 1
            if not credit.count:
                self.hand = None
            return self._send(now, self.sent, credit.path, False)
        self.wake_at = None
        if self.recovery is not None or self.timed_out is not None:
            return None
        fresh = self.posted > self.sent
        if self.outstanding == 0:
            self.burst_at = 0
            if fresh and self.una > 0 and now - self.active >= 3 * self.config.rtt_ns:
                self.cwnd = self.config.first_window * ONE
                self.settle()
        self.early = max(self.early, self.una)
        if self.awnd < 1 or not (fresh or self.early < self.sent):
            return None
        if now < self.burst_at:
            self.wake_at = self.burst_at
            return None
        if fresh:
            if until := self._held_until(now):
                self.wake_at = until
                return None
            self.allowed += 1
            return self._send(now, self.sent, self.random_path(self.agent_random), False)
        if not self.burst_at:
            return None
        self.burst_at = now + self.config.rtt_ns // 2
        self.early += 1
        return self._send(now, self.early - 1, self.random_path(self.agent_random), True)

    @property
    def deadline(self) -> int | None:
        return min((at for at in (self.timeout_at, self.wake_at) if at is not None), default=None)

    @property
    def credits_waiting(self) -> int:
        """New packets that were let go and have not left."""
        waiting = [*self.ring, *([self.hand] if self.hand else [])]
        return sum(credit.count for credit in waiting if credit.number is None)
