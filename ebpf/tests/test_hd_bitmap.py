"""The hybrid-dynamic bitmap against a set of packet numbers (ebpf/models/eunomia_bitmap.py).

An example of hypothesis is a kind of network; each makes many histories, which run in C in one call.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ebpf import hd_native
from ebpf.hd_native import ABANDON, LAST, RECEIVED, HdHost, Step
from ebpf.models.eunomia_bitmap import BLOCK, CAP_ROWS, Connection, Host, Outcome, Slot
from ebpf.models.eunomia_memory import Controller
from ebpf.tests.depth import deep

PSNS = 1 << 24
CONNECTIONS = 3
HISTORIES = 130  # of one example
NO_LAST = 0xFFFFFFFF
NO_SIDE = 0xFFF
FIRST_PSN = st.integers(PSNS - 300, PSNS - 1) | st.integers(0, PSNS - 1)
Result = tuple[int, int, int, int]


@dataclass(frozen=True)
class Traffic:
    """What comes: `reach`: how far ahead of its turn a packet may be; the others are probabilities."""

    reach: int
    early: float
    ends: float
    last: float
    booked: int  # blocks of the controller that others hold
    ends_of_connection: float = 0.0


TRAFFIC = st.builds(
    Traffic,
    reach=st.sampled_from((3, 20, 60, 260, 400)),
    early=st.sampled_from((0.1, 0.5, 0.9)),
    ends=st.sampled_from((0.0, 0.05, 1.0)),
    last=st.sampled_from((0.0, 0.02, 0.3)),
    booked=st.sampled_from((0, 0, 0, 970, 998, 1020)),
    ends_of_connection=st.sampled_from((0.0, 0.05)),
)


class History:
    """Steps for the core and what the model says of each."""

    def __init__(self, first_psn: int, booked: int) -> None:
        self.first_psn = first_psn
        self.controller = Controller()
        for _ in range(booked):
            self.controller.from_head()
        self.host = Host(self.controller)
        self.connections = [Connection(self.host) for _ in range(CONNECTIONS)]
        self.steps: list[Step] = []
        self.expected: list[Result] = []

    def receive(self, index: int, number: int, slot: Slot, last: bool) -> Outcome:
        outcome, moved = self.connections[index].receive(number, slot, last)
        self.steps.append((index, (self.first_psn + number) % PSNS, slot | (LAST if last else 0)))
        self.expected.append((outcome, moved.packets, moved.tails, moved.completions))
        return outcome

    def end(self, index: int) -> None:
        connection = self.connections[index]
        connection.abandon()
        self.connections[index] = Connection(self.host, connection.expected)
        self.steps.append((index, (self.first_psn + connection.expected) % PSNS, ABANDON))
        self.expected.append((Outcome.PASSED, 0, 0, 0))

    def generate(self, traffic: Traffic, chance: random.Random) -> None:
        for _ in range(chance.randint(1, 70)):
            index = chance.randrange(CONNECTIONS) if chance.random() < 0.2 else 0
            if chance.random() < traffic.ends_of_connection:
                self.end(index)
                continue
            ahead = 0
            if chance.random() < traffic.early:
                ahead = chance.randint(-3, traffic.reach)
            slot = chance.choice((Slot.TAIL, Slot.TAIL_COMPLETION)) if chance.random() < traffic.ends else Slot.RECEIVED
            number = self.connections[index].expected + ahead
            self.receive(index, max(number, 0), slot, chance.random() < traffic.last)

    def check(self, host: HdHost, booked: int) -> None:
        host.reset(self.first_psn, booked)
        assert host.run(self.steps) == self.expected
        assert host.used_blocks() == self.controller.used
        for index, connection in enumerate(self.connections):
            assert host.expected(index) == (self.first_psn + connection.expected) % PSNS
            self._check_states(host, index)

    def _check_states(self, host: HdHost, index: int) -> None:
        """Table 7's variables."""
        view, bitmap = host.view(index), self.connections[index].bitmap
        assert bool(view.bitmap) == (bitmap is not None)
        if bitmap is None:
            return
        assert view.head == (self.first_psn + bitmap.head) % PSNS
        assert view.tail == (self.first_psn + bitmap.tail) % PSNS
        assert view.last_seq == (NO_LAST if bitmap.last is None else (self.first_psn + bitmap.last) % PSNS)
        assert (view.head_bm_id, view.head_bm_index) == divmod(bitmap.head_place, BLOCK)
        assert (view.circular_bm_size, view.dynamic_size) == (bitmap.circular, len(bitmap.rows))
        assert view.metadata == bitmap.metadata
        assert view.side == ([*bitmap.side_rows.values()] or [NO_SIDE])[-1]
        assert list(view.rows[0 : view.dynamic_size]) == bitmap.rows


