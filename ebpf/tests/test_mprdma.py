"""MP-RDMA's core against the model of the paper, over generated lives of connections.

Both take the same steps (messages are posted; packets leave, arrive, are lost, doubled, marked or overtaken; time
passes) and must say the same after each: packets with their paths, verdicts, acknowledgements, window, credits,
deadlines.  The model itself asserts that no credit is lost.  At the end the network is faultless, and all must arrive.
"""

from __future__ import annotations

import os
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebpf.c_module import SANITIZE_VARIABLE
from ebpf.models.mprdma import ONE, RING, Config, Message
from ebpf.tests import mprdma_history as h
from ebpf.tests.depth import deep
from ebpf.tests.mprdma_history import History, Life, Weather

PSNS = 1 << 24
FIRST_PSN = st.integers(PSNS - 120, PSNS - 1) | st.integers(0, PSNS - 1)
BATCH = 40
BATCHES = 10 if SANITIZE_VARIABLE in os.environ else deep(250)

WEATHERS = st.builds(
    Weather,
    seed=st.integers(0, 1 << 32),
    first_psn=FIRST_PSN,
    initial_window=st.sampled_from([1, 2, 4, 16, 32, 150]),
    window=st.sampled_from([1, 2, 8, 32, 200]),
    slots=st.sampled_from([1, 4, 8, 16, 64, 256]),
    delta=st.sampled_from([1, 2, 8, 32]),
    probe_per_mille=st.sampled_from([0, 10, 1000]),
    reorder=st.sampled_from([0, 0, 3, 20, 100]),
    lost=st.sampled_from([0, 1, 5]),
    twice=st.sampled_from([0, 1]),
    marked=st.sampled_from([0, 1, 4]),
    not_ready=st.sampled_from([0, 0, 2]),
    waits=st.sampled_from([1, 4]),
    synchronise=st.booleans(),
    steps=st.sampled_from([25, 80]),
)


def check(history: History) -> Life:
    life = Life(history)
    said = life.run()
    assert h.core_says(history) == said
    assert said[-1] == 1, "not all was delivered"
    assert sorted(life.receiver.placed) == list(range(life.total)), "each packet takes effect once"
    assert life.receiver.msn == len(history.messages)
    assert life.receiver.completed == sum(message.completes for message in history.messages)
    return life


@settings(max_examples=BATCHES, deadline=None)
@given(WEATHERS)
def test_the_core_is_the_model(weather: Weather) -> None:
    for number in range(BATCH):
        check(weather.history(number))


@settings(max_examples=deep(60), deadline=None)
@given(
    FIRST_PSN,
    st.sampled_from([(2, 4, 1), (16, 8, 2), (40, 64, 32)]),
    st.lists(st.tuples(st.integers(1, 30), st.booleans(), st.booleans()), min_size=1, max_size=5),
    st.lists(st.tuples(st.integers(0, 8), st.integers(0, 255)), max_size=60),
)
def test_the_core_is_the_model_step_by_step(
    first_psn: int,
    shape: tuple[int, int, int],
    messages: list[tuple[int, bool, bool]],
    steps: list[tuple[int, int]],
) -> None:
    """As above, with steps that shrink to the few that matter."""
    initial_window, slots, delta = shape
    config = Config(initial_window=initial_window, window=64, slots=slots, delta=delta, probe_per_mille=100)
    flat = bytes(b for step in steps for b in step)
    check(History(config, [Message(*message) for message in messages], first_psn, flat))


CONFIG = Config(initial_window=8, window=64, slots=64, delta=32, probe_per_mille=0)


def live(config: Config, messages: list[Message], *steps: tuple[int, int]) -> Life:
    """The model after these steps and before the network is faultless; the core is held against it to the end."""
    history = History(config, messages, PSNS - 5, bytes(b for step in steps for b in step))
    check(history)
    life = Life(history)
    for step in steps:
        life.step(*step)
    return life


def times(count: int, *steps: tuple[int, int]) -> list[tuple[int, int]]:
    return list(steps) * count


ALL = 255
START = ((h.POST, 0), (h.SEND, ALL))


def test_the_initial_window_is_spread_over_random_paths() -> None:
    life = live(replace(CONFIG, initial_window=30), [Message(100)], *START)
    assert [data.number for data in life.data] == list(range(30))
    assert len({data.path for data in life.data}) > 25
    assert all(data.path >= 0xC000 for data in life.data)


def test_an_acknowledgement_clocks_out_one_packet_on_its_path() -> None:
    life = live(CONFIG, [Message(100)], *START, (h.DATA, 0), (h.ACK, 0), (h.SEND, ALL))
    assert [data.number for data in life.data] == list(range(1, 9))
    spread = live(CONFIG, [Message(100)], *START).data
    assert life.data[-1].path == spread[0].path
    assert life.sender.cwnd == 8 * ONE + ONE // 8


