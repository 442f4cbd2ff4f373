"""`plait demo`: a file goes by RDMA WRITE from a host of every pod to a host of another pod, all at once."""

import hashlib
import mmap
import os
import select
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastswitch.control import ControlError
from lab.config import LabConfig
from lab.emulation import Emulation
from lab.errors import PlaitError, UsageError
from lab.paths import edges_of_flow, paths_taken
from lab.results import LinkRecord, PortRecord, TransferRecord
from mininet_topos.topology import Topology
from rdma.protocol import MESSAGE_MAX
from rdma.verbs import CQ, MR, QP, Access, Device, Opcode, SendWR, VerbsError

# How often the laboratory's processes are looked after while transfers run.
_LOOK_S = 0.5


@dataclass(frozen=True, slots=True)
class DemoResult:
    transfers: list[TransferRecord]
    links: list[LinkRecord]
    ports: list[PortRecord]
    seconds: float  # from the first post to the last completion
    nic_events: dict[str, dict[str, int]]  # host -> name of nic_event_t -> frames

    @property
    def ok(self) -> bool:
        return all(transfer.sha256_equal for transfer in self.transfers)


def pod_pairs(topology: Topology) -> list[tuple[str, str]]:
    """One (source, destination) a pod: a host of pod i sends to a host of pod i + 1.

    Pods are what the second byte of a fat-tree's host addresses counts.
    """
    pods: dict[str, list[str]] = {}
    for host in topology.hosts:
        pods.setdefault(host.address.split(".")[1], []).append(host.name)
    members = list(pods.values())
    if len(members) < 2:
        raise UsageError(f"topology {topology.name}: the demo needs two pods, and there is {len(members)}.")
    # The last host of the next pod, so that a source's own pod neighbour is never the destination's twin.
    return [(hosts[0], members[(index + 1) % len(members)][-1]) for index, hosts in enumerate(members)]


def read_source(path: Path) -> mmap.mmap:
    """The file's bytes, mapped: any size, without a copy in this process."""
    try:
        if path.is_fifo():  # which would wait for somebody to write
            raise UsageError(f"--file {path} is a pipe, whose bytes can be read only once.")
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                raise UsageError(f"--file {path} is empty: there is nothing to send.")
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise UsageError(f"cannot read --file {path}: {error.strerror}.") from error


def default_file() -> Path:
    return Path(sys.executable).resolve()


@dataclass(slots=True)
class _Transfer:
    src: str
    dst: str
    sender: QP
    source: MR  # at the sender, filled
    destination: MR  # at the receiver, zero
    completions: CQ  # of the sender
    missing: int = 0  # completions
    seconds: float = 0.0

    def post(self) -> None:
        """Posts the whole region as RDMA WRITEs, each as long as one may be."""
        offsets = range(0, self.source.length, MESSAGE_MAX)
        self.missing = len(offsets)
        self.sender.post_send(
            *(
                SendWR(
                    wr_id=offset,
                    opcode=Opcode.RDMA_WRITE,
                    sg=self.source.sge(offset, min(MESSAGE_MAX, self.source.length - offset)),
                    remote_addr=self.destination.addr + offset,
                    rkey=self.destination.rkey,
                )
                for offset in offsets
            )
        )

    def take_completions(self) -> None:
        """PlaitError if a WRITE failed."""
        for completion in self.completions.wait(timeout=0):
            if not completion.ok:
                raise PlaitError(f"{self.src} -> {self.dst}: RDMA WRITE completed with {completion.status}.")
            self.missing -= 1


def _prepare(lab: Emulation, devices: dict[str, Device], src: str, dst: str, data: mmap.mmap) -> _Transfer:
    """Registers memory at both ends and connects a queue pair; the exchange of numbers is out of band, as ever."""
    here, there = devices[src].alloc_pd(), devices[dst].alloc_pd()
    source = here.reg_mr(len(data))
    source.buf[:] = data
    destination = there.reg_mr(len(data), Access.LOCAL_WRITE | Access.REMOTE_WRITE)
    completions = devices[src].create_cq()
    sender = here.create_qp(completions)
    lab.connect(src, sender, dst, there.create_qp(devices[dst].create_cq()))
    return _Transfer(src, dst, sender, source, destination, completions)


