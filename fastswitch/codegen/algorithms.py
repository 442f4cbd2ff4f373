"""The hash algorithms of v1model, and the tables of the CRCs among them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Crc:
    """A CRC as the catalogues parameterise it."""

    width: int
    polynomial: int
    initial: int
    reflected: bool
    final_xor: int

    def table(self) -> list[int]:
        """The 256 remainders that a byte at a time needs."""
        mask = (1 << self.width) - 1
        found = []
        for byte in range(256):
            if self.reflected:
                polynomial = int(f"{self.polynomial:0{self.width}b}"[::-1], 2)
                value = byte
                for _ in range(8):
                    value = (value >> 1) ^ (polynomial if value & 1 else 0)
            else:
                value = byte << (self.width - 8)
                for _ in range(8):
                    value = ((value << 1) ^ (self.polynomial if value >> (self.width - 1) else 0)) & mask
            found.append(value)
        return found

    def slices(self, count: int) -> list[list[int]]:
        """Tables to take `count` bytes at once: slices[k][b] is byte b followed by k zero bytes (reflected CRCs)."""
        tables = [self.table()]
        while len(tables) < count:
            first, last = tables[0], tables[-1]
            tables.append([first[value & 0xFF] ^ (value >> 8) for value in last])
        return tables


CRC16 = Crc(16, 0x8005, 0, True, 0)
CRC32 = Crc(32, 0x04C11DB7, 0xFFFFFFFF, True, 0xFFFFFFFF)

# The `_custom` ones can be changed over Thrift only, so their defaults are what runs.
CRCS = {
    "crc8_custom": Crc(8, 0x07, 0, False, 0),
    "crc16": CRC16,
    "crc16_custom": CRC16,
    "crc32": CRC32,
    "crc32_custom": CRC32,
    "crc64_custom": Crc(64, 0x1B, 0, True, 0),
    "crcCCITT": Crc(16, 0x1021, 0xFFFF, False, 0),
}

ALGORITHMS = (*CRCS, "csum16", "cksum16", "identity", "xor16", "xor32", "xxh64")