def test_a_window_that_has_grown_by_one_clocks_out_two_and_never_more() -> None:
    life = live(CONFIG, [Message(200)], *START, *times(8, (h.DATA, 0), (h.ACK, 0), (h.SEND, ALL)))
    # Eight acknowledgements have added 1/cwnd each: not quite one packet.  The ninth brings it over.
    assert len(life.data) == 8
    for step in ((h.DATA, 0), (h.ACK, 0), (h.SEND, ALL)):
        life.step(*step)
    assert len(life.data) == 9
    assert life.data[-1].path == life.data[-2].path


def test_marks_halve_a_packet_off_the_window() -> None:
    life = live(CONFIG, [Message(100)], *START, *times(2, (h.DATA, h.MARKED), (h.ACK, 0)), (h.SEND, ALL))
    assert life.sender.cwnd == 7 * ONE
    # The first mark leaves 7.5, so nothing may go; the second leaves 7, of which six are in flight.
    assert len(life.data) == 7


def test_a_packet_beyond_the_bitmap_is_dropped_and_its_nack_starts_recovery() -> None:
    config = replace(CONFIG, initial_window=6, slots=4, delta=4)
    steps = [*START, (h.DATA_LOST, 0), *times(3, (h.DATA, 0), (h.ACK, 0)), (h.SEND, 0), (h.DATA, 0)]
    life = live(config, [Message(60)], *steps)
    assert life.acks[-1].kind == "nack" and life.acks[-1].cumulative == 0
    sent = life.sender.sent
    life.step(h.ACK, 0)
    assert life.sender.recovery == sent
    assert life.sender.retx == 1
    assert [credit.number for credit in life.sender.ring][-1] == 0
    life.step(h.SEND, ALL)
    assert life.data[-1].again and life.data[-1].number == 0


def test_in_recovery_each_acknowledgement_clocks_out_one_retransmission() -> None:
    config = replace(CONFIG, initial_window=6, slots=4, delta=4)
    life = live(config, [Message(60)], *START, (h.DATA_LOST, 0), *times(5, (h.DATA, 0)), *times(4, (h.ACK, 0)))
    assert life.sender.recovery is not None
    before = len(life.sender.ring)
    life.step(h.ACK, 0)
    assert len(life.sender.ring) == before + 1
    assert life.sender.ring[-1].number is not None


