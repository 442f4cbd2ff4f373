"""Values as people write them, and back: integers, IPv4, MAC, prefixes, masks, ranges.

    exact, optional   7   0x1f   10.0.0.1   02:00:00:00:00:01
    lpm               10.0.0.0/24   10.0.0.1
    ternary           0x0800&&&0xff00   10.0.0.0/24   7
    range             1..5   7

"*" is a field that does not matter (not for exact). The names of hosts and switches stand for their addresses, or for
the port that leads to them: see `controller.names`.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Any

import finsy as fy
from finsy.p4schema import P4MatchField, P4MatchType
from finsy.proto import p4r

from controller.errors import EntryTextError
from controller.names import IPV4_BITS, MAC_BITS, NO_NAMES, Names

ANY = "*"

IPV6_BITS = 128

# P4Info knows widths, not meanings. A 32-bit or 48-bit value is shown as an address if its name says that it is one.
_ADDRESS_NAME = re.compile(r"(^|[._])(src|dst|mac|eth|ip|ipv4|addr|address|gateway|next_?hop)(?=$|[._])", re.IGNORECASE)


def parse_value(text: str, bitwidth: int, name: str, names: Names = NO_NAMES) -> int | str:
    """The value of a field or parameter; EntryTextError says what was expected.  Text stays text at width 0."""
    text = text.strip()
    if bitwidth == 0:
        return text
    named = names.value(text, bitwidth, name)
    try:
        value = _parse_number(text if named is None else str(named), bitwidth)
    except ValueError:
        raise EntryTextError(f"{name}: {text!r} is not {_expected(bitwidth)}") from None
    if not 0 <= value < 1 << bitwidth:
        raise EntryTextError(f"{name}: {text} does not fit in {bitwidth} bits")
    return value


def _parse_number(text: str, bitwidth: int) -> int:
    if bitwidth == IPV4_BITS and "." in text:
        return int(ipaddress.IPv4Address(text))
    if bitwidth == IPV6_BITS and ":" in text:
        return int(ipaddress.IPv6Address(text))
    if bitwidth == MAC_BITS and ":" in text:
        return int(fy.MACAddress(text))
    return int(text, base=0)


def _expected(bitwidth: int) -> str:
    extra = {IPV4_BITS: " or an IPv4 address", MAC_BITS: " or a MAC address", IPV6_BITS: " or an IPv6 address"}
    return f"a number{extra.get(bitwidth, '')}"


def bounded(what: str, number: int, low: int, high: int) -> int:
    """The number, if it is in these bounds; EntryTextError."""
    if not low <= number <= high:
        raise EntryTextError(f"{what} {number}: it is from {low} to {high}")
    return number


def is_address(described: Any) -> bool:
    """Whether a key field or parameter of P4Info is an address: by its annotation, @format(IPV4_ADDRESS), or name."""
    formats = (note.body for note in described.annotations if note.name == "format")
    return any("ADDRESS" in str(body) for body in formats) or bool(_ADDRESS_NAME.search(described.name))


def format_value(value: int, bitwidth: int, address: bool) -> str:
    """The text of a value, as an address where it is one and its width is that of one."""
    if bitwidth == MAC_BITS and address:
        return str(fy.MACAddress(value))
    if bitwidth == IPV4_BITS and address:
        return str(ipaddress.IPv4Address(value))
    if bitwidth == IPV6_BITS:
        return str(ipaddress.IPv6Address(value))
    return str(value) if bitwidth <= 64 else hex(value)


def parse_field(field: P4MatchField, text: str, names: Names = NO_NAMES) -> object | None:
    """A match as finsy takes it, None for "does not matter"; EntryTextError says what is wrong."""
    name, width = field.name, field.bitwidth
    text = text.strip()
    if text == ANY:
        if field.match_type is P4MatchType.EXACT:
            raise EntryTextError(f"{name}: an exact key needs a value")
        return None
    match field.match_type:
        case P4MatchType.EXACT | P4MatchType.OPTIONAL:
            return parse_value(text, width, name, names)
        case P4MatchType.LPM:
            value, prefix = _parse_prefix(text, width, name, names)
            return (value, prefix) if prefix else None
        case P4MatchType.TERNARY:
            value, mask = _parse_masked(text, width, name, names)
            return (value & mask, mask) if mask else None
        case P4MatchType.RANGE:
            return _parse_range(text, width, name, names)
    raise EntryTextError(f"{name}: is not matched, it is a {field.match_type} key")


def _parse_prefix(text: str, width: int, name: str, names: Names) -> tuple[int, int]:
    value_text, slash, length_text = text.partition("/")
    value = _integer(value_text, width, name, names)
    if not slash:
        return value, width
    if not length_text.isdigit() or int(length_text) > width:
        raise EntryTextError(f"{name}: prefix length {length_text!r} must be from 0 to {width}")
    length = int(length_text)
    return value & _prefix_mask(length, width), length


def _prefix_mask(length: int, width: int) -> int:
    return (1 << width) - (1 << (width - length))


def _parse_masked(text: str, width: int, name: str, names: Names) -> tuple[int, int]:
    value_text, separator, mask_text = text.partition("&&&")
    if separator:
        return _integer(value_text, width, name, names), _integer(mask_text, width, name, names)
    value, length = _parse_prefix(text, width, name, names)
    return value, _prefix_mask(length, width)


def _parse_range(text: str, width: int, name: str, names: Names) -> tuple[int, int] | None:
    low_text, separator, high_text = text.partition("..")
    # "10.0.0.1..10.0.0.9": addresses hold single dots only, so that the first ".." separates.
    low = _integer(low_text, width, name, names)
    high = _integer(high_text, width, name, names) if separator else low
    if low > high:
        raise EntryTextError(f"{name}: {text}: the range ends before it begins")
    # P4Runtime wants a range over everything to be left out.
    return None if (low, high) == (0, (1 << width) - 1) else (low, high)


def _integer(text: str, width: int, name: str, names: Names) -> int:
    value = parse_value(text, width, name, names)
    assert isinstance(value, int), "only exact keys can be strings"
    return value


def format_field(field: P4MatchField, match: p4r.FieldMatch) -> str:
    """The text of a match, such that `parse_field` reads it back."""
    width, address = field.bitwidth, is_address(field)

    def text(value: bytes) -> str:
        return format_value(int.from_bytes(value, "big"), width, address) if width else value.decode()

    match match.WhichOneof("field_match_type"):
        case "exact":
            return text(match.exact.value)
        case "optional":
            return text(match.optional.value)
        case "lpm":
            return f"{text(match.lpm.value)}/{match.lpm.prefix_len}"
        case "ternary":
            mask = int.from_bytes(match.ternary.mask, "big")
            if mask == (1 << width) - 1:
                return text(match.ternary.value)
            return f"{hex(int.from_bytes(match.ternary.value, 'big'))}&&&{hex(mask)}"
        case "range":
            return f"{text(match.range.low)}..{text(match.range.high)}"
    return ANY
