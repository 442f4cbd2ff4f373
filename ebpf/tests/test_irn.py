"""IRN: the core against the model of the paper, and the model against the paper's words."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebpf.models.irn import RNR_WAITS_MS, Answer, Message, Receiver, Sender
from ebpf.tests.depth import deep
from ebpf.tests.streams import (
    ACK,
    ACKNOWLEDGE,
    DATA,
    EVENTS,
    HAS_XACK,
    POST,
    READ_ACKNOWLEDGE,
    RESET,
    RESULT,
    SACK_VALID,
    SETUP,
    STEP,
    WAKE,
    History,
    differences,
    lib,
    run,
)
from wire.codes import BthOpcode, NakCode, QpState

IRN = lib.stream_transport(b"irn")
BATCH = 100
EVERYTHING = {
    "REQUEST_PLACED", "REQUEST_OUT_OF_ORDER", "REQUEST_DUPLICATE", "REQUEST_BEYOND", "REQUEST_EARLY_FAULT",
    "RNR_NAK_SENT", "RESPONSE_PLACED", "RESPONSE_OUT_OF_ORDER", "RESPONSE_DUPLICATE", "RESPONSE_SEQ_ERROR",
    "ACK_RECEIVED", "NAK_RECEIVED", "SACK_RECEIVED", "ACK_STALE", "timeout", "again",
}  # fmt: skip


def histories(seed: int, ideal: bool = False, count: int = BATCH) -> list[History]:
    made = [History(random.Random(seed + number), ideal) for number in range(count)]
    for history in made:
        history.run()
    return made


@settings(max_examples=deep(100), deadline=None)
@given(st.integers(0, 1 << 60))
def test_the_core_is_the_model(seed: int) -> None:
    assert differences(IRN, histories(seed)) == []


def test_the_histories_have_everything_in_them() -> None:
    assert set.union(*(history.seen for history in histories(1, count=2000))) >= EVERYTHING


@pytest.mark.parametrize("transport", ["irn", "ideal"])
@pytest.mark.parametrize("lost", [0, 20])
def test_agent_and_nic_in_two_threads_lose_nothing(transport: str, lost: int) -> None:
    """Each field has one writer, and no lock is shared: whatever they see of each other when, all is delivered."""
    assert lib.stream_race(lib.stream_transport(transport.encode()), 20_000, lost, 10**10) == 20_000


# ---- section 3.1 and 3.2, on the model ----


def sender(window: int = 16, posted: int = 16, low_packets: int = 3) -> Sender:
    return Sender(window, rto_low=100_000, rto_high=320_000, low_packets=low_packets, posted=posted)


def sent(model: Sender, now: int = 1) -> list[tuple[int, bool]]:
    return list(iter(lambda: model.choose(now), None))


def nack(upto: int, named: int) -> Answer:
    return Answer("nack", upto, named, 0, False, False)


def ack(upto: int) -> Answer:
    return Answer("ack", upto, upto - 1, 0, False, False)


def test_bdp_fc_bounds_what_is_in_flight() -> None:
    model = sender(window=5)
    assert sent(model) == [(number, False) for number in range(5)]
    model.ack(ack(2))
    assert sent(model) == [(5, False), (6, False)]
    model.ack(nack(2, 6))  # selective acknowledgements do not open the window
    assert sent(model) == [(2, True), (3, True), (4, True), (5, True)]


def test_recovery_starts_with_the_cumulative_acknowledgement_and_takes_what_lies_before_a_selective_one() -> None:
    model = sender()
    sent(model)
    model.ack(nack(3, 4))
    assert sent(model) == [(3, True)]
    model.ack(nack(3, 8))
    assert sent(model) == [(5, True), (6, True), (7, True)]  # each once; 9 to 15 may be on their way
    model.ack(nack(3, 9))
    assert sent(model) == []
    model.posted = 20
    model.ack(ack(10))
    assert model.recovering and model.recovery_sequence == 15
    # A partial acknowledgement names the next lost packet; when none is left, new packets go.
    assert sent(model) == [(10, True), (16, False), (17, False), (18, False), (19, False)]
    model.ack(ack(16))
    assert sent(model) == [] and not model.recovering


def test_a_retransmission_that_is_lost_waits_for_the_timeout() -> None:
    model = sender(posted=8)
    sent(model)
    model.ack(nack(0, 7))
    assert len(sent(model)) == 7
    model.ack(nack(0, 6))
    assert sent(model) == []
    assert not model.timer(320_000)
    assert model.timer(320_001)
    assert sent(model, 320_001)[0] == (0, True)


@pytest.mark.parametrize(("in_flight", "expected"), [(1, 100_000), (3, 100_000), (4, 320_000)])
def test_a_few_packets_in_flight_time_out_early(in_flight: int, expected: int) -> None:
    model = sender(posted=in_flight)
    sent(model)
    assert model.deadline() == 1 + expected
    assert not model.timer(expected)
    assert model.timer(1 + expected)
    assert model.deadline() == 1 + expected + 2 * expected  # doubled without progress


def test_a_nack_whose_gap_is_closed_asks_for_nothing() -> None:
    """The agent saw neither: a packet came late, not never."""
    model = sender(posted=4)
    sent(model)
    model.ack(nack(0, 1))
    model.ack(ack(2))
    assert sent(model) == []


def test_the_receiver_takes_any_order_but_completes_in_order() -> None:
    model = Receiver(slots=8, mtu=100, receives=[1000, 2000])
    first, second = Message("send", 0, 2, 150, receive=0), Message("send", 2, 1, 7, receive=1)
    early = model.receive(second, 2)
    assert (early.event, early.place, early.news) == ("REQUEST_OUT_OF_ORDER", (2000, 7), False)
    assert early.answer == nack(0, 2)
    assert model.receive(first, 1).place == (1100, 50)
    assert model.completed == [] and model.messages == 0
    last = model.receive(first, 0)
    assert last.answer == Answer("ack", 3, 0, 2, False, False)
    assert model.completed == [0, 1]


def test_rnr_waits_are_ibtas() -> None:
    assert [lib.stream_rnr_ns(code) for code in range(16)] == [round(wait * 1e6) for wait in RNR_WAITS_MS]


# ---- packets that no proper peer sends ----


class Core:
    """One connection; PSNs from 0, five packets of it in flight, and a receiver that expects 0."""

    def __init__(self) -> None:
        self.steps = [
            STEP.pack(1, 0, 0, 0, 0, 0, 0, 0, 0, RESET, 0, 0, 0, 0, 0, 0),
            SETUP.pack(320_000, 100_000, 0, 0, 0, 0, 0, 16, 16, 3, 256, 0, 1),
            STEP.pack(1, 0, 5, 0, 0, 0, 0, 0, 0, POST, 0, 0, 0, 0, 0, 0),
            STEP.pack(1, 0, 0, 0, 0, 0, 0, 8, 0, WAKE, 0, 0, 0, 0, 0, 0),
        ]

    def run(self, step: bytes) -> Any:
        return RESULT.unpack(run(IRN, b"".join([*self.steps, step]))[-RESULT.size :])

    def ack(self, syndrome: int, psn: int, sack: int = 0, flags: int = HAS_XACK, stream: int = 0) -> tuple[int, ...]:
        opcode = (ACKNOWLEDGE, READ_ACKNOWLEDGE)[stream]
        result = self.run(STEP.pack(1, 0, psn, 0, 0, 0, sack, 0, 0, ACK, 0, stream, opcode, flags, 0, syndrome))
        return result[5], result[10], *result[13:18]


@pytest.mark.parametrize(
    ("syndrome", "psn", "sack", "flags", "event"),
    [
        (0x1F, 2, 2, 0, "DROP_BAD_HEADER"),  # no xack_t
        (0x40, 2, 2, HAS_XACK, "DROP_BAD_HEADER"),  # a reserved kind of AETH
        (0x65, 2, 2, HAS_XACK, "DROP_BAD_HEADER"),  # a reserved NAK code
        (0x1F, 5, 5, HAS_XACK, "ACK_STALE"),  # was never sent
        (0x60, 6, 7, HAS_XACK | SACK_VALID, "ACK_STALE"),
        (0x1F, 0xFFFFFF, 5, HAS_XACK | SACK_VALID, "ACK_STALE"),
        (0x1F, 0xFFFFFF, 0xFFFFFF, HAS_XACK | SACK_VALID, "ACK_STALE"),
        (0x61, 5, 0, HAS_XACK, "ACK_STALE"),  # a NAK for what was never sent
        (0x22, 5, 0, HAS_XACK, "ACK_STALE"),
        (0x61, 0xFFFFFF, 0, HAS_XACK, "ACK_STALE"),  # a NAK for what was acknowledged
    ],
)
def test_acknowledgements_that_change_nothing(syndrome: int, psn: int, sack: int, flags: int, event: str) -> None:
    got, doorbell, una, naks, rnr_naks, _, sacks = Core().ack(syndrome, psn, sack, flags)
    assert (got, doorbell, una, naks, rnr_naks, sacks) == (EVENTS[event], 0, 0, 0, 0, 0)


def test_a_nack_for_the_next_packet_acknowledges_all_before_it_and_asks_for_nothing() -> None:
    assert Core().ack(0x60, 5)[:4] == (EVENTS["ACK_RECEIVED"], 1, 5, 0)


def test_a_read_acknowledgement_is_not_about_requests() -> None:
    assert Core().ack(0x1F, 2, 2, stream=1)[0] == EVENTS["ACK_STALE"]


def test_a_nak_ends_the_connection_at_its_psn() -> None:
    code = 0x60 | int(NakCode.REMOTE_ACCESS_ERROR)
    assert Core().ack(code, 3)[:3] == (EVENTS["NAK_RECEIVED"], 1, 3)
    core = Core()
    core.steps.append(STEP.pack(1, 0, 3, 0, 0, 0, 0, 0, 0, ACK, 0, 0, ACKNOWLEDGE, HAS_XACK, 0, code))
    response = int(BthOpcode.RC_ATOMIC_ACKNOWLEDGE)
    assert core.run(STEP.pack(1, 0, 0, 0, 0, 0, 0, 0, 0, DATA, 0, 1, response, 0, 0, 0))[19] == QpState.ERROR


def test_a_request_without_its_extension_is_dropped() -> None:
    write = STEP.pack(1, 1 << 20, 0, 0, 0, 0, 0, 4, 4, DATA, 1, 0, int(BthOpcode.RC_WRITE_ONLY), 0, 0, 0)
    result = Core().run(write)
    assert result[5:7] == (EVENTS["DROP_BAD_HEADER"], 0) and result[13] == 0
