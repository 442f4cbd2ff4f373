"""How far packets are out of order: per flow, by their PSNs, in the order in which a capture or a NIC saw them.

Terms of RFC 4737, over the packets that arrive for the first time (a PSN that came before is a retransmission, and is
counted apart):

    out of order   a packet that arrives after one with a higher PSN (section 3.3)
    degree         of such a packet: how many packets with a higher PSN arrived before it
    extent         of such a packet: how many positions after the earliest packet with a higher PSN it arrived
                   (section 4.2); what a receiver that wants to restore the order must hold

A packet that was lost before the capture and sent again counts as out of order: its first copy was never seen.
"""

from __future__ import annotations

import gzip
import json
import struct
from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from scapy.error import Scapy_Exception
from scapy.utils import RawPcapReader

from lab.errors import UsageError
from wire.codes import (
    BTH_LEN,
    ETHERNET_LEN,
    IPV4_LEN,
    PSN_MASK,
    ROCEV2_UDP_PORT,
    UDP_LEN,
    BthOpcode,
    EtherType,
    IpProto,
)

_PSN_HALF = (PSN_MASK + 1) // 2
_LINKTYPE_ETHERNET = 1
_IHL_UNIT = 4
# Packets whose PSNs repeat those of the other direction.
CONTROL_OPCODES = frozenset({BthOpcode.RC_ACKNOWLEDGE, BthOpcode.RC_READ_ACKNOWLEDGE, BthOpcode.CNP})
RESPONSE_OPCODES = frozenset(
    {BthOpcode.RC_ATOMIC_ACKNOWLEDGE, *(code for code in BthOpcode if code.name.startswith("RC_READ_RESPONSE"))}
)


@dataclass(slots=True)
class Order:
    """Takes the PSNs of one flow in the order of their arrival.

    PSNs are serial numbers of 24 bits: each is taken as the position nearest to the highest one before, so that a flow
    may be longer than the PSN space, but not reordered by more than half of it.
    """

    packets: int = 0  # that arrived for the first time
    retransmissions: int = 0  # that had arrived before
    retransmitted: set[int] = field(default_factory=set)  # the PSNs of those
    paths: set[int] = field(default_factory=set)  # UDP source ports: MP-RDMA's virtual paths
    degrees: Counter[int] = field(default_factory=Counter)  # degree -> packets out of order
    extents: Counter[int] = field(default_factory=Counter)  # extent -> packets out of order
    _seen: set[int] = field(default_factory=set)
    _sorted: list[int] = field(default_factory=list)  # of _seen
    _records: list[int] = field(default_factory=list)  # positions higher than all before them, ascending
    _record_indices: list[int] = field(default_factory=list)  # when each of _records arrived

    def add(self, psn: int, path: int = 0) -> None:
        self.paths.add(path)
        highest = self._records[-1] if self._records else psn
        position = highest + (psn - highest + _PSN_HALF) % (PSN_MASK + 1) - _PSN_HALF
        if position in self._seen:
            self.retransmissions += 1
            self.retransmitted.add(psn)
            return
        if not self._records or position > highest:
            self._records.append(position)
            self._record_indices.append(self.packets)
            self._sorted.append(position)
        else:
            self.degrees[len(self._sorted) - bisect_right(self._sorted, position)] += 1
            first_higher = self._record_indices[bisect_right(self._records, position)]
            self.extents[self.packets - first_higher] += 1
            insort(self._sorted, position)
        self._seen.add(position)
        self.packets += 1

    @property
    def out_of_order(self) -> int:
        return self.degrees.total()


class Request(NamedTuple):
    """What reordering needs of a RoCEv2 packet that is neither acknowledgement nor CNP."""

    src: bytes
    dst: bytes
    dest_qpn: int
    responses: bool  # answers the peer's READs, whose PSNs are a space of their own
    src_port: int
    psn: int


_IPV4 = struct.Struct("!B8xB2x4s4s")
_UDP = struct.Struct("!HH4x")
_BTH = struct.Struct("!B3xIB3s")
_LEAST = ETHERNET_LEN + IPV4_LEN + UDP_LEN + BTH_LEN


def read_request(frame: bytes) -> Request | None:
    """The fields of an untagged Ethernet frame; None for what is no RoCEv2 packet over IPv4 or no such request."""
    if len(frame) < _LEAST or int.from_bytes(frame[12:14], "big") != EtherType.IPV4:
        return None
    version_ihl, protocol, src, dst = _IPV4.unpack_from(frame, ETHERNET_LEN)
    udp = ETHERNET_LEN + (version_ihl & 15) * _IHL_UNIT
    if version_ihl >> 4 != 4 or udp < ETHERNET_LEN + IPV4_LEN or protocol != IpProto.UDP:
        return None
    if len(frame) < udp + UDP_LEN + BTH_LEN:
        return None
    src_port, dst_port = _UDP.unpack_from(frame, udp)
    if dst_port != ROCEV2_UDP_PORT:
        return None
    opcode, qpn, _, psn = _BTH.unpack_from(frame, udp + UDP_LEN)
    if opcode in CONTROL_OPCODES:
        return None
    responses = opcode in RESPONSE_OPCODES
    return Request(src, dst, qpn & 0xFFFFFF, responses, src_port, int.from_bytes(psn, "big"))