@settings(max_examples=deep(80), deadline=None)
@given(TRAFFIC, FIRST_PSN, st.integers(0, 1 << 32))
@example(Traffic(260, 0.9, 1.0, 0.0, 0), PSNS - 100, 1)
def test_it_is_the_set(traffic: Traffic, first_psn: int, seed: int) -> None:
    chance = random.Random(seed)
    host = HdHost(CONNECTIONS)
    for _ in range(HISTORIES):
        history = History(first_psn, traffic.booked)
        history.generate(traffic, chance)
        history.check(host, traffic.booked)


@settings(max_examples=deep(20), deadline=None)
@given(FIRST_PSN, st.integers(1, 256), st.integers(0, 1 << 32))
def test_a_window_in_any_order_comes_out_in_order(first_psn: int, window: int, seed: int) -> None:
    """Whatever the order within a window of the cap, everything comes, once, and nothing stays in the controller."""
    chance = random.Random(seed)
    history = History(first_psn, 0)
    count = 600
    waiting = list(range(window))
    slots = [chance.choice(list(Slot)) for _ in range(count)]
    while waiting:
        number = waiting.pop(chance.randrange(len(waiting)))
        before = history.connections[0].expected
        outcome = history.receive(0, number, slots[number], number == count - 1)
        if outcome == Outcome.CAPPED:  # what the head leaves behind is not used again before the absorption
            waiting.append(number)
        elif outcome == Outcome.ADVANCED:
            waiting += range(before + window, min(history.connections[0].expected + window, count))
    host = HdHost(CONNECTIONS)
    history.check(host, 0)
    assert history.connections[0].expected == count
    assert sum(result[2] for result in history.expected) == sum(slot >= Slot.TAIL for slot in slots)
    assert sum(result[3] for result in history.expected) == sum(slot == Slot.TAIL_COMPLETION for slot in slots)
    assert host.memory().connections == 0 and not any(host.used_blocks())


@given(FIRST_PSN, st.integers(0, 40))
def test_a_full_bitmap_empties_at_once(first_psn: int, shift: int) -> None:
    """With a linear portion, and then as a circle that begins within a row."""
    history = History(first_psn, 0)
    for _ in range(2):
        head = history.connections[0].expected
        for number in (*range(head + 1, head + BLOCK * CAP_ROWS), head):
            history.receive(0, number, Slot.TAIL, False)
        for number in range(head + BLOCK * CAP_ROWS, head + BLOCK * CAP_ROWS + shift):
            history.receive(0, number, Slot.TAIL, False)
    assert history.connections[0].expected == 2 * (BLOCK * CAP_ROWS + shift)
    history.check(HdHost(CONNECTIONS), 0)


def outcomes(steps: list[tuple[int, bool]], psn: int = 0) -> tuple[HdHost, list[int]]:
    """Of packets (number, last) of one connection."""
    host = HdHost(1)
    host.reset(psn)
    results = host.run([(0, (psn + number) % PSNS, RECEIVED | (LAST if last else 0)) for number, last in steps])
    return host, [result[0] for result in results]


def test_packets_in_order_take_no_memory() -> None:
    host, results = outcomes([(number, number == 999) for number in range(1000)])
    assert results == [Outcome.ADVANCED] * 1000
    assert host.memory().created == host.memory().peak_blocks == 0


