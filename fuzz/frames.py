"""Frames that a program's parser understands: a random walk over its states, and what a mutation makes of them."""

from __future__ import annotations

import random

from fastswitch.codegen import model

MAX_FRAME = 10_240  # PLAIT_MAX_FRAME
_MAX_STATES = 64
_INTERESTING = (0, 1, 2, 0x7F, 0x80, 0xFE, 0xFF)


class Frames:
    """Makes frames for one program."""

    def __init__(self, program: model.Program) -> None:
        self._program = program

    def make(self, rng: random.Random) -> bytes:
        """A frame: mostly one that takes some path to its end, at times cut, changed, or nothing but noise."""
        kind = rng.random()
        if kind < 0.05:
            return rng.randbytes(rng.choice([0, 1, 13, 14, 60, rng.randrange(200), MAX_FRAME]))
        frame = _Walk(self._program, rng).run() + rng.randbytes(rng.choice([0, 0, 1, 7, 64, rng.randrange(1500)]))
        if kind < 0.15:
            frame += bytes(MAX_FRAME)
        if kind > 0.7:
            frame = mutate(rng, frame)
        return frame[:MAX_FRAME]


def mutate(rng: random.Random, frame: bytes) -> bytes:
    """A few changes of bits, bytes, length."""
    found = bytearray(frame)
    for _ in range(rng.choice([1, 1, 2, 4])):
        if not found:
            break
        place = rng.randrange(len(found))
        match rng.randrange(5):
            case 0:
                found[place] ^= 1 << rng.randrange(8)
            case 1:
                found[place] = rng.choice(_INTERESTING)
            case 2:
                del found[place:]
            case 3:
                found[place:place] = rng.randbytes(rng.randrange(1, 40))
            case 4:
                del found[place : place + rng.randrange(1, 20)]
    return bytes(found)


class _Walk:
    """One path through the parser.  Bits that a transition wants are written where the key was taken from."""

    def __init__(self, program: model.Program, rng: random.Random) -> None:
        self._program = program
        self._rng = rng
        self._bits: list[int] = []  # one each
        self._at = 0
        self._headers: dict[int, int] = {}  # header -> where it was extracted, in bits
        self._next: dict[str, int] = {}

    def run(self) -> bytes:
        index = self._program.start
        for _ in range(_MAX_STATES):
            if index is None:
                break
            state = self._program.states[index]
            for op in state.ops:
                self._op(op)
            index = self._select(state)
        self._reserve((-len(self._bits)) % 8 + len(self._bits))
        packed = int("".join(map(str, self._bits)) or "0", 2)
        return packed.to_bytes(len(self._bits) // 8, "big")

    def _reserve(self, end: int) -> None:
        missing = end - len(self._bits)
        if missing > 0:
            value = self._rng.choice([0, self._rng.getrandbits(missing)])
            self._bits += map(int, f"{value:0{missing}b}")

    def _op(self, op: model.ParserOp) -> None:
        if isinstance(op, model.Extract):
            header = self._extracted(op)
            if header is None:
                return
            kind = header.type
            longest = kind.fields[kind.varbit].width if kind.varbit is not None else 0
            size = kind.fixed_bits + 8 * self._rng.randrange(longest // 8 + 1)
            self._reserve(self._at + size)
            self._headers[header.index] = self._at
            self._at += size
        elif isinstance(op, model.Advance) and isinstance(op.bits, model.Const) and 0 <= op.bits.value < 8 * MAX_FRAME:
            self._at += op.bits.value
            self._reserve(self._at)

    def _extracted(self, op: model.Extract) -> model.Header | None:
        match op.target:
            case model.HeaderRef(header):
                return header
            case model.StackRef(stack):
                members: tuple[int, ...] = stack.headers
                name = stack.name
            case model.UnionStackRef(union_stack):
                assert op.member is not None
                members = tuple(self._program.unions[each].headers[op.member] for each in union_stack.unions)
                name = union_stack.name
        place = self._next.get(name, 0)
        self._next[name] = place + 1
        return self._program.headers[members[place]] if place < len(members) else None

    def _select(self, state: model.State) -> int | None:
        choices: list[model.Transition | None] = [None, *state.transitions]
        chosen = self._rng.choice(choices)
        if chosen is None:
            return state.default
        if chosen.value_set is None:
            wanted = chosen.value | self._rng.getrandbits(8 * state.key_bytes) & ~chosen.mask
            self._write_key(state, wanted)
        return chosen.next

    def _write_key(self, state: model.State, wanted: int) -> None:
        left = 8 * state.key_bytes
        for value, width in state.key:
            left -= (width + 7) // 8 * 8
            part = wanted >> left & ((1 << width) - 1)
            place = self._place(value)
            if place is not None:
                self._reserve(place + width)
                self._bits[place : place + width] = map(int, f"{part:0{width}b}")

    def _place(self, value: model.Data) -> int | None:
        if isinstance(value, model.Lookahead):
            return self._at + value.offset
        if not isinstance(value, model.FieldUse):
            return None
        header = self._header_of(value.header)
        if header is None or header not in self._headers:
            return None
        before = value.type.fields[: value.index]
        if any(each.varbit for each in before):
            return None
        return self._headers[header] + sum(each.width for each in before)

    def _header_of(self, header: model.HeaderExpr) -> int | None:
        if isinstance(header, model.HeaderRef):
            return header.header.index
        if isinstance(header, model.StackLast):
            count = min(self._next.get(header.stack.name, 0), len(header.stack.headers))
            return header.stack.headers[count - 1] if count else None
        return None
