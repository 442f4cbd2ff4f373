"""Histories of a connection over a bad network: made by the models of both ends, then repeated by the core.

The network loses, repeats, delays and marks; receives are posted late; windows change; agents sometimes sleep.
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
from ebpf.models.irn import RNR_WAITS_MS, Answer, Message, Receiver, Sender
from wire.codes import BthOpcode, Ecn, NicEvent, QpState

STREAMS = CModule(
    name="_nic_streams",
    folder="ebpf",
    interface=("ebpf/tests/streams.h",),
    sources=("ebpf/tests/streams.c",),
    includes=("ebpf/tests", "ebpf/core", "wire"),
    libraries=("pthread",),
    prelude=build.NATIVE.prelude,
)
ffi, lib = STREAMS.load(ROOT)

STEP = struct.Struct("<QQ6IH7B15x")
SETUP = struct.Struct("<QQ2I3I4H2B18x")
RESULT = struct.Struct("<Q4I8B8I")
RESET, DATA, ACK, POST, RECEIVES, WAKE, FETCH, SERVE, WINDOW = range(9)
REQUEST, RESPONSE = range(2)
SENDS = 8
RETRANSMISSION, SACK_VALID, ECE, HAS_XDATA, HAS_XACK = 0x1, 0x8, 0x10, 0x20, 0x40
QP_CREDITS = 0x1
REPLY_XACK = 2
NOTHING = RESULT.pack(*[0] * 21)
CREDITS = [0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96]  # IBTA vol. 1, table 46; receives here are fewer
EVENTS = {event.name: int(event) for event in NicEvent}
PSNS = 1 << 24
RECEIVE_BYTES = 1 << 16
RECEIVES_AT, WRITES_AT, READS_AT = 1 << 30, 1 << 31, 1 << 32
READ_ACKNOWLEDGE, ACKNOWLEDGE = int(BthOpcode.RC_READ_ACKNOWLEDGE), int(BthOpcode.RC_ACKNOWLEDGE)
KINDS = ("write", "write", "write", "send", "send", "read", "atomic")


def opcode_of(message: Message, number: int) -> int:
    names = {"write": "RC_WRITE", "send": "RC_SEND", "response": "RC_READ_RESPONSE"}
    if message.kind not in names:
        return int(
            {
                "read": BthOpcode.RC_READ_REQUEST,
                "atomic": BthOpcode.RC_FETCH_ADD,
                "original": BthOpcode.RC_ATOMIC_ACKNOWLEDGE,
            }[message.kind]
        )
    last = number == message.last
    place = ("ONLY" if message.packets == 1 else "LAST") if last else "FIRST" if number == message.first else "MIDDLE"
    suffix = "_IMM" if last and message.immediate else "_INVALIDATE" if last and message.invalidate else ""
    return int(BthOpcode[f"{names[message.kind]}_{place}{suffix}"])


@dataclass(slots=True)
class Network:
    loss: float
    twice: float
    marks: float
    delay: int
    jitter: int

    @classmethod
    def random(cls, chance: random.Random) -> Network:
        quiet = chance.random() < 0.3
        return cls(
            loss=0 if quiet else chance.choice((0.0, 0.02, 0.1, 0.3)),
            twice=0 if quiet else chance.choice((0.0, 0.0, 0.1)),
            marks=chance.choice((0.0, 0.2)),
            delay=chance.randrange(1_000, 20_000),
            jitter=chance.choice((0, 2_000, 2_000, 40_000)),
        )


@dataclass(slots=True)
class History:
    chance: random.Random
    ideal: bool
    steps: list[bytes] = field(default_factory=list)
    expected: list[bytes] = field(default_factory=list)
    events: list[tuple[int, int, str, Any]] = field(default_factory=list)
    now: int = 1
    order: int = 0
    messages: list[Message] = field(default_factory=list)
    by_number: tuple[dict[int, Message], dict[int, Message]] = field(default_factory=lambda: ({}, {}))
    placed: dict[int, int] = field(default_factory=dict)
    wait_until: int = 0
    credit_limit: int = 0
    armed: list[int] = field(default_factory=lambda: [0, 0])
    seen: set[str] = field(default_factory=set)  # what happened, for tests of the test

    mtu: int = 256
    slots: int = 0
    credits: bool = False
    rnr_code: int = 1
    first_psn: tuple[int, int] = (0, 0)
    first_recv: int = 0
    first_fetch: int = 0
    first_msn: int = 0
    network: Network = field(init=False)
    senders: tuple[Sender, Sender] = field(init=False)
    receivers: tuple[Receiver, Receiver] = field(init=False)

    def __post_init__(self) -> None:
        chance = self.chance
        self.network = Network.random(chance)
        self.slots = 256 if self.ideal else 1 << chance.randrange(9)
        window = chance.randint(1, min(self.slots, chance.choice((4, 16, 256))))
        if chance.random() < 0.05:
            window = min(256, 2 * self.slots)  # more than the receiver can take
        self.first_psn = self._base(), self._base()
        self.first_recv, self.first_fetch, self.first_msn = self._base(), self._base(), self._base()
        self.credits = chance.random() < 0.3
        self.rnr_code = chance.randrange(1, 16)
        low, low_packets = 60_000, chance.randrange(5)
        high = chance.choice((100_000, 320_000))
        self.senders = (
            Sender(window, low, high, low_packets, self.ideal),
            Sender(window, low, high, low_packets, self.ideal),
        )
        self.receivers = (
            Receiver(self.slots, self.mtu, not self.ideal),
            Receiver(self.slots, self.mtu, not self.ideal, "RESPONSE"),
        )
        self._step(kind=RESET)
        flags = QP_CREDITS if self.credits else 0
        sizes = (self.slots, window, low_packets, self.mtu)
        firsts = (self.first_recv, self.first_fetch, self.first_msn)
        self.steps.append(SETUP.pack(high, low, *self.first_psn, *firsts, *sizes, flags, self.rnr_code))
        self.expected.append(NOTHING)

    def _base(self) -> int:
        return self.chance.choice((0, PSNS - self.chance.randrange(1, 8), self.chance.randrange(PSNS)))

    def _step(
        self, expected: bytes = NOTHING, *, kind: int, qp: int = 0, stream: int = 0, opcode: int = 0, flags: int = 0,
        ecn: int = 0, syndrome: int = 0, va: int = 0, psn: int = 0, msn: int = 0, ipsn: int = 0, wqe_sn: int = 0,
        sack_psn: int = 0, dma_length: int = 0, payload: int = 0,
    ) -> None:  # fmt: skip
        self.steps.append(
            STEP.pack(self.now, va, psn, msn, ipsn, wqe_sn, sack_psn, dma_length, payload, kind, qp, stream, opcode,
                      flags, ecn, syndrome)
        )  # fmt: skip
        self.expected.append(expected)

    def _at(self, time: int, what: str, about: Any) -> None:
        self.order += 1
        heapq.heappush(self.events, (time, self.order, what, about))

    def _psn(self, stream: int, number: int) -> int:
        return (self.first_psn[stream] + number) % PSNS

    # ---- what users and agents do ----

    def plan(self) -> None:
        """Messages and receives, and when they are posted."""
        chance = self.chance
        time, sends = 1, 0
        long = chance.random() < 0.02  # goes round the bitmaps
        for _ in range(chance.choice((1, 2, 3, 6))):
            packets = chance.randrange(150) if long else 5
            self._at(time, "post", (chance.choice(KINDS), packets))
            sends += 1
            time += chance.choice((0, 0, chance.randrange(100_000)))
        late = chance.choice((0, 0, 60_000))
        for _ in range(sends):
            self._at(1 + chance.randrange(late + 1), "receive", None)
        if chance.random() < 0.1:
            self._at(chance.randrange(1, 100_000), "window", chance.randint(1, min(self.slots, 16)))

    def _posted(self, stream: int, message: Message) -> None:
        sender = self.senders[stream]
        sender.posted = message.last + 1
        for number in range(message.first, message.last + 1):
            self.by_number[stream][number] = message
        self._step(kind=POST, qp=stream, stream=stream, psn=self._psn(stream, sender.posted))

    def post(self, kind: str, most_packets: int) -> None:
        chance = self.chance
        length = chance.choice((0, 1, self.mtu, chance.randrange(most_packets * self.mtu + 1)))
        number = self.senders[REQUEST].posted
        fetches = sum(message.fetch is not None for message in self.messages)
        receives = sum(message.receive is not None for message in self.messages)
        if kind == "atomic":
            length = 8
        packets = 1 if kind in ("read", "atomic") else max(1, -(-length // self.mtu))
        address = (READS_AT if kind in ("read", "atomic") else WRITES_AT) + (len(self.messages) << 16)
        message = Message(kind, number, packets, length, address)
        if kind in ("read", "atomic"):
            message.fetch = fetches
            self._step(kind=FETCH, wqe_sn=(self.first_fetch + fetches) % PSNS, va=address, dma_length=length,
                       opcode=opcode_of(message, number))  # fmt: skip
        elif kind == "send" or chance.random() < 0.2:
            message.receive = receives
            message.immediate = kind == "write" or chance.random() < 0.3
            message.invalidate = not message.immediate and chance.random() < 0.3
        self.messages.append(message)
        self._posted(REQUEST, message)
        self.wake(REQUEST)

    def receive(self) -> None:
        receives = self.receivers[REQUEST].receives
        number = (self.first_recv + len(receives)) % PSNS
        receives.append(RECEIVES_AT + (number & 0xFF) * RECEIVE_BYTES)
        self._step(kind=RECEIVES, va=RECEIVES_AT, wqe_sn=(number + 1) % PSNS, dma_length=RECEIVE_BYTES)

    def respond(self) -> None:
        """The responder's agent executes what has come into its turn."""
        served = sum(1 for message in self._responses())
        for fetch in self.receivers[REQUEST].fetches[served:]:
            asked = next(message for message in self.messages if message.fetch == fetch)
            length = asked.length
            packets = 1 if asked.kind == "atomic" else max(1, -(-length // self.mtu))
            kind = "original" if asked.kind == "atomic" else "response"
            first = self.senders[RESPONSE].posted
            served += 1
            self._posted(RESPONSE, Message(kind, first, packets, length, asked.address, fetch=fetch))
            self._step(kind=SERVE, qp=1, wqe_sn=(self.first_fetch + served) % PSNS)
        self.wake(RESPONSE)

    def _responses(self) -> set[int]:
        return {message.first for message in self.by_number[RESPONSE].values()}

    def wake(self, stream: int) -> None:
        """The agent looks at the clock and at what is new, and sends what it may."""
        sender = self.senders[stream]
        while True:
            limit = 0 if stream == REQUEST and self.now < self.wait_until else SENDS
            fired = sender.timer(self.now)
            sent: list[tuple[int, bool]] = []
            while len(sent) < limit and (chosen := sender.choose(self.now)):
                sent.append(chosen)
            words = [self._psn(stream, number) | again << 31 for number, again in sent]
            words += [0] * (SENDS - len(words))
            deadline = sender.deadline()
            self._step(
                RESULT.pack(deadline, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, fired, len(sent), *words),
                kind=WAKE, qp=stream, stream=stream, dma_length=limit,
            )  # fmt: skip
            self.seen.update(name for name, yes in (("timeout", fired), ("again", any(a for _, a in sent))) if yes)
            for number, again in sent:
                self._send("data", (stream, number, again))
            if len(sent) < SENDS:
                break
        if deadline and deadline != self.armed[stream]:
            self.armed[stream] = deadline
            self._at(deadline, "wake", stream)

    # ---- the network ----

    def _send(self, what: str, about: Any) -> None:
        network, chance = self.network, self.chance
        for _ in range(1 + (chance.random() < network.twice)):
            if chance.random() >= network.loss:
                self._at(self.now + network.delay + chance.randrange(network.jitter + 1), what, about)

    def data(self, stream: int, number: int, again: bool) -> None:
        message = self.by_number[stream][number]
        receiver = self.receivers[stream]
        marked = self.chance.random() < self.network.marks
        taken = receiver.receive(message, number, marked, again)
        self.seen.add(taken.event)
        offset = number - message.first
        size = 0
        if message.kind in ("write", "send", "response"):
            size = min(self.mtu, message.length - offset * self.mtu)
        if message.fetch is not None:
            wqe_sn = (self.first_fetch + message.fetch) % PSNS
        elif message.receive is not None and (message.kind == "send" or number == message.last):
            wqe_sn = (self.first_recv + message.receive) % PSNS
        else:
            wqe_sn = 0
        direct = message.kind in ("write", "read", "atomic")
        self._step(
            self._data_result(stream, number, taken),
            kind=DATA, qp=1 - stream, stream=stream, opcode=opcode_of(message, number),
            flags=HAS_XDATA | (RETRANSMISSION if again else 0), ecn=int(Ecn.CE if marked else Ecn.ECT_0),
            va=message.address if direct else 0, dma_length=message.length if direct else 0,
            psn=self._psn(stream, number), ipsn=offset, wqe_sn=wqe_sn, payload=size,
        )  # fmt: skip
        if taken.place:
            assert taken.place[0] not in self.placed
            self.placed[taken.place[0]] = taken.place[1]
        if taken.answer:
            credits = CREDITS[self._credit_code()] if self.credits else None
            self._send("ack", (stream, taken.answer, credits))
        if taken.news and stream == REQUEST:
            self.respond()

    def _credit_code(self) -> int:
        receiver = self.receivers[REQUEST]
        room = len(receiver.receives) - len(receiver.completed)
        return max(code for code, value in enumerate(CREDITS) if value <= room)

    def _syndrome(self, stream: int, answer: Answer, credits: int | None) -> int:
        if answer.kind == "rnr":
            return 0x20 | self.rnr_code
        if answer.kind == "nack":
            return 0x60
        return CREDITS.index(credits) if stream == REQUEST and credits is not None else 0x1F

    def _answer_psn(self, stream: int, answer: Answer) -> int:
        return self._psn(stream, answer.upto - (answer.kind == "ack"))

    def _data_result(self, stream: int, number: int, taken: Any) -> bytes:
        receiver, answer = self.receivers[stream], taken.answer
        place_at, place_length = taken.place or (0, 0)
        reply = [0, 0, 0]
        kinds = [EVENTS[taken.event], 0, 0, 0, 0]
        if answer:
            named = SACK_VALID if answer.named is not None else 0
            flags = named | (ECE if answer.marked else 0) | (RETRANSMISSION if answer.again else 0)
            reply = [
                self._answer_psn(stream, answer), (self.first_msn + answer.messages) % PSNS, self._psn(stream, number)
            ]  # fmt: skip
            credits = CREDITS[self._credit_code()] if self.credits else None
            opcode = (ACKNOWLEDGE, READ_ACKNOWLEDGE)[stream]
            kinds[1:] = [REPLY_XACK, opcode, flags, self._syndrome(stream, answer, credits)]
        completed = (self.first_recv + len(receiver.completed)) % PSNS if stream == REQUEST else 0
        fetches = (self.first_fetch + len(receiver.fetches)) % PSNS if stream == REQUEST else 0
        return RESULT.pack(
            place_at, place_length, *reply, *kinds, taken.news, 0, 0,
            self._psn(stream, receiver.expected), (self.first_msn + receiver.messages) % PSNS, completed, fetches,
            receiver.early, receiver.complaints, int(QpState.RTS), 0,
        )  # fmt: skip

    def ack(self, stream: int, answer: Answer, credits: int | None) -> None:
        sender = self.senders[stream]
        event = sender.ack(answer, self.rnr_code)
        self.seen.add(event)
        believed = event in ("ACK_RECEIVED", "SACK_RECEIVED") and answer.kind == "ack"
        if believed and stream == REQUEST and credits is not None:
            self.credit_limit = max(self.credit_limit, answer.messages + credits)
        limit = (self.first_msn + self.credit_limit) % PSNS if stream == REQUEST else 0
        flags = HAS_XACK | (SACK_VALID if answer.named is not None else 0) | (ECE if answer.marked else 0)
        msn = (self.first_msn + sender.messages) % PSNS if sender.heard else 0
        self._step(
            RESULT.pack(0, 0, 0, 0, 0, EVENTS[event], 0, 0, 0, 0, event != "ACK_STALE", 0, 0,
                        self._psn(stream, sender.una), sender.naks, sender.rnr_naks, sender.acks, sender.sacks, msn,
                        sender.marks, limit),
            kind=ACK, qp=stream, stream=stream, opcode=(ACKNOWLEDGE, READ_ACKNOWLEDGE)[stream], flags=flags,
            psn=self._answer_psn(stream, answer), msn=(self.first_msn + answer.messages) % PSNS,
            sack_psn=self._psn(stream, answer.named or 0), syndrome=self._syndrome(stream, answer, credits),
        )  # fmt: skip
        if event == "NAK_RECEIVED" and answer.kind == "rnr":
            self.wait_until = self.now + round(RNR_WAITS_MS[self.rnr_code] * 1e6)
            self._at(self.wait_until, "wake", stream)
            self.wake(stream)
        elif self.chance.random() < 0.15:
            self._at(self.now + self.chance.randrange(5_000), "wake", stream)  # it is busy
        elif event != "ACK_STALE":
            self.wake(stream)

    # ---- the history ----

    def run(self) -> None:
        self.plan()
        while self.events and len(self.steps) < 20_000:
            self.now, _, what, about = heapq.heappop(self.events)
            if what == "data":
                self.data(*about)
            elif what == "ack":
                self.ack(*about)
            elif what == "wake":
                self.wake(about)
            elif what == "post":
                self.post(*about)
            elif what == "receive":
                self.receive()
            else:
                self.senders[REQUEST].window = about
                self._step(kind=WINDOW, dma_length=about)
        self._check()

    def _check(self) -> None:
        """All has come, once, and in order."""
        requests, responses = self.receivers
        total = sum(message.packets for message in self.messages)
        assert requests.expected == self.senders[REQUEST].una == total
        assert requests.messages == len(self.messages)
        assert requests.completed == sorted(requests.completed)
        assert len(requests.completed) == sum(message.receive is not None for message in self.messages)
        fetches = [message for message in self.messages if message.fetch is not None]
        assert requests.fetches == list(range(len(fetches)))
        assert responses.messages == len(fetches) and responses.expected == self.senders[RESPONSE].una
        bytes_due = sum(message.length for message in self.messages if message.kind != "atomic")
        assert sum(self.placed.values()) == bytes_due


def run(transport: int, steps: bytes) -> bytes:
    """The core's results, one a step."""
    count = len(steps) // STEP.size
    results = bytearray(count * RESULT.size)
    made = ffi.from_buffer("struct stream_result[]", results)
    lib.stream_run(transport, ffi.from_buffer("struct stream_step[]", steps), made, count)
    return bytes(results)


def differences(transport: int, histories: list[History]) -> list[str]:
    """Repeats histories with the core: what it does otherwise than the models."""
    steps = b"".join(step for history in histories for step in history.steps)
    expected = b"".join(step for history in histories for step in history.expected)
    results = run(transport, steps)
    if results == expected:
        return []
    size = RESULT.size
    at = next(i for i in range(0, len(expected), size) if results[i : i + size] != expected[i : i + size])
    before = [STEP.unpack_from(steps, i) for i in range(max(0, at - 8 * size), at + size, size)]
    return [
        *(f"step {step}" for step in before),
        f"model {RESULT.unpack_from(expected, at)}",
        f"core  {RESULT.unpack_from(results, at)}",
    ]
