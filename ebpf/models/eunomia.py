"""Eunomia's two ends (sections 3.2 and 3.5, appendix A.1), over packets numbered from 0.

The network may do with them what it likes. Events have the names of `wire.codes.NicEvent`. Times are in ns.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ebpf.models.eunomia_bitmap import BLOCK, CAP_ROWS, Connection, Host, Outcome, Slot

CAP = BLOCK * CAP_ROWS
BACKOFF_MAX = 6


@dataclass(slots=True)
class Message:
    """`kind`: write, write_imm, send or response. `good`: the receiver may execute it."""

    kind: str
    first: int  # number of its first packet
    length: int
    mtu: int
    number: int  # of the receive or READ that it fills; for a plain write, how many receives were filled before
    address: int
    good: bool = True

    @property
    def packets(self) -> int:
        return max(1, -(-self.length // self.mtu))

    @property
    def last(self) -> int:
        return self.first + self.packets - 1

    @property
    def completes(self) -> bool:
        return self.kind in ("write_imm", "send")

    def place(self, number: int) -> tuple[int, int] | None:
        """Address and length of a packet's payload."""
        offset = (number - self.first) * self.mtu
        size = min(self.mtu, self.length - offset)
        return (self.address + offset, size) if size > 0 else None

    def slot(self, number: int) -> Slot:
        if number != self.last:
            return Slot.RECEIVED
        return Slot.TAIL_COMPLETION if self.completes else Slot.TAIL


@dataclass(slots=True)
class Answer:
    """`upto`: all before it have come; `named`: the packet that this answers, and whether it was taken."""

    kind: str  # ack (also SACK), nack, rnr, fault
    upto: int
    named: int
    taken: bool
    marked: bool
    again: bool


@dataclass(slots=True)
class Taken:
    event: str
    answer: Answer | None = None
    place: tuple[int, int] | None = None
    release: tuple[int, int] | None = None  # of a packet that was held back
    news: bool = False  # for the agent


@dataclass(slots=True)
class Receiver:
    """`holds`: keeps back an early last packet of a WRITE, at `hold_at`."""

    host: Host
    stream: str = "REQUEST"
    holds: bool = False
    hold_at: int = 0
    messages: int = 0
    completed: int = 0
    early: int = 0
    complaints: int = 0
    posted: int = 0  # receives
    failed: bool = False
    held: tuple[int, tuple[int, int]] | None = None  # number, place
    connection: Connection = field(init=False)

    def __post_init__(self) -> None:
        self.connection = Connection(self.host)

    @property
    def expected(self) -> int:
        return self.connection.expected

    def _answer(self, kind: str, number: int, taken: bool, marked: bool, again: bool) -> Answer:
        return Answer(kind, self.expected, number, taken, marked, again)

    def _fault(self, message: Message, number: int) -> str | None:
        """Why a packet may not be executed: rnr, or a fault that ends the connection."""
        if not message.good:
            return "fault"
        needs = message.kind == "send" or (message.kind == "write_imm" and number == message.last)
        return "rnr" if needs and message.number >= self.posted else None

    def receive(self, message: Message, number: int, last: bool, marked: bool = False, again: bool = False) -> Taken:
        if number < self.expected:
            return Taken(f"{self.stream}_DUPLICATE", self._answer("ack", number, True, marked, again))
        if number - self.expected >= CAP:
            return self._drop("REQUEST_BEYOND", number, marked, again)
        fault = self._fault(message, number)
        if fault and number > self.expected:
            return self._drop("REQUEST_EARLY_FAULT", number, marked, again)
        if fault == "rnr":
            return Taken("RNR_NAK_SENT", self._answer("rnr", number, False, marked, again))
        if fault:
            self.failed = True
            return Taken("NAK_RKEY", self._answer("fault", number, False, marked, again), news=True)
        place = message.place(number)
        hold = bool(
            self.holds and last and place and number > self.expected and message.kind == "write"
            and number == message.last
        )  # fmt: skip
        if hold and self.held is not None and self.held[0] != number:
            return self._drop("REQUEST_NO_BITMAP", number, marked, again)
        outcome, moved = self.connection.receive(number, message.slot(number), last)
        if outcome in (Outcome.CAPPED, Outcome.NO_MEMORY):
            event = "REQUEST_BEYOND" if outcome == Outcome.CAPPED else "REQUEST_NO_BITMAP"
            return self._drop(event, number, marked, again)
        taken = Taken(f"{self.stream}_DUPLICATE")
        if outcome == Outcome.ADVANCED:
            taken = Taken(f"{self.stream}_PLACED", place=place)
            self.messages += moved.tails
            self.completed += moved.completions
            taken.news = bool(moved.completions or (self.stream == "RESPONSE" and moved.tails))
            if self.held is not None and self.held[0] < self.expected:
                taken.release = self.held[1]
                self.held = None
        elif outcome == Outcome.TRACKED:
            taken = Taken(f"{self.stream}_OUT_OF_ORDER", place=place)
            self.early += 1
            if hold and place:
                self.held = number, place
                taken.place = self.hold_at, place[1]
        taken.answer = self._answer("ack", number, True, marked, again)
        return taken

    def _drop(self, event: str, number: int, marked: bool, again: bool) -> Taken:
        self.complaints += 1
        if self.stream == "RESPONSE":
            event = "RESPONSE_SEQ_ERROR"
        return Taken(event, self._answer("nack", number, False, marked, again))


