"""The invariant CRC that trails every RoCEv2 packet (IBTA vol. 1, Annex A17.3.3), over IPv4.

It is Ethernet's CRC-32 over what no switch may change: eight bytes of ones in the place of InfiniBand's local route
header, then the datagram from the IP header to the last pad byte, with the fields that switches do change (type of
service, time to live, both checksums, FECN, BECN and the six reserved bits beside them) taken as ones.
"""

from __future__ import annotations

from zlib import crc32

from wire.codes import BTH_LEN, ICRC_BYTES, IPV4_LEN, UDP_LEN

_LRH_CRC = crc32(b"\xff" * 8)

# Offsets within IPv4, UDP and BTH of the bytes that are taken as ones.
_IPV4_MASKED = (1, 8, 10, 11)
_UDP_MASKED = (6, 7)
_BTH_MASKED = (4,)


def icrc(datagram: bytes) -> bytes:
    """The four bytes to append to `datagram`, which runs from the IPv4 header to the last pad byte.

    The lengths in its IP and UDP headers must already count the ICRC: they are covered by it.
    """
    udp = _udp_offset(datagram)
    bth = udp + UDP_LEN
    headers = bytearray(datagram[: bth + BTH_LEN])
    for base, masked in ((0, _IPV4_MASKED), (udp, _UDP_MASKED), (bth, _BTH_MASKED)):
        for offset in masked:
            headers[base + offset] = 0xFF
    crc = crc32(datagram[len(headers) :], crc32(headers, _LRH_CRC))
    return crc.to_bytes(ICRC_BYTES, "little")  # the CRC's own bit order: Ethernet's, least significant byte first


def icrc_is_valid(datagram: bytes) -> bool:
    """Whether the last four bytes of a whole IPv4 datagram (without link padding) are its ICRC."""
    if len(datagram) < ICRC_BYTES:
        raise ValueError(f"{len(datagram)} bytes cannot hold an ICRC")
    return icrc(datagram[:-ICRC_BYTES]) == datagram[-ICRC_BYTES:]


def _udp_offset(datagram: bytes) -> int:
    header_length = (datagram[0] & 0x0F) * 4 if datagram else 0
    if header_length < IPV4_LEN or datagram[0] >> 4 != 4:
        raise ValueError("not an IPv4 header")
    if len(datagram) < header_length + UDP_LEN + BTH_LEN:
        raise ValueError(f"{len(datagram)} bytes are too short for IPv4, UDP and BTH")
    return header_length
