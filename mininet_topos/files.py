"""Topology files: which format a file has, and topologies written in each.

Read: Plait's JSON (`topology.Topology.to_json`), ConWeave's and HPCC's text, p4lang's topology.json, htsim's .topo.
A file's format is told by its contents and not by its name. Written: the same, and DOT and GraphML.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mininet_topos.formats import conweave, graphs, htsim, p4lang
from mininet_topos.paths import check_connected
from mininet_topos.topology import FORMAT, Topology, TopologyError

# No topology that a machine can hold is larger; what is, is something else.
_MAX_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Format:
    """A format that is written. `leaves_out`: what a topology has and it has not."""

    name: str
    render: Callable[[Topology], str]
    leaves_out: str = ""


FORMATS: dict[str, Format] = {
    each.name: each
    for each in (
        Format("json", Topology.to_json),
        Format("conweave", conweave.render, conweave.LEAVES_OUT),
        Format("htsim", htsim.render, htsim.LEAVES_OUT),
        Format("p4lang", p4lang.render, p4lang.LEAVES_OUT),
        Format("dot", graphs.render_dot),
        Format("graphml", graphs.render_graphml),
    )
}


def read(path: Path, rate_bps: int, delay_ns: int, scale: float = 1.0) -> Topology:
    """As `load`, the topology only; `scale` is a factor on all rates."""
    return scaled(load(path, rate_bps, delay_ns)[1], scale)


def load(path: Path, rate_bps: int, delay_ns: int) -> tuple[str, Topology]:
    """Format and topology of a file, whose hosts all reach each other; TopologyError names file and place.

    `rate_bps` and `delay_ns` are those of links for which the file gives none.
    """
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise TopologyError(str(path), f"cannot be read: {error.strerror}") from None
    if len(data) > _MAX_BYTES:
        raise TopologyError(str(path), f"is longer than {_MAX_BYTES >> 20} MiB")
    try:
        found = parse(data, rate_bps, delay_ns, path.stem)
        check_connected(found[1])
    except TopologyError as error:
        raise TopologyError(f"{path}: {error.field}", error.reason) from None
    return found


def parse(data: bytes, rate_bps: int, delay_ns: int, name: str = "") -> tuple[str, Topology]:
    """The format's name and the topology; `name` is the topology's where the format has none."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise TopologyError("document", f"not text: {error.reason} at byte {error.start}") from None
    first = next((line.split() for line in text.splitlines() if line.split() and not line.lstrip().startswith("#")), [])
    if not first:
        raise TopologyError("document", "is empty")
    if first[0].startswith(("{", "[")):
        return _parse_json(text, rate_bps, delay_ns, name)
    if first[0].lower() == "nodes":
        return "htsim", htsim.parse(text, name)
    if first[0].isdigit():
        return "conweave", conweave.parse(text, name)
    raise TopologyError("document", f"{first[0]!r} begins none of the formats: JSON, conweave, htsim")


def _parse_json(text: str, rate_bps: int, delay_ns: int, name: str) -> tuple[str, Topology]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        document = None  # the model's own reader says what is wrong
    if isinstance(document, dict) and "format" not in document and "hosts" in document:
        return "p4lang", p4lang.parse(document, rate_bps, delay_ns, name)
    if isinstance(document, dict) and "format" not in document:
        raise TopologyError("document", f'has neither "format": "{FORMAT}" nor p4lang\'s "hosts", "switches", "links"')
    return "json", Topology.from_json(text)


def scaled(topology: Topology, scale: float) -> Topology:
    """With all rates multiplied; TopologyError where the factor is none."""
    if not 0 < scale < float("inf"):
        raise TopologyError("scale", f"must be a positive number, is {scale}")
    if scale == 1:
        return topology
    links = [dataclasses.replace(link, rate_bps=max(1, round(link.rate_bps * scale))) for link in topology.links]
    return dataclasses.replace(topology, links=tuple(links))
