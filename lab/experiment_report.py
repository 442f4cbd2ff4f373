"""What an experiment leaves: the table that is printed, records, pictures and the page."""

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from lab import results, units
from lab.emulation import PATH_MTU_BYTES
from lab.experiment import Outcome, RunRecord, scenario
from lab.experiment import run as run_experiment
from lab.experiment_config import Balancer, Experiment, Workload, read_experiment
from lab.experiment_plots import draw
from lab.nics import HostNic
from lab.report import Column, Mark, Note, Picture, Section, Table, write_report
from lab.workload import IDEAL_FCT

# Above these, what was measured is the machine as much as the network.
_BUSY_IDLE, _SLOW_ALONE = 0.1, 1.25
# From this share of packets on, a load balancer counts as one that reorders.
_REORDERS = 0.01
# Fields of LabConfig that differ between an experiment's runs.
_PER_RUN = ("program", "seed", "nic_memory_bytes")


@dataclass(frozen=True, slots=True)
class Measure:
    """A column of the table: the mean over seeds, with the least and the greatest where there are several."""

    title: str
    of: Callable[[RunRecord], float]


MEASURES = (
    Measure("slowdown mean", lambda run: run.slowdown_mean),
    Measure("slowdown p99", lambda run: run.slowdown_p99),
    Measure("goodput Mb/s", lambda run: run.goodput_bps / 1e6),
    Measure("sent again %", lambda run: 100 * run.retransmitted_share),
    Measure("NAKs", lambda run: run.naks),
    Measure("timeouts", lambda run: run.timeouts),
    Measure("out of order %", lambda run: 100 * run.out_of_order_share),
    Measure("extent mean", lambda run: run.mean_extent),
    Measure("queue mean kB", lambda run: run.queue_mean_bytes / 1000),
    Measure("queue max kB", lambda run: run.queue_max_bytes / 1000),
    Measure("CE marked %", lambda run: 100 * run.marked_share),
    Measure("dropped", lambda run: run.drops_queue),
    Measure("failed", lambda run: run.failed),
)
MEANINGS = (
    IDEAL_FCT + ". Slowdown = FCT / ideal FCT, over the flows that ended well",
    "sent again: share of the data packets sent; out of order, extent: RFC 4737, first copies of data packets at the "
    "captured receivers' links",
    "queue: of every switch port, sampled; CE marked: share of the data packets that reached a NIC",
    "dropped: packets that met a full queue",
)


def rows(runs: Sequence[RunRecord]) -> list[dict[str, str]]:
    """One a workload, loss, NIC and load balancer; NIC and loss have columns where there are several."""
    groups: dict[tuple[str, float, str, str], list[RunRecord]] = {}
    for run in runs:
        groups.setdefault((run.workload, run.loss, run.nic, run.balancer), []).append(run)
    orders: list[list[object]] = [list(dict.fromkeys(key[place] for key in groups)) for place in range(4)]
    nics, losses = len(orders[2]) > 1, len(orders[1]) > 1
    return [
        {
            "workload": workload,
            **({"loss": f"{100 * loss:g} %"} if losses else {}),
            **({"NIC": nic} if nics else {}),
            "load balancer": balancer,
            **{measure.title: _spread([measure.of(run) for run in groups[key]]) for measure in MEASURES},
        }
        for key in sorted(groups, key=lambda key: [order.index(part) for order, part in zip(orders, key, strict=True)])
        for workload, loss, nic, balancer in [key]
    ]


def _spread(values: Sequence[float]) -> str:
    """`2.41 (2.30-2.52)`; without the parentheses where all are shown equal."""
    mean, least, most = map(_short, (fmean(values), min(values), max(values)))
    return mean if least == most else f"{mean} ({least}-{most})"


def _short(value: float) -> str:
    """Three digits that count, or all before the point."""
    for bound, form in ((10, ".2f"), (100, ".1f")):
        if value < bound:
            return format(value, form).rstrip("0").rstrip(".")
    return format(value, ",.0f")


def finding(runs: Sequence[RunRecord]) -> str:
    """Per scenario: with several kinds of NIC, what each makes of the load balancers; else, the best of those."""
    nics, losses = len({run.nic for run in runs}), len({run.loss for run in runs})
    describe_scenario = _by_nic if nics > 1 else _by_balancer
    sentences = []
    for name in dict.fromkeys(scenario(run, losses) for run in runs):
        sentences.append(f"{name}: {describe_scenario([run for run in runs if scenario(run, losses) == name])}.")
    return "\n".join(sentences)


