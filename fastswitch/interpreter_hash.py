"""The hashes of v1model over bytes, bit by bit: the reference that the generated, table-driven ones are held to."""

from __future__ import annotations

from collections.abc import Callable


def _reflect(value: int, width: int) -> int:
    return int(f"{value:0{width}b}"[::-1], 2)


def _crc(width: int, polynomial: int, initial: int, reflected: bool, final: int) -> Callable[[bytes], int]:
    def compute(data: bytes) -> int:
        register = initial
        for byte in data:
            register ^= (_reflect(byte, 8) if reflected else byte) << (width - 8)
            for _ in range(8):
                top = register >> (width - 1)
                register = (register << 1 & ((1 << width) - 1)) ^ (polynomial if top else 0)
        return (_reflect(register, width) if reflected else register) ^ final

    return compute


def csum16(data: bytes) -> int:
    """The Internet checksum (RFC 1071)."""
    data += b"\0" * (len(data) % 2)
    total = sum(int.from_bytes(data[i : i + 2], "big") for i in range(0, len(data), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def _xor(size: int) -> Callable[[bytes], int]:
    def compute(data: bytes) -> int:
        data += b"\0" * (-len(data) % size)
        result = 0
        for start in range(0, len(data), size):
            result ^= int.from_bytes(data[start : start + size], "big")
        return result

    return compute


def xxh64(data: bytes) -> int:
    """XXH64 with seed 0."""
    p1, p2, p3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
    p4, p5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
    full = (1 << 64) - 1

    def rotate(value: int, by: int) -> int:
        value &= full
        return (value << by | value >> (64 - by)) & full

    def step(lane: int, word: int) -> int:
        return rotate(lane + word * p2, 31) * p1 & full

    position = 0
    if len(data) >= 32:
        lanes = [p1 + p2 & full, p2, 0, -p1 & full]
        while len(data) - position >= 32:
            for i in range(4):
                lanes[i] = step(lanes[i], int.from_bytes(data[position : position + 8], "little"))
                position += 8
        result = sum(rotate(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True)) & full
        for lane in lanes:
            result = ((result ^ step(0, lane)) * p1 + p4) & full
    else:
        result = p5
    result = result + len(data) & full
    while len(data) - position >= 8:
        result = (
            rotate(result ^ step(0, int.from_bytes(data[position : position + 8], "little")), 27) * p1 + p4
        ) & full
        position += 8
    if len(data) - position >= 4:
        word = int.from_bytes(data[position : position + 4], "little")
        result = (rotate(result ^ word * p1, 23) * p2 + p3) & full
        position += 4
    for byte in data[position:]:
        result = rotate(result ^ byte * p5, 11) * p1 & full
    result = (result ^ result >> 33) * p2 & full
    result = (result ^ result >> 29) * p3 & full
    return result ^ result >> 32


HASHES: dict[str, Callable[[bytes], int]] = {
    "crc8_custom": _crc(8, 0x07, 0, False, 0),
    "crc16": _crc(16, 0x8005, 0, True, 0),
    "crc16_custom": _crc(16, 0x8005, 0, True, 0),
    "crc32": _crc(32, 0x04C11DB7, 0xFFFFFFFF, True, 0xFFFFFFFF),
    "crc32_custom": _crc(32, 0x04C11DB7, 0xFFFFFFFF, True, 0xFFFFFFFF),
    "crc64_custom": _crc(64, 0x1B, 0, True, 0),
    "crcCCITT": _crc(16, 0x1021, 0xFFFF, False, 0),
    "csum16": csum16,
    "cksum16": csum16,
    "toeplitz": lambda data: 0,  # its default key is zero
    "identity": lambda data: int.from_bytes(data[:8], "big"),
    "xor16": _xor(2),
    "xor32": _xor(4),
    "xxh64": xxh64,
}
