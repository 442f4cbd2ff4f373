"""Go-back-N against models of it that count packets with unbounded integers and know nothing of PSNs.

The network loses, repeats and reorders; PSNs start near the wrap.  First whole connections, without headers; then
WRITEs as packets.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from ebpf.tests import packets as p
from ebpf.tests.depth import deep
from ebpf.tests.gbn_history import History, differences
from ebpf.tests.rigs import DROP, MTU, QPN, REMOTE_QPN, RKEY, TX, VA, Bench, NativeRig, lib

PSNS = 1 << 24
BATCH = 100
EVERYTHING = {
    "REQUEST_PLACED", "REQUEST_DUPLICATE", "REQUEST_SEQ_ERROR", "RNR_NAK_SENT", "RESPONSE_PLACED", "RESPONSE_DUPLICATE",
    "RESPONSE_SEQ_ERROR", "ACK_RECEIVED", "NAK_RECEIVED", "ACK_STALE", "held ack", "held nak", "held rnr", "timeout",
    "again",
}  # fmt: skip


def histories(seed: int, count: int = BATCH) -> list[History]:
    made = [History(random.Random(seed + number)) for number in range(count)]
    for history in made:
        history.run()
    return made


@settings(max_examples=deep(100), deadline=None)
@given(st.integers(0, 1 << 60))
def test_the_core_is_the_model(seed: int) -> None:
    """All verbs, both ends, both halves: NIC and agent."""
    assert differences(histories(seed)) == []


def test_the_histories_have_everything_in_them() -> None:
    assert set.union(*(history.seen for history in histories(1, count=2000))) >= EVERYTHING


@dataclass(frozen=True)
class Packet:
    """What goes over the model's network: the n-th packet of a connection."""

    number: int
    opcode: int
    va: int
    dma_length: int
    body: bytes
    ask: bool
    ends_message: bool


def packetize(messages: list[bytes], ask_every: int) -> list[Packet]:
    made: list[Packet] = []
    va = VA
    for message in messages:
        pieces = [message[at : at + MTU] for at in range(0, len(message), MTU)] or [b""]
        for index, piece in enumerate(pieces):
            first, last = index == 0, index == len(pieces) - 1
            opcode = {
                (True, True): p.WRITE_ONLY,
                (True, False): p.WRITE_FIRST,
                (False, False): p.WRITE_MIDDLE,
                (False, True): p.WRITE_LAST,
            }[first, last]
            ask = last or len(made) % ask_every == 0
            made.append(Packet(len(made), opcode, va, len(message), piece, ask, last))
        va += len(message)
    return made


def to_frame(packet: Packet, first_psn: int) -> bytes:
    starts = packet.opcode in (p.WRITE_FIRST, p.WRITE_ONLY)
    return p.frame(
        packet.opcode,
        (first_psn + packet.number) % PSNS,
        QPN,
        packet.body,
        p.reth(packet.va, RKEY, packet.dma_length) if starts else b"",
        ackreq=int(packet.ask),
    )


class ModelResponder:
    """Answers are ("ack", n): all before n have come; ("nak", n): send again from n; or None."""

    def __init__(self) -> None:
        self.expected = 0
        self.messages = 0
        self.complained = False
        self.memory = bytearray(3 * 4096)
        self.placed = 0

    def receive(self, packet: Packet, offset: int) -> tuple[str, tuple[str, int] | None]:
        if packet.number < self.expected:
            return "REQUEST_DUPLICATE", ("ack", self.expected)
        if packet.number > self.expected:
            answer = None if self.complained else ("nak", self.expected)
            self.complained = True
            return "REQUEST_SEQ_ERROR", answer
        self.complained = False
        self.memory[offset : offset + len(packet.body)] = packet.body
        self.placed += len(packet.body)
        self.expected += 1
        self.messages += packet.ends_message
        return "REQUEST_PLACED", ("ack", self.expected) if packet.ask else None


def to_reply(answer: tuple[str, int], messages: int, first_psn: int) -> bytes:
    kind, number = answer
    if kind == "ack":
        return p.reply(p.ACK, (first_psn + number - 1) % PSNS, messages, REMOTE_QPN)
    return p.reply(p.NAK_SEQUENCE, (first_psn + number) % PSNS, messages, REMOTE_QPN)


MESSAGES = st.lists(st.integers(0, 5 * MTU), min_size=1, max_size=8).filter(lambda sizes: sum(sizes) <= 3 * 4096)
FIRST_PSN = st.integers(PSNS - 20, PSNS - 1) | st.integers(0, PSNS - 1)
# Where the next packet that arrives lies, seen from the one expected: mostly 0.
ARRIVALS = st.lists(st.integers(-4, 4) | st.just(0), min_size=1, max_size=60)


def contents(sizes: list[int]) -> list[bytes]:
    source = random.Random(len(sizes))
    return [source.randbytes(size) for size in sizes]


def offset_of(packets: list[Packet], number: int) -> int:
    return sum(len(packet.body) for packet in packets[:number])


