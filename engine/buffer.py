"""A switch's shared buffer and priority flow control, as values. What each threshold means: docs/traffic-manager.md."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

PRIORITIES = 8
FRACTION_LIMIT = 1 << 16
"""Of numerators and denominators (PLAIT_FRACTION_LIMIT of src/buffer.h)."""

SIZE_LIMIT = 1 << 40
"""Bytes (PLAIT_BUFFER_LIMIT of src/buffer.h)."""

LEAST_QUANTA, MOST_QUANTA = 512, 65535
"""A pause is repeated at half its time, which must not be shorter than a frame (LEAST_QUANTA of src/buffer.c)."""

DEFAULT_XON_GAP = 3036
"""Bytes: two frames of 1,518."""


def fraction(what: str, value: Fraction | int | str) -> Fraction:
    """A positive fraction such as 2, "1/8" or Fraction(1, 2); ValueError if it is none, or too fine."""
    try:
        result = Fraction(value)
    except (ValueError, ZeroDivisionError, TypeError, OverflowError):
        raise ValueError(f"{what}: {value!r} is no fraction such as 1/2 or 8") from None
    if result <= 0 or max(result.numerator, result.denominator) > FRACTION_LIMIT:
        raise ValueError(f"{what}: {result} is not positive with numbers of at most {FRACTION_LIMIT}")
    return result


@dataclass(frozen=True, slots=True)
class Pfc:
    """Priority flow control (IEEE 802.1Qbb) for `priorities`, whose packets are never dropped while peers obey.

    Exactly one of xoff_bytes and xoff_alpha (times the pool's free bytes) says how many bytes of one priority may wait
    that came in by one port, before the peer there is asked to pause. `headroom_bytes`, for each linked port and
    priority, take what the peer still sends: at least 2 * delay * rate / 8 + three of the longest frames + 60.
    The peer resumes when no headroom is in use and XOFF - xon_gap_bytes or nothing is left.
    """

    priorities: tuple[int, ...]
    headroom_bytes: int
    xoff_bytes: int | None = None
    xoff_alpha: Fraction | None = None
    xon_gap_bytes: int = DEFAULT_XON_GAP
    pause_quanta: int = MOST_QUANTA
    """Length of a pause in quanta of 512 bit times; it is repeated before it ends."""

    def check(self, where: str = "pfc") -> None:
        """ValueError, with the field's name, if a value is out of range."""
        if not self.priorities or len(set(self.priorities)) != len(self.priorities):
            raise ValueError(f"{where}.priorities: {list(self.priorities)} are not one or more different priorities")
        for priority in self.priorities:
            if not 0 <= priority < PRIORITIES:
                raise ValueError(f"{where}.priorities: {priority} is not within 0..{PRIORITIES - 1}")
        if (self.xoff_bytes is None) == (self.xoff_alpha is None):
            raise ValueError(f"{where}: exactly one of xoff_bytes and xoff_alpha must be given")
        _size(f"{where}.headroom_bytes", self.headroom_bytes)
        _size(f"{where}.xon_gap_bytes", self.xon_gap_bytes)
        if self.xoff_bytes is not None:
            _size(f"{where}.xoff_bytes", self.xoff_bytes)
        if self.xoff_alpha is not None:
            fraction(f"{where}.xoff_alpha", self.xoff_alpha)
        if not LEAST_QUANTA <= self.pause_quanta <= MOST_QUANTA:
            raise ValueError(f"{where}.pause_quanta: {self.pause_quanta} is not within {LEAST_QUANTA}..{MOST_QUANTA}")


@dataclass(frozen=True, slots=True)
class Buffer:
    """A shared buffer: a queue may hold reserved_bytes + alpha * (what is free in the pool).

    The pool is total_bytes less the reserves of all queues and, with `pfc`, less all headroom.
    """

    total_bytes: int
    alpha: Fraction = Fraction(1)
    reserved_bytes: int = 0
    pfc: Pfc | None = None

    def check(self, where: str = "buffer") -> None:
        """ValueError, with the field's name, if a value is out of range."""
        _size(f"{where}.total_bytes", self.total_bytes, 1)
        _size(f"{where}.reserved_bytes", self.reserved_bytes)
        fraction(f"{where}.alpha", self.alpha)
        if self.pfc is not None:
            self.pfc.check(f"{where}.pfc")


def _size(where: str, value: int, least: int = 0) -> None:
    if not least <= value < SIZE_LIMIT:
        raise ValueError(f"{where}: {value} is not within {least}..2^40-1")
