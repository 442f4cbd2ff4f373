"""One workload on a running laboratory: posts every flow when it is due, and takes the completions."""

from __future__ import annotations

import os
import random
import select
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from fastswitch.control import ControlError
from lab.emulation import Emulation
from lab.errors import PlaitError
from lab.nics import HostNic
from lab.workload import Flow
from rdma.verbs import CQ, MR, QP, Access, Device, Opcode, SendWR, VerbsError

# How often the laboratory's processes are looked after while nothing is due.
_LOOK_S = 0.5
_POLL_MOST = 256
UNFINISHED = "UNFINISHED"


@dataclass(slots=True)
class FlowResult:
    """Times in seconds after the workload's beginning; status is a completion's, or UNFINISHED."""

    flow: Flow
    posted_s: float = 0.0
    done_s: float = 0.0
    status: str = UNFINISHED
    packets_sent: int = 0
    retransmissions: int = 0
    timeouts: int = 0

    @property
    def late_s(self) -> float:
        return self.posted_s - self.flow.start_s

    @property
    def fct_s(self) -> float:
        return self.done_s - self.posted_s

    @property
    def ok(self) -> bool:
        return self.status == "SUCCESS"


@dataclass(slots=True)
class TrafficResult:
    """nic: name -> what all hosts' NICs counted meanwhile.  queues: of every sample, direction -> bytes waiting."""

    flows: list[FlowResult]
    seconds: float  # from the first post to the last completion
    nic: dict[str, int]
    queues: list[dict[tuple[str, str], int]]
    links: dict[str, int]  # name of a counter -> its growth, all link directions
    idle: float  # share of all processors' time


@dataclass(slots=True)
class _Host:
    device: Device
    source: MR
    target: MR
    completions: CQ


class _Endpoints:
    """The hosts' devices, memory and, a flow, a connected pair of queue pairs; gone with `close`."""

    def __init__(
        self, lab: Emulation, flows: Sequence[Flow], rng: random.Random, nic: HostNic, mark_remaining: bool
    ) -> None:
        self._stack = ExitStack()
        try:
            names = sorted({name for flow in flows for name in (flow.src, flow.dst)})
            sent, received = _largest(flows, "src"), _largest(flows, "dst")
            counts = {name: sum(flow.src == name for flow in flows) for name in names}
            self.hosts: dict[str, _Host] = {}
            domains = {}
            for name in names:
                device = self._stack.enter_context(Device.open(lab.verbs_socket(name)))
                domains[name] = device.alloc_pd()
                source = domains[name].reg_mr(sent.get(name, 1))
                source.buf[:] = rng.randbytes(len(source.buf))
                target = domains[name].reg_mr(received.get(name, 1), Access.LOCAL_WRITE | Access.REMOTE_WRITE)
                self.hosts[name] = _Host(device, source, target, device.create_cq(counts[name] + 1))
            self.senders: list[QP] = []
            for flow in flows:
                sender = domains[flow.src].create_qp(self.hosts[flow.src].completions, max_send_wr=1)
                receiver = domains[flow.dst].create_qp(self.hosts[flow.dst].completions, max_send_wr=1)
                lab.connect(flow.src, sender, flow.dst, receiver, rng, nic, mark_remaining)
                self.senders.append(sender)
        except BaseException:
            self._stack.close()
            raise

    def post(self, index: int, flow: Flow) -> None:
        source, target = self.hosts[flow.src].source, self.hosts[flow.dst].target
        sg = source.sge(length=flow.bytes)
        write = SendWR(index, Opcode.RDMA_WRITE, sg, remote_addr=target.addr, rkey=target.rkey)
        self.senders[index].post_send(write)

    def counters(self) -> dict[str, int]:
        total: dict[str, int] = {}
        for host in self.hosts.values():
            for name, value in host.device.counters().items():
                total[name] = total.get(name, 0) + value
        return total

    def close(self) -> None:
        self._stack.close()


