"""MP-RDMA's connections for tests: the core's (mprdma_history.c) and the model's say, step by step, what they do."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from ebpf import build
from ebpf.c_module import CModule
from ebpf.loader import ROOT
from ebpf.models.mprdma import Config, Data, Message, Receiver, Reply, Sender
from wire.codes import NicEvent

HISTORY = CModule(
    name="_mprdma_history",
    folder="ebpf",
    interface=(*build.NATIVE.interface[:-1], "ebpf/tests/mprdma_history.h"),
    sources=("ebpf/tests/mprdma_history.c",),
    includes=("ebpf/tests", "ebpf/core", "wire"),
    libraries=("pthread",),
    prelude=build.NATIVE.prelude,
)
ffi, lib = HISTORY.load(ROOT)

POST, WAIT, SEND, DATA, DATA_TWICE, DATA_LOST, ACK, ACK_TWICE, ACK_LOST = range(lib.MPRDMA_STEPS)
MARKED, NOT_READY, PLACES = lib.MPRDMA_MARKED, lib.MPRDMA_NOT_READY, lib.MPRDMA_PLACES
FLIGHT = lib.MPRDMA_FLIGHT
ROUNDS = 3000
RNR_TIMER, RNR_NS = 2, 20_000  # IBTA vol. 1, table 45
ROOM = 1 << 17
AGAIN, SACKED, ECE, HAS_XACK = 0x1, 0x8, 0x10, 0x40  # nic_packet.flags
ACK_SYNDROME, NACK_SYNDROME, RNR_SYNDROME = 0x1F, 0x60, 0x20
EVENTS = {event.name: int(event) for event in NicEvent}


@dataclass(frozen=True, slots=True)
class History:
    config: Config
    messages: list[Message]
    first_psn: int
    steps: bytes  # step, argument, step, argument, ...


def core_says(history: History) -> list[int]:
    config = history.config
    h = ffi.new("struct mprdma_history *")
    c = h.config
    c.path_mtu, c.slots, c.delta, c.window = 256, config.slots, config.delta, config.window
    c.initial_window, c.probe_per_mille, c.alpha_per_mille = (
        config.initial_window,
        config.probe_per_mille,
        config.alpha_per_mille,
    )
    c.rtt_ns, c.timeout_ns, c.source_port = config.rtt_ns, config.timeout_ns, config.source_port
    c.random_seed, c.rnr_timer = config.random_seed, RNR_TIMER
    c.first_psn[0] = history.first_psn
    packets = ffi.new("wire_u16[]", [message.packets for message in history.messages])
    flags = ffi.new("wire_u8[]", [message.completes + 2 * message.synchronise for message in history.messages])
    h.packets, h.flags, h.messages = packets, flags, len(history.messages)
    steps = ffi.from_buffer("wire_u8[]", history.steps)
    h.steps, h.count, h.rounds = steps, len(history.steps) // 2, ROUNDS
    said = ffi.new("int[]", ROOM)
    h.said, h.room = said, ROOM
    count = lib.mprdma_history_run(h)
    assert count <= ROOM
    return ffi.unpack(said, count)


class Life:
    """The model's connection under the same steps."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.sender = Sender(history.config, history.messages)
        self.receiver = Receiver(history.config, history.messages)
        self.total = sum(message.packets for message in history.messages)
        self.data: list[Data] = []
        self.acks: list[Reply] = []
        self.messages_posted = 0
        self.now = 1
        self.ready_at = 0  # the agent sends nothing before, after an RNR NAK
        self.said: list[int] = []

    def run(self) -> list[int]:
        steps = self.history.steps
        for at in range(0, len(steps) - 1, 2):
            self.step(steps[at], steps[at + 1])
        while self.messages_posted < len(self.history.messages):
            self.post()
        for _ in range(ROUNDS):
            if self.sender.una == self.total:
                break
            self.step(SEND, 255)
            while self.data:
                self.step(DATA, 0)
            while self.acks:
                self.step(ACK, 0)
            self.step(WAIT, 8)
        self.said.append(self.sender.una == self.total)
        return self.said

    def post(self) -> None:
        if self.messages_posted < len(self.history.messages):
            self.sender.posted += self.history.messages[self.messages_posted].packets
            self.messages_posted += 1

    def step(self, what: int, argument: int) -> None:
        self.said.append(-1000 - what)
        if what == POST:
            self.post()
        elif what == WAIT:
            self.now += argument * self.history.config.rtt_ns // 16
        elif what == SEND:
            self.send(1 + argument)
        elif what <= DATA_LOST:
            data = self.pick(self.data, argument, what == DATA_TWICE)
            if data and what != DATA_LOST:
                self.receive_data(data, bool(argument & MARKED), not argument & NOT_READY)
        else:
            reply = self.pick(self.acks, argument, what == ACK_TWICE)
            if reply and what != ACK_LOST:
                self.receive_ack(reply)

    def pick(self, flight: list[Any], argument: int, keep: bool) -> Any:
        if not flight:
            return None
        at = min(argument & PLACES, len(flight) - 1)
        return flight[at] if keep else flight.pop(at)

    def send(self, most: int) -> None:
        sender, say = self.sender, self.said
        if sender.not_ready:
            self.ready_at = self.now + RNR_NS
        if sender.news or (sender.deadline is not None and self.now >= sender.deadline):
            say.append(sender.timer(self.now, RNR_NS))
        for _ in range(most if self.now >= self.ready_at else 0):
            data = sender.poll(self.now)
            if data is None:
                break
            say += (data.number, data.path, AGAIN if data.again else 0)
            if len(self.data) < FLIGHT:
                self.data.append(data)
        say.append(-1 if sender.deadline is None else sender.deadline)
        self.check_credits()

    def check_credits(self) -> None:
        """No credit is lost: what was let go has left or waits to leave."""
        assert self.sender.allowed == self.sender.sent + self.sender.credits_waiting

    def receive_data(self, data: Data, marked: bool = False, ready: bool = True) -> None:
        receiver = self.receiver
        event, reply = receiver.receive(data, marked, ready)
        placed = event in ("REQUEST_PLACED", "REQUEST_OUT_OF_ORDER")
        self.said += (EVENTS[event], placed, receiver.next, receiver.msn, receiver.completed)
        if reply is None:
            return
        acks = reply.kind == "ack"
        flags = HAS_XACK | (SACKED if acks else 0) | (ECE if reply.ece else 0) | (AGAIN if reply.again else 0)
        # The BTH of an ACK names the last packet in order, that of a NAK the first missing one.
        syndrome = {"ack": ACK_SYNDROME, "nack": NACK_SYNDROME, "rnr": RNR_SYNDROME | RNR_TIMER}[reply.kind]
        self.said += (reply.cumulative - acks, syndrome, flags)
        if len(self.acks) < FLIGHT:
            self.acks.append(reply)

    def receive_ack(self, reply: Reply) -> None:
        s = self.sender
        event = s.acknowledge(reply)
        self.check_credits()
        self.said += (EVENTS[event], s.cwnd, s.inflate, s.una, s.allowed, s.ooh, s.retx)
        self.said += (s.recovery is not None, len(s.ring))


