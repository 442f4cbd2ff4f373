"""One captured RoCEv2 packet as plain values: what a person or a program wants to know of it."""

from __future__ import annotations

from dataclasses import dataclass

from scapy.layers.inet import IP, UDP
from scapy.packet import Packet

from wire.codes import AETH_CREDITS_INVALID, ICRC_BYTES, UDP_LEN, AethKind, BthOpcode, Ecn, NakCode
from wire.icrc import icrc_is_valid
from wire.layers import AETH, BTH, IETH, RETH, AtomicAckETH, AtomicETH, ImmDt, XAck, XData
from wire.rocev2 import RoceLayer

_KIND_MASK = AethKind.NAK  # the kind with both its bits set
_VALUE_MASK = AETH_CREDITS_INVALID  # all five value bits set


@dataclass(frozen=True, slots=True)
class Reth:
    virtual_address: int
    rkey: int
    dma_length: int


@dataclass(frozen=True, slots=True)
class Aeth:
    syndrome: int
    meaning: str
    msn: int


@dataclass(frozen=True, slots=True)
class Atomic:
    virtual_address: int
    rkey: int
    swap_add: int
    compare: int


@dataclass(frozen=True, slots=True)
class Data:
    """Plait's xdata_t."""

    retx: bool
    sync: bool
    last: bool
    msn: int
    ipsn: int
    wqe_sn: int
    head: int


@dataclass(frozen=True, slots=True)
class Sack:
    """Plait's xack_t; `psn` is None where no packet is named."""

    psn: int | None
    ece: bool
    retx: bool
    path: int


@dataclass(frozen=True, slots=True)
class RocePacket:
    """`icrc` is "ok", "bad", or "cut" where the capture does not hold the whole packet.

    `payload_bytes` is what the headers announce, without pad bytes, also where the capture is cut.
    """

    src: str
    dst: str
    src_port: int
    dst_port: int
    ecn: str
    ttl: int
    opcode: int
    opcode_name: str
    dest_qpn: int
    psn: int
    ack_req: bool
    solicited: bool
    becn: bool
    reth: Reth | None
    aeth: Aeth | None
    immediate: int | None
    invalidate: int | None
    atomic: Atomic | None
    original: int | None
    data: Data | None
    sack: Sack | None
    payload_bytes: int
    icrc: str


def decode(packet: Packet) -> RocePacket | None:
    """None for what is not RoCEv2 over IPv4, or too short for a BTH and its ICRC."""
    bth = packet.getlayer(BTH)
    udp = bth.underlayer if bth is not None else None
    ip = udp.underlayer if udp is not None else None
    if bth is None or not isinstance(udp, UDP) or not isinstance(ip, IP):
        return None
    reth, aeth, immdt, ieth = (bth.getlayer(layer) for layer in (RETH, AETH, ImmDt, IETH))
    atomic, original = bth.getlayer(AtomicETH), bth.getlayer(AtomicAckETH)
    return RocePacket(
        src=ip.src,
        dst=ip.dst,
        src_port=udp.sport,
        dst_port=udp.dport,
        ecn=Ecn(ip.tos & 3).name,
        ttl=ip.ttl,
        opcode=bth.opcode,
        opcode_name=opcode_name(bth.opcode),
        dest_qpn=bth.dest_qpn,
        psn=bth.psn,
        ack_req=bool(bth.ack_req),
        solicited=bool(bth.solicited),
        becn=bool(bth.becn),
        reth=Reth(reth.virtual_address, reth.rkey, reth.dma_length) if reth is not None else None,
        aeth=Aeth(aeth.syndrome, syndrome_meaning(aeth.syndrome), aeth.msn) if aeth is not None else None,
        immediate=immdt.immediate if immdt is not None else None,
        invalidate=ieth.rkey if ieth is not None else None,
        atomic=Atomic(atomic.virtual_address, atomic.rkey, atomic.swap_add, atomic.compare) if atomic else None,
        original=original.original_value if original is not None else None,
        data=_data(bth.getlayer(XData)),
        sack=_sack(bth.getlayer(XAck)),
        payload_bytes=_payload_bytes(udp, bth),
        icrc=_icrc_state(ip),
    )


def _data(x: Packet | None) -> Data | None:
    if x is None:
        return None
    return Data(bool(x.retransmission), bool(x.synchronise), bool(x.last), x.msn, x.ipsn, x.wqe_sn, x.head)


def _sack(x: Packet | None) -> Sack | None:
    return Sack(x.sack_psn if x.sack_valid else None, bool(x.ece), bool(x.retransmission), x.path) if x else None


def opcode_name(opcode: int) -> str:
    return BthOpcode(opcode).name if opcode in set(BthOpcode) else f"opcode_{opcode:#04x}"


def syndrome_meaning(syndrome: int) -> str:
    """`ACK`, `NAK PSN_SEQUENCE_ERROR`, `RNR_NAK timer 14`, … (IBTA vol. 1, tables 43 to 46).

    An ACK's credits and an RNR timer are shown as their codes.
    """
    kind, value = syndrome & _KIND_MASK, syndrome & _VALUE_MASK
    if kind == AethKind.ACK:
        return "ACK" if value == AETH_CREDITS_INVALID else f"ACK credits {value}"
    if kind == AethKind.RNR_NAK:
        return f"RNR_NAK timer {value}"
    if kind == AethKind.NAK:
        return f"NAK {NakCode(value).name}" if value in set(NakCode) else f"NAK code {value}"
    return f"reserved {syndrome:#04x}"


def _payload_bytes(udp: Packet, bth: Packet) -> int:
    headers, layer = 0, bth
    while isinstance(layer, RoceLayer):
        headers += layer.header_bytes
        layer = layer.payload
    return max(0, udp.len - UDP_LEN - headers - ICRC_BYTES - bth.pad_count)


def _icrc_state(ip: Packet) -> str:
    if len(ip.original) < ip.len:
        return "cut"
    try:
        return "ok" if icrc_is_valid(ip.original[: ip.len]) else "bad"
    except ValueError:  # its lengths leave no room for the headers
        return "bad"
