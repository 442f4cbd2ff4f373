"""DCQCN in fixed point against the paper's equations in floating point, within the error that dcqcn.h states."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ebpf.models.dcqcn import ALPHA_UNIT, NotificationPoint, Parameters, ReactionPoint
from ebpf.tests.units import ffi, lib

CNP, SENT, WAIT = range(3)
GBPS = 10**9
Step = tuple[int, int, int]  # now, operation, bytes


def derived(line_rate: int, rtt_ns: int = 10_000, packet_bytes: int = 1090) -> Any:
    made = ffi.new("struct nic_dcqcn_params *")
    lib.unit_dcqcn_derive(made, line_rate, rtt_ns, packet_bytes)
    return made


def model_parameters(p: Any) -> Parameters:
    return Parameters(
        p.line_rate,
        p.min_rate,
        p.additive,
        p.hyper,
        p.alpha_period_ns,
        p.timer_period_ns,
        p.byte_period,
        2.0**-p.gain_shift,
        p.stages,
        bool(p.clamp_target),
    )


def run(p: Any, steps: list[Step]) -> Any:
    made = ffi.new("struct unit_dcqcn_step[]", len(steps))
    for one, (now, operation, count) in zip(made, steps, strict=True):
        one.now, one.op, one.bytes = now, operation, count
    lib.unit_dcqcn(p, made, len(steps))
    return made


def history(p: Parameters, chance: random.Random) -> list[Step]:
    """Congestion that comes and goes: bursts of CNPs, packets at some rate, and quiet."""
    now, steps = 1, []
    for _ in range(chance.randint(1, 12)):
        spread = chance.choice((1, p.alpha_period // 2, p.alpha_period, 3 * p.alpha_period, 40 * p.timer_period))
        load = chance.choice((1500, p.byte_period // 3 + 1, 2 * p.byte_period))
        kinds = chance.choice(((CNP,), (SENT,), (WAIT,), (CNP, SENT), (SENT, WAIT)))
        for _ in range(chance.randint(1, 20)):
            now += chance.randint(0, spread)
            steps.append((now, chance.choice(kinds), min(chance.randint(0, load), (1 << 32) - 1)))
    return steps


def check(p: Any, steps: list[Step]) -> Counter[str]:
    model = ReactionPoint(model_parameters(p))
    for (now, operation, count), got in zip(steps, run(p, steps), strict=True):
        model.advance(now)
        if operation == CNP:
            model.cnp(now)
        elif operation == SENT:
            model.sent(count)
        assert abs(got.result.rate - model.rate) <= model.rate_error + 1e-3
        assert abs(got.result.target - model.target) <= model.target_error + 1e-3
        assert abs(got.result.alpha * ALPHA_UNIT - model.alpha) <= model.alpha_error
        assert model.alpha_error <= ALPHA_UNIT / model.parameters.gain
        assert p.min_rate <= got.result.rate <= got.result.target <= p.line_rate
        if got.result.timer_deadline:
            assert got.result.timer_deadline == model.timer_time
            assert got.result.timer_stage == min(model.timer_events, 255)
            assert got.result.byte_stage == min(model.byte_events, 255)
            assert got.result.bytes == model.bytes
        else:
            assert got.result.rate == p.line_rate
        if got.result.alpha_deadline:
            assert got.result.alpha_deadline == model.alpha_time
        assert got.deadline == 0 or got.deadline > now
    return Counter(model.raised)


LINE_RATES = st.sampled_from([10**7, 10**8, GBPS, 10 * GBPS, 40 * GBPS, 100 * GBPS, 400 * GBPS])


@settings(max_examples=60, deadline=None)
@given(LINE_RATES, st.integers(1, 10), st.integers(1, 6), st.booleans(), st.integers(0, 1 << 32))
@example(40 * GBPS, 8, 5, True, 0)
def test_the_core_follows_the_equations(line: int, gain_shift: int, stages: int, clamp: bool, seed: int) -> None:
    p = derived(line)
    p.gain_shift, p.stages, p.clamp_target = gain_shift, stages, clamp
    chance = random.Random(seed)
    for _ in range(5):
        check(p, history(model_parameters(p), chance))


def test_all_three_ways_up_are_taken() -> None:
    """Five events of fast recovery, then one counter beyond F: additive, then both: hyper."""
    p = derived(40 * GBPS)
    steps = [(1, CNP, 0)]
    steps += [(1 + n * p.timer_period_ns, WAIT, 0) for n in range(1, 8)]
    steps += [(steps[-1][0], SENT, p.byte_period)] * 6
    ways = check(p, steps)
    assert ways == {"fast recovery": 5, "additive": 7, "hyper": 1}
    results = [step.result for step in run(p, steps)]
    assert results[0].rate == 20 * GBPS and results[0].target == 40 * GBPS
    assert [results[n].rate for n in (1, 2)] == [30 * GBPS, 35 * GBPS]


def test_the_papers_parameters() -> None:
    """At 40 Gb/s those of the paper's testbed; elsewhere the same parts of the line rate and of the interval."""
    p = derived(40 * GBPS)
    assert (p.cnp_interval_ns, p.alpha_period_ns, p.timer_period_ns) == (50_000, 55_000, 55_000)
    assert (p.byte_period, p.additive, p.gain_shift, p.stages, p.clamp_target) == (10_000_000, 40_000_000, 8, 5, 1)
    slow = derived(100_000_000, 400_000)
    assert slow.cnp_interval_ns == 16 * 1090 * 80  # 16 packets' time
    assert (slow.additive, slow.hyper, slow.min_rate) == (100_000, 1_000_000, 100_000)
    assert derived(100 * GBPS, 80_000).cnp_interval_ns == 80_000  # no shorter than the round trip


@pytest.mark.parametrize("clamp", [0, 1])
def test_clamping_decides_about_the_target_of_cnps_in_a_row(clamp: int) -> None:
    p = derived(40 * GBPS)
    p.clamp_target = clamp
    first, second, third = (
        step.result.target for step in run(p, [(1, CNP, 0), (2, CNP, 0), (2 + 2 * p.timer_period_ns, CNP, 0)])
    )
    assert first == 40 * GBPS
    assert second == (20 * GBPS if clamp else 40 * GBPS)
    assert third == (17.5 * GBPS if clamp else 32.5 * GBPS)


def test_a_flow_without_congestion_has_no_timers() -> None:
    p = derived(10 * GBPS)
    (idle,) = run(p, [(10**9, SENT, 1 << 30)])
    assert (idle.deadline, idle.result.rate, idle.result.bytes) == (0, 10 * GBPS, 0)
    after = run(p, [(1, CNP, 0), (10**10, WAIT, 0)])[1]
    assert (after.deadline, after.result.rate, after.result.alpha) == (0, 10 * GBPS, 0)


def test_the_rate_does_not_fall_below_the_lowest() -> None:
    p = derived(GBPS)
    last = run(p, [(1 + n, CNP, 0) for n in range(100)])[99].result
    assert (last.rate, last.alpha) == (GBPS // 1000, 1 << 30)


@given(st.integers(1, 10**6), st.lists(st.integers(0, 10**6), max_size=60))
@example(50_000, [1, 49_999, 1])
def test_at_most_one_cnp_an_interval(interval: int, gaps: list[int]) -> None:
    model, sent, last, now = NotificationPoint(interval), 0, 0, 1
    for gap in gaps:
        now += gap
        notify = lib.unit_dcqcn_notify(sent, last, interval, now)
        assert notify == model.marked(now)
        sent, last = (sent + 1, now) if notify else (sent, last)
