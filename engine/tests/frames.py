"""Frames that the echo program understands."""

from __future__ import annotations

import struct
from dataclasses import dataclass

TELEMETRY_TYPE = b"\x88\xb5"


def mac(number: int) -> bytes:
    return bytes([2, 0, 0, 0, 0, number])


def frame(destination: int, payload: bytes = b"", size: int = 60) -> bytes:
    """A frame that egress fills with telemetry."""
    return (mac(destination) + mac(1) + TELEMETRY_TYPE + bytes(20) + payload).ljust(size, b"\0")


def ipv4(destination: str, source: str = "10.0.0.1", ttl: int = 64, size: int = 100) -> bytes:
    def octets(address: str) -> bytes:
        return bytes(int(o) for o in address.split("."))

    header = bytes([0x45, 0]) + (size - 14).to_bytes(2, "big") + bytes(4) + bytes([ttl, 17, 0, 0])
    ports = struct.pack("!HHHH", 1000, 4791, size - 34, 0)
    return (mac(2) + mac(1) + b"\x08\x00" + header + octets(source) + octets(destination) + ports).ljust(size, b"\0")


@dataclass(frozen=True)
class Telemetry:
    instance_type: int
    egress_rid: int
    ingress_port: int
    enq_qdepth: int
    deq_qdepth: int
    deq_timedelta: int
    keep: int
    lose: int


def telemetry(data: bytes) -> Telemetry:
    return Telemetry(*struct.unpack("!BBHIIIHH", data[14:34]))


def port(number: int) -> bytes:
    return number.to_bytes(2, "big")


def number(value: int) -> bytes:
    return value.to_bytes(2, "big")


def pause(classes: dict[int, int]) -> bytes:
    """A frame of priority flow control (IEEE 802.1Qbb): quanta by class, 0 to resume."""
    vector = sum(1 << c for c in classes)
    times = [classes.get(c, 0) for c in range(8)]
    return bytes.fromhex("0180c20000010200000000998808") + struct.pack("!HH8H", 0x0101, vector, *times) + bytes(26)
