"""`plait inspect`: the RoCEv2 headers of a capture, one line a packet or one row a flow."""

from __future__ import annotations

import argparse
import gzip
import json
import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO, Any, TextIO

from scapy.error import Scapy_Exception
from scapy.packet import Packet
from scapy.utils import PcapReader

from lab import reorder
from lab.errors import UsageError
from lab.reorder import CONTROL_OPCODES, RESPONSE_OPCODES, Order, flow_name
from wire.decode import RocePacket, decode

_LISTED_PSNS = 5


def inspect(path: Path, out: TextIO, count: int | None = None, as_json: bool = False, summary: bool = False) -> None:
    """Writes what `path` holds to `out`; with `as_json` one JSON object a line.

    Raises UsageError where `path` is no readable pcap or pcapng file.
    """
    packets = islice(_read(path), count)
    if summary:
        _print_flows(_flows(packets), out, as_json)
        return
    start: int | None = None
    for packet in packets:
        at = _nanoseconds(packet)
        start = at if start is None else start
        roce = decode(packet)
        if as_json:
            values = {"summary": packet.summary()} if roce is None else asdict(roce)
            print(json.dumps({"time_us": (at - start) / 1000, "bytes": _wire_bytes(packet), **values}), file=out)
        else:
            text = packet.summary() if roce is None else _line(roce)
            print(f"{(at - start) / 1000:14.3f}  {text}", file=out)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="plait inspect", description="Prints the RoCEv2 headers of a capture.")
    parser.add_argument("file", type=Path, help="a pcap or pcapng file, or - for stdin")
    parser.add_argument("--count", type=int, help="stop after this many packets")
    parser.add_argument("--summary", action="store_true", help="one row a flow instead of one a packet")
    parser.add_argument("--reorder", action="store_true", help="one row a flow: how far its packets are out of order")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    args = parser.parse_args(argv)
    try:
        if args.count is not None and args.count < 0:
            raise UsageError(f"--count must not be negative, but is {args.count}")
        if args.reorder and args.summary:
            raise UsageError("--summary and --reorder are two views: give one")
        if args.reorder:
            reorder.report(args.file, sys.stdout, args.count, args.json)
        else:
            inspect(args.file, sys.stdout, args.count, args.json, args.summary)
        sys.stdout.flush()
    except UsageError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:  # the reader has seen enough (`| head`); nothing more may be written, not even at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _opened(path: Path) -> AbstractContextManager[IO[bytes]]:
    """The file, or stdin for `-`, which stays open."""
    return nullcontext(sys.stdin.buffer) if str(path) == "-" else path.open("rb")


def _read(path: Path) -> Iterator[Packet]:
    try:
        with _opened(path) as file:
            yield from PcapReader(file)  # type: ignore[arg-type]  # which takes files, and gzip too
    except (Scapy_Exception, EOFError, gzip.BadGzipFile):
        raise UsageError(f"{path} is not a pcap or pcapng file") from None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from None


def _nanoseconds(packet: Packet) -> int:
    return int(packet.time * 10**9)  # scapy's time is a decimal number: nothing is rounded


def _wire_bytes(packet: Packet) -> int:
    return packet.wirelen or len(packet.original)


