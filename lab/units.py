"""Human-friendly quantities: `100M` bits per second, `50us`, `64MiB`, and back."""

import re

from lab.errors import UsageError

_DECIMAL = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}
_TIME_NS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}


def _split(text: str, what: str, example: str) -> tuple[float, str]:
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z/]*)\s*", text)
    if not match:
        raise UsageError(f"{what} {text!r} is not a number with a unit, such as {example}.")
    return float(match[1]), match[2].lower()


def parse_rate(text: str) -> int:
    """Bits per second of `100M`, `1.5Gbps`, `2500000`."""
    value, unit = _split(text, "rate", "100M or 10Gbps")
    unit = unit.removesuffix("bit/s").removesuffix("bps")
    if unit not in _DECIMAL or value <= 0:
        raise UsageError(f"rate {text!r}: need a positive number of k, M or G bits per second, such as 100M.")
    return round(value * _DECIMAL[unit])


def parse_time(text: str) -> int:
    """Nanoseconds of `50us`, `1.5ms`, `200ns`, `2s`."""
    value, unit = _split(text, "time", "50us or 1ms")
    if unit not in _TIME_NS:
        raise UsageError(f"time {text!r}: the unit must be ns, us, ms or s.")
    return round(value * _TIME_NS[unit])


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
