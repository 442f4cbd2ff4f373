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


def test_defaults_follow_from_rate_and_round_trip() -> None:
    """Two bandwidth-delay products of 1,118-byte frames, and what fits around them."""
    host = {"name": "h1", "netns": "x", "interface": "v0", "ipv4": "10.0.0.1", "mac": "02:00:00:00:00:01"}
    config = parse({"hosts": [host], "run_dir": "x", "rtt_us": 400})
    assert [config.bdp_packets(rate) for rate in (0, 10**8, 10**9)] == [0, 5, 45]
    assert [config.window(rate) for rate in (0, 10**8, 10**9, 10**11)] == [128, 16, 90, 256]
    assert [config.slots_for(window) for window in (1, 64, 65, 90, 256, 1000)] == [64, 64, 128, 128, 256, 256]
    assert config.delta_for(64) == 32
    assert [config.initial_window_for(rate, config.window(rate)) for rate in (0, 10**8, 10**9)] == [128, 5, 45]
    assert config.timeout_low_ns(320) == 100
    chosen = parse({"hosts": [host], "run_dir": "x", "window_packets": 7, "slots": 8, "delta": 3, "initial_window": 2})
    assert (chosen.window(10**9), chosen.slots_for(7), chosen.delta_for(8)) == (7, 8, 3)
    assert chosen.initial_window_for(10**9, 7) == 2


@pytest.mark.parametrize(
    ("chosen", "says"),
    [
        ({"slots": 48}, "'slots' must be a power of two"),
        ({"slots": 512}, "'slots' must be an integer in 0..256"),
        ({"congestion": "bbr"}, "'congestion' must be one of window, dcqcn, none"),
        ({"transports": "gbn"}, "'transports' must be a list"),
        ({"transports": [1]}, "'transports' must be names"),
        ({"check_icrc": 1}, "'check_icrc' must be true or false"),
        ({"priority": 8}, "'priority' must be an integer in 0..7"),
        ({"window_packets": 65536}, "'window_packets' must be an integer in 0..65535"),
        ({"receives": 0}, "'receives' must be an integer in 1.."),
    ],
)
def test_what_a_queue_pair_cannot_have_by_default(chosen: dict[str, object], says: str) -> None:
    host = {"name": "h1", "netns": "x", "interface": "v0", "ipv4": "10.0.0.1", "mac": "02:00:00:00:00:01"}
    with pytest.raises(ConfigError) as caught:
        parse({"hosts": [host], "run_dir": "x", **chosen})
    assert str(caught.value).startswith(f"nic.json: {says}")
