"""Human-friendly quantities: `100M` bits per second, `50us`, `64KB`, `50p` packets, and back."""

import re

from lab.errors import UsageError

_DECIMAL = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}
_BYTES = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}
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
    if unit not in _DECIMAL or value <= 0:
        raise UsageError(f"packet rate {text!r}: need a positive number of k, M or G packets per second, such as 1.5k.")
    return round(value * _DECIMAL[unit])


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
