"""Human-friendly quantities: `100M` bits per second, `50us`, `64KB`, `50p` packets, and back."""

import re
from collections.abc import Callable
from typing import TypeVar

from lab.errors import UsageError
from mininet_topos import quantities
from mininet_topos.quantities import DECIMAL

T = TypeVar("T")

_BYTES = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}


def _split(text: str, what: str, example: str) -> tuple[float, str]:
    return _usage(lambda: quantities.split(text, what, example))


def _usage(work: Callable[[], T]) -> T:
    try:
        return work()
    except ValueError as error:
        raise UsageError(str(error)) from None


def parse_rate(text: str) -> int:
    """Bits per second of `100M`, `1.5Gbps`, `2500000`."""
    return _usage(lambda: quantities.parse_rate(text))


def parse_time(text: str) -> int:
    """Nanoseconds of `50us`, `1.5ms`, `200ns`, `2s`."""
    return _usage(lambda: quantities.parse_time(text))


def parse_size(text: str) -> int:
    """Bytes of `20KB` (1000 each), `64KiB` (1024 each), `1500`."""
    value, unit = _split(text, "size", "20KB or 64KiB")
    if unit not in _BYTES:
        raise UsageError(f"size {text!r}: the unit must be B, KB, MB, GB, KiB, MiB or GiB.")
    return round(value * _BYTES[unit])


def parse_packet_rate(text: str) -> int:
    """Packets per second of `1000`, `1.5k`, `2Mpps`."""
    value, unit = _split(text, "packet rate", "1000 or 1.5k")
    unit = unit.removesuffix("pps")
    if unit not in DECIMAL or value <= 0:
        raise UsageError(f"packet rate {text!r}: need a positive number of k, M or G packets per second, such as 1.5k.")
    return round(value * DECIMAL[unit])


def parse_depth(text: str) -> tuple[int | None, int | None]:
    """(packets, bytes) of a queue's depth, one of them: `50p` packets, or bytes such as `64KB`."""
    if match := re.fullmatch(r"\s*(\d+)\s*p(?:ackets)?\s*", text):
        return int(match[1]), None
    if not re.fullmatch(r"\s*[\d.]+\s*[A-Za-z]+\s*", text):
        raise UsageError(f"depth {text!r} needs a unit: packets such as 50p, or bytes such as 64KB.")
    return None, parse_size(text)


def format_bytes(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.2f} {unit}"
        count /= 1000
    raise AssertionError("unreachable")


def format_rate(bps: float) -> str:
    for unit in ("b/s", "kb/s", "Mb/s", "Gb/s"):
        if bps < 1000 or unit == "Gb/s":
            return f"{bps:.1f} {unit}"
        bps /= 1000
    raise AssertionError("unreachable")
