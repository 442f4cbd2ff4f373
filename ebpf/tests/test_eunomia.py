"""Eunomia against the models of its two ends (ebpf/models/eunomia.py)."""

from __future__ import annotations

import random

from hypothesis import example, given, settings
from hypothesis import strategies as st

from ebpf.models.eunomia import Answer, Sender
from ebpf.tests.depth import deep
from ebpf.tests.eunomia_history import PSNS, RTT, SETUP, STEP, History, Kind, ffi

HISTORIES = 100  # of one example
FIRST_PSN = st.integers(PSNS - 60, PSNS - 1) | st.integers(0, PSNS - 1)
KINDS = st.builds(
    Kind,
    stream=st.sampled_from(("REQUEST", "REQUEST", "RESPONSE")),
    selective=st.booleans(),
    holds=st.booleans(),
    loss=st.sampled_from((0.0, 0.02, 0.2)),
    twice=st.sampled_from((0.0, 0.1)),
    marks=st.sampled_from((0.0, 0.2)),
    jitter=st.sampled_from((0, 500, 3_000, 30_000)),
    window=st.sampled_from((1, 4, 16, 300)),
    booked=st.sampled_from((0, 0, 0, 995, 999, 1024)),
    lazy=st.sampled_from((0.0, 0.3)),
    faults=st.sampled_from((0.0, 0.0, 0.05)),
    messages=st.just(4),
    largest=st.just(1800),
)


def run(kind: Kind, first_psn: int, seed: int) -> History:
    history = History(kind, first_psn, random.Random(seed))
    history.run()
    history.check()
    if not history.receiver.failed:
        history.check_done()
    return history


def test_the_layouts_are_those_of_c() -> None:
    assert ffi.sizeof("struct eunomia_step") == STEP.size
    assert ffi.sizeof("struct eunomia_setup") == SETUP.size


@settings(max_examples=deep(100), deadline=None)
@given(KINDS, FIRST_PSN, st.integers(0, 1 << 40))
@example(Kind(loss=0.2, twice=0.1, jitter=3_000, largest=1800), PSNS - 3, 1)
@example(Kind(loss=0.2, twice=0.1, jitter=3_000, largest=1800, selective=True, holds=True), PSNS - 3, 1)
def test_the_core_is_the_model(kind: Kind, first_psn: int, seed: int) -> None:
    """Same verdicts, places, acknowledgements and transmissions; every byte once; completions in order."""
    for number in range(HISTORIES):
        run(kind, first_psn, seed + number)


@settings(max_examples=deep(12), deadline=None)
@given(FIRST_PSN, st.booleans(), st.sampled_from((0.0, 0.01)), st.sampled_from((0, 1010)), st.integers(0, 1 << 40))
def test_windows_as_large_as_the_cap(first_psn: int, selective: bool, loss: float, booked: int, seed: int) -> None:
    run(
        Kind(selective=selective, loss=loss, jitter=30_000, window=300, booked=booked, largest=150_000), first_psn, seed
    )


@settings(max_examples=deep(40), deadline=None)
@given(
    FIRST_PSN,
    st.booleans(),
    st.sampled_from(("REQUEST", "RESPONSE")),
    st.sampled_from((1_000, 8_000)),
    st.integers(1, 128),
    st.integers(0, 1 << 40),
)
def test_reordering_alone_sends_nothing_again(
    first_psn: int, selective: bool, stream: str, jitter: int, window: int, seed: int
) -> None:
    """Section 3.2.2: no SACK starts recovery. With go-back-N alone each of these would."""
    history = run(Kind(stream, selective, jitter=jitter, window=window, largest=20_000), first_psn, seed)
    assert history.sender.retransmissions == 0
    assert history.timeouts == 0
    assert "NAK_RECEIVED" not in history.seen


def test_the_histories_meet_everything() -> None:
    """What the tests above claim to cover does come up in them."""
    seen: set[str] = set()
    timeouts = 0
    for seed in range(40):
        chance = random.Random(seed)
        stream = "RESPONSE" if seed % 4 == 3 else "REQUEST"
        kind = Kind(
            stream, seed % 2 == 1, True, chance.choice((0, 0.1)), 0.1, 0.1, 5_000, 64, chance.choice((0, 1000)), 0.5,
            0.05, 6, 5_000,
        )  # fmt: skip
        history = run(kind, 0, seed)
        seen |= history.seen
        timeouts += history.timeouts
    for seed in range(30):
        seen |= run(Kind(jitter=60_000, window=300, largest=200_000, messages=2), 0, seed).seen
    both = {
        f"{stream}_{what}" for stream in ("REQUEST", "RESPONSE") for what in ("PLACED", "OUT_OF_ORDER", "DUPLICATE")
    }
    assert seen >= both | {
        *(
            "REQUEST_BEYOND",
            "REQUEST_NO_BITMAP",
            "REQUEST_EARLY_FAULT",
            "RESPONSE_SEQ_ERROR",
            "RNR_NAK_SENT",
            "NAK_RKEY",
        ),
        *("ACK_RECEIVED", "ACK_STALE", "NAK_RECEIVED", "SACK_RECEIVED"),
    }
    assert timeouts


def sender(selective: bool) -> Sender:
    """The model with ten packets in flight; that the core does the same is what the histories show."""
    made = Sender(64, 100_000, 100_000, 0, RTT, RTT, selective, posted=10)
    while made.next(1):
        pass
    assert made.sent == 10
    return made


def again(made: Sender, now: int) -> list[int]:
    sent = []
    while found := made.next(now):
        assert found[1]
        sent.append(found[0])
    return sent


def test_a_nack_goes_back_and_selective_repeat_leaves_out_what_was_sacked() -> None:
    for selective, expected in ((False, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]), (True, [0, 1, 2, 4, 6, 7, 8, 9])):
        made = sender(selective)
        for number in (3, 5):
            assert made.acknowledge(Answer("ack", 0, number, True, False, False)) == "SACK_RECEIVED"
            assert again(made, 10_000) == []
        assert made.acknowledge(Answer("nack", 0, 9, False, False, False)) == "NAK_RECEIVED"
        assert again(made, 50_000) == expected
        made.acknowledge(Answer("nack", 0, 8, False, False, False))
        assert again(made, 50_000 + RTT - 1) == []
        made.acknowledge(Answer("nack", 0, 8, False, False, False))
        assert again(made, 50_000 + RTT) == expected


def test_silence_is_loss() -> None:
    """Section 3.2.3; an acknowledgement of any kind is no silence."""
    made = sender(False)
    assert not made.timer(100_000)
    made.acknowledge(Answer("ack", 0, 3, True, False, False))
    assert not made.timer(150_000)
    assert not made.timer(249_999)
    assert made.timer(250_000)
    assert again(made, 250_000) == list(range(10))
