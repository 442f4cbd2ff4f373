"""Eunomia's memory controller against a row of blocks."""

from __future__ import annotations

import os
import random
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebpf.hd_native import NO_BLOCK, HdHost, ffi, lib, sizes
from ebpf.loader import ROOT
from ebpf.models.eunomia_memory import Controller
from ebpf.tests.depth import deep

HISTORIES = 25  # of one example
COUNTS = (1, 3, 24)


def take(host: HdHost, model: Controller, from_tail: bool, count: int) -> int | None:
    """Of both, which must agree."""
    expected = (model.from_tail if from_tail else model.from_head)(count)
    assert lib.hd_native_take(host.handle, from_tail, count) == (NO_BLOCK if expected is None else expected)
    return expected


def history(host: HdHost, chance: random.Random) -> None:
    booked = chance.choice((0, 0, chance.randint(900, 1024)))
    model = Controller()
    for _ in range(booked):
        model.from_head()
    host.reset(0, booked)
    held: list[tuple[int, int]] = [(start, 1) for start in range(booked)]
    returns = chance.random()
    for _ in range(60):
        if held and chance.random() < returns:
            start, count = held.pop(chance.randrange(len(held)))
            model.give(start, count)
            lib.hd_native_give(host.handle, start, count)
            continue
        count = chance.choice(COUNTS)
        given_out = take(host, model, chance.random() < 0.5, count)
        if given_out is not None:
            held.append((given_out, count))
    assert host.used_blocks() == model.used
    assert host.memory().bitmap_blocks == model.used.count(1)


@settings(max_examples=deep(24), deadline=None)
@given(st.integers(0, 1 << 32))
def test_it_is_the_row_of_blocks(seed: int) -> None:
    chance = random.Random(seed)
    host = HdHost(1)
    for _ in range(HISTORIES):
        history(host, chance)


def test_all_of_it_can_be_given_out() -> None:
    """Metadata from the tail and rows from the head meet in the middle, and the last request is refused."""
    host = HdHost(1)
    model = Controller()
    host.reset(0)
    for _ in range(40):
        assert take(host, model, True, 24) is not None
        assert take(host, model, False, 1) is not None
    assert take(host, model, True, 24) == 40
    assert take(host, model, False, 1) is None
    assert host.used_blocks() == b"\1" * 1024
    memory = host.memory()
    assert memory.bitmap_blocks == memory.peak_blocks == 1024
    assert memory.refused == 1


def test_runs_cross_words_but_not_the_end() -> None:
    host = HdHost(1)
    model = Controller()
    host.reset(0)
    for _ in range(1024):
        take(host, model, False, 1)
    for start in (20, 1001):  # 24 blocks over a word's end; 23 blocks at the very end
        for block in range(start, min(start + 24, 1024)):
            model.give(block)
            lib.hd_native_give(host.handle, block, 1)
    assert take(host, model, True, 24) == 20
    assert take(host, model, True, 24) is None
    assert take(host, model, True, 3) == 1021
    assert take(host, model, False, 3) == 1001


def compile_with(blocks: int) -> subprocess.CompletedProcess[str]:
    includes = [f"-I{ROOT / name}" for name in ("ebpf/core", "wire")]
    source = str(ROOT / "ebpf/core/transport.h")
    command = [os.environ.get("CC", "cc"), "-std=gnu11", "-fsyntax-only", "-x", "c", *includes, source]
    return subprocess.run([*command, f"-DNIC_MC_BLOCKS={blocks}"], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("blocks", [64, 4096])
def test_its_capacity_can_be_chosen(blocks: int) -> None:
    assert compile_with(blocks).returncode == 0


@pytest.mark.parametrize("blocks", [32, 1000, 8192])
def test_a_capacity_that_does_not_work_is_refused(blocks: int) -> None:
    result = compile_with(blocks)
    assert result.returncode
    assert "NIC_MC_BLOCKS must be a power of two from 64 to 4096" in result.stderr


def test_sizes_are_the_papers() -> None:
    found = sizes()
    assert found.idle == 4  # Table 1
    assert found.metadata == 48  # section 4: 24 blocks
    assert found.bitmap == 32  # section 3.4: 256 bits
    assert found.alloc_bitmap == 1024 // 8
    assert found.start_index == 3 * 64  # section 4: 3 bytes a connection; at most 40 have a bitmap at once
    assert ffi.sizeof("struct hd_step") == 12
