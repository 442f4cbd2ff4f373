"""`plait run`: every load balancer and kind of NIC of an experiment under every workload, for each loss and seed.

One laboratory a seed and loss; the balancers' programs are loaded one after the other over P4Runtime, which clears the
switches' state.  A balancer whose program is the one before's gets a laboratory of its own, since a program that is
already there stays, parameters included.
"""

from __future__ import annotations

import dataclasses
import itertools
import random
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any

from controller.policy import Policy
from lab.emulation import PATH_MTU_BYTES, Emulation
from lab.errors import UsageError
from lab.experiment_config import MAX_FLOWS, Balancer, Experiment, Workload
from lab.experiment_traffic import FlowResult, TrafficResult, run_workload
from lab.nics import HostNic
from lab.reorder import Order, orders, read_frames, summarize
from lab.workload import Flow, arrival_rate, ideal_fct_s, permutation, poisson
from mininet_topos.topology import Topology

_PAGE = 1 << 12
# What shows how well the machine keeps up: a few flows, each alone in the network.
_ALONE_FLOWS, _ALONE_BYTES, _ALONE_PAUSE_S = 6, 16 << 10, 0.01


@dataclass(frozen=True, slots=True)
class FlowRecord:
    """A flow of a run. fct_s is 0 and slowdown is 0 where it did not end well."""

    balancer: str
    nic: str
    loss: float
    workload: str
    seed: int
    src: str
    dst: str
    bytes: int
    start_s: float  # when it was due
    late_s: float  # how much later it was posted
    fct_s: float  # from posting to the completion
    ideal_fct_s: float
    slowdown: float
    status: str
    packets_sent: int
    retransmissions: int
    timeouts: int


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One load balancer and one kind of NIC under one workload with one seed."""

    balancer: str
    nic: str
    loss: float  # of links between switches, probability
    workload: str
    seed: int
    flows: int
    failed: int  # flows that ended with an error, or not in time; they are in no mean
    slowdown_mean: float
    slowdown_median: float
    slowdown_p99: float
    fct_mean_s: float
    goodput_bps: float  # bytes of the flows that ended, from the first post to the last completion
    packets_sent: int
    retransmitted_share: float  # of packets_sent
    timeouts: int
    seq_errors: int  # packets that NICs refused: not the PSN that they expected, or beyond their bitmap
    early_placed: int  # packets that NICs placed ahead of their turn
    naks: int  # negative acknowledgements that senders took
    captured_packets: int  # data packets at the captured hosts' links, first copies
    out_of_order_share: float  # of captured_packets
    mean_extent: float
    max_extent: int
    queue_mean_bytes: float  # over all ports of switches and all samples
    queue_max_bytes: int  # the largest sample of any port
    marked_share: float  # of the data packets that reached NICs: with CE
    drops_queue: int
    drops_loss: int
    seconds: float
    idle_share: float  # of the machine's processors
    late_p99_s: float  # how late flows were posted
    alone_slowdown: float  # of flows with nothing else in the network, just before


@dataclass(frozen=True, slots=True)
class Case:
    """What distinguishes a run from the others."""

    balancer: Balancer
    nic: HostNic
    loss: float
    workload: Workload
    seed: int

    @property
    def names(self) -> tuple[str, str, float, str, int]:
        """The first fields of its records."""
        return (self.balancer.name, self.nic.name, self.loss, self.workload.name, self.seed)


def variant(record: FlowRecord | RunRecord, nics: int) -> str:
    """What is compared within a scenario; the NIC is named where there are several."""
    return record.balancer if nics == 1 else f"{record.balancer}, {record.nic}"


def scenario(record: FlowRecord | RunRecord, losses: int) -> str:
    return record.workload if losses == 1 else f"{record.workload}, loss {100 * record.loss:g} %"


@dataclass(frozen=True, slots=True)
class Outcome:
    flows: list[FlowRecord]
    runs: list[RunRecord]


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of all do not exceed; 0 without values."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * share // 1).__trunc__() - 1)] if ordered else 0.0


def laboratories(balancers: Sequence[Balancer]) -> Iterator[list[Balancer]]:
    """Runs of balancers in which no program follows itself."""
    run: list[Balancer] = []
    for balancer in balancers:
        if run and run[-1].program == balancer.program:
            yield run
            run = []
        run.append(balancer)
    yield run


def flows_of(workload: Workload, topology: Topology, seed: int) -> list[Flow]:
    """The same for every load balancer. UsageError if they are more than MAX_FLOWS, or none."""
    rng = random.Random(f"{workload.name}/{seed}")
    hosts = [host.name for host in topology.hosts]
    if workload.sizes is None:
        return permutation(hosts, workload.size_bytes, rng)
    rates = [topology.host_port(host).link.rate_bps for host in hosts]
    flows_per_s = arrival_rate(workload.load, rates, workload.sizes, PATH_MTU_BYTES)
    most = workload.flows or MAX_FLOWS + 1
    flows = poisson(hosts, flows_per_s, workload.sizes, rng, flows=most, duration_s=workload.duration_s)
    if not 0 < len(flows) <= MAX_FLOWS:
        amount = f"more than {MAX_FLOWS}" if flows else "no"
        raise UsageError(f"workload {workload.name!r}: its duration gives {amount} flows; 1 to {MAX_FLOWS} can be.")
    return flows


def alone(topology: Topology) -> list[Flow]:
    """Flows between the ends of the host list, each after the one before has ended."""
    hosts = [host.name for host in topology.hosts]
    flows, at = [], 0.0
    for index in range(_ALONE_FLOWS):
        src, dst = hosts[index % (len(hosts) // 2)], hosts[-1 - index % (len(hosts) // 2)]
        flows.append(Flow(at, src, dst, _ALONE_BYTES))
        at += 2 * ideal_fct_s(topology, src, dst, _ALONE_BYTES, PATH_MTU_BYTES) + _ALONE_PAUSE_S
    return flows


def memory_bytes(every: Sequence[Sequence[Flow]]) -> int:
    """What the NICs' memory must hold: of two workloads in a row, each host's largest flow out and in."""
    need = 0
    for flows in every:
        largest: dict[tuple[str, str], int] = {}
        for flow in flows:
            for end in (("out", flow.src), ("in", flow.dst)):
                largest[end] = max(largest.get(end, 0), flow.bytes)
        need = max(need, sum(-(-size // _PAGE) * _PAGE + _PAGE for size in largest.values()))
    return 2 * need + (1 << 20)


def run(experiment: Experiment, folder: Path, talk: Callable[[str], None]) -> Outcome:
    """Runs everything; captures pass through `folder`. Errors as those of Emulation and its controller."""
    topology = experiment.lab.topology()
    planned = {
        (workload.name, seed): flows_of(workload, topology, seed)
        for workload in experiment.workloads
        for seed in experiment.seeds
    }
    memory = memory_bytes([*planned.values(), alone(topology)])
    outcome = Outcome([], [])
    variants = len(experiment.balancers) * len(experiment.nics) * len(experiment.losses)
    total, started = len(planned) * variants, time.monotonic()
    for seed, loss in itertools.product(experiment.seeds, experiment.losses):
        for group in laboratories(experiment.balancers):
            config = dataclasses.replace(
                experiment.lab, seed=seed, program=group[0].program, nic_memory_bytes=memory, core_loss=loss
            )
            with Emulation(config, talk, _policy(group[0], seed)) as lab:
                if experiment.queue_packets is not None:
                    lab.set_queue_depth(experiment.queue_packets)
                for balancer, nic in itertools.product(group, experiment.nics):
                    lab.reload(balancer.program, _policy(balancer, seed), balancer.parameters)
                    for workload in experiment.workloads:
                        case = Case(balancer, nic, loss, workload, seed)
                        record, of_flows = _measure(lab, experiment, case, planned[workload.name, seed], folder)
                        outcome.flows.extend(of_flows)
                        outcome.runs.append(record)
                        talk(_progress(record, len(outcome.runs), total, time.monotonic() - started))
    return outcome


def _policy(balancer: Balancer, seed: int) -> Policy:
    return Policy(seed=seed, weights=balancer.weights)


def _progress(run: RunRecord, number: int, total: int, seconds: float) -> str:
    return (
        f"[{number}/{total}, {seconds:.0f} s] seed {run.seed}, {run.balancer}, {run.nic}, {run.workload}"
        + (f", loss {100 * run.loss:g} %" if run.loss else "")
        + ": "
        f"slowdown {run.slowdown_mean:.2f} mean, {run.slowdown_p99:.2f} p99; "
        f"{100 * run.out_of_order_share:.1f} % out of order" + (f"; {run.failed} flows failed" if run.failed else "")
    )


def _measure(
    lab: Emulation,
    experiment: Experiment,
    case: Case,
    flows: Sequence[Flow],
    folder: Path,
) -> tuple[RunRecord, list[FlowRecord]]:
    seed, names = case.seed, case.names
    limits: dict[str, Any] = {
        "nic": case.nic,
        "mark_remaining": case.balancer.mark_remaining,
        "sample_s": experiment.sample_s,
        "timeout_s": experiment.timeout_s,
    }
    # The same numbers for every balancer: PSNs and UDP source ports are drawn from them.
    solo = run_workload(lab, alone(lab.topology), rng=random.Random(f"alone/{seed}"), **limits)
    captured = captured_hosts([host.name for host in lab.topology.hosts], experiment.capture_hosts)
    place = re.sub(r"[^A-Za-z0-9]+", "-", " ".join(map(str, names)))
    files = {host: folder / f"{place}-{host}.pcap" for host in captured}
    try:
        for host, file in files.items():
            lab.capture_host(host, file)
        result = run_workload(lab, flows, rng=random.Random(f"{case.workload.name}/{seed}/qp"), **limits)
        lab.stop_captures()
        seen: list[Order] = []
        for host, file in files.items():
            address = bytes(map(int, lab.topology.node(host).address.split(".")))
            seen.extend(orders(read_frames(file), address).values())
    finally:
        for file in files.values():
            if not experiment.keep_captures:
                file.unlink(missing_ok=True)
    records = [flow_record(lab.topology, names, flow) for flow in result.flows]
    slow = fmean([flow_record(lab.topology, names, flow).slowdown for flow in solo.flows])
    return run_record(lab.topology, names, result, records, seen, slow), records


def captured_hosts(hosts: Sequence[str], count: int) -> list[str]:
    """So many hosts, spread evenly over the list."""
    count = min(count, len(hosts))
    return [hosts[index * len(hosts) // count] for index in range(count)]


def flow_record(topology: Topology, names: tuple[str, str, float, str, int], result: FlowResult) -> FlowRecord:
    """names: of its case."""
    flow = result.flow
    ideal = ideal_fct_s(topology, flow.src, flow.dst, flow.bytes, PATH_MTU_BYTES)
    fct = result.fct_s if result.ok else 0.0
    return FlowRecord(
        *names,
        src=flow.src,
        dst=flow.dst,
        bytes=flow.bytes,
        start_s=round(flow.start_s, 9),
        late_s=round(result.late_s, 9),
        fct_s=round(fct, 9),
        ideal_fct_s=round(ideal, 9),
        slowdown=round(fct / ideal, 6),
        status=result.status,
        packets_sent=result.packets_sent,
        retransmissions=result.retransmissions,
        timeouts=result.timeouts,
    )


def run_record(
    topology: Topology,
    names: tuple[str, str, float, str, int],
    result: TrafficResult,
    records: Sequence[FlowRecord],
    seen: Sequence[Order],
    alone_slowdown: float,
) -> RunRecord:
    """From what a run measured; records are those of its flows, seen the flows of the captured links."""
    good = [record for record in records if record.status == "SUCCESS"]
    slowdowns = [record.slowdown for record in good]
    reordering = summarize(seen)
    switches = {switch.name for switch in topology.switches}
    depths = [depth for sample in result.queues for (source, _), depth in sample.items() if source in switches]
    sent = sum(record.packets_sent for record in records)
    received = sum(count for name, count in result.nic.items() if name.startswith("REQUEST_"))
    return RunRecord(
        *names,
        flows=len(records),
        failed=len(records) - len(good),
        slowdown_mean=fmean(slowdowns) if slowdowns else 0.0,
        slowdown_median=median(slowdowns) if slowdowns else 0.0,
        slowdown_p99=percentile(slowdowns, 0.99),
        fct_mean_s=fmean(record.fct_s for record in good) if good else 0.0,
        goodput_bps=8 * sum(record.bytes for record in good) / result.seconds if result.seconds > 0 else 0.0,
        packets_sent=sent,
        retransmitted_share=sum(record.retransmissions for record in records) / max(1, sent),
        timeouts=sum(record.timeouts for record in records),
        seq_errors=sum(result.nic[f"REQUEST_{name}"] for name in ("SEQ_ERROR", "BEYOND", "NO_BITMAP")),
        early_placed=result.nic["REQUEST_OUT_OF_ORDER"],
        naks=result.nic["NAK_RECEIVED"],
        captured_packets=reordering.packets,
        out_of_order_share=reordering.fraction,
        mean_extent=reordering.mean_extent,
        max_extent=reordering.max_extent,
        queue_mean_bytes=fmean(depths) if depths else 0.0,
        queue_max_bytes=max(depths, default=0),
        marked_share=result.nic["ce_marked"] / max(1, received),
        drops_queue=result.links["drops_queue"],
        drops_loss=result.links["drops_loss"],
        seconds=result.seconds,
        idle_share=result.idle,
        late_p99_s=percentile([record.late_s for record in records], 0.99),
        alone_slowdown=alone_slowdown,
    )
