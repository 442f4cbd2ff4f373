"""Histories of one Eunomia stream over a bad network: made by the models of both ends, then repeated by the core.

The network loses, repeats, delays and marks; receives are posted late; agents look late; other connections hold the
memory. What the core gives for each step must be what the models gave, to the byte.
"""

from __future__ import annotations

import heapq
import random
import struct
from dataclasses import dataclass, field, replace
from typing import Any

from ebpf import build
from ebpf.c_module import CModule
from ebpf.loader import ROOT
from ebpf.models.eunomia import Answer, Message, Receiver, Sender, Taken
from ebpf.models.eunomia_bitmap import Host
from ebpf.models.eunomia_memory import Controller
from wire.codes import BthOpcode, Ecn, NicEvent, QpState

HISTORY = CModule(
    name="_eunomia_history",
    folder="ebpf",
    interface=("ebpf/tests/eunomia_history.h",),
    sources=("ebpf/tests/eunomia_history.c",),
    includes=("ebpf/tests", "ebpf/core", "wire"),
    prelude=build.NATIVE.prelude,
)
ffi, lib = HISTORY.load(ROOT)

DATA, ACK, POST, RECEIVES, WAKE, READ = range(6)
STEP = struct.Struct("<QQ7IH6B4x")
SETUP = struct.Struct("<3Q4I2H4B")
RESULT = struct.Struct("<16Q")
NOTHING = RESULT.pack(*[0] * 16)
SENDS = 10
PSNS = 1 << 24
RECEIVES_MAX = 64
HOLD_AT = 0x7000000000
RECEIVES_AT, RECEIVE_BYTES, WRITES_AT = 1 << 32, 1 << 14, 1 << 34
RETRANSMISSION, LAST, SACK_VALID, ECE, HAS_XDATA, HAS_XACK = 0x1, 0x4, 0x8, 0x10, 0x20, 0x40  # nic_packet.flags
QP_HOLD_LAST, QP_SELECTIVE = 0x4, 0x8
ACK_SYNDROME, NACK_SYNDROME, RNR_SYNDROME, ACCESS_SYNDROME = 0x1F, 0x60, 0x20, 0x62
RNR_CODE, RNR_WAIT = 2, 20_000  # IBTA vol. 1, table 45
REPLY_XACK = 2
RTT = 20_000
EVENTS = {event.name: int(event) for event in NicEvent}
OPCODES = {
    (kind, place): int(BthOpcode[f"RC_{name}_{place}{suffix if place in ('LAST', 'ONLY') else ''}"])
    for kind, name, suffix in (
        ("write", "WRITE", ""),
        ("write_imm", "WRITE", "_IMM"),
        ("send", "SEND", ""),
        ("response", "READ_RESPONSE", ""),
    )
    for place in ("FIRST", "MIDDLE", "LAST", "ONLY")
}


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of network and use; probabilities are for each packet."""

    stream: str = "REQUEST"
    selective: bool = False
    holds: bool = False
    loss: float = 0.0
    twice: float = 0.0
    marks: float = 0.0
    jitter: int = 0  # ns; packets are 100 ns apart
    window: int = 64
    booked: int = 0  # blocks of the controller
    lazy: float = 0.0  # how often receives are posted late
    faults: float = 0.0  # messages that may not be executed
    messages: int = 6
    largest: int = 5_000  # bytes of a message


@dataclass(slots=True)
class History:
    kind: Kind
    first_psn: int
    chance: random.Random
    steps: list[bytes] = field(default_factory=list)
    expected: list[bytes] = field(default_factory=list)
    events: list[tuple[int, int, str, Any]] = field(default_factory=list)
    now: int = 1
    order: int = 0
    messages: list[Message] = field(default_factory=list)
    by_number: list[Message] = field(default_factory=list)
    placed: dict[int, int] = field(default_factory=dict)  # address: length, of each payload in its place
    held: dict[int, int] = field(default_factory=dict)
    first_recv: int = 0
    wait_until: int = 0
    armed: int = 0
    link_free: int = 0
    timeouts: int = 0
    seen: set[str] = field(default_factory=set)
    controller: Controller = field(default_factory=Controller)
    receiver: Receiver = field(init=False)
    sender: Sender = field(init=False)
    setup: bytes = field(init=False)

    def __post_init__(self) -> None:
        kind, chance = self.kind, self.chance
        for _ in range(kind.booked):
            self.controller.from_head()
        timeout, low, low_packets = chance.choice((60_000, 200_000)), 40_000, chance.choice((0, 3))
        self.receiver = Receiver(Host(self.controller), kind.stream, kind.holds, HOLD_AT)
        self.sender = Sender(kind.window, timeout, low, low_packets, RTT, RNR_WAIT, kind.selective)
        self.first_recv = chance.choice((0, PSNS - 2, chance.randrange(PSNS)))
        flags = (QP_SELECTIVE if kind.selective else 0) | (QP_HOLD_LAST if kind.holds else 0)
        self.setup = SETUP.pack(
            timeout, low, RTT, self.first_psn, self.first_recv, kind.booked, low_packets, kind.window, 256,
            kind.stream == "RESPONSE", flags, RNR_CODE, 0,
        )  # fmt: skip
        self._make_messages()

    def _make_messages(self) -> None:
        kind, chance = self.kind, self.chance
        first = receives = address = 0
        for index in range(chance.randint(1, kind.messages)):
            what = chance.choice(("write", "write", "write_imm", "send")) if kind.stream == "REQUEST" else "response"
            length = chance.choice((0, 1, 256, 700, chance.randrange(kind.largest + 1)))
            if what == "send":
                length = min(length, RECEIVE_BYTES)
            number = index if what == "response" else receives
            at = RECEIVES_AT + ((self.first_recv + receives) % PSNS % RECEIVES_MAX << 16)
            if what != "send":
                at = WRITES_AT + address
                address += length
            good = what != "write" or not length or chance.random() >= kind.faults
            message = Message(what, first, length, 256, number, at, good)
            self.messages.append(message)
            self.by_number += [message] * message.packets
            first += message.packets
            receives += message.completes

    def psn(self, number: int) -> int:
        return (self.first_psn + number) % PSNS

    def _step(
        self, kind: int, expected: bytes = NOTHING, *, va: int = 0, psn: int = 0, ipsn: int = 0, wqe_sn: int = 0,
        sack: int = 0, length: int = 0, rkey: int = 0, payload: int = 0, opcode: int = 0, flags: int = 0, ecn: int = 0,
        syndrome: int = 0,
    ) -> None:  # fmt: skip
        self.steps.append(
            STEP.pack(
                self.now, va, psn, ipsn, wqe_sn, sack, length, self.first_psn, rkey, payload, kind, opcode, flags, ecn,
                syndrome, 0,
            )
        )  # fmt: skip
        self.expected.append(expected)

    def _at(self, delay: int, what: str, thing: Any = None) -> None:
        self.order += 1
        heapq.heappush(self.events, (self.now + delay, self.order, what, thing))

    # ---- what happens ----

    def run(self, bad: int = 1000, steps: int = 20_000) -> None:
        """Until nothing is left to do. The network is faultless and fast after `bad` steps."""
        for index, message in enumerate(self.messages):
            self._at(self.chance.choice((0, 0, 5_000, 60_000)), "post", index)
            if self.kind.stream == "RESPONSE":
                self._step(READ, va=message.address, wqe_sn=index, length=message.length)
        late = self.chance.random() < self.kind.lazy
        self._at(self.chance.choice((10_000, 100_000)) if late else 0, "receives")
        while self.events and steps and not self.receiver.failed:
            steps -= 1
            bad -= 1
            if not bad:
                self.kind = replace(self.kind, loss=0.0, twice=0.0, jitter=0)
            self.now, _, what, thing = heapq.heappop(self.events)
            getattr(self, f"_{what}")(thing)

    def _post(self, index: int) -> None:
        """In order, whatever the times say."""
        number = self.messages[index].last + 1
        if number > self.sender.posted:
            self.sender.posted = number
            self._step(POST, psn=self.psn(number))
            self._wake(None)

    def _receives(self, _: None) -> None:
        self.receiver.posted = sum(message.completes for message in self.messages)
        wanted = (self.first_recv + self.receiver.posted) % PSNS
        self._step(RECEIVES, psn=wanted, va=RECEIVES_AT, length=RECEIVE_BYTES)

    def _wake(self, deadline: int | None) -> None:
        if deadline is not None and deadline != self.armed:
            return
        if self.now < self.wait_until:
            self._at(self.wait_until - self.now, "wake")
            return
        sender = self.sender
        fired = sender.timer(self.now)
        self.timeouts += fired
        sends = []
        while len(sends) < SENDS and (found := sender.next(self.now)):
            number, again = found
            sends.append(self.psn(number) | (1 << 31 if again else 0))
            self._transmit(number, again)
        due = sender.deadline()
        words = [fired, due, sender.retransmissions, len(sends), *sends, *[0] * (SENDS - len(sends)), 0, 0]
        self._step(WAKE, RESULT.pack(*words))
        if len(sends) == SENDS:
            self._at(1_000, "wake")
        if due and due != self.armed:
            self.armed = due
            self._at(max(0, due - self.now), "wake", due)

    def _transmit(self, number: int, again: bool) -> None:
        self.link_free = max(self.now, self.link_free) + 100
        delay = self.link_free - self.now + RTT // 2
        last = number + 1 == len(self.by_number)
        for _ in range(1 + (self.chance.random() < self.kind.twice)):
            if self.chance.random() >= self.kind.loss:
                marked = self.chance.random() < self.kind.marks
                packet = (number, last, marked, again)
                self._at(delay + self.chance.randrange(self.kind.jitter + 1), "data", packet)

    def _data(self, packet: tuple[int, bool, bool, bool]) -> None:
        number, last, marked, again = packet
        message = self.by_number[number]
        taken = self.receiver.receive(message, number, last, marked, again)
        self.seen.add(taken.event)
        self._check_place(taken)
        index = number - message.first
        ends = number == message.last
        place = ("LAST" if index else "ONLY") if ends else ("MIDDLE" if index else "FIRST")
        wqe_sn = message.number if message.kind == "response" else (self.first_recv + message.number) % PSNS
        self._step(
            DATA, self._expect_data(taken), va=message.address if "write" in message.kind else 0, psn=self.psn(number),
            ipsn=index, wqe_sn=wqe_sn, length=message.length, rkey=1 if message.good else 7,
            payload=min(256, message.length - 256 * index), opcode=OPCODES[message.kind, place],
            flags=HAS_XDATA | (LAST if last else 0) | (RETRANSMISSION if again else 0),
            ecn=int(Ecn.CE if marked else Ecn.ECT_0),
        )  # fmt: skip
        if taken.answer and self.chance.random() >= self.kind.loss:
            self._at(RTT // 2 + self.chance.randrange(self.kind.jitter + 1), "ack", taken.answer)

    def _check_place(self, taken: Taken) -> None:
        """No byte is placed twice, nor one that was held placed before its turn."""
        if taken.place:
            address, length = taken.place
            where = self.held if address == HOLD_AT else self.placed
            assert address not in where or address == HOLD_AT
            where[address] = length
        if taken.release:
            address, length = taken.release
            assert address not in self.placed and self.held.pop(HOLD_AT) == length
            self.placed[address] = length

    def _expect_data(self, taken: Taken) -> bytes:
        receiver, answer = self.receiver, taken.answer
        words = [EVENTS[taken.event], 0, 0, 0, 0, 0, 0]
        if answer:
            acknowledges = receiver.stream == "REQUEST"
            opcode = BthOpcode.RC_ACKNOWLEDGE if acknowledges else BthOpcode.RC_READ_ACKNOWLEDGE
            words[1:] = [REPLY_XACK, opcode, *self._acknowledge(answer)]
        return RESULT.pack(
            *words, *(taken.place or (0, 0)), *(taken.release or (0, 0)),
            self.psn(receiver.expected), receiver.messages,
            (self.first_recv + receiver.completed) % PSNS if receiver.stream == "REQUEST" else 0,
            receiver.early | receiver.complaints << 32,
            taken.news | (QpState.ERROR if receiver.failed else QpState.RTS) << 8,
        )  # fmt: skip

    def _acknowledge(self, answer: Answer) -> tuple[int, int, int, int]:
        """Syndrome, flags, PSN and SACK PSN."""
        syndrome, upto = {
            "ack": (ACK_SYNDROME, answer.upto - 1),
            "nack": (NACK_SYNDROME, answer.upto),
            "rnr": (RNR_SYNDROME | RNR_CODE, answer.upto),
            "fault": (ACCESS_SYNDROME, answer.upto),
        }[answer.kind]
        flags = (SACK_VALID if answer.taken else 0) | (ECE if answer.marked else 0)
        return syndrome, flags | (RETRANSMISSION if answer.again else 0), self.psn(upto), self.psn(answer.named)

    def _ack(self, answer: Answer) -> None:
        sender = self.sender
        event = sender.acknowledge(answer)
        self.seen.add(event)
        syndrome, flags, psn, sack = self._acknowledge(answer)
        opcode = BthOpcode.RC_ACKNOWLEDGE if self.kind.stream == "REQUEST" else BthOpcode.RC_READ_ACKNOWLEDGE
        news = event != "ACK_STALE"
        words = [EVENTS[event], self.psn(sender.una), sender.nacks, sender.rnrs, sender.acks, sender.sacks, news]
        self._step(
            ACK, RESULT.pack(*words, *[0] * 9), psn=psn, sack=sack, opcode=int(opcode), flags=flags | HAS_XACK,
            syndrome=syndrome,
        )  # fmt: skip
        if event == "NAK_RECEIVED" and answer.kind == "rnr":
            self.wait_until = self.now + RNR_WAIT
        if news:
            self._at(self.chance.choice((0, 0, 300)), "wake")

    # ---- what comes of it ----

    def check(self) -> None:
        """The core gives what the models gave."""
        results = ffi.new("struct eunomia_result[]", len(self.steps))
        setup = ffi.from_buffer("struct eunomia_setup *", self.setup)
        steps = ffi.from_buffer("struct eunomia_step[]", b"".join(self.steps))
        lib.eunomia_run(setup, steps, results, len(self.steps))
        got = bytes(ffi.buffer(results))
        if got != b"".join(self.expected):
            for at, expected in enumerate(self.expected):
                result = got[at * RESULT.size : (at + 1) * RESULT.size]
                assert RESULT.unpack(result) == RESULT.unpack(expected), f"step {at}: {STEP.unpack(self.steps[at])}"
        used = bytearray(1024)
        lib.eunomia_used(ffi.from_buffer(used))
        assert used == self.controller.used

    def check_done(self) -> None:
        """Everything arrived, once, and nothing is left in the controller but what others hold."""
        assert self.sender.una == self.receiver.expected == len(self.by_number)
        wanted = [place for number, message in enumerate(self.by_number) if (place := message.place(number))]
        assert sorted(self.placed.items()) == sorted(wanted)
        assert self.receiver.messages == len(self.messages)
        assert self.receiver.completed == sum(message.completes for message in self.messages)
        assert self.controller.used.count(1) == self.kind.booked