@dataclass(frozen=True, slots=True)
class Weather:
    """What the network of some histories does, and what their connections are like; weights are relative."""

    seed: int
    first_psn: int
    initial_window: int
    window: int
    slots: int
    delta: int
    probe_per_mille: int
    reorder: int    # places
    lost: int
    twice: int
    marked: int     # of 8
    not_ready: int  # of 8
    waits: int
    synchronise: bool
    steps: int

    def history(self, number: int) -> History:
        chance = random.Random(self.seed * 1_000_003 + number)
        config = Config(
            initial_window=self.initial_window,
            window=self.window,
            slots=self.slots,
            delta=min(self.delta, self.slots),
            probe_per_mille=self.probe_per_mille,
            alpha_per_mille=chance.choice((500, 1000, 2000)),
            random_seed=chance.getrandbits(32),
        )
        messages = [
            Message(
                chance.choice((1, 1, 2, 5, 13, 40)),
                chance.random() < 0.4,
                self.synchronise and chance.random() < 0.3,
            )
            for _ in range(chance.randint(1, 8))
        ]
        weights = (4, self.waits, 12, 30, self.twice, self.lost, 30, self.twice, self.lost)
        kinds = chance.choices(range(lib.MPRDMA_STEPS), weights, k=self.steps)
        steps = bytearray()
        for kind in kinds:
            steps.append(kind)
            if kind == WAIT:
                steps.append(chance.choice((1, 4, 8, 16, 64)))
            elif kind == SEND:
                steps.append(chance.choice((0, 3, 30)))
            else:
                marked = chance.random() * 8 < self.marked
                not_ready = chance.random() * 8 < self.not_ready
                place = int(chance.random() * (self.reorder + 1))
                steps.append(place | (MARKED if marked else 0) | (NOT_READY if not_ready else 0))
        return History(config, messages, self.first_psn, bytes(steps))
