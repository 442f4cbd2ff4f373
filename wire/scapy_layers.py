"""Emits layers.py: a scapy layer for every header that scapy does not bring itself."""

from __future__ import annotations

from collections.abc import Iterator

from wire.declarations import Enum, Field, Header, Source
from wire.text import class_name, notice

_IN_SCAPY = {"ethernet", "ipv4", "udp"}  # its Ether, IP and UDP
_TRANSPORT = "bth"
_CLASS_NAMES = {
    **{"bth": "BTH", "reth": "RETH", "aeth": "AETH", "immdt": "ImmDt", "ieth": "IETH"},
    **{"atomic_eth": "AtomicETH", "atomic_ack_eth": "AtomicAckETH", "xdata": "XData", "xack": "XAck"},
}
_DEFAULTS = {("bth", "pkey"): "codes.ROCEV2_DEFAULT_PKEY"}


def emit(sources: list[Source]) -> str:
    headers = [header for source in sources for header in source.of(Header) if header.name not in _IN_SCAPY]
    enums = {enum.name for source in sources for enum in source.of(Enum)}
    classes = {header.name: _CLASS_NAMES.get(header.name, class_name(header.name)) for header in headers}
    lines = [
        '"""Scapy layers of RoCEv2, bound on UDP port 4791.\n',
        notice(sources),
        '"""\n',
        "from scapy.fields import BitEnumField, BitField, XBitField\n",
        "from wire import codes",
        "from wire.rocev2 import ICRCField, RoceLayer, TransportLayer, bind, names\n",
        f"__all__ = [{', '.join(repr(name) for name in sorted(classes.values()))}]".replace("'", '"'),
    ]
    for header in headers:
        lines.extend(_layer(header, classes[header.name], enums))
    lines.append(f"\n\nbind({classes[_TRANSPORT]})")
    return "\n".join(lines) + "\n"


def _layer(header: Header, name: str, enums: set[str]) -> Iterator[str]:
    base = "TransportLayer" if header.name == _TRANSPORT else "RoceLayer"
    yield f"\n\nclass {name}({base}):"
    yield f'    name = "{name}"'
    yield f'    header_name = "{header.name}"'
    yield f"    header_bytes = codes.{header.name.upper()}_LEN"
    yield "    fields_desc = ["
    for field in header.fields:
        yield f"        {_field(header, field, enums)},"
    if header.name == _TRANSPORT:
        yield '        ICRCField("icrc"),'
    yield "    ]"


def _field(header: Header, field: Field, enums: set[str]) -> str:
    default = _DEFAULTS.get((header.name, field.name), "0")
    if field.type_name in enums:
        return f'BitEnumField("{field.name}", {default}, {field.bits}, names(codes.{class_name(field.type_name)}))'
    kind = "XBitField" if field.bits == 64 else "BitField"  # 64-bit fields are addresses
    return f'{kind}("{field.name}", {default}, {field.bits})'
