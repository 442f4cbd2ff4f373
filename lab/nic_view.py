"""A queue pair as its NIC sees it, read from the XDP program's own map while it works: numbers, bitmap, paths.

Reading stops nothing, so values that change together may be read one before and one after a packet.
"""

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ebpf import build
from ebpf.bpf_syscall import read_element
from ebpf.loader import ROOT
from wire.codes import PSN_MASK, QpState

REQUESTS, RESPONSES = 0, 1
# What a slot of a two-bit bitmap holds (MP-RDMA, section 3.3): empty, received, tail, tail with completion.
SLOT_MARKS = "·█▲◆"
_WORD_BITS = 64


@dataclass(frozen=True, slots=True)
class SendingSide:
    """What this side sends on a stream. PSNs are 24 bits."""

    snd_una: int  # oldest not acknowledged
    snd_nxt: int  # after the highest sent
    posted: int  # after the last that may be sent
    in_flight: int  # snd_nxt - snd_una
    acks: int
    sacks: int
    naks: int
    rnr_naks: int
    marks: int  # acknowledgements with ECE
    cnps: int  # congestion notifications received
    retransmissions: int
    timeouts: int


@dataclass(frozen=True, slots=True)
class ReceivingSide:
    """What this side receives on a stream."""

    expected: int  # PSN
    msn: int
    gaps: int  # NAKs sent
    out_of_order: int  # packets placed ahead of their turn, so far
    cnps_sent: int
    bitmap: str  # SLOT_MARKS from the expected PSN to the last one received; "" without any, or without a bitmap


@dataclass(frozen=True, slots=True)
class QueuePairView:
    qpn: int
    remote_qpn: int
    remote_ip: str
    transport: str
    state: str
    path_mtu: int
    window: int
    slots: int
    requests_sent: SendingSide
    requests_received: ReceivingSide
    responses_sent: SendingSide
    responses_received: ReceivingSide
    cwnd_packets: float | None  # MP-RDMA
    paths: list[int]  # MP-RDMA: virtual paths of the latest credits


class Layout:
    """struct nic_qp, as the compiler laid it out."""

    def __init__(self) -> None:
        self._ffi, _ = build.NATIVE.load(ROOT)
        self.qp_bytes: int = self._ffi.sizeof("struct nic_qp")

    def read(self, qps_fd: int, slot: int) -> Any:
        """One queue pair, copied. OSError where there is no such slot."""
        qp = self._ffi.new("struct nic_qp *")
        self._ffi.memmove(qp, read_element(qps_fd, slot, self.qp_bytes), self.qp_bytes)
        return qp


def view(qp: Any, transport: str) -> QueuePairView:
    """qp: a cffi `struct nic_qp *`."""
    config = qp.config
    bitmaps = transport in ("irn", "ideal", "mprdma")
    mprdma = transport == "mprdma"
    return QueuePairView(
        qpn=config.qpn,
        remote_qpn=config.remote_qpn,
        remote_ip=str(ipaddress.IPv4Address(config.remote_ip)),
        transport=transport,
        state=QpState(config.state).name,
        path_mtu=config.path_mtu,
        window=config.window,
        slots=config.slots,
        requests_sent=_sending(qp, REQUESTS),
        requests_received=_receiving(qp, REQUESTS, bitmaps),
        responses_sent=_sending(qp, RESPONSES),
        responses_received=_receiving(qp, RESPONSES, bitmaps),
        cwnd_packets=qp.sender[REQUESTS].transport.mprdma.cwnd / 65536 if mprdma else None,
        paths=sorted({credit.path for credit in qp.credits[REQUESTS] if credit.path}) if mprdma else [],
    )


def _sending(qp: Any, stream: int) -> SendingSide:
    sender, emitter = qp.sender[stream], qp.emitter[stream]
    same = ("acks", "sacks", "naks", "rnr_naks", "marks", "cnps")
    return SendingSide(
        snd_una=sender.snd_una,
        snd_nxt=emitter.snd_nxt,
        posted=emitter.posted,
        in_flight=(emitter.snd_nxt - sender.snd_una) & PSN_MASK,
        retransmissions=emitter.retransmissions,
        timeouts=emitter.timeouts,
        **{name: getattr(sender, name) for name in same},
    )


def _receiving(qp: Any, stream: int, has_bitmap: bool) -> ReceivingSide:
    receiver = qp.receiver[stream]
    return ReceivingSide(
        expected=receiver.epsn,
        msn=receiver.msn,
        gaps=receiver.gaps,
        out_of_order=receiver.out_of_order,
        cnps_sent=receiver.cnps,
        bitmap=bitmap(receiver, qp.config.slots) if has_bitmap and qp.config.slots else "",
    )


def bitmap(receiver: Any, slots: int) -> str:
    """The two-bit bitmap from the expected PSN on (ebpf/core/bitmap.h), without the empty slots at its end."""
    planes = receiver.transport.bitmap.plane

    def marks() -> Iterator[str]:
        for ahead in range(slots):
            bit = (receiver.epsn + ahead) % slots if slots >= _WORD_BITS else (receiver.epsn + ahead) % _WORD_BITS
            low, high = (planes[plane][bit // _WORD_BITS] >> bit % _WORD_BITS & 1 for plane in (0, 1))
            yield SLOT_MARKS[low | high << 1]

    return "".join(marks()).rstrip(SLOT_MARKS[0])
