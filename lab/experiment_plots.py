"""An experiment's pictures: slowdown, reordering and queues by load balancer; conditions in each caption."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import matplotlib

matplotlib.use("Agg")  # no screen; must precede pyplot

import matplotlib.pyplot as plt
from matplotlib.axis import Axis
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from lab.experiment import FlowRecord, RunRecord, scenario, variant

# Greatest over least, up to which 2 and 5 are labelled as well.
_FINE_TICKS = 500


Record = TypeVar("Record", FlowRecord, RunRecord)


def _panels_of(records: Sequence[Record]) -> dict[str, dict[str, list[Record]]]:
    """Scenario -> what is compared in it -> its records, in the order in which they ran."""
    nics, losses = len({record.nic for record in records}), len({record.loss for record in records})
    found: dict[str, dict[str, list[Record]]] = {}
    for record in records:
        found.setdefault(scenario(record, losses), {}).setdefault(variant(record, nics), []).append(record)
    return found


def _panels(count: int, height: float = 4.4) -> tuple[plt.Figure, list[plt.Axes]]:
    """Two in a row where there are more than three."""
    columns = count if count <= 3 else 2
    rows = -(-count // columns)
    figure, axes = plt.subplots(
        rows, columns, figsize=(max(7.2, 5.6 * columns), height * rows), constrained_layout=True, squeeze=False
    )
    panels = list(axes.flat)
    for spare in panels[count:]:
        spare.set_visible(False)
    return figure, panels[:count]


def _finish(figure: plt.Figure, title: str, caption: str, path: Path) -> Path:
    figure.suptitle(title, fontsize=11)
    figure.supxlabel(caption, fontsize=7.5, color="#555555")
    figure.savefig(path, dpi=130)
    plt.close(figure)
    return path


def _log_ticks(axis: Axis) -> None:
    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < _FINE_TICKS * low else (1,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axis.set_minor_formatter(NullFormatter())


def draw_slowdowns(flows: Sequence[FlowRecord], caption: str, path: Path) -> Path:
    """Share of flows against slowdown, a panel a scenario, a line a variant, all seeds together."""
    found = _panels_of(flows)
    figure, panels = _panels(len(found))
    colours = plt.get_cmap("tab10")
    for axes, (name, variants) in zip(panels, found.items(), strict=True):
        for index, (balancer, records) in enumerate(variants.items()):
            values = sorted(flow.slowdown for flow in records if flow.slowdown > 0)
            if values:
                shares = [(number + 1) / len(values) for number in range(len(values))]
                axes.step(
                    [values[0], *values], [0.0, *shares], where="post", color=colours(index % 10), label=balancer,
                    linestyle=("-", "--")[index // 10 % 2], linewidth=1.6,
                )  # fmt: skip
        axes.set_xscale("log")
        _log_ticks(axes.xaxis)
        axes.set_ylim(0, 1)
        axes.set_xlabel("FCT slowdown (FCT / ideal FCT)")
        axes.set_ylabel("share of flows with at most this slowdown")
        axes.set_title(name, fontsize=10)
        axes.grid(True, color="#dddddd", linewidth=0.8)
        axes.set_axisbelow(True)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right upper", frameon=False, fontsize=8)
    return _finish(figure, "How much longer flows take than alone", caption, path)


def _bars(
    runs: Sequence[RunRecord],
    measures: Sequence[tuple[str, Callable[[RunRecord], float]]],
    label: str,
    title: str,
    caption: str,
    path: Path,
    log_from: float = 0.0,
) -> Path:
    """A panel a scenario, a group of bars a variant: the mean over seeds, and lines from least to greatest.

    log_from: where a logarithmic axis begins; 0: the axis is linear.
    """
    found = _panels_of(runs)
    figure, panels = _panels(len(found))
    shades = ("#31688e", "#90b4cf", "#c4551d")
    width = 0.8 / len(measures)
    for axes, (title_of_panel, variants) in zip(panels, found.items(), strict=True):
        for number, (name, measure) in enumerate(measures):
            groups = [[measure(run) for run in records] for records in variants.values()]
            means = [sum(values) / len(values) for values in groups]
            places = [index - 0.4 + width * (number + 0.5) for index in range(len(variants))]
            spread = [
                [mean - min(values) for mean, values in zip(means, groups, strict=True)],
                [max(values) - mean for mean, values in zip(means, groups, strict=True)],
            ]
            axes.bar(places, means, width, color=shades[number], label=name)
            axes.errorbar(places, means, yerr=spread, fmt="none", ecolor="#1d2733", elinewidth=1, capsize=2)
        axes.set_xticks(range(len(variants)), list(variants), rotation=30, ha="right", fontsize=8)
        if log_from:
            axes.set_yscale("log")
            axes.set_ylim(bottom=log_from)
            _log_ticks(axes.yaxis)
        else:
            axes.set_ylim(bottom=0)
        axes.set_ylabel(label)
        axes.set_title(title_of_panel, fontsize=10)
        axes.grid(True, axis="y", color="#dddddd", linewidth=0.8)
        axes.set_axisbelow(True)
    if len(measures) > 1:
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right upper", frameon=False, fontsize=8)
    return _finish(figure, title, caption, path)


def draw(flows: Sequence[FlowRecord], runs: Sequence[RunRecord], caption: str, folder: Path) -> dict[Path, str]:
    """All pictures; returns where each is and what it shows."""
    flow_caption, caption = caption, f"{caption}\nbars: mean over the seeds; thin lines: the least and the greatest"
    return {
        draw_slowdowns(flows, flow_caption, folder / "slowdown-cdf.png"): "FCT slowdown, distribution over flows",
        _bars(
            runs,
            (("mean", lambda run: run.slowdown_mean), ("99th percentile", lambda run: run.slowdown_p99)),
            "FCT slowdown", "FCT slowdown by load balancer", caption, folder / "slowdown.png", log_from=1.0,
        ): "FCT slowdown by load balancer",
        _bars(
            runs,
            (
                ("out of order", lambda run: 100 * run.out_of_order_share),
                ("sent again", lambda run: 100 * run.retransmitted_share),
            ),
            "packets (%)", "Packets out of order at the receivers, and sent again", caption,
            folder / "reordering.png",
        ): "packets out of order and packets sent again, by load balancer",
        _bars(
            runs,
            (
                ("mean", lambda run: run.queue_mean_bytes / 1000),
                ("largest sample", lambda run: run.queue_max_bytes / 1000),
            ),
            "queue depth (kB)", "Depth of the switches' queues", caption, folder / "queues.png", log_from=0.01,
        ): "depth of the switches' queues, by load balancer",
        _bars(
            runs,
            (("", lambda run: run.goodput_bps / 1e6),),
            "goodput of all flows together (Mb/s)", "Throughput", caption, folder / "throughput.png",
        ): "throughput by load balancer",
    }  # fmt: skip
