"""Pictures of topologies, plain or with each link coloured by its load."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # no screen; must precede pyplot

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.patches import FancyBboxPatch, PathPatch
from matplotlib.path import Path as Curve

from lab.drawing_layout import LAYOUTS, SMALL_FROM, Place, default_layout
from mininet_topos.quantities import rate_text, time_text
from mininet_topos.topology import Link, Node, Topology

FORMATS = (".svg", ".png", ".pdf")

# By how far a switch is from the hosts, the nearest first; hosts.
_TIER_FILL = ("#dbe9f6", "#cfe3d4", "#f3e3c3", "#e6d9ef")
_HOST_FILL = "#ffffff"
_OUTLINE, _LINK, _GROUP = "#44546a", "#8497ab", "#f4f6f9"

# Inches a unit of the layouts; the largest picture.
_INCH, _MAX_INCHES = 0.62, 24.0

# More hosts than this are dots without names.
_NAMED_HOSTS = 64


def draw(
    topology: Topology,
    path: Path,
    *,
    title: str = "",
    layout: str = "",
    load: Mapping[tuple[str, str], float] | None = None,
    highlight: Mapping[str, str] | None = None,
) -> dict[str, Place]:
    """Writes a picture whose format is that of `path`'s suffix, and returns the places of the nodes.

    layout: one of `LAYOUTS`, or "" for what suits.  load: (node, node) -> share of the link's rate used by the busier
    direction, 0 to 1.  highlight: host -> colour, for the ends of transfers.
    """
    place = LAYOUTS[layout or default_layout(topology)](topology)
    xs, ys = zip(*place.values(), strict=True) if place else ((0.0,), (0.0,))
    inches = [min(_MAX_INCHES, (max(v) - min(v) + 2) * _INCH) for v in (xs, ys)]
    shrink = min(1.0, inches[0] / ((max(xs) - min(xs) + 2) * _INCH))
    figure, axes = plt.subplots(figsize=(max(5.0, inches[0] + (1.2 if load else 0)), max(2.8, inches[1] + 0.7)))
    _draw_groups(axes, topology, place)
    colours, scale = plt.get_cmap("viridis_r"), Normalize(0, 1)
    thickest = 1.6 if len(topology.links) <= 100 else 0.9
    fastest = max((link.rate_bps for link in topology.links), default=1)
    for link, bend in _bends(topology):
        share = None if load is None else load.get((link.a, link.b), load.get((link.b, link.a), 0.0))
        if share is None:
            # Each tenfold of rate is half a point.
            width = max(0.4, thickest + 0.5 * math.log10(link.rate_bps / fastest))
            look = {"edgecolor": _LINK, "linewidth": width, "alpha": 0.85}
        else:
            look = {"edgecolor": colours(scale(share)) if share else "#d8d8d8", "linewidth": 1.0 + 4.0 * share}
        _draw_link(axes, place[link.a], place[link.b], bend, 1 + (share or 0), look)
    tier = _tier_of(topology)
    for node in topology.nodes:
        _draw_node(axes, node, place[node.name], tier, highlight or {}, len(topology.hosts), shrink)
    axes.set_title(title or caption(topology), fontsize=10, color="#222222")
    axes.set_axis_off()
    axes.set_aspect("equal")
    axes.set_xlim(min(xs) - 1, max(xs) + 1)
    axes.set_ylim(min(ys) - 0.8, max(ys) + 0.8)
    if load is not None:
        bar = figure.colorbar(ScalarMappable(scale, colours), ax=axes, fraction=0.025, pad=0.01)
        bar.set_label("share of the link's rate, busier direction", fontsize=8)
        bar.ax.tick_params(labelsize=7)
    # Without the date, so that the same topology gives the same file.
    metadata = {"Date": None} if path.suffix == ".svg" else None
    with matplotlib.rc_context({"svg.hashsalt": "plait"}):
        figure.savefig(path, dpi=130, bbox_inches="tight", metadata=metadata)
    plt.close(figure)
    return place


def caption(topology: Topology) -> str:
    """The name, how much of what, and the links' rates and delays."""
    kinds = {(link.rate_bps, link.delay_ns): None for link in topology.links}
    links = "; ".join(f"{rate_text(rate)}b/s {time_text(delay)}" for rate, delay in list(kinds)[:3])
    more = "; …" if len(kinds) > 3 else ""
    counts = f"{len(topology.hosts)} hosts, {len(topology.switches)} switches, {len(topology.links)} links"
    return f"{topology.name}: {counts} ({links}{more})" if links else f"{topology.name}: {counts}"


