"""Programs as sanitized code beside the interpreter, filled with the same random entries."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import mmap
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fastswitch.codegen import model
from fastswitch.interpreter import Interpreter
from fastswitch.tests.codegen_support import Compiled, compare, declare
from fuzz.build import ROOT, build
from fuzz.target import BUILD, Fault

RECORD_BYTES = 4 + 10_240  # struct record of packets.c


@functools.cache
def driver() -> ctypes.CDLL:
    """packets.c, and with it the harness, under the sanitizers."""
    target = build("packets.so", [ROOT / "fuzz" / "packets.c"], "-fPIC", "-shared")
    library = declare(ctypes.CDLL(str(target)))
    pointer, u32, u64 = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64
    library.fuzz_packets.restype = ctypes.c_char_p
    library.fuzz_packets.argtypes = [
        *(pointer, u64, ctypes.c_char_p, ctypes.POINTER(u32), u32, u64, u32, pointer),
    ]  # fmt: skip
    return library


@contextlib.contextmanager
def compiled(document: dict[str, Any], cached: bool) -> Iterator[Compiled]:
    """The program as sanitized code, kept for the next time if `cached`.  ProgramError if it is refused."""
    with contextlib.ExitStack() as stack:
        folder = BUILD if cached else Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="plait-fuzz-")))
        made = Compiled(document, folder, sanitize=True, library=driver())
        stack.callback(made.close)
        yield made


def run_frames(code: Compiled, rng: random.Random, frames: list[bytes], count: int, record: mmap.mmap) -> None:
    """`count` mutations of `frames` through the code; Fault if a bound is broken."""
    offsets = [0]
    for frame in frames:
        offsets.append(offsets[-1] + len(frame))
    found = driver().fuzz_packets(
        code.handle,
        rng.getrandbits(64),
        b"".join(frames),
        (ctypes.c_uint32 * len(offsets))(*offsets),
        len(frames),
        count,
        len(code.program.field_lists),
        ctypes.addressof(ctypes.c_char.from_buffer(record)),
    )
    if found:
        raise Fault(found.decode())


def agree(code: Compiled, reference: Interpreter, frame: bytes, standard: dict[str, int]) -> None:
    """One frame through both, equal after each step, state included."""
    try:
        compare(code, reference, frame, standard)
    except AssertionError as error:
        raise Fault(f"code and interpreter differ: {error}") from error


def same_state(code: Compiled, reference: Interpreter) -> None:
    """Registers and counters hold the same."""
    for register in code.program.registers:
        ours = [value & ((1 << register.width) - 1) for value in code.register(register.name)]
        theirs = reference.registers[register.name]
        if ours != theirs:
            raise Fault(f"register {register.name}: {ours[:8]} in code, {theirs[:8]} in the interpreter")
    for counter in code.program.counters:
        for cell in range(0 if counter.direct else counter.size):
            if code.counter(counter.name, cell) != reference.counters[counter.name][cell]:
                raise Fault(f"counter {counter.name}[{cell}] differs")


def populate(rng: random.Random, code: Compiled, reference: Interpreter | None, entries: int) -> None:
    """Random entries in all tables that take any, and random members of value sets."""
    for table in code.program.tables:
        usable = [action for action in table.actions]
        if not table.keys or not usable:
            continue
        priorities = rng.sample(range(1, 1000), entries)  # equal ones have no order that both would know
        seen: set[Any] = set()
        for priority in priorities[: rng.randrange(entries + 1)]:
            match = [_match(rng, key) for key in table.keys]
            ranked = any(key.match in ("ternary", "range", "optional") for key in table.keys)
            if not ranked and (key_of := _identity(table, match)) in seen:
                continue
            elif not ranked:
                seen.add(key_of)
            action = rng.choice(usable)
            params = _params(rng, action)
            group = None
            if table.kind == "indirect_ws" and rng.random() < 0.8:
                members = [rng.choice(usable) for _ in range(rng.randrange(4))]
                group = [(each.id, _params(rng, each)) for each in members]
            arguments = (table.name, match, action.id, params, priority if ranked else 0, group)
            code.add_entry(*arguments)
            if reference is not None:
                reference.add_entry(*arguments)
    for value_set in code.program.value_sets:
        for _ in range(rng.randrange(4)):
            widths = value_set.key_widths or ()
            key = b"".join((rng.getrandbits(w) >> rng.randrange(w)).to_bytes((w + 7) // 8, "big") for w in widths)
            if not key:
                continue
            code.add_value(value_set.name, key)
            if reference is not None:
                reference.value_sets[value_set.name].add(int.from_bytes(key, "big"))


def _match(rng: random.Random, key: model.Key) -> tuple[Any, ...]:
    value = number(rng, key.width)
    if key.mask is not None:
        value &= key.mask
    match key.match:
        case "lpm":
            return ("lpm", value, rng.randrange(key.width + 1))
        case "ternary":
            return ("ternary", value, number(rng, key.width))
        case "optional":
            return ("ternary", value, rng.choice([0, (1 << key.width) - 1]))
        case "range":
            low, high = sorted((value, number(rng, key.width)))
            return ("range", low, high)
    return ("exact", value)


def _identity(table: model.Table, match: list[tuple[Any, ...]]) -> Any:
    """Two entries of a table without priorities that have equal ones match the same keys."""
    return tuple(
        (each[1] >> (key.width - each[2]), each[2]) if each[0] == "lpm" else each[1]
        for key, each in zip(table.keys, match, strict=True)
    )


def _params(rng: random.Random, action: model.Action) -> list[int]:
    return [number(rng, param.width) for param in action.params]


def number(rng: random.Random, width: int) -> int:
    """A value of `width` bits, often at an edge, often one that packets hit."""
    top = (1 << width) - 1
    return rng.choice([0, 1 & top, top, rng.randrange(8) & top, rng.getrandbits(width), 1 << rng.randrange(width)])
