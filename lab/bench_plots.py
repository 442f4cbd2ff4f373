"""The benchmarks' curves as pictures, each with the conditions of its run in the caption."""

import platform
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")  # no screen; must precede pyplot

import matplotlib.pyplot as plt
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

_STYLE = {"exact": ("o-", "#1f5fa8"), "lpm": ("s-", "#c4551d"), "ternary": ("^-", "#3b7d3b")}
_LABEL = {"exact": "exact", "lpm": "LPM, /8 to /32", "ternary": "ternary, 32 masks, 64 priorities"}

Points = Sequence[Sequence[float]]


def conditions() -> str:
    """Machine, kernel and day of a run."""
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith(("model name", "Model"))
        ),
        platform.machine(),
    )
    return f"{model}, Linux {platform.release().split('-')[0]}, one thread, processor time, {date.today().isoformat()}"


def draw_lookups(curves: Mapping[str, Points], path: Path) -> None:
    """ns a look-up against entries, one line a kind."""
    figure, axes = plt.subplots(figsize=(7.2, 4.6), constrained_layout=True)
    for name, points in curves.items():
        style, colour = _STYLE[name]
        axes.plot(*zip(*points, strict=True), style, color=colour, label=_LABEL[name], markersize=5)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.set_ylim(bottom=10)
    axes.set_xlabel("entries in the table")
    axes.set_ylabel("ns a look-up")
    _finish(figure, axes, "Cost of a look-up", f"random 32-bit keys, all of them hit; {conditions()}", path)


def draw_hops(points: Points, path: Path) -> None:
    """Packet-hops a second against switches."""
    figure, axes = plt.subplots(figsize=(7.2, 4.6), constrained_layout=True)
    switches, rates = zip(*points, strict=True)
    axes.plot(switches, [rate / 1e6 for rate in rates], "o-", color="#1f5fa8", markersize=5, label="ecmp.p4")
    axes.set_ylim(bottom=0)
    axes.set_xticks(switches)
    axes.set_xlabel("switches in the process (one switch, then fat-trees of k = 2, 4, 6, 8)")
    axes.set_ylabel("million packet-hops a second")
    caption = f"ecmp.p4, memory links, 1,086-byte frames, virtual time; {conditions()}"
    _finish(figure, axes, "Speed against switches", caption, path)


def _finish(figure: plt.Figure, axes: plt.Axes, title: str, caption: str, path: Path) -> None:
    axes.set_title(title, fontsize=11)
    axes.grid(True, which="major", color="#dddddd", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.legend(frameon=False, fontsize=9)
    figure.supxlabel(caption, fontsize=7.5, color="#555555")
    figure.savefig(path, dpi=130)
    plt.close(figure)


def draw(curves: Mapping[str, Any], folder: Path) -> list[Path]:
    """Both pictures as PNG and SVG; returns where they are."""
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for suffix in ("png", "svg"):
        draw_lookups(curves["entries"], folder / f"switch-entries.{suffix}")
        draw_hops(curves["switches"], folder / f"switch-switches.{suffix}")
        made += [folder / f"switch-entries.{suffix}", folder / f"switch-switches.{suffix}"]
    return made
