"""Frames for benchmarks, built by scapy from the project's own layers."""

from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from mininet_topos.topology import Node
from wire.codes import ROCEV2_UDP_PORT, BthOpcode
from wire.layers import BTH, RETH


def write_packet(source: Node, destination: Node, gateway_mac: str, length: int, src_port: int = 50000) -> bytes:
    """An RDMA WRITE Only frame of `length` bytes from host to host, addressed to the source's gateway."""
    headers = (
        Ether(src=source.mac, dst=gateway_mac)
        / IP(src=source.address, dst=destination.address, tos=2, ttl=64, flags="DF")
        / UDP(sport=src_port, dport=ROCEV2_UDP_PORT, chksum=0)
        / BTH(opcode=BthOpcode.RC_WRITE_ONLY, dest_qpn=0x11, psn=1)
        / RETH(virtual_address=0, rkey=1, dma_length=0)
    )
    payload = bytes(length - len(bytes(headers)))
    headers[RETH].dma_length = len(payload)
    return bytes(headers / payload)