def _by_nic(runs: Sequence[RunRecord]) -> str:
    """Mean slowdowns of each load balancer as a multiple of the first one's, with the same NIC."""
    first, *others = dict.fromkeys(run.balancer for run in runs)
    parts = []
    for nic in dict.fromkeys(run.nic for run in runs):
        means = {
            balancer: fmean(run.slowdown_mean for run in runs if run.nic == nic and run.balancer == balancer)
            for balancer in (first, *others)
        }
        against = [f"{name} {means[name]:.2f}, a {'win' if means[name] < means[first] else 'loss'}" for name in others]
        parts.append("; ".join([f"{nic} has a mean slowdown of {means[first]:.2f} with {first}", *against]))
    return ". ".join(parts)


def _by_balancer(runs: Sequence[RunRecord]) -> str:
    """The best load balancer by mean slowdown, and all of them, by whether they reorder."""
    means: dict[str, float] = {}
    late: dict[str, float] = {}
    for balancer in dict.fromkeys(run.balancer for run in runs):
        group = [run for run in runs if run.balancer == balancer]
        means[balancer] = fmean(run.slowdown_mean for run in group)
        late[balancer] = fmean(run.out_of_order_share for run in group)
    best = min(means, key=lambda name: means[name])
    parts = [f"{best} has the least mean slowdown"]
    for title, belongs in (
        (f"out of order {100 * _REORDERS:.0f} % of packets or more", lambda share: share >= _REORDERS),
        ("less", lambda share: share < _REORDERS),
    ):
        members = sorted((name for name in means if belongs(late[name])), key=lambda name: means[name])
        if members:
            parts.append(f"{title}: " + ", ".join(f"{name} {means[name]:.2f}" for name in members))
    return "; ".join(parts)


def headroom(runs: Sequence[RunRecord]) -> Mark:
    """How far the machine, and not the network, may have made the figures."""
    idle, alone = min(run.idle_share for run in runs), [run.alone_slowdown for run in runs]
    late = max(run.late_p99_s for run in runs)
    text = (
        f"processors idle {100 * idle:.0f} % of the time in the busiest run, "
        f"{100 * fmean(run.idle_share for run in runs):.0f} % on average; "
        f"flows alone in the network had a slowdown of {fmean(alone):.2f} ({min(alone):.2f}-{max(alone):.2f}); "
        f"99 of 100 flows were posted at most {1000 * late:.1f} ms late in every run"
    )
    good = idle >= _BUSY_IDLE and max(alone) <= _SLOW_ALONE
    return Mark(text if good else f"the machine was busy, so look at ratios only: {text}", good)


def conditions(experiment: Experiment) -> str:
    seeds = ", ".join(map(str, experiment.seeds))
    losses = ", ".join(f"{100 * loss:g} %" for loss in experiment.losses)
    return (
        f"{experiment.lab.chosen}, NIC {', '.join(map(_describe_nic, experiment.nics))}, "
        f"path MTU {PATH_MTU_BYTES}, window of two BDPs (16 packets or more), "
        + (f"switches' links lose {losses}, " if any(experiment.losses) else "")
        + "queues of "
        f"{experiment.queue_packets or 'the default number of'} packets, seeds {seeds}"
    )


def describe(workload: Workload) -> str:
    if workload.sizes is None:
        return f"{workload.name}: every host sends {units.format_bytes(workload.size_bytes)} to another, all at once"
    end = f"{workload.flows} flows" if workload.flows else f"{workload.duration_s:g} s"
    scale = "" if workload.scale == 1 else f" times {workload.scale:g}"
    return (
        f"{workload.name}: Poisson arrivals of sizes {workload.sizes.name}{scale} (mean "
        f"{units.format_bytes(workload.sizes.mean)}) at {100 * workload.load:.0f} % of the hosts' links, {end}"
    )


def _describe_nic(nic: HostNic) -> str:
    parts = [nic.transport, *(f"{name}={value}" for name, value in nic.settings.items())]
    return nic.name if parts == [nic.name] else f"{nic.name} ({', '.join(parts)})"


def _describe_balancer(balancer: Balancer) -> str:
    extra = [f"{name}={value}" for name, value in balancer.parameters.items()]
    extra += [f"weights {':'.join(map(str, balancer.weights))}"] if balancer.weights else []
    extra += ["packets say what remains"] if balancer.mark_remaining else []
    return f"{balancer.name}: {balancer.program.name}" + (f" ({', '.join(extra)})" if extra else "")