def _tier_of(topology: Topology) -> dict[str, int]:
    """Per switch's layer, the number of its colour, in the order from the hosts upwards."""
    layers = list(dict.fromkeys(switch.layer for switch in reversed(topology.switches)))
    return {layer: i % len(_TIER_FILL) for i, layer in enumerate(layers)}


def _draw_node(
    axes: Axes,
    node: Node,
    place: Place,
    tier: Mapping[str, int],
    highlight: Mapping[str, str],
    hosts: int,
    shrink: float,
) -> None:
    colour = highlight.get(node.name, _OUTLINE)
    width = 2.4 if node.name in highlight else 0.9 * shrink
    if node.is_host and hosts > _NAMED_HOSTS and node.name not in highlight:
        axes.plot(*place, "o", markersize=4 * shrink, color=_HOST_FILL, markeredgecolor=colour, markeredgewidth=width)
        return
    small = hosts > SMALL_FROM and node.is_host
    box = {
        "boxstyle": f"round,pad={0.2 if small else 0.3}" if node.is_host else "square,pad=0.4",
        "facecolor": _HOST_FILL if node.is_host else _TIER_FILL[tier[node.layer]],
        "edgecolor": colour,
        "linewidth": width,
    }
    size = (6 if small else 8) * shrink
    axes.text(*place, node.name, ha="center", va="center", fontsize=size, zorder=3, bbox=box)


def _draw_link(axes: Axes, a: Place, b: Place, bend: float, order: float, look: Mapping[str, object]) -> None:
    """A straight line, or a curve that is `bend` beside it in the middle."""
    (xa, ya), (xb, yb) = a, b
    length = math.hypot(xb - xa, yb - ya) or 1.0
    middle = ((xa + xb) / 2 - 2 * bend * (yb - ya) / length, (ya + yb) / 2 + 2 * bend * (xb - xa) / length)
    curve = Curve([a, middle, b], [Curve.MOVETO, Curve.CURVE3, Curve.CURVE3])
    axes.add_patch(PathPatch(curve, facecolor="none", zorder=order, capstyle="round", **look))


def _bends(topology: Topology) -> list[tuple[Link, float]]:
    """Every link, and how far beside the straight line it runs: parallel links lie beside each other."""
    together: dict[frozenset[str], list[Link]] = {}
    for link in topology.links:
        together.setdefault(frozenset((link.a, link.b)), []).append(link)
    found = []
    for links in together.values():
        for i, link in enumerate(links):
            side = 1 if link.a == links[0].a else -1
            found.append((link, side * 0.16 * (i - (len(links) - 1) / 2)))
    return found


def _draw_groups(axes: Axes, topology: Topology, place: Mapping[str, Place]) -> None:
    """A pale box behind each pod: behind nodes whose places begin alike, where several switches do."""
    groups: dict[str, list[Node]] = {}
    for node in topology.nodes:
        if node.place and "," in node.place:
            groups.setdefault(node.place.split(",")[0], []).append(node)
    for name, nodes in groups.items():
        if sum(not node.is_host for node in nodes) < 2:
            continue
        xs, ys = zip(*(place[node.name] for node in nodes), strict=True)
        corner, size = (min(xs) - 0.45, min(ys) - 0.6), (max(xs) - min(xs) + 0.9, max(ys) - min(ys) + 1.1)
        style = "round,pad=0.05,rounding_size=0.2"
        axes.add_patch(FancyBboxPatch(corner, *size, boxstyle=style, facecolor=_GROUP, edgecolor="#d5dce4", zorder=0))
        axes.text(corner[0] + 0.05, corner[1] + 0.03, name, fontsize=6.5, color="#6b7a8c", va="bottom", zorder=0.5)
