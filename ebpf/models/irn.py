"""IRN as its paper describes it (Mittal et al., SIGCOMM 2018, sections 3 and 5), over packets numbered from 0.

Nothing here wraps, and a packet knows the message that it belongs to: what the real one has to find out from headers.
Events have the names of `wire.codes.NicEvent`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

RNR_WAITS_MS = (655.36, 0.01, 0.02, 0.03, 0.04, 0.06, 0.08, 0.12, 0.16, 0.24, 0.32, 0.48, 0.64, 0.96, 1.28, 1.92)
BACKOFF_MAX = 6


@dataclass(slots=True)
class Message:
    """A request, or the response to one.  `receive`, `fetch`: which receive it consumes, which READ or atomic it is."""

    kind: str  # write, send, read, atomic, response, original
    first: int  # number of its first packet
    packets: int
    length: int
    address: int = 0  # where it goes, unless a receive says it
    receive: int | None = None
    fetch: int | None = None
    immediate: bool = False
    invalidate: bool = False

    @property
    def last(self) -> int:
        return self.first + self.packets - 1


@dataclass(slots=True)
class Answer:
    """An acknowledge packet.  `upto`: all before it have come; `named`: this has come."""

    kind: str  # ack, nack, rnr
    upto: int
    named: int | None
    messages: int
    marked: bool
    again: bool


@dataclass(slots=True)
class Taken:
    event: str
    answer: Answer | None = None
    place: tuple[int, int] | None = None
    news: bool = False  # for the agent


@dataclass(slots=True)
class Receiver:
    """`nacks`: whether packets out of order are complained about (IRN), or taken as they come (ideal)."""

    slots: int
    mtu: int
    nacks: bool = True
    stream: str = "REQUEST"
    expected: int = 0
    messages: int = 0
    early: int = 0
    complaints: int = 0
    here: dict[int, Message] = field(default_factory=dict)  # beyond `expected`
    receives: list[int] = field(default_factory=list)  # addresses of those posted, in order
    completed: list[int] = field(default_factory=list)
    fetches: list[int] = field(default_factory=list)

    def _answer(self, kind: str, number: int, named: bool, marked: bool, again: bool) -> Answer:
        return Answer(kind, self.expected, number if named else None, self.messages, marked, again)

    def _deliver(self) -> bool:
        """Moves the head; completions and executions happen in order."""
        news = False
        while self.expected in self.here:
            message = self.here.pop(self.expected)
            if self.expected == message.last:
                self.messages += 1
                if message.receive is not None:
                    self.completed.append(message.receive)
                    news = True
                if message.fetch is not None and self.stream == "REQUEST":
                    self.fetches.append(message.fetch)
                news |= message.fetch is not None
            self.expected += 1
        return news

    def _needs_receive(self, message: Message, number: int) -> bool:
        return message.receive is not None and (message.kind == "send" or number == message.last)

    def receive(self, message: Message, number: int, marked: bool = False, again: bool = False) -> Taken:
        ahead = number - self.expected
        if ahead >= self.slots:
            event = "REQUEST_BEYOND" if self.stream == "REQUEST" else "RESPONSE_SEQ_ERROR"
            return Taken(event, self._answer("nack", number, False, marked, again))
        kind = "nack" if ahead > 0 and self.nacks else "ack"
        if ahead < 0 or number in self.here:
            self.complaints += kind == "nack"
            return Taken(f"{self.stream}_DUPLICATE", self._answer(kind, number, True, marked, again))
        if self._needs_receive(message, number) and message.receive >= len(self.receives):  # type: ignore[operator]
            if ahead:
                return Taken("REQUEST_EARLY_FAULT")
            return Taken("RNR_NAK_SENT", self._answer("rnr", number, False, marked, again))
        self.here[number] = message
        taken = Taken(f"{self.stream}_OUT_OF_ORDER" if ahead else f"{self.stream}_PLACED")
        if message.kind in ("write", "send", "response"):
            offset = (number - message.first) * self.mtu
            size = min(self.mtu, message.length - offset)
            base = self.receives[message.receive or 0] if message.kind == "send" else message.address
            taken.place = (base + offset, size) if size else None
        if ahead:
            self.early += 1
        else:
            taken.news = self._deliver()
        self.complaints += kind == "nack"
        taken.answer = self._answer(kind, number, True, marked, again)
        return taken


@dataclass(slots=True)
class Sender:
    """Both halves: `ack` is the NIC's, `look`, `choose` and `timer` are the agent's.

    Times in ns.  `all_lost`: a timeout means all that is not known to have come (ideal), not just the oldest.
    """

    window: int
    rto_low: int
    rto_high: int
    low_packets: int
    all_lost: bool = False
    una: int = 0
    nxt: int = 0
    posted: int = 0
    sacked: set[int] = field(default_factory=set)
    naks: int = 0
    rnr_naks: int = 0
    rnr_code: int = 0
    acks: int = 0
    sacks: int = 0
    marks: int = 0
    messages: int = 0
    heard: bool = False  # `messages` has been told
    # the agent's
    recovering: bool = False
    wanted: int | None = None  # to be sent again first
    repeated: int = -1  # the last one that was sent again
    recovery_sequence: int = -1
    lost_to: int = 0
    seen: tuple[int, int, int] = (0, 0, 0)
    backoff: int = 0
    armed: int = 0
    timeouts: int = 0
    retransmissions: int = 0

    def ack(self, answer: Answer, rnr_code: int = 0) -> str:
        moved = answer.upto - self.una
        if answer.upto > self.nxt or (answer.kind == "rnr" and (moved < 0 or answer.upto == self.nxt)):
            return "ACK_STALE"
        if moved > 0:
            self.una = answer.upto
            self.sacked = {number for number in self.sacked if number >= self.una}
        named = answer.named is not None and self.una <= answer.named < self.nxt and answer.named not in self.sacked
        if named and answer.named is not None:
            self.sacked.add(answer.named)
        self.acks += 1
        self.marks += answer.marked
        if moved >= 0:
            self.messages, self.heard = answer.messages, True
        if answer.kind == "rnr":
            self.rnr_naks += 1
            self.rnr_code = rnr_code
            return "NAK_RECEIVED"
        if answer.kind == "nack" and moved >= 0 and answer.upto < self.nxt:
            self.naks += 1
            return "NAK_RECEIVED"
        if moved > 0:
            return "ACK_RECEIVED"
        if named:
            self.sacks += 1
            return "SACK_RECEIVED"
        return "ACK_STALE"

    def _recover(self, lost_to: int) -> None:
        self.recovering = True
        self.wanted = self.una
        self.recovery_sequence = self.nxt - 1
        self.lost_to = lost_to

    def look(self, now: int) -> None:
        una, naks, rnr_naks = self.seen
        self.seen = self.una, self.naks, self.rnr_naks
        if self.una != una:
            self.backoff, self.armed = 0, now
            if self.una > self.recovery_sequence:
                self.recovering = False
            # A partial acknowledgement: what it stops at is lost, unless it was sent again already.
            elif self.recovering and self.una > (self.repeated if self.wanted is None else self.wanted):
                self.wanted = self.una
        if self.naks != naks and not self.recovering and self.sacked:
            self._recover(self.una)
        if self.rnr_naks != rnr_naks:
            self.armed = now + round(RNR_WAITS_MS[self.rnr_code] * 1e6)
            if self.una < self.nxt:
                self._recover(self.nxt)

    def _lost(self) -> int | None:
        """Section 3.1: the packet that recovery starts with, then each before a selectively acknowledged one."""
        if not self.recovering:
            return None
        if self.wanted is not None and self.wanted >= self.una and self.wanted not in self.sacked:
            return self.wanted
        after = self.wanted if self.wanted is not None else self.repeated
        known = max(max(self.sacked, default=0), self.lost_to)
        return next((n for n in range(max(after + 1, self.una), min(known, self.nxt)) if n not in self.sacked), None)

    def choose(self, now: int) -> tuple[int, bool] | None:
        """What to send: (number, again), counted as sent."""
        self.look(now)
        number = self._lost()
        if number is not None:
            self.wanted, self.repeated = None, number
            self.recovery_sequence = self.nxt - 1
            self.armed = now
            self.retransmissions += 1
            return number, True
        if self.nxt < self.posted and self.nxt - self.una < self.window:  # BDP-FC, section 3.2
            if self.nxt == self.una:
                self.armed = now
            self.nxt += 1
            return self.nxt - 1, False
        return None

    def deadline(self) -> int:
        if self.nxt == self.una:
            return 0
        rto = self.rto_low if self.nxt - self.una <= self.low_packets else self.rto_high
        return self.armed + (rto << self.backoff)

    def timer(self, now: int) -> bool:
        self.look(now)
        if self.nxt == self.una or now < self.deadline():
            return False
        self._recover(self.nxt if self.all_lost else self.una)
        self.armed = now
        self.backoff = min(self.backoff + 1, BACKOFF_MAX)
        self.timeouts += 1
        return True
