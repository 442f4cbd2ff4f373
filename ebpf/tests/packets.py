"""RoCEv2 packets as scapy makes them: an oracle that shares no code with the NIC."""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from typing import Any

from scapy.contrib import roce
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw, split_layers

# Importing scapy's RoCE binds it to the port that the project's own layers use; only its classes are wanted here.
split_layers(UDP, roce.BTH, dport=4791)

SEND_FIRST, SEND_MIDDLE, SEND_LAST, SEND_LAST_IMM, SEND_ONLY, SEND_ONLY_IMM = 0x00, 0x01, 0x02, 0x03, 0x04, 0x05
SEND_LAST_INVALIDATE, SEND_ONLY_INVALIDATE = 0x16, 0x17
WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST, WRITE_LAST_IMM, WRITE_ONLY, WRITE_ONLY_IMM = 0x06, 0x07, 0x08, 0x09, 0x0A, 0x0B
READ_REQUEST, READ_RESPONSE_FIRST, READ_RESPONSE_MIDDLE, READ_RESPONSE_LAST, READ_RESPONSE_ONLY = range(0x0C, 0x11)
ACKNOWLEDGE, ATOMIC_ACKNOWLEDGE, COMPARE_SWAP, FETCH_ADD, READ_ACKNOWLEDGE, CNP = 0x11, 0x12, 0x13, 0x14, 0x18, 0x81
ACK, RNR, NAK_SEQUENCE, NAK_INVALID, NAK_ACCESS, NAK_OPERATION = 0x1F, 0x20, 0x60, 0x61, 0x62, 0x63


@dataclass(frozen=True)
class Ends:
    """Addresses of one direction."""

    src_mac: str = "02:00:00:00:00:02"
    dst_mac: str = "02:00:00:00:00:01"
    src_ip: str = "10.0.0.2"
    dst_ip: str = "10.0.0.1"
    src_port: int = 0xC123
    dst_port: int = 4791


ENDS = Ends()


def reth(va: int, rkey: int, length: int) -> bytes:
    return struct.pack("!QII", va, rkey, length)


def aeth(syndrome: int, msn: int = 0) -> bytes:
    return struct.pack("!I", syndrome << 24 | msn)


def atomic(va: int, rkey: int, swap_add: int = 0, compare: int = 0) -> bytes:
    return struct.pack("!QIQQ", va, rkey, swap_add, compare)


def frame(
    opcode: int,
    psn: int,
    qpn: int,
    body: bytes = b"",
    extension: bytes = b"",
    ends: Ends = ENDS,
    ip: dict[str, Any] | None = None,
    **bth: Any,
) -> bytes:
    """A frame with a right ICRC; `ip` and `bth` override header fields."""
    pad = -len(body) % 4
    header = roce.BTH(**{"opcode": opcode, "psn": psn, "dqpn": qpn, "padcount": pad, "migreq": 1, **bth})
    packet = (
        Ether(src=ends.src_mac, dst=ends.dst_mac)
        / IP(**{"src": ends.src_ip, "dst": ends.dst_ip, "id": 0, "flags": "DF", "tos": 2, **(ip or {})})
        / UDP(sport=ends.src_port, dport=ends.dst_port, chksum=0)
        / header
        / Raw(extension + body + bytes(pad))
    )
    return bytes(packet)


def reply(syndrome: int, psn: int, msn: int, qpn: int, to: Ends = ENDS) -> bytes:
    """The acknowledge packet that answers a packet that came along `to`."""
    back = Ends(to.dst_mac, to.src_mac, to.dst_ip, to.src_ip, to.src_port)
    return frame(ACKNOWLEDGE, psn, qpn, extension=aeth(syndrome, msn), ends=back, ip={"tos": 0, "ttl": 64})


def with_ends(**changes: Any) -> Ends:
    return replace(ENDS, **changes)
