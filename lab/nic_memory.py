"""Bytes that a connection takes on a NIC beyond RoCEv2, from the C structs themselves, beside the papers' tables."""

from dataclasses import dataclass

from ebpf import build
from ebpf.loader import ROOT

_IRN_PACKETS, _IRN_SLOTS = 100, 128  # Eunomia's table 1 takes a BDP of 100 packets; bitmaps are powers of two
_IDEAL_SLOTS = 256
_STREAMS = 2  # requests, and responses to READs
# Bits a packet: two at the receiver (IRN's 2-bitmap), one at the sender.
_RECEIVER_BITS, _SENDER_BITS = 2, 1
_MPRDMA_SLOTS = 64

NOTES = (
    "Beyond what a reliable connection of RoCEv2 has; both ends of a connection on one NIC, as the papers count.",
    "IRN and ideal: bitmaps of both streams (requests, responses to READs), at the sender and at the receiver.",
    "Eunomia: 4 bytes while nothing is out of order, else up to 82 of the paper's structure; message ends out of order "
    "take blocks beside it: see `plait reproduce eunomia/memory`.",
    "What XDP program and agent share is larger, 4,096 bytes a queue pair, since places have a fixed size.",
)


@dataclass(frozen=True, slots=True)
class Row:
    """Bytes; a range where it depends on what is out of order. papers: MP-RDMA's and Eunomia's table 1."""

    mechanism: str
    bitmaps: str
    other: str
    total: str
    packets_out_of_order: str
    papers: str


def rows() -> list[Row]:
    ffi, lib = build.NATIVE.load(ROOT)

    def size(part: str) -> int:
        return int(lib.nic_native_part_bytes(getattr(lib, f"NIC_PART_{part}")))

    def selective(name: str, slots: int, papers: str) -> Row:
        bitmaps = _STREAMS * (_RECEIVER_BITS + _SENDER_BITS) * slots // 8
        other = size("IRN")
        return Row(name, str(bitmaps), str(other), str(bitmaps + other), f"0-{slots}", papers)

    bitmap, mprdma = _RECEIVER_BITS * _MPRDMA_SLOTS // 8, size("MPRDMA")
    idle, most = size("EUNOMIA_IDLE"), size("EUNOMIA_MOST")
    return [
        Row("gbn", "0", "0", "0", "0", "-"),
        selective("irn", _IRN_SLOTS, f"125 + 20 = 145 at {_IRN_PACKETS} packets"),
        Row("mprdma", str(bitmap), str(mprdma), str(bitmap + mprdma), f"0-{_MPRDMA_SLOTS}", "17 + 49 = 66"),
        Row("eunomia", f"{idle}-{most}", "0", f"{idle}-{most}", "0-256", "4-82"),
        selective("ideal", _IDEAL_SLOTS, "-"),
        Row("dcqcn", "0", str(size("DCQCN")), str(size("DCQCN")), "-", "~60"),
    ]
