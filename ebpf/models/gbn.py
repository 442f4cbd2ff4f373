"""Go-back-N as IBTA describes it (vol. 1, section 9.7): both ends, in numbers that never wrap.

A request's packets have numbers in the order of posting; a READ takes one for each packet of its response, and
the response packets have those.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

FETCHES = 16  # READs and atomics that may wait for their answer
RNR_UNITS = [65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072,
             4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152]  # fmt: skip
RNR_UNIT_NS = 10_000  # table 45
CREDITS = [0, *RNR_UNITS[1:31]]  # table 46, by code


@dataclass(slots=True)
class Message:
    kind: str  # write, send, read, atomic
    first: int
    packets: int  # numbers that it takes
    length: int
    address: int
    index: int  # among all messages
    fetch: int | None = None  # number among READs and atomics
    receives: bool = False  # its end completes a receive
    immediate: bool = False
    invalidate: bool = False

    @property
    def last(self) -> int:
        return self.first + self.packets - 1


@dataclass(slots=True)
class Answer:
    """kind: ack (all before `upto` was executed), nak, rnr (so, and `upto` has to come again)."""

    kind: str
    upto: int
    messages: int
    receives: int | None  # credits, where they are given: receives that are posted, as far as a code can say


@dataclass(slots=True)
class Taken:
    event: str
    answer: Answer | None = None
    place: tuple[int, int] | None = None
    news: bool = False


@dataclass(slots=True)
class Incoming:
    message: Message
    number: int  # where the answer starts: a READ may be asked for anew from its middle on
    repeated: bool


@dataclass(slots=True)
class Responder:
    mtu: int
    ack_every: int
    credits: bool
    expected: int = 0
    messages: int = 0
    receives: list[int] = field(default_factory=list)  # addresses of those posted
    completed: int = 0
    incoming: list[Incoming] = field(default_factory=list)
    served: int = 0
    complaint: str = ""  # what the awaited packet's gap was answered with
    gaps: int = 0
    held: int = 0
    silent: int = 0  # packets since an acknowledgement

    def receive(self, message: Message, number: int, ask: bool) -> Taken:
        if number > self.expected:
            return self._ahead()
        if number < self.expected:
            return self._repeat(message, number)
        waiting = message.receives and (message.kind == "send" or number == message.last)
        full = message.fetch is not None and len(self.incoming) - self.served == FETCHES
        if full or (waiting and self.completed == len(self.receives)):
            self.complaint = "rnr"
            return self._reply(Taken("RNR_NAK_SENT"), "rnr")
        return self._execute(message, number, ask)

    def _ahead(self) -> Taken:
        taken = Taken("REQUEST_SEQ_ERROR")
        if self.complaint:
            return taken
        self.complaint = "nak"
        self.gaps += 1
        return self._reply(taken, "nak")

    def _repeat(self, message: Message, number: int) -> Taken:
        taken = Taken("REQUEST_DUPLICATE")
        if message.fetch is None:
            return self._acknowledge(taken)
        if len(self.incoming) - self.served < FETCHES:
            self.incoming.append(Incoming(message, number, True))
            taken.news = True
        return taken

    def _execute(self, message: Message, number: int, ask: bool) -> Taken:
        taken = Taken("REQUEST_PLACED")
        offset = (number - message.first) * self.mtu
        size = min(self.mtu, message.length - offset)
        self.complaint = ""
        self.expected = number + 1
        ends = self.expected > message.last
        if message.fetch is not None:
            self.incoming.append(Incoming(message, number, False))
            self.expected = message.last + 1
            self.messages += 1
            self.silent = 0
            taken.news = True
            return taken
        if size > 0:
            taken.place = (message.address if message.kind == "write" else self.receives[self.completed]) + offset, size
        self.messages += ends
        if ends and message.receives:
            self.completed += 1
            taken.news = True
        self.silent += 1
        if ends or ask or (self.ack_every and self.silent >= self.ack_every):
            return self._acknowledge(taken)
        return taken

    def _acknowledge(self, taken: Taken) -> Taken:
        self.silent = 0
        return self._reply(taken, "ack")

    def _reply(self, taken: Taken, kind: str) -> Taken:
        if self.served < len(self.incoming):
            self.held += 1
            taken.news = True
        else:
            room = len(self.receives) - self.completed
            credits = max(value for value in CREDITS if value <= room)
            told = credits if kind == "ack" and self.credits else None
            taken.answer = Answer(kind, self.expected, self.messages, told)
        return taken

    def release(self) -> Answer:
        """What was held back, when all READs and atomics are answered."""
        return Answer(self.complaint or "ack", self.expected, self.messages, None)


@dataclass(slots=True)
class Requester:
    window: int
    timeout: int
    message_at: Callable[[int], Message]
    una: int = 0
    sent: int = 0
    posted: int = 0
    naks: int = 0
    rnr_naks: int = 0
    credit_limit: int = 0
    fetches: list[Message] = field(default_factory=list)
    answered: int = 0  # of them
    got: int = 0  # response packets of the next one
    complained: bool = False  # the awaited response was asked for anew
    # what the agent knows
    next: int = 0
    seen: tuple[int, int, int] = (0, 0, 0)  # una, naks, RNR NAKs
    silent: int = 0
    backoff: int = 0
    deadline: int = 0

    def awaited(self) -> int | None:
        if self.answered == len(self.fetches):
            return None
        return self.fetches[self.answered].first + self.got

    def _lost(self, number: int) -> None:
        self.una = number
        self.naks += not self.complained
        self.complained = True

    def answer(self, answer: Answer) -> str:
        number = answer.upto - (answer.kind == "ack")
        if not self.una <= number < self.sent:
            return "ACK_STALE"
        awaited = self.awaited()
        if awaited is not None and awaited < answer.upto:
            self._lost(awaited)
        else:
            self.una = answer.upto
            self.naks += answer.kind == "nak"
        self.rnr_naks += answer.kind == "rnr"
        if answer.receives is not None:
            self.credit_limit = max(self.credit_limit, answer.messages + answer.receives)
        return "ACK_RECEIVED" if answer.kind == "ack" else "NAK_RECEIVED"

    def response(self, message: Message, number: int, mtu: int) -> Taken:
        awaited = self.awaited()
        if awaited is None or not self.una <= number < self.sent or number < awaited:
            return Taken("RESPONSE_DUPLICATE")
        if number > awaited:
            self._lost(awaited)
            return Taken("RESPONSE_SEQ_ERROR", news=True)
        taken = Taken("RESPONSE_PLACED")
        self.una = number + 1
        self.complained = False
        self.got += 1
        if message.kind == "read" and message.length:
            offset = (number - message.first) * mtu
            taken.place = message.address + offset, min(mtu, message.length - offset)
        if number == message.last:
            self.answered += 1
            self.got = 0
            taken.news = True
        return taken

    def timer(self, now: int, rnr_code: int) -> bool:
        una, _, rnr = self.seen
        fired = False
        if self.una != una:
            self.backoff = self.deadline = 0
        if self.una != self.sent and self.deadline and now >= self.deadline:
            fired = True
            self.backoff = min(self.backoff + 1, 6)
            self.deadline = 0
        if fired or self.seen[1:] != (self.naks, self.rnr_naks) or self.next < self.una:
            self.next = self.una
        if rnr != self.rnr_naks:
            self.deadline = now + RNR_UNITS[rnr_code] * RNR_UNIT_NS + self.timeout
        self.seen = self.una, self.naks, self.rnr_naks
        if self.una == self.sent:
            self.deadline = 0
        elif not self.deadline:
            self.deadline = now + (self.timeout << self.backoff)
        return fired

    def choose(self, now: int) -> tuple[int, bool, bool] | None:
        """(number, again, asks for an acknowledgement)"""
        una = self.seen[0]
        if self.next >= self.posted or self.next - una >= self.window:
            return None
        number = self.next
        message = self.message_at(number)
        end = message.last + 1 if message.kind == "read" else number + 1
        again = number < self.sent
        self.silent += 1
        ask = end == self.posted or end - una >= self.window or 4 * self.silent >= self.window
        if ask:
            self.silent = 0
        self.next = end
        self.sent = max(self.sent, end)
        self.deadline = now + (self.timeout << self.backoff)
        return number, again, ask
