"""What the daemon hands out: numbers with a slot inside (queue pairs, keys), and ranges of the arena.

Both come back with a delay: a packet that the NIC is just handling may still use the old meaning.
"""

from __future__ import annotations

import bisect
import secrets


class Exhausted(Exception):
    """Nothing left to hand out; the text says of what."""


class SlotNumbers:
    """Numbers of `bits` bits whose low bits are a free slot and whose rest is random: unique, and hard to guess."""

    def __init__(self, what: str, slots: int, bits: int) -> None:
        self._what = what
        self._slots = slots
        self._nonces = (1 << bits) // slots
        self._free = list(range(slots))

    def take(self) -> int:
        if not self._free:
            raise Exhausted(f"all {self._slots} {self._what} are in use")
        index = secrets.randbelow(len(self._free))
        self._free[index], self._free[-1] = self._free[-1], self._free[index]
        slot = self._free.pop()
        # A nonce of 0 is left out, so that no number is 0 or, with queue pairs, one of IBTA's special two.
        return (1 + secrets.randbelow(self._nonces - 1)) * self._slots + slot

    def give_back(self, number: int) -> None:
        self._free.append(number % self._slots)


class Ranges:
    """First fit over whole pages of `what`; neighbours that are free are one range."""

    def __init__(self, what: str, size: int, page: int = 1) -> None:
        self._what = what
        self._page = page
        self._size = size
        self._free: list[tuple[int, int]] = [(0, size)]  # (offset, length), by offset

    @property
    def free(self) -> int:
        return sum(length for _, length in self._free)

    def rounded(self, length: int) -> int:
        return -(-length // self._page) * self._page

    def take(self, length: int) -> int:
        length = self.rounded(length)
        for index, (offset, room) in enumerate(self._free):
            if room >= length:
                if room == length:
                    del self._free[index]
                else:
                    self._free[index] = (offset + length, room - length)
                return offset
        raise Exhausted(f"no {length} {self._what} left in one piece: {self.free} of {self._size} are free")

    def give_back(self, offset: int, length: int) -> None:
        length = self.rounded(length)
        index = bisect.bisect_left(self._free, (offset, 0))
        if index < len(self._free) and self._free[index][0] == offset + length:
            length += self._free.pop(index)[1]
        if index and sum(self._free[index - 1]) == offset:
            offset, before = self._free[index - 1]
            self._free[index - 1] = (offset, before + length)
        else:
            self._free.insert(index, (offset, length))