def _line(packet: RocePacket) -> str:
    parts = [
        f"{packet.src}:{packet.src_port} -> {packet.dst}:{packet.dst_port}",
        f"{packet.ecn} ttl {packet.ttl}",
        packet.opcode_name,
        f"qpn {packet.dest_qpn} psn {packet.psn}" + " A" * packet.ack_req + " BECN" * packet.becn,
    ]
    if packet.data is not None:
        marks = "".join(f" {mark}" for mark in ("retx", "sync", "last") if getattr(packet.data, mark))
        parts.append(f"msn {packet.data.msn} ipsn {packet.data.ipsn} wqe {packet.data.wqe_sn}{marks}")
    if packet.sack is not None:
        named = f"sack {packet.sack.psn}" if packet.sack.psn is not None else "no sack"
        parts.append(f"{named} path {packet.sack.path}" + " ECE" * packet.sack.ece + " retx" * packet.sack.retx)
    if packet.reth is not None:
        parts.append(f"va {packet.reth.virtual_address:#x} rkey {packet.reth.rkey:#x} len {packet.reth.dma_length}")
    if packet.aeth is not None:
        parts.append(f"{packet.aeth.meaning} msn {packet.aeth.msn}")
    if packet.atomic is not None:
        atomic = packet.atomic
        parts.append(
            f"va {atomic.virtual_address:#x} rkey {atomic.rkey:#x} swap/add {atomic.swap_add} compare {atomic.compare}"
        )
    if packet.original is not None:
        parts.append(f"original {packet.original}")
    if packet.invalidate is not None:
        parts.append(f"invalidates {packet.invalidate:#x}")
    if packet.immediate is not None:
        parts.append(f"imm {packet.immediate:#x}")
    return "  ".join([*parts, f"payload {packet.payload_bytes}", f"icrc {packet.icrc}"])


@dataclass(slots=True)
class _Flow:
    """Packets to one queue pair in one PSN space (requests, or responses to the peer's requests), whatever their paths.

    Acknowledgements and CNPs repeat PSNs by design: they count as packets, and neither as the one nor as the other.
    """

    src: str
    dst: str
    dest_qpn: int
    carries: str
    packets: int = 0
    bytes: int = 0
    first_psn: int = 0
    last_psn: int = 0
    order: Order = field(default_factory=Order)
    ports: set[int] = field(default_factory=set)

    def add(self, packet: RocePacket, wire_bytes: int) -> None:
        if self.packets == 0:
            self.first_psn = packet.psn
        self.packets += 1
        self.bytes += wire_bytes
        self.last_psn = packet.psn
        self.ports.add(packet.src_port)
        if packet.opcode not in CONTROL_OPCODES:
            self.order.add(packet.psn, packet.src_port)

    def values(self) -> dict[str, Any]:
        public = {name: getattr(self, name) for name in self.__slots__ if name not in ("order", "ports")}
        return public | {
            "src_port": min(self.ports),
            "paths": len(self.ports),
            "retransmitted": sorted(self.order.retransmitted),
            "out_of_order": self.order.out_of_order,
        }


def _flows(packets: Iterator[Packet]) -> list[_Flow]:
    flows: dict[tuple[str, str, int, str], _Flow] = {}
    for packet in packets:
        roce = decode(packet)
        if roce is None:
            continue
        carries = "responses" if roce.opcode in RESPONSE_OPCODES | CONTROL_OPCODES else "requests"
        key = (roce.src, roce.dst, roce.dest_qpn, carries)
        flows.setdefault(key, _Flow(*key)).add(roce, _wire_bytes(packet))
    return list(flows.values())


def _print_flows(flows: list[_Flow], out: TextIO, as_json: bool) -> None:
    if as_json:
        for flow in flows:
            print(json.dumps(flow.values()), file=out)
        return
    header = ("flow", "qpn", "carries", "packets", "bytes", "first psn", "last psn", "retransmitted", "out of order")
    rows: list[tuple[str, ...]] = [header]
    for flow in flows:
        ends = flow_name(flow.src, min(flow.ports), flow.dst, len(flow.ports))
        numbers = (flow.packets, flow.bytes, flow.first_psn, flow.last_psn)
        order = (_psns(flow), str(flow.order.out_of_order))
        rows.append((ends, str(flow.dest_qpn), flow.carries, *map(str, numbers), *order))
    widths = [max(len(row[column]) for row in rows) for column in range(len(header))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip(), file=out)


def _psns(flow: _Flow) -> str:
    again = flow.order.retransmitted
    if not again:
        return "0"
    listed = ", ".join(str(psn) for psn in sorted(again)[:_LISTED_PSNS])
    more = ", …" if len(again) > _LISTED_PSNS else ""
    return f"{len(again)} ({listed}{more})"


if __name__ == "__main__":
    sys.exit(main())