def test_figures_7a_to_7c() -> None:
    """A circular row; a packet beyond it adds a linear row and leaves Tail; the flushed circular row absorbs it."""
    early = [(number, False) for number in (2, 5, 9)]
    host, _ = outcomes(early)
    view = host.view(0)
    assert (view.head, view.tail, view.circular_bm_size, view.dynamic_size) == (0, 15, 1, 1)
    host, _ = outcomes([*early, (20, False)])
    view = host.view(0)
    assert (view.head, view.tail, view.circular_bm_size, view.dynamic_size) == (0, 15, 1, 2)
    host, _ = outcomes([*early, (20, False), *((number, False) for number in (0, 1, 3, 4, 6, 7, 8))])
    view = host.view(0)
    assert (view.head, view.tail, view.circular_bm_size, view.dynamic_size) == (10, 41, 2, 2)
    assert (view.head_bm_id, view.head_bm_index) == (0, 10)


def test_the_cap_is_256_packets() -> None:
    host, results = outcomes([(255, False), (256, False), (255, False), (1 << 22, False)])
    assert results == [Outcome.TRACKED, Outcome.CAPPED, Outcome.REPEATED, Outcome.CAPPED]
    assert host.view(0).dynamic_size == CAP_ROWS
    memory = host.memory()
    assert (memory.metadata_blocks, memory.bitmap_blocks, memory.side_blocks) == (24, 16, 0)


def test_the_paper_s_82_bytes() -> None:
    """Table 1: address 4, variables 16, 15 relative addresses, 256 bits; section 4's 24 blocks leave 2 bytes over."""
    host, _ = outcomes([(255, False)])
    sizes, memory = hd_native.sizes(), host.memory()
    assert sizes.idle + 16 + 2 * (CAP_ROWS - 1) + 2 * memory.bitmap_blocks == 82
    assert sizes.idle + 2 * (memory.metadata_blocks + memory.bitmap_blocks) == 84


def test_garbage_is_collected_once_all_up_to_the_last_is_in_order() -> None:
    host, results = outcomes([(3, True), (1, False), (2, False)])
    assert host.memory().connections == 1
    assert results == [Outcome.TRACKED] * 3
    host, results = outcomes([(3, True), (1, False), (2, False), (0, False)])
    assert results[-1] == Outcome.ADVANCED
    assert not any(host.used_blocks()) and host.memory().collected == 1


def test_a_bitmap_stays_while_packets_behind_the_last_are_tracked() -> None:
    host, _ = outcomes([(1, True), (3, False), (0, False)])
    assert host.memory().connections == 1
    host, _ = outcomes([(1, True), (3, False), (0, False), (2, False)])
    assert host.memory().connections == 0


@pytest.mark.parametrize("psn", [0, PSNS - 1, PSNS - 130])
def test_no_memory_is_refused_and_leaves_nothing(psn: int) -> None:
    host = HdHost(2)
    host.reset(psn, booked=1000)  # states fit; no row does
    assert [result[0] for result in host.run([(0, (psn + 1) % PSNS, 1)])] == [Outcome.NO_MEMORY]
    assert host.used_blocks().count(1) == 1000
    host.reset(psn, booked=999)  # one connection with one row
    steps = [(0, (psn + 15) % PSNS, 1), (0, (psn + 16) % PSNS, 1), (1, (psn + 1) % PSNS, 1), (0, (psn + 1) % PSNS, 2)]
    assert [result[0] for result in host.run(steps)] == [
        Outcome.TRACKED,
        Outcome.NO_MEMORY,
        Outcome.NO_MEMORY,
        Outcome.NO_MEMORY,  # a message's end needs a side row
    ]
    assert host.used_blocks().count(1) == 1024


def test_a_connection_that_ended_gives_its_blocks_back() -> None:
    host = HdHost(2)
    host.reset(0, booked=960)
    held = [(0, 100, RECEIVED), (0, 7, hd_native.TAIL)]
    again = (1, 200, RECEIVED)
    results = host.run([*held, again, (0, 0, ABANDON), again, again])
    # 24 + 7 + 3 blocks are held; the other's first two tries find too few, the second collects.
    assert [result[0] for result in results] == [1, 1, Outcome.NO_MEMORY, Outcome.PASSED, Outcome.NO_MEMORY, 1]
    memory = host.memory()
    assert (memory.reclaimed, memory.connections, memory.side_blocks) == (1, 1, 0)
