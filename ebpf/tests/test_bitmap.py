"""The static bitmaps against a dictionary and a set."""

from __future__ import annotations

import random

from hypothesis import example, given, settings
from hypothesis import strategies as st

from ebpf.models.bitmap import EMPTY, RECEIVED, TAIL, TAIL_COMPLETION, ReceiverBitmap, SenderBitmap
from ebpf.tests.units import ffi, lib

PSNS = 1 << 24
GET2, SET2, ADVANCE2, GET1, SET1, CLEAR1, HOLE1, EXTENT1 = range(8)
FIRST_PSN = st.integers(PSNS - 300, PSNS - 1) | st.integers(0, PSNS - 1)
Step = tuple[int, int, int]


def run(slots: int, steps: list[Step]) -> list[list[int]]:
    """The core's results of steps (operation, PSN, argument)."""
    made = ffi.new("struct unit_bitmap_step[]", [(*step, (0, 0, 0)) for step in steps])
    lib.unit_bitmap(slots, made, len(steps))
    return [list(step.result) for step in made]


def receive(slots: int, first: int, chance: random.Random) -> tuple[list[Step], list[list[int]]]:
    """A receiver's life: packets within the window in any order, each of which may move the head."""
    model = ReceiverBitmap(slots, first)
    steps: list[Step] = []
    expected: list[list[int]] = []
    early = chance.random()
    for _ in range(chance.randint(1, 60)):
        number = model.head + (chance.randrange(slots) if chance.random() < early else 0)
        state = model.get(number)
        steps.append((GET2, number % PSNS, 0))
        expected.append([state, 0, 0])
        if state == EMPTY:
            state = chance.choice((RECEIVED, TAIL, TAIL_COMPLETION))
            steps.append((SET2, number % PSNS, state))
            expected.append([0, 0, 0])
            model.set(number, state)
        steps.append((ADVANCE2, model.head % PSNS, 0))
        expected.append(list(model.advance()))
    return steps, expected


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 8), FIRST_PSN, st.integers(0, 1 << 32))
@example(8, PSNS - 200, 1)
@example(0, PSNS - 1, 1)
def test_the_receivers_bitmap_is_the_dictionary(log2_slots: int, first: int, seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(20):
        steps, expected = receive(1 << log2_slots, first, chance)
        assert run(1 << log2_slots, steps) == expected


@settings(deadline=None)
@given(st.integers(0, 8), FIRST_PSN)
def test_a_full_bitmap_empties_at_once(log2_slots: int, first: int) -> None:
    """The run of filled slots starts and ends in the same word."""
    slots = 1 << log2_slots
    fill = [(SET2, (first + ahead) % PSNS, TAIL_COMPLETION) for ahead in reversed(range(slots))]
    look = [(GET2, (first + ahead) % PSNS, 0) for ahead in range(slots)]
    results = run(slots, [*fill, (ADVANCE2, first, 0), *look, (ADVANCE2, first, 0)])
    assert results[slots] == [slots] * 3
    assert results[slots + 1 :] == [[0, 0, 0]] * (slots + 1)


def acknowledge(first: int, chance: random.Random) -> tuple[list[Step], list[list[int]]]:
    """A sender's life: selective acknowledgements within the window, searches, and a base that moves."""
    model = SenderBitmap()
    base = first
    steps: list[Step] = []
    expected: list[list[int]] = []
    dense = chance.random()
    for _ in range(chance.randint(1, 12)):
        for number in range(base, base + 256):
            if chance.random() < dense and chance.random() < 0.5:
                steps.append((SET1, number % PSNS, 0))
                expected.append([0, 0, 0])
                model.set(number)
        number = base + chance.randrange(256)
        room = chance.choice((256, chance.randrange(257))) if number == base else base + 256 - number
        steps += [(GET1, number % PSNS, 0), (HOLE1, number % PSNS, room), (EXTENT1, number % PSNS, room)]
        expected += [
            [value, 0, 0] for value in (model.get(number), model.hole(number, room), model.extent(number, room))
        ]
        count = chance.choice((0, 1, chance.randrange(257), 256, 1000))
        steps.append((CLEAR1, base % PSNS, count))
        expected.append([0, 0, 0])
        model.clear(base, count)
        base += count
    return steps, expected


@settings(max_examples=40, deadline=None)
@given(FIRST_PSN, st.integers(0, 1 << 32))
def test_the_senders_bitmap_is_the_set(first: int, seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(5):
        steps, expected = acknowledge(first, chance)
        assert run(256, steps) == expected


@given(st.integers(0, 255), st.integers(0, 256))
@example(10, 256)
def test_searches_of_an_all_ones_and_an_empty_bitmap(base: int, count: int) -> None:
    fill = [(SET1, number, 0) for number in range(256)]
    empty = run(256, [(HOLE1, base, count), (EXTENT1, base, count)])
    assert [result[0] for result in empty] == [0, 0]
    full = run(256, [*fill, (HOLE1, base, count), (EXTENT1, base, count)])
    assert [result[0] for result in full[256:]] == [count, count]
