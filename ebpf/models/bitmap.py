"""What ebpf/core/bitmap.h must do, over a dictionary and a set of packet numbers that never wrap."""

from __future__ import annotations

EMPTY, RECEIVED, TAIL, TAIL_COMPLETION = range(4)


class ReceiverBitmap:
    """MP-RDMA's slots (section 3.3): packets ahead of the head that were received, and which end a message."""

    def __init__(self, slots: int, head: int) -> None:
        self.slots = slots
        self.head = head
        self.received: dict[int, int] = {}

    def get(self, number: int) -> int:
        return self.received.get(number, EMPTY)

    def set(self, number: int, state: int) -> None:
        assert self.head <= number < self.head + self.slots and number not in self.received
        self.received[number] = state

    def advance(self) -> tuple[int, int, int]:
        """Moves the head over all that is in order: (packets, tails, completions)."""
        passed = []
        while self.head in self.received:
            passed.append(self.received.pop(self.head))
            self.head += 1
        return len(passed), sum(state >= TAIL for state in passed), passed.count(TAIL_COMPLETION)


class SenderBitmap:
    """Which packets were selectively acknowledged."""

    def __init__(self) -> None:
        self.numbers: set[int] = set()

    def set(self, number: int) -> None:
        self.numbers.add(number)

    def get(self, number: int) -> bool:
        return number in self.numbers

    def clear(self, number: int, count: int) -> None:
        self.numbers -= set(range(number, number + count))

    def hole(self, number: int, count: int) -> int:
        return next((ahead for ahead in range(count) if number + ahead not in self.numbers), count)

    def extent(self, number: int, count: int) -> int:
        return max((ahead + 1 for ahead in range(count) if number + ahead in self.numbers), default=0)
