"""What came out of a switch against what a case expects: per port in order, equally many, contents by pattern."""

from collections.abc import Iterable, Sequence

from lab.stf.syntax import Expect

_SHOWN = 64  # bytes of a packet in a report

PortPacket = tuple[int, bytes]


def matches(expect: Expect, data: bytes) -> bool:
    """`*` stands for any digit; without `$` more bytes may follow."""
    if expect.pattern is None:
        return True
    found = data.hex().upper()
    if len(found) < len(expect.pattern) or (expect.exact and len(found) > len(expect.pattern)):
        return False
    return all(want in ("*", have) for want, have in zip(expect.pattern, found, strict=False))


def difference(expected: Sequence[Expect], received: Iterable[PortPacket]) -> str:
    """How they differ, in a line; "" if they do not."""
    packets: dict[int, list[bytes]] = {}
    for port, data in received:
        packets.setdefault(port, []).append(data)
    expects: dict[int, list[Expect]] = {}
    for expect in expected:
        expects.setdefault(expect.port, []).append(expect)
    found = []
    for port in sorted({*packets, *expects}):
        wanted, have = expects.get(port, []), packets.get(port, [])
        if len(wanted) != len(have):
            found.append(f"port {port}: {len(wanted)} packets expected, {len(have)} came{_listing(have)}")
            continue
        for expect, data in zip(wanted, have, strict=True):
            if not matches(expect, data):
                pattern = (expect.pattern or "") + ("$" if expect.exact else "")
                found.append(f"port {port}, line {expect.line}: expected {_short(pattern)}, got {_hex(data)}")
    return "; ".join(found)


def _listing(packets: list[bytes]) -> str:
    return f": {', '.join(_hex(data) for data in packets[:3])}{', …' if len(packets) > 3 else ''}" if packets else ""


def _hex(data: bytes) -> str:
    return _short(data.hex().upper())


def _short(text: str) -> str:
    return text if len(text) <= 2 * _SHOWN else f"{text[: 2 * _SHOWN]}… ({len(text) // 2} bytes)"