@settings(max_examples=40, deadline=None)
@given(MESSAGES, FIRST_PSN, ARRIVALS, st.integers(1, 5))
def test_the_responder_is_the_model(sizes: list[int], first_psn: int, arrivals: list[int], ask_every: int) -> None:
    packets = packetize(contents(sizes), ask_every)
    bench = Bench(NativeRig())
    bench.reset(epsn=first_psn)
    model = ModelResponder()
    for ahead in arrivals:
        number = model.expected + ahead
        if not 0 <= number < len(packets):
            continue
        before = bench.events()
        event, answer = model.receive(packets[number], offset_of(packets, number))
        action, reply = bench.receive(to_frame(packets[number], first_psn))
        assert bench.events() == {**before, event: before.get(event, 0) + 1}
        assert action == (TX if answer else DROP)
        if answer:
            assert reply == to_reply(answer, model.messages, first_psn)
    assert bench.data == model.memory
    assert bench.rig.counters[1].bytes_placed == model.placed
    assert bench.canaries_intact()


class ModelRequester:
    """What the sender knows: nothing is outstanding outside una <= n < sent."""

    def __init__(self) -> None:
        self.una = 0
        self.sent = 0
        self.naks = 0

    def receive(self, kind: str, number: int) -> str:
        if kind == "ack" and self.una < number <= self.sent:
            self.una = number
            return "ACK_RECEIVED"
        if kind == "nak" and self.una <= number < self.sent:
            self.una = number
            self.naks += 1
            return "NAK_RECEIVED"
        return "ACK_STALE"


@settings(max_examples=60, deadline=None)
@given(
    FIRST_PSN,
    st.lists(
        st.tuples(st.just("send"), st.integers(1, 10))
        | st.tuples(st.sampled_from(["ack", "nak"]), st.integers(-3, 12)),
        max_size=40,
    ),
)
def test_the_requester_is_the_model(first_psn: int, steps: list[tuple[str, int]]) -> None:
    bench = Bench(NativeRig())
    bench.reset(snd_una=first_psn, snd_nxt=first_psn)
    model = ModelRequester()
    for kind, count in steps:
        if kind == "send":
            model.sent += count
            bench.emitter.snd_nxt = (first_psn + model.sent) % PSNS
            continue
        number = model.una + count
        before = bench.events()
        psn, syndrome = (number - 1, p.ACK) if kind == "ack" else (number, p.NAK_SEQUENCE)
        event = model.receive(kind, number)
        bench.receive(p.frame(p.ACKNOWLEDGE, (first_psn + psn) % PSNS, QPN, extension=p.aeth(syndrome)))
        assert bench.events() == {**before, event: before.get(event, 0) + 1}
        assert bench.sender.snd_una == (first_psn + model.una) % PSNS
        assert bench.sender.naks == model.naks


@settings(max_examples=15, deadline=None)
@given(MESSAGES, FIRST_PSN, st.floats(0, 0.4), st.integers(0, 3), st.integers(1, 12), st.randoms(use_true_random=False))
def test_every_byte_arrives_once(
    sizes: list[int], first_psn: int, loss: float, reorder: int, window: int, chance: random.Random
) -> None:
    """A sender that only looks at snd_una and the NAK count gets everything across, whatever the network does."""
    messages = contents(sizes)
    packets = packetize(messages, ask_every=4)
    receiver, sender = Bench(NativeRig()), Bench(NativeRig())
    receiver.reset(epsn=first_psn)
    sender.reset(snd_una=first_psn, snd_nxt=first_psn)
    una = next_one = sent = naks = 0
    wire: list[bytes] = []
    for _ in range(20_000):
        if una == len(packets):
            break
        while next_one < min(len(packets), una + window):
            wire.append(to_frame(packets[next_one], first_psn))
            next_one += 1
            sent = max(sent, next_one)
            sender.emitter.snd_nxt = (first_psn + sent) % PSNS
        if not wire:  # a timeout
            next_one = una
            continue
        frame = wire.pop(chance.randint(0, min(reorder, len(wire) - 1)))
        if chance.random() < loss:
            continue
        action, reply = receiver.receive(frame)
        if action != TX or chance.random() < loss:
            continue
        psn, syndrome = int.from_bytes(reply[51:54], "big"), reply[54]
        sender.receive(p.frame(p.ACKNOWLEDGE, psn, QPN, extension=p.aeth(syndrome)))
        una += lib.nic_native_psn_distance(sender.sender.snd_una, (first_psn + una) % PSNS)
        next_one = max(next_one, una)
        if sender.sender.naks != naks:
            naks = sender.sender.naks
            next_one = una
    assert una == len(packets)
    sent_bytes = b"".join(messages)
    assert bytes(receiver.data[: len(sent_bytes)]) == sent_bytes
    assert receiver.events()["REQUEST_PLACED"] == len(packets)
    assert receiver.rig.counters[1].bytes_placed == len(sent_bytes)
    assert receiver.receiver.msn == len(messages)
    assert receiver.canaries_intact()
