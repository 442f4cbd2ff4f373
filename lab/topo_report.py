"""What `plait topo show` tells: the properties of a topology as one record, and as text for people."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from lab.units import format_rate
from mininet_topos.catalogue import Choice
from mininet_topos.properties import bisection, diversity, properties
from mininet_topos.quantities import rate_text, time_text
from mininet_topos.topology import Topology


def collect(chosen: Choice, ksp: int, nodes: bool) -> dict[str, Any]:
    """Everything under names with units in them; bandwidths in bits per second, lengths in links."""
    topology = chosen.build()
    exact = chosen.generator.bisection_bps
    found = {
        **asdict(properties(topology)),
        "rates_bps": sorted({link.rate_bps for link in topology.links}),
        "delays_ns": sorted({link.delay_ns for link in topology.links}),
        "bisection": asdict(bisection(topology, exact(topology) if exact else None)),
        "host_capacity_bps": sum(topology.host_port(host.name).link.rate_bps for host in topology.hosts),
        "diversity": asdict(diversity(topology, ksp)),
    }
    if nodes:
        found["nodes"] = [_node(topology, node.name) for node in topology.nodes]
    return found


def _node(topology: Topology, name: str) -> dict[str, Any]:
    node = topology.node(name)
    return {
        "name": name,
        "layer": node.layer,
        "place": node.place,
        "ipv4": node.ipv4,
        "mac": node.mac,
        "ports": {neighbor.port: neighbor.node.name for neighbor in topology.neighbors(name)},
    }


def text(found: dict[str, Any]) -> str:
    """Lines of a name and a value each."""
    rows = [
        ("hosts", f"{found['hosts']:,}"),
        ("switches", f"{found['switches']:,} ({_counted(found['layers'])})"),
        ("links", f"{found['links']:,}, {', '.join(f'{rate_text(rate)}b/s' for rate in found['rates_bps'])}, "
                  f"{', '.join(map(time_text, found['delays_ns']))}"),
        ("ports in use", "; ".join(f"{count} switches with {degree}" for degree, count in found["degrees"].items())),
        ("host to host", f"{found['mean_length']:.3f} links on average, {found['diameter']} at the most"),
        ("", _shares(found["lengths"])),
        ("bisection", _bisection(found)),
        *_diversity(found["diversity"]),
    ]  # fmt: skip
    lines = [found["name"], *(f"  {name:14}{value}" for name, value in rows)]
    for node in found.get("nodes", ()):
        ports = " ".join(f"{port}:{name}" for port, name in node["ports"].items())
        about = ", ".join(filter(None, (node["place"] or node["layer"], node["ipv4"])))
        lines.append(f"  {node['name']:6}{about}  [{ports}]")
    return "\n".join(lines) + "\n"


def _counted(layers: dict[str, int]) -> str:
    return ", ".join(f"{count} {layer}" for layer, count in layers.items())


def _shares(lengths: dict[int, int]) -> str:
    pairs = sum(lengths.values()) or 1
    return ", ".join(f"{length} links: {100 * count / pairs:.1f} %" for length, count in lengths.items())


def _bisection(found: dict[str, Any]) -> str:
    cut = found["bisection"]
    half = found["host_capacity_bps"] / 2 or 1

    def bound(bps: int) -> str:
        return f"{format_rate(bps)} ({100 * bps / half:.0f} % of half the hosts' links)"

    low, high = cut["low_bps"], cut["high_bps"]
    return f"{bound(low)}, {cut['method']}" if low == high else f"{bound(low)} to {bound(high)}, {cut['method']}"


def _diversity(found: dict[str, Any]) -> list[tuple[str, str]]:
    k, equal, lengths, load, disjoint = (
        found["k"],
        f"{found['equal_cost_least']} to {found['equal_cost_most']} shortest paths between switches with hosts",
        f"{found['mean_length']:.3f} links on average, {found['max_length']} at the most",
        f"a link carries {found['paths_per_link_least']} to {found['paths_per_link_most']} of them in a direction",
        f"{found['disjoint_mean']:.2f} paths of a pair share no link on average, at least {found['disjoint_least']}",
    )
    return [
        ("equal cost", f"{equal}, {found['equal_cost_mean']:.2f} on average"),
        (f"{k} shortest", f"{lengths}, host to host; every pair has {found['found_least']} or more"),
        ("", f"{load}, {found['paths_per_link_mean']:.1f} on average"),
        ("disjoint", disjoint),
    ]
