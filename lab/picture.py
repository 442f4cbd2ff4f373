"""A picture of a topology, each link coloured by its load."""

from collections.abc import Mapping
from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # no screen; must precede pyplot

import matplotlib.pyplot as plt
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize

from mininet_topos.topology import Topology

_LAYER_FROM_TOP = ("core", "agg", "edge", "host")
_FILL = {"core": "#dbe4f0", "agg": "#dbe4f0", "edge": "#dbe4f0", "host": "#f4f1e8"}


def positions(topology: Topology) -> dict[str, tuple[float, float]]:
    """Place of each node in [0, 1] x [0, layers): nodes of a layer spread evenly, in the topology's order."""
    layers: dict[str, list[str]] = {}
    for node in topology.nodes:
        layers.setdefault("host" if node.kind == "host" else node.layer, []).append(node.name)
    order = [layer for layer in _LAYER_FROM_TOP if layer in layers]
    order += [layer for layer in layers if layer not in order]
    return {
        name: ((index + 0.5) / len(layers[layer]), float(len(order) - 1 - row))
        for row, layer in enumerate(order)
        for index, name in enumerate(layers[layer])
    }


def draw(
    topology: Topology,
    load: Mapping[tuple[str, str], float],
    path: Path,
    *,
    title: str,
    highlight: Mapping[str, str] | None = None,
) -> None:
    """Writes a picture whose format is that of `path`'s suffix.

    load: (node, node) -> share of the link's rate used by the busier direction, 0 to 1.
    highlight: host -> colour, for the ends of transfers.
    """
    place = positions(topology)
    columns = max(sum(y == row for _, y in place.values()) for row in {y for _, y in place.values()})
    figure, axes = plt.subplots(figsize=(max(9.0, columns * 0.7), 5.6), constrained_layout=True)
    colours = plt.get_cmap("viridis_r")
    scale = Normalize(0, 1)
    for link in topology.links:
        share = load.get((link.a, link.b), load.get((link.b, link.a), 0.0))
        (xa, ya), (xb, yb) = place[link.a], place[link.b]
        axes.plot(
            [xa, xb],
            [ya, yb],
            color=colours(scale(share)) if share > 0 else "#d8d8d8",
            linewidth=1.0 + 4.0 * share,
            zorder=1 + share,
            solid_capstyle="round",
        )
    for node in topology.nodes:
        x, y = place[node.name]
        edge = (highlight or {}).get(node.name, "#5b6b7f")
        axes.text(
            x,
            y,
            node.name,
            ha="center",
            va="center",
            fontsize=8,
            zorder=3,
            bbox={
                "boxstyle": "round,pad=0.35" if node.kind == "host" else "square,pad=0.4",
                "facecolor": _FILL["host" if node.kind == "host" else "core"],
                "edgecolor": edge,
                "linewidth": 2.4 if node.name in (highlight or {}) else 1.0,
            },
        )
    axes.set_title(title, fontsize=10)
    axes.set_axis_off()
    axes.margins(x=0.03, y=0.12)
    bar = figure.colorbar(ScalarMappable(scale, colours), ax=axes, fraction=0.025, pad=0.01)
    bar.set_label("share of the link's rate, busier direction", fontsize=8)
    bar.ax.tick_params(labelsize=7)
    figure.savefig(path, dpi=130)
    plt.close(figure)