def test_a_slow_path_is_not_clocked_and_costs_a_packet_of_window() -> None:
    config = replace(CONFIG, initial_window=20, delta=4)
    steps = [*START, *times(10, (h.DATA, 1), (h.ACK, 0)), (h.SEND, ALL), (h.DATA, 0)]
    life = live(config, [Message(100)], *steps)
    cwnd, allowed = life.sender.cwnd, life.sender.allowed
    assert life.acks[0].sack == 0 and life.sender.ooh == 10
    life.step(h.ACK, 0)
    assert life.sender.cwnd == cwnd + (ONE * ONE + cwnd // 2) // cwnd - ONE
    assert life.sender.allowed == allowed


def test_a_retransmission_is_never_a_slow_path() -> None:
    """The same, but the late packet is marked ReTx: it clocks out a packet."""
    config = replace(CONFIG, initial_window=20, delta=4)
    life = live(config, [Message(100)], *START, *times(10, (h.DATA, 1), (h.ACK, 0)))
    life.data[0] = replace(life.data[0], again=True)
    life.step(h.DATA, 0)
    before = life.sender.allowed
    life.step(h.ACK, 0)
    assert life.sender.allowed > before


def test_credits_that_find_the_ring_full_stay_in_the_window() -> None:
    config = replace(CONFIG, initial_window=100, window=200, slots=256, delta=200)
    steps = [*START, *times(100, (h.DATA, 0), (h.ACK, 0))]
    life = live(config, [Message(255), Message(255)], *steps)
    assert len(life.sender.ring) == RING
    assert life.sender.awnd > 30
    life.step(h.SEND, ALL)
    assert life.sender.allowed == 100 + sum(1 for data in life.data)
    # The burst timer lets the rest go, on random paths.
    clocked = len(life.data)
    life.step(h.WAIT, 8)
    life.step(h.SEND, ALL)
    rest = life.data[clocked:]
    assert len(rest) > 30 and len({data.path for data in rest}) > 25
    assert life.sender.awnd == 0


def test_without_new_data_the_window_shrinks() -> None:
    life = live(CONFIG, [Message(8)], *START, *times(4, (h.DATA, 0), (h.ACK, 0)))
    assert life.sender.cwnd < 5 * ONE


def test_without_new_data_an_overtaken_packet_is_sent_early() -> None:
    life = live(CONFIG, [Message(8)], *START, (h.DATA_LOST, 0), (h.DATA, 0), (h.ACK, 0), (h.SEND, ALL))
    assert life.data[-1].again and life.data[-1].number == 0
    assert life.sender.recovery is None


def test_the_last_packet_is_sent_early_by_the_burst_timer() -> None:
    life = live(CONFIG, [Message(3)], *START, (h.DATA_LOST, 2), *times(2, (h.DATA, 0), (h.ACK, 0)), (h.SEND, ALL))
    assert not life.data
    life.step(h.WAIT, 8)
    life.step(h.SEND, ALL)
    assert [(data.number, data.again) for data in life.data] == [(2, True)]


def test_a_timeout_sends_the_oldest_packets_again() -> None:
    config = replace(CONFIG, initial_window=4)
    life = live(config, [Message(9)], *START, *times(4, (h.DATA_LOST, 0)), (h.WAIT, 80), (h.SEND, ALL))
    assert [(data.number, data.again) for data in life.data] == [(number, True) for number in range(4)]
    assert life.sender.backoff == 1


def test_any_number_of_timeouts_starts_recovery_with_the_next_acknowledgement() -> None:
    """The NIC learns of timeouts by a counter of three bits."""
    config = replace(CONFIG, initial_window=2)
    steps = [*START, *times(2, (h.DATA_LOST, 0))]
    for doubling in range(8):
        steps += [*times(1 << min(doubling, 6), (h.WAIT, 80)), (h.SEND, ALL), *times(1, (h.DATA_LOST, 1))]
    life = live(config, [Message(9)], *steps, (h.DATA, 0), (h.ACK, 0))
    assert life.sender.backoff == 6
    assert life.sender.recovery == 2


@pytest.mark.parametrize("sixteenths, window", [(32, 1), (64, 8)])
def test_the_window_restarts_after_three_round_trips(sixteenths: int, window: int) -> None:
    steps = [*START, *times(8, (h.DATA, 0), (h.ACK, 0)), (h.WAIT, sixteenths), (h.POST, 0), (h.SEND, ALL)]
    life = live(CONFIG, [Message(8), Message(50)], *steps)
    assert len(life.data) == window


@pytest.mark.parametrize("per_mille, least, most", [(0, 0, 0), (100, 2, 20), (1000, 70, 130)])
def test_new_paths_are_probed_with_probability_p_a_round_trip(per_mille: int, least: int, most: int) -> None:
    # A window of one packet that is held there by marks: a packet is a round trip.
    config = replace(CONFIG, initial_window=1, probe_per_mille=per_mille)
    life = live(config, [Message(102)], *START)
    paths = []
    for _ in range(100):
        for step in ((h.DATA, h.MARKED), (h.ACK, 0), (h.SEND, ALL)):
            life.step(*step)
        paths.append(life.data[-1].path)
    assert least <= len(set(paths)) - 1 <= most


def test_probes_replace_different_paths() -> None:
    config = replace(CONFIG, probe_per_mille=1000)
    life = live(config, [Message(255)], *START)
    before = {data.path for data in life.data}
    for _ in range(100):
        for step in ((h.DATA, 0), (h.ACK, 0), (h.SEND, ALL)):
            life.step(*step)
    assert len({data.path for data in life.data} - before) >= 4


def test_a_synchronise_message_waits_for_delta_packets_time() -> None:
    messages = [Message(4), Message(2, synchronise=True)]
    config = replace(CONFIG, delta=4)
    life = live(config, messages, (h.POST, 0), (h.POST, 0), (h.SEND, ALL))
    assert [data.number for data in life.data] == [0, 1, 2, 3]
    # Four packets at eight a round trip: half of one.
    assert life.sender.deadline == 1 + config.rtt_ns // 2
    life.step(h.WAIT, 8)
    life.step(h.SEND, ALL)
    assert [data.number for data in life.data[4:]] == [4, 5]


def test_a_synchronise_message_out_of_turn_is_refused() -> None:
    messages = [Message(2), Message(3, synchronise=True), Message(1)]
    config = replace(CONFIG, delta=1)
    life = live(config, messages, *times(3, (h.POST, 0)), (h.SEND, ALL), (h.WAIT, 4), (h.SEND, ALL))
    assert len(life.data) == 6
    for index in (2, 5, 0, 1):
        life.receive_data(life.data[index])
    assert [reply.kind for reply in life.acks] == ["nack", "ack", "ack", "ack"]
    assert life.receiver.placed == [5, 0, 1]
    # Once all before the message is there, its own packets may overtake each other.
    life.receive_data(life.data[4])
    assert life.receiver.placed[-1] == 4


def test_the_size_of_a_connection_is_the_papers() -> None:
    assert h.lib.mprdma_bytes() <= 66
