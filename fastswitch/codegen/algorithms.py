"""The hash algorithms that BMv2 knows, by the names that programs call them."""

from __future__ import annotations

import re
from dataclasses import dataclass


def _reflect(value: int, width: int) -> int:
    return int(f"{value:0{width}b}"[::-1], 2)


@dataclass(frozen=True, slots=True)
class Crc:
    """A CRC as the catalogues parameterise it."""

    width: int
    polynomial: int
    initial: int
    reflected: bool
    final_xor: int

    @property
    def start(self) -> int:
        """The register before the first byte: reflected CRCs hold it mirrored."""
        return _reflect(self.initial, self.width) if self.reflected else self.initial

    @property
    def sliced(self) -> bool:
        """Whether several bytes can be taken at once."""
        return self.reflected and self.width <= 32

    def table(self) -> list[int]:
        """The 256 remainders that a byte at a time needs."""
        mask = (1 << self.width) - 1
        found = []
        for byte in range(256):
            if self.reflected:
                polynomial = _reflect(self.polynomial, self.width)
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


@dataclass(frozen=True, slots=True)
class Algorithm:
    """`kind`: crc (with `crc`), csum16, identity, xor16, xor32, xxh64, zero or round_robin; `bits` of its result."""

    kind: str
    bits: int
    crc: Crc | None = None


_FULL16, _FULL32, _FULL64 = 0xFFFF, 0xFFFFFFFF, (1 << 64) - 1
# Parameters as BMv2 has them; most are in the catalogue of parametrised CRC algorithms under similar names.
_CRCS = {
    "crc16": Crc(16, 0x8005, 0, True, 0),
    "crc32": Crc(32, 0x04C11DB7, _FULL32, True, _FULL32),
    "crcCCITT": Crc(16, 0x1021, _FULL16, False, 0),
    # These can be changed over Thrift only, so their defaults are what runs.
    "crc8_custom": Crc(8, 0x07, 0, False, 0),
    "crc16_custom": Crc(16, 0x8005, 0, True, 0),
    "crc32_custom": Crc(32, 0x04C11DB7, _FULL32, True, _FULL32),
    "crc64_custom": Crc(64, 0x1B, 0, True, 0),
    # Presets of P4-14 programs.
    "crc_8": Crc(8, 0x07, 0, False, 0),
    "crc_8_darc": Crc(8, 0x39, 0, True, 0),
    "crc_8_i_code": Crc(8, 0x1D, 0xFD, False, 0),
    "crc_8_itu": Crc(8, 0x07, 0, False, 0x55),
    "crc_8_maxim": Crc(8, 0x31, 0, True, 0),
    "crc_8_rohc": Crc(8, 0x07, 0xFF, True, 0),
    "crc_8_wcdma": Crc(8, 0x9B, 0, True, 0),
    "crc_16": Crc(16, 0x8005, 0, True, 0),
    "crc_16_buypass": Crc(16, 0x8005, 0, False, 0),
    "crc_16_dds_110": Crc(16, 0x8005, 0x800D, False, 0),
    "crc_16_dect": Crc(16, 0x0589, 0, False, 1),
    "crc_16_dnp": Crc(16, 0x3D65, 0, True, _FULL16),
    "crc_16_en_13757": Crc(16, 0x3D65, 0, False, _FULL16),
    "crc_16_genibus": Crc(16, 0x1021, _FULL16, False, _FULL16),
    "crc_16_maxim": Crc(16, 0x8005, 0, True, _FULL16),
    "crc_16_mcrf4xx": Crc(16, 0x1021, _FULL16, True, 0),
    "crc_16_riello": Crc(16, 0x1021, 0xB2AA, True, 0),
    "crc_16_t10_dif": Crc(16, 0x8BB7, 0, False, 0),
    "crc_16_teledisk": Crc(16, 0xA097, 0, False, 0),
    "crc_16_usb": Crc(16, 0x8005, _FULL16, True, _FULL16),
    "x_25": Crc(16, 0x1021, _FULL16, True, _FULL16),
    "xmodem": Crc(16, 0x1021, 0, False, 0),
    "modbus": Crc(16, 0x8005, _FULL16, True, 0),
    "kermit": Crc(16, 0x1021, 0, True, 0),
    "crc_ccitt_false": Crc(16, 0x1021, _FULL16, False, 0),
    "crc_aug_ccitt": Crc(16, 0x1021, 0x1D0F, False, 0),
    "crc_32": Crc(32, 0x04C11DB7, _FULL32, True, _FULL32),
    "crc_32_bzip2": Crc(32, 0x04C11DB7, _FULL32, False, _FULL32),
    "crc_32c": Crc(32, 0x1EDC6F41, _FULL32, True, _FULL32),
    "crc_32d": Crc(32, 0xA833982B, _FULL32, True, _FULL32),
    "crc_32_mpeg": Crc(32, 0x04C11DB7, _FULL32, False, 0),
    "posix": Crc(32, 0x04C11DB7, 0, False, _FULL32),
    "crc_32q": Crc(32, 0x814141AB, 0, False, 0),
    "jamcrc": Crc(32, 0x04C11DB7, _FULL32, True, 0),
    "xfer": Crc(32, 0x000000AF, 0, False, 0),
    "crc_64": Crc(64, 0x1B, 0, True, 0),
    "crc_64_we": Crc(64, 0x42F0E1EBA9EA3693, _FULL64, False, _FULL64),
    "crc_64_jones": Crc(64, 0xAD93D23594C935A9, _FULL64, True, 0),
}
_OTHERS = {
    "csum16": Algorithm("csum16", 16),
    "cksum16": Algorithm("csum16", 16),
    "identity": Algorithm("identity", 64),
    "xor16": Algorithm("xor16", 16),
    "xor32": Algorithm("xor32", 32),
    "xxh64": Algorithm("xxh64", 64),
    # A Toeplitz hash with BMv2's default key, which is zero and can be changed over Thrift only.
    "toeplitz": Algorithm("zero", 32),
    "round_robin": Algorithm("round_robin", 64),
}
ALGORITHMS = (*_CRCS, *_OTHERS)
_CUSTOM = re.compile(r"poly_0x1(?P<poly>[0-9a-fA-F]+)(?P<rest>(?:_(?:not_rev|(?:init|xout)_0x[0-9a-fA-F]+))*)\Z")


def find_algorithm(name: str) -> Algorithm | None:
    """The algorithm of a name in BMv2's JSON, or None.

    P4-14's spelled-out CRCs are names as well:

    >>> find_algorithm("poly_0x11021_not_rev_init_0xffff").crc == find_algorithm("crc_ccitt_false").crc
    True
    """
    if name in _OTHERS:
        return _OTHERS[name]
    crc = _CRCS.get(name) or _spelled_out(name)
    return None if crc is None else Algorithm("crc", crc.width, crc)


def _spelled_out(name: str) -> Crc | None:
    match = _CUSTOM.match(name)
    if match is None or len(match["poly"]) not in (2, 4, 8, 16):
        return None
    width = 4 * len(match["poly"])
    values = dict(re.findall(r"_(init|xout)_(\w+?)(?=_|\Z)", match["rest"]))
    initial, final = (int(values.get(key, "0"), 16) & ((1 << width) - 1) for key in ("init", "xout"))
    return Crc(width, int(match["poly"], 16), initial, "_not_rev" not in match["rest"], final)