def read_frames(path: Path) -> Iterator[bytes]:
    """The Ethernet frames of a pcap or pcapng file; UsageError where it is none."""
    try:
        with path.open("rb") as file:
            reader = RawPcapReader(file)  # type: ignore[arg-type]  # which takes files, and gzip too
            for frame, meta in reader:
                linktype = getattr(reader, "linktype", None) or getattr(meta, "linktype", _LINKTYPE_ETHERNET)
                if linktype != _LINKTYPE_ETHERNET:
                    raise UsageError(f"{path}: link type {linktype}; reordering is read from Ethernet captures only")
                yield frame
    except (Scapy_Exception, EOFError, gzip.BadGzipFile, struct.error):
        raise UsageError(f"{path} is not a pcap or pcapng file") from None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from None


Key = tuple[bytes, bytes, int, bool]


def orders(frames: Iterable[bytes], destination: bytes | None = None) -> dict[Key, Order]:
    """By addresses, destination QPN and kind, whatever the paths; only what goes to an address, where one is given."""
    found: dict[Key, Order] = {}
    for frame in frames:
        request = read_request(frame)
        if request is not None and (destination is None or request.dst == destination):
            found.setdefault(request[:-2], Order()).add(request.psn, request.src_port)
    return found


@dataclass(frozen=True, slots=True)
class Reordering:
    """Totals over flows. Means and maxima are over packets out of order; 0 where there are none."""

    flows: int
    packets: int
    retransmissions: int
    out_of_order: int
    fraction: float  # of packets
    mean_degree: float
    max_degree: int
    mean_extent: float
    max_extent: int


def summarize(found: Iterable[Order]) -> Reordering:
    degrees: Counter[int] = Counter()
    extents: Counter[int] = Counter()
    flows = packets = retransmissions = 0
    for order in found:
        flows, packets = flows + 1, packets + order.packets
        retransmissions += order.retransmissions
        degrees.update(order.degrees)
        extents.update(order.extents)
    late = degrees.total()
    return Reordering(
        flows=flows,
        packets=packets,
        retransmissions=retransmissions,
        out_of_order=late,
        fraction=late / packets if packets else 0.0,
        mean_degree=_mean(degrees),
        max_degree=max(degrees, default=0),
        mean_extent=_mean(extents),
        max_extent=max(extents, default=0),
    )


def _mean(counted: Counter[int]) -> float:
    total = counted.total()
    return sum(value * count for value, count in counted.items()) / total if total else 0.0


def report(path: Path, out: TextIO, count: int | None = None, as_json: bool = False) -> None:
    """`plait inspect --reorder`: one row a flow; with `as_json` one object a line. UsageError as `read_frames`."""
    rows = [_row(key, order) for key, order in orders(islice(read_frames(path), count)).items()]
    if as_json:
        for row in rows:
            print(json.dumps(row), file=out)
        return
    header = ("flow", "qpn", "carries", "packets", "out of order", "fraction", "degree mean", "max",
              "extent mean", "max", "sent again", "degrees")  # fmt: skip
    table = [header, *map(_cells, rows)]
    widths = [max(len(cells[column]) for cells in table) for column in range(len(header))]
    for cells in table:
        print("  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip(), file=out)


def _row(key: Key, order: Order) -> dict[str, Any]:
    src, dst, qpn, responses = key
    totals = summarize([order])
    return {
        "src": _dotted(src),
        "src_port": min(order.paths),
        "dst": _dotted(dst),
        "dest_qpn": qpn,
        "carries": "responses" if responses else "requests",
        "paths": len(order.paths),
        **{name: getattr(totals, name) for name in Reordering.__slots__ if name != "flows"},
        "degrees": {str(degree): order.degrees[degree] for degree in sorted(order.degrees)},
        "extents": {str(extent): order.extents[extent] for extent in sorted(order.extents)},
    }


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    return (
        flow_name(row["src"], row["src_port"], row["dst"], row["paths"]),
        str(row["dest_qpn"]),
        row["carries"],
        str(row["packets"]),
        str(row["out_of_order"]),
        f"{row['fraction']:.4f}",
        f"{row['mean_degree']:.2f}",
        str(row["max_degree"]),
        f"{row['mean_extent']:.2f}",
        str(row["max_extent"]),
        str(row["retransmissions"]),
        _distribution({int(degree): count for degree, count in row["degrees"].items()}),
    )


def flow_name(src: str, src_port: int, dst: str, paths: int) -> str:
    """`10.0.0.1:49152 -> 10.0.0.2`; with several paths their number in place of the port."""
    return f"{src}:{src_port} -> {dst}" if paths == 1 else f"{src} ({paths} paths) -> {dst}"


def _distribution(degrees: dict[int, int]) -> str:
    """`1: 40, 2: 7, 3-4: 2`: degree and packets, in octaves from 3 on."""
    octaves: Counter[int] = Counter()
    for degree, count in degrees.items():
        octaves[(degree - 1).bit_length()] += count
    parts = []
    for octave in sorted(octaves):
        low, high = (1 << octave >> 1) + 1, 1 << octave
        parts.append(f"{high if octave <= 1 else f'{low}-{high}'}: {octaves[octave]}")
    return ", ".join(parts) or "-"


def _dotted(address: bytes) -> str:
    return ".".join(map(str, address))
