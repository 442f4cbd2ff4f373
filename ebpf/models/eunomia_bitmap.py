"""Eunomia's hybrid-dynamic bitmap (section 3.3) as a set of packet numbers.

A packet's number is unbounded: the n-th packet of the connection. What the set cannot say, which rows there are and
when they are absorbed, is kept as the paper tells it, in numbers of packets.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

from ebpf.models.eunomia_memory import METADATA_BLOCKS, Controller

BLOCK = 16  # bits
CAP_ROWS = 16
SIDE_ROW = 3  # blocks


class Outcome(IntEnum):
    """What becomes of a packet; the order is that of the C core."""

    ADVANCED = 0
    TRACKED = 1
    REPEATED = 2
    PASSED = 3
    CAPPED = 4
    NO_MEMORY = 5


class Slot(IntEnum):
    """What a packet is to its message."""

    RECEIVED = 1
    TAIL = 2
    TAIL_COMPLETION = 3


@dataclass
class Moved:
    """What came into order with a packet."""

    packets: int = 0
    tails: int = 0
    completions: int = 0

    def count(self, slot: Slot) -> None:
        self.packets += 1
        self.tails += slot >= Slot.TAIL
        self.completions += slot == Slot.TAIL_COMPLETION


@dataclass
class Bitmap:
    """What a connection has while packets are out of order; `tail` is the last one of the circular portion."""

    metadata: int
    head: int
    tail: int
    circular: int = 0  # rows
    rows: list[int] = field(default_factory=list)  # their blocks
    tracked: dict[int, Slot] = field(default_factory=dict)
    last: int | None = None
    head_place: int = 0  # bit of the head, from the start of row 0
    side_rows: dict[int, int] = field(default_factory=dict)  # row: where its side row begins; the newest comes last

    @property
    def end(self) -> int:
        return self.tail + BLOCK * (len(self.rows) - self.circular)

    def place(self, number: int) -> int:
        if number > self.tail:
            return BLOCK * self.circular + number - self.tail - 1
        return (self.head_place + number - self.head) % (BLOCK * self.circular)


class Host:
    """A memory controller and the connections that have a bitmap, by their place in the index."""

    def __init__(self, controller: Controller) -> None:
        self.controller = controller
        self.index: dict[int, Bitmap] = {}
        self.abandoned: set[int] = set()

    def enter(self, bitmap: Bitmap) -> None:
        place = 0
        while place in self.index:
            place += 1
        self.index[place] = bitmap

    def leave(self, place: int) -> None:
        bitmap = self.index.pop(place)
        for row in bitmap.rows:
            self.controller.give(row)
        for blocks in bitmap.side_rows.values():
            self.controller.give(blocks, SIDE_ROW)
        self.controller.give(bitmap.metadata, METADATA_BLOCKS)

    def collect_abandoned(self) -> None:
        """One at a time, when a connection has asked for a bitmap."""
        if self.abandoned:
            place = min(self.abandoned)
            self.abandoned.remove(place)
            self.leave(place)


class Connection:
    """One queue pair's packets out of order."""

    def __init__(self, host: Host, expected: int = 0) -> None:
        self._host = host
        self._controller = host.controller
        self.expected = expected
        self.bitmap: Bitmap | None = None

    def receive(self, number: int, slot: Slot, last: bool) -> tuple[Outcome, Moved]:
        moved = Moved()
        if number < self.expected:
            return Outcome.PASSED, moved
        if number == self.expected and self.bitmap is None:
            moved.count(slot)
            self.expected += 1
            return Outcome.ADVANCED, moved
        if number - self.expected >= BLOCK * CAP_ROWS:
            return Outcome.CAPPED, moved
        if self.bitmap is not None:
            return self._with_bitmap(self.bitmap, number, slot, last, moved), moved
        metadata = self._controller.from_tail(METADATA_BLOCKS)
        outcome = Outcome.NO_MEMORY
        if metadata is not None:
            self.bitmap = Bitmap(metadata, self.expected, self.expected - 1)
            self._host.enter(self.bitmap)
            outcome = self._with_bitmap(self.bitmap, number, slot, last, moved)
            if outcome != Outcome.TRACKED:
                self._close(self.bitmap)
        self._host.collect_abandoned()
        return outcome, moved

    def _with_bitmap(self, bitmap: Bitmap, number: int, slot: Slot, last: bool, moved: Moved) -> Outcome:
        if number == self.expected:
            outcome = Outcome.ADVANCED
            self._advance(bitmap, slot, moved)
        else:
            outcome = self._track(bitmap, number, slot)
        if outcome <= Outcome.TRACKED and last and (bitmap.last is None or number > bitmap.last):
            bitmap.last = number
        if bitmap.last is not None and bitmap.last < bitmap.head and not bitmap.tracked:
            self._close(bitmap)  # garbage collection, section 3.5.3
        return outcome

    def _track(self, bitmap: Bitmap, number: int, slot: Slot) -> Outcome:
        wanted = max(0, -(-(number - bitmap.end) // BLOCK))
        if len(bitmap.rows) + wanted > CAP_ROWS:
            return Outcome.CAPPED
        if wanted > self._controller.free():
            return Outcome.NO_MEMORY
        for _ in range(wanted):
            row = self._controller.from_head()
            assert row is not None
            bitmap.rows.append(row)
        if not bitmap.circular:
            bitmap.circular = 1
            bitmap.tail += BLOCK
        if number in bitmap.tracked:
            return Outcome.REPEATED
        if slot != Slot.RECEIVED and not self._side(bitmap, bitmap.place(number) // BLOCK):
            return Outcome.NO_MEMORY
        bitmap.tracked[number] = slot
        return Outcome.TRACKED

    def _side(self, bitmap: Bitmap, row: int) -> bool:
        if row not in bitmap.side_rows:
            blocks = self._controller.from_head(SIDE_ROW)
            if blocks is None:
                return False
            bitmap.side_rows[row] = blocks
        return True

    def _advance(self, bitmap: Bitmap, slot: Slot, moved: Moved) -> None:
        before = bitmap.head
        moved.count(slot)
        bitmap.head += 1
        while bitmap.head in bitmap.tracked:
            moved.count(bitmap.tracked.pop(bitmap.head))
            bitmap.head += 1
        self.expected = bitmap.head
        if len(bitmap.rows) == bitmap.circular:
            bitmap.head_place = (bitmap.head_place + bitmap.head - before) % (BLOCK * bitmap.circular)
            bitmap.tail += bitmap.head - before
        elif not any(number <= bitmap.tail for number in bitmap.tracked):
            # The linear portion keeps its bits, so the head's place follows from the first of them.
            first_linear = BLOCK * bitmap.circular
            bitmap.head_place = (first_linear - (bitmap.tail + 1 - bitmap.head)) % (BLOCK * len(bitmap.rows))
            bitmap.circular = len(bitmap.rows)
            bitmap.tail = bitmap.head + BLOCK * bitmap.circular - 1
        else:
            bitmap.head_place = (bitmap.head_place + bitmap.head - before) % (BLOCK * bitmap.circular)

    def _close(self, bitmap: Bitmap) -> None:
        self._host.leave(next(place for place, entered in self._host.index.items() if entered is bitmap))
        self.bitmap = None

    def abandon(self) -> None:
        """The queue pair ends; its blocks come back later."""
        bitmap, self.bitmap = self.bitmap, None
        self._host.abandoned |= {place for place, entered in self._host.index.items() if entered is bitmap}
