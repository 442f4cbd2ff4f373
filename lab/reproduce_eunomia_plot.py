"""The picture of Eunomia's memory experiment: bitmaps alone, and with metadata, against the static bitmap."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib

matplotlib.use("Agg")  # no screen; must precede pyplot

import matplotlib.pyplot as plt

if TYPE_CHECKING:
    from lab.reproduce_eunomia import MemoryRecord

_SHOWN = (10, 40, 70, 100)  # degrees with a line of their own
_SHADES = ("#9ecae1", "#6baed6", "#3182bd", "#08519c")
_STATIC, _MEAN = "#c4551d", "#1d2733"


def _panel(
    axes: plt.Axes, records: Sequence[MemoryRecord], field: str, static: float, title: str, static_label: str
) -> None:
    shares = sorted({record.out_of_order_connections for record in records})

    def line(degrees: Sequence[int]) -> list[float]:
        chosen = [record for record in records if record.degree in degrees]
        groups = [[getattr(r, field) for r in chosen if r.out_of_order_connections == share] for share in shares]
        return [sum(values) / len(values) for values in groups]

    for degree, colour in zip(_SHOWN, _SHADES, strict=True):
        axes.plot(shares, line([degree]), "-", color=colour, linewidth=1.4, label=f"degree {degree} %")
    every = sorted({record.degree for record in records})
    axes.plot(shares, line(every), "o-", color=_MEAN, linewidth=2, markersize=4, label="mean of degrees 10 to 100 %")
    axes.axhline(static, color=_STATIC, linestyle="--", linewidth=1.6, label=static_label)
    axes.set_xlabel("connections with packets out of order (%)")
    axes.set_ylabel("bytes, all connections, mean over time")
    axes.set_xlim(0, 100)
    axes.set_ylim(bottom=0)
    axes.set_title(title, fontsize=10)
    axes.grid(True, color="#dddddd", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.legend(frameon=False, fontsize=8, loc="upper left")


def draw(records: Sequence[MemoryRecord], caption: str, folder: Path) -> None:
    """Writes memory.png and memory.svg."""
    figure, (bitmaps, total) = plt.subplots(1, 2, figsize=(11.2, 4.8), constrained_layout=True)
    first = records[0]
    _panel(
        bitmaps, records, "bitmap_bytes", first.static_bitmap_bytes, "Bitmaps alone (paper: figure 9(c))",
        "static: 32 bytes a connection",
    )  # fmt: skip
    _panel(
        total, records, "total_bytes", first.static_bytes, "With metadata (paper: figure 9(d))",
        "static: 41 bytes a connection",
    )  # fmt: skip
    for axes in (bitmaps, total):
        axes.set_ylim(top=axes.get_ylim()[1] * 1.35)  # room for the legend
    figure.suptitle("Eunomia's memory against a static bitmap of 256 packets", fontsize=11)
    figure.supxlabel(caption, fontsize=7.5, color="#555555")
    for suffix in ("png", "svg"):
        figure.savefig(folder / f"memory.{suffix}", dpi=130)
    plt.close(figure)
