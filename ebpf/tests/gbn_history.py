"""Histories of a go-back-N connection over a bad network: made by the models of both ends, then repeated by the core.

The network loses, repeats and delays; receives are posted late; agents sometimes sleep, and answer READs late.
"""

from __future__ import annotations

import heapq
import random
import struct
from dataclasses import dataclass, field
from typing import Any

from ebpf import build
from ebpf.c_module import CModule
from ebpf.loader import ROOT
from ebpf.models.gbn import CREDITS, FETCHES, RNR_UNIT_NS, RNR_UNITS, Answer, Message, Requester, Responder, Taken
from wire.codes import BthOpcode, NicEvent, QpState

MODULE = CModule(
    name="_nic_gbn_history",
    folder="ebpf",
    interface=("ebpf/tests/gbn_history.h",),
    sources=("ebpf/tests/gbn_history.c",),
    includes=("ebpf/tests", "ebpf/core", "wire"),
    prelude=build.NATIVE.prelude,
)
ffi, lib = MODULE.load(ROOT)

STEP = struct.Struct("<QQQ4IH8B14x")
RESULT = struct.Struct("<Q3I8B8I4x")
RESET, REQUEST, ANSWER, POST, TAKEN, RECEIVES, WAKE, SERVE, SERVED, WINDOW = range(10)
SENDS = 8
NOTHING = RESULT.pack(*[0] * 20)
EVENTS = {event.name: int(event) for event in NicEvent}
RTS = int(QpState.RTS)
PSNS = 1 << 24
RECEIVE_BYTES = 1 << 16
RECEIVES_AT, WRITES_AT, READS_AT = 1 << 30, 1 << 31, 1 << 32
KINDS = ("write", "write", "write", "send", "send", "read", "read", "atomic")
OPCODES = {opcode.name: int(opcode) for opcode in BthOpcode}
NO_CREDITS = 0x1F


def opcode_of(message: Message, number: int) -> int:
    if message.kind == "read":
        return OPCODES["RC_READ_REQUEST"]
    if message.kind == "atomic":
        return OPCODES["RC_FETCH_ADD"]
    ends, starts = number == message.last, number == message.first
    place = ("ONLY" if starts else "LAST") if ends else "FIRST" if starts else "MIDDLE"
    suffix = "_IMM" if ends and message.immediate else "_INVALIDATE" if ends and message.invalidate else ""
    return OPCODES[f"RC_{message.kind.upper()}_{place}{suffix}"]


def response_opcode(message: Message, number: int, begins: int) -> int:
    if message.kind == "atomic":
        return OPCODES["RC_ATOMIC_ACKNOWLEDGE"]
    ends, starts = number == message.last, number == begins
    return OPCODES["RC_READ_RESPONSE_" + (("ONLY" if starts else "LAST") if ends else "FIRST" if starts else "MIDDLE")]