def _record(transfer: _Transfer, lab: Emulation, flows: Any, expected: str) -> TransferRecord:
    stats = transfer.sender.stats()
    ends = lab.topology.node(transfer.src).address, lab.topology.node(transfer.dst).address
    paths = paths_taken(edges_of_flow(flows, *ends), transfer.src, transfer.dst)
    size = transfer.source.length
    return TransferRecord(
        src=transfer.src,
        dst=transfer.dst,
        bytes=size,
        seconds=transfer.seconds,
        goodput_bps=8 * size / transfer.seconds,
        retransmissions=stats["retransmissions"],
        paths=len(paths),
        sha256_equal=hashlib.sha256(transfer.destination.buf).hexdigest() == expected,
        timeouts=stats["timeouts"],
        packets_sent=stats["packets"],
        route=" ".join(paths[0][1:-1]) if paths else "",
    )


def _run_all(lab: Emulation, transfers: Sequence[_Transfer], timeout_s: float) -> float:
    """Posts all transfers and waits for all; returns seconds from the first post to the last completion."""
    started_ns = time.monotonic_ns()
    for transfer in transfers:
        transfer.post()
    waiting = {transfer.completions.fileno(): transfer for transfer in transfers}
    while waiting:
        left = timeout_s - (time.monotonic_ns() - started_ns) / 1e9
        ready, _, _ = select.select(list(waiting), [], [], min(_LOOK_S, max(0.0, left)))
        if not ready and (fault := lab.fault()):
            raise PlaitError(fault)
        if not ready and left <= 0:
            late = ", ".join(f"{transfer.src} -> {transfer.dst}" for transfer in waiting.values())
            raise PlaitError(f"not complete after {timeout_s:.0f} s: {late}.")
        for descriptor in ready:
            transfer = waiting[descriptor]
            transfer.take_completions()
            if not transfer.missing:
                transfer.seconds = (time.monotonic_ns() - started_ns) / 1e9
                del waiting[descriptor]
    return (time.monotonic_ns() - started_ns) / 1e9


def run(lab: Emulation, pairs: Sequence[tuple[str, str]], data: mmap.mmap, timeout_s: float) -> DemoResult:
    """Runs all transfers at once on a laboratory that is up.

    PlaitError if a WRITE fails or takes longer than timeout_s, or a process of the laboratory ends.
    """
    expected = hashlib.sha256(data).hexdigest()
    devices: dict[str, Device] = {}
    try:
        for host in dict.fromkeys(host for pair in pairs for host in pair):
            devices[host] = Device.open(lab.verbs_socket(host))
        transfers = [_prepare(lab, devices, src, dst, data) for src, dst in pairs]
        before = lab.link_counters()
        seconds = _run_all(lab, transfers, timeout_s)
        links = lab.link_records(before, seconds)
        flows = lab.flows()
        records = [_record(transfer, lab, flows, expected) for transfer in transfers]
        events = {host: device.counters() for host, device in devices.items()}
        return DemoResult(records, links, lab.port_records(), seconds, events)
    except (PlaitError, VerbsError, ControlError) as error:
        # If a process has ended, that is the reason, and the error its consequence.
        # A dying process closes its sockets before it counts as ended.
        time.sleep(_LOOK_S)
        raise PlaitError(lab.fault() or str(error)) from error
    finally:
        for device in devices.values():
            device.close()


def memory_bytes(config: LabConfig, transfers: int, size: int) -> int:
    """What the NICs' memory must hold: each transfer's source and destination, page-aligned, and slack."""
    return max(config.nic_memory_bytes, transfers * 2 * (size + (1 << 16)) + (1 << 20))
