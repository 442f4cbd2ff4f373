"""P4Data, the values of registers and digests, as people write them."""

from __future__ import annotations

from typing import Any

from finsy.p4schema import P4BitsType
from finsy.proto import p4d

from controller import values
from controller.errors import EntryTextError


def data_text(kind: Any, data: p4d.P4Data) -> str:
    """A number; the members of a structure in braces."""
    return _text(kind.decode_data(data))


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}={_text(member)}" for name, member in value.items()) + "}"
    if isinstance(value, tuple | list):
        return "{" + ", ".join(map(_text, value)) + "}"
    return str(int(value)) if isinstance(value, bool) else str(value)


def plain(value: Any) -> Any:
    """A decoded value as JSON has it; numbers stay numbers."""
    if isinstance(value, dict):
        return {name: plain(member) for name, member in value.items()}
    if isinstance(value, tuple | list):
        return [plain(member) for member in value]
    return value if isinstance(value, int | str) else str(value)


def parse_data(kind: Any, text: str, name: str) -> p4d.P4Data:
    """EntryTextError for what is no value of this type."""
    if not isinstance(kind, P4BitsType) or kind.varbit:
        raise EntryTextError(f"{name}: cells of type {kind.type_name} cannot be written from here; numbers can")
    parse = _signed if kind.signed else values.parse_value
    return kind.encode_data(parse(text, kind.bitwidth, name))


def _signed(text: str, bitwidth: int, name: str) -> int:
    try:
        value = int(text, 0)
    except ValueError:
        raise EntryTextError(f"{name}: {text!r} is not a number") from None
    if not -(1 << (bitwidth - 1)) <= value < 1 << (bitwidth - 1):
        raise EntryTextError(f"{name}: {text} does not fit in {bitwidth} bits with a sign")
    return value