@dataclass(slots=True)
class History:
    chance: random.Random
    steps: list[bytes] = field(default_factory=list)
    expected: list[bytes] = field(default_factory=list)
    events: list[tuple[int, int, str, Any]] = field(default_factory=list)
    now: int = 1
    order: int = 0
    planned: list[tuple[str, int]] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    at: list[Message] = field(default_factory=list)  # by number
    placed: dict[int, int] = field(default_factory=dict)
    executed: dict[int, int] = field(default_factory=dict)  # atomics by number: what was there
    originals: dict[int, int] = field(default_factory=dict)  # what came, by place among the outgoing
    counter: int = 1000
    wait_until: int = 0
    armed: int = 0
    taken: int = 0  # outgoing that the agent has taken out
    held_seen: int = 0
    seen: set[str] = field(default_factory=set)  # what happened, for tests of the test

    mtu: int = 256
    loss: float = 0
    twice: float = 0
    delay: int = 0
    jitter: int = 0
    lazy: int = 0  # how late the responder's agent answers
    credits: bool = False
    rnr_code: int = 1
    first_psn: int = 0
    first_msn: int = 0
    first_number: int = 0
    requester: Requester = field(init=False)
    responder: Responder = field(init=False)

    def __post_init__(self) -> None:
        chance = self.chance
        if chance.random() > 0.25:
            self.loss, self.twice = chance.choice((0.0, 0.02, 0.1, 0.3)), chance.choice((0.0, 0.0, 0.1))
        self.delay, self.jitter = chance.randrange(1_000, 20_000), chance.choice((0, 0, 2_000, 40_000))
        self.lazy = chance.choice((0, 0, 10_000, 60_000))
        self.credits = chance.random() < 0.3
        self.rnr_code = chance.randrange(1, 16)
        self.first_psn, self.first_msn, self.first_number = self._base(), self._base(), self._base()
        window = chance.choice((1, 2, 4, 16, 64))
        self.requester = Requester(window, chance.choice((100_000, 320_000)), lambda number: self.at[number])
        self.responder = Responder(self.mtu, chance.choice((0, 0, 1, 3)), self.credits)
        self._step(
            kind=RESET, now=self.requester.timeout, psn=self.first_psn, msn=self.first_msn, number=self.first_number,
            dma_length=window, payload=self.mtu, flags=int(self.credits), rnr=self.rnr_code,
            every=self.responder.ack_every,
        )  # fmt: skip

    def _base(self) -> int:
        return self.chance.choice((0, PSNS - self.chance.randrange(1, 8), self.chance.randrange(PSNS)))

    def _step(
        self, expected: bytes = NOTHING, *, kind: int, now: int | None = None, stream: int = 0, opcode: int = 0,
        flags: int = 0, syndrome: int = 0, va: int = 0, atomic: int = 0, psn: int = 0, msn: int = 0, number: int = 0,
        dma_length: int = 0, payload: int = 0, ask: bool = False, rnr: int = 0, every: int = 0,
    ) -> None:  # fmt: skip
        self.steps.append(
            STEP.pack(self.now if now is None else now, va, atomic, psn, msn, dma_length, number, payload, kind, stream,
                      opcode, ask, syndrome, flags, rnr, every)
        )  # fmt: skip
        self.expected.append(expected)

    def _at(self, time: int, what: str, about: Any = None) -> None:
        self.order += 1
        heapq.heappush(self.events, (time, self.order, what, about))

    def _psn(self, number: int) -> int:
        return (self.first_psn + number) % PSNS

    def _number(self, number: int) -> int:
        return (self.first_number + number) % PSNS

    # ---- the requester's agent ----

    def plan(self) -> None:
        chance = self.chance
        time = 1
        for _ in range(chance.choice((1, 2, 4, 12))):
            self._at(time, "post", (chance.choice(KINDS), chance.choice((2, 5))))
            time += chance.choice((0, 0, chance.randrange(100_000)))
        if chance.random() < 0.02:  # more READs than may be outstanding
            for _ in range(20):
                self._at(time, "post", (chance.choice(("read", "atomic", "write")), 2))
        if chance.random() < 0.1:
            self._at(chance.randrange(1, 100_000), "window", chance.choice((1, 3, 8)))

    def post(self, kind: str, most: int) -> None:
        self.planned.append((kind, most))
        if kind in ("write", "send"):  # a receive for each that may need one
            self._at(self.now + self.chance.choice((0, 0, self.chance.randrange(60_000))), "receive")
        self.wake()

    def _post_planned(self) -> None:
        """As far as credits and places for READs go."""
        chance, requester = self.chance, self.requester
        while self.planned:
            kind, most = self.planned[0]
            number, index = len(self.at), len(self.messages)
            receives = kind == "send" or (kind == "write" and index % 3 == 0)
            fetch = len(requester.fetches) if kind in ("read", "atomic") else None
            if fetch is not None and fetch - self.taken >= FETCHES:
                return
            if self.credits and receives and index + 1 > requester.credit_limit and requester.una < requester.posted:
                return
            self.planned.pop(0)
            length = 8 if kind == "atomic" else chance.choice((0, 1, self.mtu, chance.randrange(most * self.mtu + 1)))
            base = READS_AT if fetch is not None else WRITES_AT
            packets = max(1, -(-length // self.mtu))
            message = Message(kind, number, packets, length, base + (index << 16), index, fetch, receives)
            message.immediate = receives and (kind == "write" or chance.random() < 0.3)
            message.invalidate = kind == "send" and not message.immediate and chance.random() < 0.3
            self.messages.append(message)
            self.at.extend([message] * packets)
            requester.posted = len(self.at)
            if fetch is not None:
                requester.fetches.append(message)
                self.originals.pop(self._number(fetch) % FETCHES, None)
                self._step(kind=POST, psn=self._psn(len(self.at)), msn=self._psn(number), number=self._number(fetch),
                           va=message.address, dma_length=length, opcode=opcode_of(message, number))  # fmt: skip
            else:
                self._step(kind=POST, psn=self._psn(len(self.at)))

    def wake(self) -> None:
        requester = self.requester
        self._post_planned()
        while True:
            limit = 0 if self.now < self.wait_until else SENDS
            fired = requester.timer(self.now, self.rnr_code)
            sent: list[tuple[int, bool, bool]] = []
            while len(sent) < limit and (chosen := requester.choose(self.now)):
                sent.append(chosen)
            words = [self._psn(number) | again << 24 | ask << 25 for number, again, ask in sent]
            words += [0] * (SENDS - len(words))
            self._step(
                RESULT.pack(requester.deadline, 0, 0, 0, 0, 0, 0, 0, fired, len(sent), 0, 0, *words),
                kind=WAKE, dma_length=limit,
            )  # fmt: skip
            self.seen.update(name for name, yes in (("timeout", fired), ("again", any(x[1] for x in sent))) if yes)
            for number, _, ask in sent:
                self._send("request", (number, ask))
            if len(sent) < SENDS:
                break
        if requester.deadline and requester.deadline != self.armed:
            self.armed = requester.deadline
            self._at(requester.deadline, "wake")

    # ---- the responder's agent ----

    def receive(self) -> None:
        receives = self.responder.receives
        number = self._number(len(receives))
        receives.append(RECEIVES_AT + (number & 0xFF) * RECEIVE_BYTES)
        self._step(kind=RECEIVES, va=RECEIVES_AT, number=(number + 1) % PSNS, dma_length=RECEIVE_BYTES)

    def respond(self) -> None:
        """All that waits, in turn; then what the NIC has held back."""
        responder = self.responder
        while responder.served < len(responder.incoming):
            incoming = responder.incoming[responder.served]
            message, begins = incoming.message, incoming.number
            left = message.length - (begins - message.first) * self.mtu
            address = message.address + (begins - message.first) * self.mtu
            self._step(
                RESULT.pack(address, *[0] * 9, incoming.repeated, 0, self._psn(begins), left, *[0] * 6),
                kind=SERVE, number=self._number(responder.served),
            )  # fmt: skip
            if message.kind == "atomic" and not incoming.repeated:
                self.executed[begins] = self.counter
                self.counter += 1
            self._responses(message, begins)
            responder.served += 1
            self._step(kind=SERVED, number=self._number(responder.served))
        if self.held_seen != responder.held:
            self.held_seen = responder.held
            answer = responder.release()
            self.seen.add("held " + answer.kind)
            psn = self._psn(answer.upto - (answer.kind == "ack"))
            self._step(
                RESULT.pack(0, 0, 0, 0, 0, 0, self._syndrome(answer), 0, 0, 1, 0, 0, psn | 1 << 26, *[0] * 7),
                kind=WAKE, stream=1, dma_length=SENDS,
            )  # fmt: skip
            self._send("answer", answer)

    def _responses(self, message: Message, begins: int) -> None:
        for at in range(begins, message.last + 1, SENDS):
            numbers = range(at, min(at + SENDS, message.last + 1))
            words = [self._psn(number) for number in numbers] + [0] * (SENDS - len(numbers))
            self._step(
                RESULT.pack(0, 0, 0, 0, 0, 0, 0, 0, 0, len(numbers), 0, 0, *words),
                kind=WAKE, stream=1, dma_length=len(numbers),
            )  # fmt: skip
            for number in numbers:
                original = self.executed[number] if message.kind == "atomic" else 0
                self._send("response", (number, begins, self.responder.messages, original))

    # ---- the network ----

    def _send(self, what: str, about: Any) -> None:
        for _ in range(1 + (self.chance.random() < self.twice)):
            if self.chance.random() >= self.loss:
                self._at(self.now + self.delay + self.chance.randrange(self.jitter + 1), what, about)

    def _syndrome(self, answer: Answer) -> int:
        if answer.kind == "rnr":
            return 0x20 | self.rnr_code
        if answer.kind == "nak":
            return 0x60
        if answer.receives is None:
            return NO_CREDITS
        return CREDITS.index(answer.receives)

    def request(self, number: int, ask: bool) -> None:
        message, responder = self.at[number], self.responder
        taken = responder.receive(message, number, ask)
        self.seen.add(taken.event)
        offset = (number - message.first) * self.mtu
        left = message.length - offset
        fetch = message.fetch is not None
        starts = fetch or (message.kind == "write" and number == message.first)
        self._step(
            self._request_result(taken),
            kind=REQUEST, opcode=opcode_of(message, number), psn=self._psn(number), ask=ask,
            va=message.address + (offset if message.kind == "read" else 0) if starts else 0,
            dma_length=left if starts and message.kind != "atomic" else 0,
            payload=0 if fetch else min(self.mtu, left),
        )  # fmt: skip
        self._place(taken)
        if taken.answer:
            self._send("answer", taken.answer)
        if taken.news:
            self._at(self.now + self.chance.randrange(self.lazy + 1), "respond")

    def _place(self, taken: Taken) -> None:
        if taken.place:
            assert taken.place[0] not in self.placed
            self.placed[taken.place[0]] = taken.place[1]

    def _request_result(self, taken: Taken) -> bytes:
        responder, answer = self.responder, taken.answer
        place_at, place_length = taken.place or (0, 0)
        psn = msn = reply = syndrome = 0
        if answer:
            reply, syndrome = 1, self._syndrome(answer)
            psn = self._psn(answer.upto - (answer.kind == "ack"))
            msn = (self.first_msn + answer.messages) % PSNS
        fetches = self._number(len(responder.incoming))
        complaint = {"": 0, "nak": 0x60, "rnr": 0x20 | self.rnr_code}[responder.complaint]
        return RESULT.pack(
            place_at, place_length, psn, msn, EVENTS[taken.event], reply, syndrome, taken.news, 0, 0, 0, 0,
            self._psn(responder.expected), (self.first_msn + responder.messages) % PSNS,
            self._number(responder.completed), fetches, complaint, responder.held, responder.gaps, RTS,
        )  # fmt: skip

    def _answer_result(self, taken: Taken, slot: int) -> bytes:
        requester = self.requester
        place_at, place_length = taken.place or (0, 0)
        return RESULT.pack(
            place_at, place_length, 0, 0, EVENTS[taken.event], 0, 0, taken.news, 0, 0, 0, 0,
            self._psn(requester.una), requester.naks, requester.rnr_naks, 0,
            (self.first_msn + requester.credit_limit) % PSNS, self._number(requester.answered),
            self.originals.get(slot, 0), RTS,
        )  # fmt: skip

    def answer(self, answer: Answer) -> None:
        requester = self.requester
        event = requester.answer(answer)
        self.seen.add(event)
        self._step(
            self._answer_result(Taken(event, news=event != "ACK_STALE"), self._slot()),
            kind=ANSWER, opcode=OPCODES["RC_ACKNOWLEDGE"], syndrome=self._syndrome(answer),
            psn=self._psn(answer.upto - (answer.kind == "ack")), msn=(self.first_msn + answer.messages) % PSNS,
        )  # fmt: skip
        if event == "NAK_RECEIVED" and answer.kind == "rnr":
            self.wait_until = self.now + RNR_UNITS[self.rnr_code] * RNR_UNIT_NS
            self._at(self.wait_until, "wake")
        self._news(event != "ACK_STALE")

    def _slot(self) -> int:
        """The place of the READ or atomic that waits for its answer."""
        return self._number(self.requester.answered) % FETCHES

    def response(self, number: int, begins: int, messages: int, original: int) -> None:
        requester, message = self.requester, self.at[number]
        slot = self._slot()
        taken = requester.response(message, number, self.mtu)
        if taken.event == "RESPONSE_PLACED" and message.kind == "atomic":
            self.originals[slot] = original
        self.seen.add(taken.event)
        size = min(self.mtu, message.length - (number - message.first) * self.mtu)
        self._step(
            self._answer_result(taken, slot),
            kind=ANSWER, stream=1, opcode=response_opcode(message, number, begins), syndrome=NO_CREDITS,
            psn=self._psn(number), msn=(self.first_msn + messages) % PSNS, atomic=original,
            payload=0 if message.kind == "atomic" else size,
        )  # fmt: skip
        self._place(taken)
        self._news(taken.news)

    def _news(self, news: bool) -> None:
        """The agent hears of it; sometimes it is busy, and comes later."""
        if self.chance.random() < 0.15:
            self._at(self.now + self.chance.randrange(5_000), "wake")
            return
        while self.taken < self.requester.answered:
            self._step(kind=TAKEN, number=self._number(self.taken))
            self.taken += 1
        if news:
            self.wake()

    # ---- the history ----

    def run(self) -> None:
        self.plan()
        while self.events and len(self.steps) < 20_000:
            self.now, _, what, about = heapq.heappop(self.events)
            if what == "request":
                self.request(*about)
            elif what == "answer":
                self.answer(about)
            elif what == "response":
                self.response(*about)
            elif what == "wake":
                self._news(True)
            elif what == "post":
                self.post(*about)
            elif what == "receive":
                self.receive()
            elif what == "respond":
                self.respond()
            else:
                self.requester.window = about
                self._step(kind=WINDOW, dma_length=about)
        self._check()

    def _check(self) -> None:
        """All has come, once, and in order; every atomic was done once, and its result is the one that came first."""
        requester, responder = self.requester, self.responder
        assert not self.planned
        assert responder.expected == requester.una == len(self.at)
        assert responder.messages == len(self.messages)
        assert responder.completed == sum(message.receives for message in self.messages)
        assert requester.answered == len(requester.fetches)
        assert sum(self.placed.values()) == sum(m.length for m in self.messages if m.kind != "atomic")
        assert len(self.executed) == sum(message.kind == "atomic" for message in self.messages)


def differences(histories: list[History]) -> list[str]:
    """Repeats histories with the core: what it does otherwise than the models."""
    steps = b"".join(step for history in histories for step in history.steps)
    count = len(steps) // STEP.size
    results = bytearray(count * RESULT.size)
    lib.gbn_run(ffi.from_buffer("struct gbn_step[]", steps), ffi.from_buffer("struct gbn_result[]", results), count)
    expected = b"".join(step for history in histories for step in history.expected)
    if bytes(results) == expected:
        return []
    size = RESULT.size
    at = next(i for i in range(0, len(expected), size) if results[i : i + size] != expected[i : i + size])
    made = [STEP.unpack_from(steps, i) for i in range(max(0, at - 12 * size), at + size, size)]
    return [
        *(f"step {step}" for step in made),
        f"model {RESULT.unpack_from(expected, at)}",
        f"core  {RESULT.unpack_from(results, at)}",
    ]
