"""The frames that a controller and a switch's neighbors exchange: LLDP (IEEE 802.1AB) and ARP (RFC 826).

What comes from outside is parsed within its bounds; what is not understood is None.
"""

from __future__ import annotations

import ipaddress
import struct
from dataclasses import dataclass
from typing import Self

from wire.codes import EtherType

_ETHERNET = struct.Struct("!6s6sH")
_NEAREST_BRIDGE = bytes.fromhex("0180c200000e")  # 802.1AB, table 7-1: not forwarded by bridges
_ARP = struct.Struct("!HHBBH6s4s6s4s")
_ETHERNET_HARDWARE, _REQUEST, _REPLY = 1, 1, 2

# 802.1AB, tables 8-1 to 8-4: types of TLVs, and "locally assigned" among the subtypes of the first two.
_END, _CHASSIS, _PORT, _TTL = 0, 1, 2, 3
_LOCAL = 7
_TTL_S = 120


def ether_type(frame: bytes) -> int:
    """0 for what is too short to have one."""
    return int(_ETHERNET.unpack_from(frame)[2]) if len(frame) >= _ETHERNET.size else 0


@dataclass(frozen=True, slots=True)
class Lldp:
    """Says where it was sent: by a switch's port."""

    switch: str
    port: int

    def encode(self, src_mac: str) -> bytes:
        body = _tlv(_CHASSIS, bytes([_LOCAL]) + self.switch.encode())
        body += _tlv(_PORT, bytes([_LOCAL]) + str(self.port).encode())
        body += _tlv(_TTL, struct.pack("!H", _TTL_S)) + _tlv(_END, b"")
        return _ETHERNET.pack(_NEAREST_BRIDGE, _mac(src_mac), EtherType.LLDP) + body

    @classmethod
    def decode(cls, frame: bytes) -> Self | None:
        """None also for other people's LLDP, whose ids are of other kinds."""
        if ether_type(frame) != EtherType.LLDP:
            return None
        texts: dict[int, str] = {}
        position = _ETHERNET.size
        while position + 2 <= len(frame):
            header = int.from_bytes(frame[position : position + 2], "big")
            kind, length = header >> 9, header & 0x1FF
            value = frame[position + 2 : position + 2 + length]
            if kind == _END or len(value) < length:
                break
            if kind in (_CHASSIS, _PORT) and value[:1] == bytes([_LOCAL]):
                texts[kind] = value[1:].decode("ascii", "replace")
            position += 2 + length
        port = texts.get(_PORT, "")
        return cls(texts[_CHASSIS], int(port)) if _CHASSIS in texts and port.isascii() and port.isdigit() else None


def _tlv(kind: int, value: bytes) -> bytes:
    return struct.pack("!H", kind << 9 | len(value)) + value


def _mac(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))


@dataclass(frozen=True, slots=True)
class ArpRequest:
    """Somebody asks who has an address."""

    sender_mac: bytes
    sender: ipaddress.IPv4Address
    target: ipaddress.IPv4Address

    @classmethod
    def decode(cls, frame: bytes) -> Self | None:
        if ether_type(frame) != EtherType.ARP or len(frame) < _ETHERNET.size + _ARP.size:
            return None
        hardware, protocol, hardware_length, length, operation, mac, sender, _, target = _ARP.unpack_from(
            frame, _ETHERNET.size
        )
        wanted = (_ETHERNET_HARDWARE, EtherType.IPV4, 6, 4, _REQUEST)
        if (hardware, protocol, hardware_length, length, operation) != wanted:
            return None
        return cls(mac, ipaddress.IPv4Address(sender), ipaddress.IPv4Address(target))

    def reply(self, mac: str) -> bytes:
        """The frame that says that `mac` has the address."""
        own = _mac(mac)
        body = _ARP.pack(
            *(_ETHERNET_HARDWARE, EtherType.IPV4, 6, 4, _REPLY),
            *(own, self.target.packed, self.sender_mac, self.sender.packed),
        )
        return _ETHERNET.pack(self.sender_mac, own, EtherType.ARP) + body