@dataclass(slots=True)
class Sender:
    """`selective`: what a SACK named is not sent again; otherwise go-back-N, to which SACKs say nothing."""

    window: int
    timeout: int
    timeout_low: int
    low_packets: int
    rtt: int
    rnr_wait: int
    selective: bool
    posted: int = 0
    una: int = 0
    sent: int = 0  # the highest one, and one more
    nxt: int = 0
    sacked: set[int] = field(default_factory=set)
    nacks: int = 0
    rnrs: int = 0
    acks: int = 0
    sacks: int = 0
    failed: bool = False
    retransmissions: int = 0
    heard: int = 0
    backoff: int = 0
    went_back: int | None = None  # when
    looked: tuple[int, int, int, int] = (0, 0, 0, 0)  # una, acks, nacks, rnrs, as the agent has seen them

    def acknowledge(self, answer: Answer) -> str:
        """The NIC's half; an acknowledgement that was overtaken still names a packet."""
        news = answer.upto - self.una
        outstanding = self.sent > answer.upto
        refused = answer.kind in ("rnr", "fault")
        if refused and (news < 0 or not outstanding):
            return "ACK_STALE"
        self.una = max(self.una, answer.upto)
        named = answer.taken and self.una <= answer.named < self.sent and answer.named not in self.sacked
        if named:
            self.sacked.add(answer.named)
        self.sacked = {number for number in self.sacked if number >= self.una}
        self.acks += 1
        if refused:
            self.rnrs += answer.kind == "rnr"
            self.failed = answer.kind == "fault"
            return "NAK_RECEIVED"
        if answer.kind == "nack" and news >= 0 and outstanding:
            self.nacks += 1
            return "NAK_RECEIVED"
        if news > 0:
            return "ACK_RECEIVED"
        self.sacks += named
        return "SACK_RECEIVED" if named else "ACK_STALE"

    def _look(self, now: int) -> None:
        una, acks, nacks, rnrs = self.looked
        if acks != self.acks:
            self.heard = max(self.heard, now)
        if una != self.una:
            self.backoff = 0
        if nacks != self.nacks and (self.went_back is None or now - self.went_back >= self.rtt):
            self._go_back(now)
        if rnrs != self.rnrs:
            self._go_back(now)
            self.heard = now + self.rnr_wait
        self.nxt = max(self.nxt, self.una)
        self.looked = self.una, self.acks, self.nacks, self.rnrs

    def _go_back(self, now: int) -> None:
        self.nxt = self.una
        self.went_back = now

    def deadline(self) -> int:
        """0: none."""
        in_flight = self.sent - self.una
        timeout = self.timeout_low if in_flight <= self.low_packets else self.timeout
        return self.heard + (timeout << self.backoff) if in_flight else 0

    def timer(self, now: int) -> bool:
        self._look(now)
        due = self.deadline()
        if not due or now < due:
            return False
        self._go_back(now)
        self.heard = now
        self.backoff = min(self.backoff + 1, BACKOFF_MAX)
        return True

    def next(self, now: int) -> tuple[int, bool] | None:
        """The packet to send, and whether it was sent before."""
        self._look(now)
        while self.selective and self.nxt < self.sent and self.nxt in self.sacked:
            self.nxt += 1
        again = self.nxt < self.sent
        if not again and (self.sent == self.posted or self.sent - self.una >= min(self.window, CAP)):
            return None
        if self.sent == self.una:
            self.heard = now
        number = self.nxt
        self.nxt += 1
        self.sent = max(self.sent, self.nxt)
        self.retransmissions += again
        return number, again