def _largest(flows: Sequence[Flow], end: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for flow in flows:
        name = getattr(flow, end)
        found[name] = max(found.get(name, 0), flow.bytes)
    return found


class _QueueSampler:
    """Reads every queue's depth at an interval, in a thread of its own."""

    def __init__(self, lab: Emulation, every_s: float) -> None:
        self._lab, self._every_s = lab, every_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="queue-sampler", daemon=True)
        self.samples: list[dict[tuple[str, str], int]] = []

    def _run(self) -> None:
        due = time.monotonic()
        while not self._stop.wait(max(0.0, due - time.monotonic())):
            try:
                counters = self._lab.link_counters()
            except ControlError:
                return  # the fabric has gone; the workload's own loop says why
            self.samples.append({ends: values["queue_bytes"] for ends, values in counters.items()})
            due = max(due + self._every_s, time.monotonic())

    def __enter__(self) -> _QueueSampler:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


def _processor_times() -> tuple[int, int]:
    """(idle, all) ticks of the machine, from proc(5)'s stat; waiting for disks counts as idle, stolen time does not."""
    with open("/proc/stat") as file:
        ticks = list(map(int, file.readline().split()[1:9]))
    return ticks[3] + ticks[4], sum(ticks)


def run_workload(
    lab: Emulation,
    flows: Sequence[Flow],
    *,
    rng: random.Random,
    nic: HostNic,
    mark_remaining: bool,
    sample_s: float,
    timeout_s: float,
) -> TrafficResult:
    """Runs flows (ascending in start_s) to their end.

    A flow that fails, or is not done timeout_s after the last was due, is a result like another; PlaitError if a
    process of the laboratory ends.
    """
    endpoints = _Endpoints(lab, flows, rng, nic, mark_remaining)
    try:
        counted, links, ticks = endpoints.counters(), _sums(lab), _processor_times()
        with _QueueSampler(lab, sample_s) as sampler:
            results, seconds = _drive(lab, endpoints, flows, timeout_s)
        idle, total = (now - before for now, before in zip(_processor_times(), ticks, strict=True))
        for result, sender in zip(results, endpoints.senders, strict=True):
            stats = sender.stats()
            result.packets_sent, result.retransmissions = stats["packets"], stats["retransmissions"]
            result.timeouts = stats["timeouts"]
        return TrafficResult(
            flows=results,
            seconds=seconds,
            nic=_growth(counted, endpoints.counters()),
            queues=sampler.samples,
            links=_growth(links, _sums(lab)),
            idle=idle / max(1, total),
        )
    except (PlaitError, VerbsError, ControlError) as error:
        # A process that is dying closes its sockets before it counts as ended: its end is the reason.
        time.sleep(_LOOK_S)
        raise PlaitError(lab.fault() or str(error)) from error
    finally:
        endpoints.close()


def _sums(lab: Emulation) -> dict[str, int]:
    total: dict[str, int] = {}
    for values in lab.link_counters().values():
        for name in ("packets", "bytes", "drops_queue", "drops_loss"):
            total[name] = total.get(name, 0) + values[name]
    return total


def _growth(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    return {name: value - before.get(name, 0) for name, value in after.items()}


def _drive(
    lab: Emulation, endpoints: _Endpoints, flows: Sequence[Flow], timeout_s: float
) -> tuple[list[FlowResult], float]:
    results = [FlowResult(flow) for flow in flows]
    queues = {host.completions.fileno(): host.completions for host in endpoints.hosts.values()}
    started, last, posted, missing = time.monotonic(), 0.0, 0, len(flows)
    end_s = flows[-1].start_s + timeout_s
    while missing:
        now = time.monotonic() - started
        if posted < len(flows) and flows[posted].start_s <= now:
            results[posted].posted_s = now
            endpoints.post(posted, flows[posted])
            posted += 1
        if now > end_s:
            break
        wait = flows[posted].start_s - now if posted < len(flows) else end_s - now
        ready, _, _ = select.select(list(queues), [], [], max(0.0, min(_LOOK_S, wait)))
        if not ready and (fault := lab.fault()):
            raise PlaitError(fault)
        for descriptor in ready:
            os.eventfd_read(descriptor)  # before the poll: what comes in between sets it again
            while completions := queues[descriptor].poll(_POLL_MOST):
                last = time.monotonic() - started
                for completion in completions:
                    results[completion.wr_id].done_s = last
                    results[completion.wr_id].status = completion.status
                missing -= len(completions)
                if len(completions) < _POLL_MOST:
                    break
    return results, last - results[0].posted_s
