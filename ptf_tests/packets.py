"""Packets for the tests, and what must leave in their place."""

from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

from wire.layers import BTH, RETH

SRC_MAC, SWITCH_MAC = "02:00:0a:00:00:02", "06:00:00:01:00:01"
SRC_IP = "10.0.0.2"
# Per port, its own MAC and its neighbour's.
NEXT = {port: (f"06:00:00:01:00:{port:02x}", f"02:00:0a:00:01:{port:02x}") for port in (2, 3, 4)}


def write(
    dst: str, *, ttl: int = 64, tos: int = 2, sport: int = 50000, size: int = 256, mac: str = SWITCH_MAC, psn: int = 1
) -> Packet:
    """An RDMA WRITE with its ICRC (computed by wire.layers)."""
    headers = Ether(src=SRC_MAC, dst=mac) / IP(src=SRC_IP, dst=dst, ttl=ttl, tos=tos, flags="DF")
    headers /= UDP(sport=sport, dport=4791, chksum=0) / BTH(opcode=0x0A, dest_qpn=0x123456, psn=psn, ack_req=1)
    built = (
        headers / RETH(virtual_address=0x1000, rkey=0xCAFE, dma_length=size) / Raw(bytes(i % 251 for i in range(size)))
    )
    return Ether(bytes(built))


def forwarded(packet: Packet | bytes, port: int, *, dst_mac: str | None = None, tos: int | None = None) -> bytes:
    """What must leave by `port`, computed on the bytes: nothing but MACs, TTL, ECN and the header checksum may change.

    dst_mac: instead of the neighbour's. tos: instead of the packet's own.
    """
    frame = bytearray(bytes(packet))
    frame[0:6] = bytes.fromhex((dst_mac or NEXT[port][1]).replace(":", ""))
    frame[6:12] = bytes.fromhex(NEXT[port][0].replace(":", ""))
    frame[15] = frame[15] if tos is None else tos
    frame[22] -= 1
    frame[24:26] = bytes(2)
    total = sum(int.from_bytes(frame[i : i + 2], "big") for i in range(14, 34, 2))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    frame[24:26] = (0xFFFF - total).to_bytes(2, "big")
    return bytes(frame)
