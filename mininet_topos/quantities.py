"""Rates and times as people write them: `100M` bits per second, `50us`."""

from __future__ import annotations

import re

DECIMAL = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_TIME_NS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}


def split(text: str, what: str, example: str) -> tuple[float, str]:
    """Number and unit, the unit in lower case; ValueError says what a `what` looks like."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z/]*)\s*", text)
    if not match:
        raise ValueError(f"{what} {text!r} is not a number with a unit, such as {example}.")
    return float(match[1]), match[2].lower()


def parse_rate(text: str) -> int:
    """Bits per second of `100M`, `1.5Gbps`, `2500000`; ValueError otherwise."""
    value, unit = split(text, "rate", "100M or 10Gbps")
    unit = unit.removesuffix("bit/s").removesuffix("b/s").removesuffix("bps")
    if unit not in DECIMAL or value <= 0:
        raise ValueError(f"rate {text!r}: need a positive number of k, M or G bits per second, such as 100M.")
    return round(value * DECIMAL[unit])


def parse_time(text: str) -> int:
    """Nanoseconds of `50us`, `1.5ms`, `200ns`, `2s`; ValueError otherwise."""
    value, unit = split(text, "time", "50us or 1ms")
    if unit not in _TIME_NS:
        raise ValueError(f"time {text!r}: the unit must be ns, us, ms or s.")
    return round(value * _TIME_NS[unit])


def rate_text(bps: int) -> str:
    """The shortest text that `parse_rate` reads as exactly this rate."""
    return _text(bps, (("T", 10**12), ("G", 10**9), ("M", 10**6), ("k", 10**3)), "")


def time_text(ns: int) -> str:
    """The shortest text that `parse_time` reads as exactly this time."""
    return _text(ns, (("s", 10**9), ("ms", 10**6), ("us", 10**3)), "ns")


def _text(value: int, units: tuple[tuple[str, int], ...], least: str) -> str:
    for name, size in units:
        # Up to three digits after the point; more are clearer in the next smaller unit.
        if value >= size and value * 1000 % size == 0:
            return f"{value / size:.3f}".rstrip("0").rstrip(".") + name
    return f"{value}{least}"