def run_and_report(path: Path, base: Path | None, talk: Callable[[str], None]) -> tuple[Experiment, Outcome, Path]:
    """The experiment from its file to a results folder; a user's mistake raises before anything is made."""
    experiment = read_experiment(path)
    experiment.lab.topology()
    results.check_base(base)
    folder = results.new_folder(experiment.name, base)
    talk(f"{conditions(experiment)}\n" + "\n".join(map(describe, experiment.workloads)))
    try:
        outcome = run_experiment(experiment, folder, talk)
    except BaseException as error:
        if not any(folder.iterdir()):
            shutil.rmtree(folder)
        else:
            (folder / "error.txt").write_text(f"{type(error).__name__}: {error}\n")
        raise
    _write(folder, experiment, outcome)
    return experiment, outcome, folder


def _write(folder: Path, experiment: Experiment, outcome: Outcome) -> None:
    configuration: dict[str, Any] = {
        "experiment": experiment.name,
        **{name: value for name, value in experiment.lab.describe().items() if name not in _PER_RUN},
        "seeds": list(experiment.seeds),
        "load balancers": [
            {**asdict(each), "program": str(each.program), "parameters": dict(each.parameters)}
            for each in experiment.balancers
        ],
        "workloads": list(map(describe, experiment.workloads)),
        "NICs": [{**asdict(each), "settings": dict(each.settings)} for each in experiment.nics],
        "losses": list(experiment.losses),
        "path_mtu_bytes": PATH_MTU_BYTES,
        "queue_packets": experiment.queue_packets,
        "captured hosts": experiment.capture_hosts,
        "queue samples every (s)": experiment.sample_s,
        "ideal FCT": IDEAL_FCT,
        **results.versions(),
    }
    (folder / "experiment.toml").write_text(experiment.text)
    (folder / "config.json").write_text(json.dumps(configuration, indent=1) + "\n")
    results.write_csv(folder / "flows.csv", outcome.flows)
    results.write_csv(folder / "runs.csv", outcome.runs)
    results.write_units(folder)
    pictures = draw(outcome.flows, outcome.runs, conditions(experiment), folder)
    table = rows(outcome.runs)
    named = list(table[0]).index("load balancer") + 1
    columns = [Column(title, text=index < named) for index, title in enumerate(table[0])]
    by_workload = [
        Table(columns[1:], [list(row.values())[1:] for row in table if row["workload"] == workload.name])
        for workload in experiment.workloads
    ]
    sections = [
        Section(describe(workload), [shown]) for workload, shown in zip(experiment.workloads, by_workload, strict=True)
    ]
    machine = headroom(outcome.runs)
    sections.append(Section("What the columns mean", [Note(f"{text}.") for text in MEANINGS]))
    sections.append(Section("What the machine had left", [Note(f"{machine.text}."), _every_run(outcome.runs)]))
    sections += [Section(meaning, [Picture(path, meaning)]) for path, meaning in pictures.items()]
    write_report(
        folder / "report.html",
        title=f"Plait: {experiment.name}",
        verdict=Mark(finding(outcome.runs).replace("\n", " "), True),
        sections=sections,
        configuration={
            **configuration,
            "seeds": ", ".join(map(str, experiment.seeds)),
            "load balancers": "; ".join(map(_describe_balancer, experiment.balancers)),
            "NICs": "; ".join(map(_describe_nic, experiment.nics)),
            "losses": ", ".join(map(str, experiment.losses)),
            "workloads": "; ".join(configuration["workloads"]),
        },
        files={
            "runs.csv": "one row a load balancer, NIC, loss, workload and seed; units in units.json",
            "flows.csv": "one row a flow",
            "experiment.toml": "what was run",
            "config.json": "everything that was set, with versions and seeds",
            **{path.name: meaning for path, meaning in pictures.items()},
            **{
                path.name: "every packet of a host's link, of one run; see `plait inspect --reorder`"
                for path in sorted(folder.glob("*.pcap"))
            },
        },
    )


def _every_run(runs: Sequence[RunRecord]) -> Table:
    columns = (
        Column("load balancer", text=True), Column("NIC", text=True), Column("loss"), Column("workload", text=True),
        Column("seed"), Column("seconds"),
        Column("idle"), Column("posted late, p99 (ms)"), Column("slowdown alone"),
    )  # fmt: skip
    cells = [
        [
            run.balancer, run.nic, f"{run.loss:g}", run.workload, str(run.seed), f"{run.seconds:.2f}",
            f"{100 * run.idle_share:.0f} %", f"{1000 * run.late_p99_s:.2f}", f"{run.alone_slowdown:.2f}",
        ]
        for run in runs
    ]  # fmt: skip
    return Table(columns, cells, "every run")


def as_json(outcome: Outcome, folder: Path) -> Mapping[str, Any]:
    return {"out": str(folder), "runs": [asdict(run) for run in outcome.runs]}
