"""The ideal receiver: IRN's without NACKs, against the same model told so."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from ebpf.models.irn import Answer, Message, Receiver, Sender
from ebpf.tests.depth import deep
from ebpf.tests.streams import History, differences, lib

IDEAL = lib.stream_transport(b"ideal")


@settings(max_examples=deep(100), deadline=None)
@given(st.integers(0, 1 << 60))
def test_the_core_is_the_model(seed: int) -> None:
    made = [History(random.Random(seed + number), ideal=True) for number in range(100)]
    for history in made:
        history.run()
    assert differences(IDEAL, made) == []


def test_out_of_order_is_not_loss() -> None:
    """Whatever order 256 packets come in, nothing is complained about, and nothing is sent twice."""
    chance = random.Random(5)
    sender = Sender(window=256, rto_low=100, rto_high=100, low_packets=0, all_lost=True, posted=256)
    receiver = Receiver(slots=256, mtu=100, nacks=False)
    message = Message("write", 0, 256, 25_600)
    while sender.choose(1):
        pass
    for number in chance.sample(range(256), 256):
        taken = receiver.receive(message, number)
        assert taken.answer and taken.answer.kind == "ack"
        sender.ack(taken.answer)
        assert sender.choose(2) is None
    assert receiver.messages == 1 and sender.una == 256 and sender.retransmissions == 0


def test_a_timeout_takes_all_that_is_not_known_to_have_come_for_lost() -> None:
    sender = Sender(window=256, rto_low=100, rto_high=100, low_packets=0, all_lost=True, posted=6)
    while sender.choose(1):
        pass
    sender.ack(Answer("ack", 0, 2, 0, False, False))
    assert sender.timer(101)
    assert list(iter(lambda: sender.choose(101), None)) == [(number, True) for number in (0, 1, 3, 4, 5)]
