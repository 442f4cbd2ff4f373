"""Slots and ranges: nothing is handed out twice, and everything comes back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdma.allocate import Exhausted, Ranges, SlotNumbers
from rdma.config import ConfigError, parse

PAGE = 4096


@given(st.lists(st.integers(1, 5 * PAGE) | st.just(-1), max_size=60), st.randoms(use_true_random=False))
def test_ranges_never_overlap(steps: list[int], chance: object) -> None:
    arena = Ranges("bytes", 16 * PAGE, PAGE)
    held: list[tuple[int, int]] = []
    for step in steps:
        if step < 0 and held:
            arena.give_back(*held.pop(chance.randrange(len(held))))  # type: ignore[attr-defined]
        elif step > 0:
            try:
                held.append((arena.take(step), step))
            except Exhausted:
                assert arena.free < 16 * PAGE
        pages = [page for offset, length in held for page in range(offset // PAGE, -(-(offset + length) // PAGE))]
        assert len(pages) == len(set(pages)) and all(0 <= page < 16 for page in pages)
        assert arena.free == (16 - len(pages)) * PAGE
    for offset, length in held:
        arena.give_back(offset, length)
    assert arena.take(16 * PAGE) == 0


def test_slots_are_unique_until_given_back() -> None:
    numbers = SlotNumbers("things", 16, 24)
    taken = [numbers.take() for _ in range(16)]
    assert sorted(number % 16 for number in taken) == list(range(16))
    assert all(16 <= number < 1 << 24 for number in taken)
    with pytest.raises(Exhausted, match="all 16 things are in use"):
        numbers.take()
    numbers.give_back(taken[3])
    assert numbers.take() % 16 == taken[3] % 16


def test_a_timeout_follows_from_rate_and_round_trip() -> None:
    host = {"name": "h1", "netns": "x", "interface": "v0", "ipv4": "10.0.0.1", "mac": "02:00:00:00:00:01"}
    config = parse({"hosts": [host], "run_dir": "x", "min_timeout_us": 1, "rtt_us": 100, "window_packets": 100})
    assert config.timeout_ns(0) == 400_000
    assert config.timeout_ns(10**9) == 400_000 + 2 * 100 * (1024 + 94) * 8
    with pytest.raises(ConfigError, match="'rtt_us' must be an integer in 1.."):
        parse({"hosts": [host], "run_dir": "x", "rtt_us": 0})
