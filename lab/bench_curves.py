"""What a look-up costs against the entries of its table, and a packet-hop against the switches of the process."""

import statistics
from typing import Any

from engine.bench import lookup_ns
from engine.describe import Match
from lab.bench_memory import MemoryFabric
from lab.compiling import CompiledProgram
from mininet_topos.fattree import fattree
from mininet_topos.topology import Link, Node, Topology

ENTRIES = (10, 100, 1_000, 10_000, 100_000)
KINDS = {"exact": Match.EXACT, "lpm": Match.LPM, "ternary": Match.TERNARY}
FAT_TREES = (2, 4, 6, 8)  # k: 5, 20, 45 and 80 switches
_LOOKUPS, _HOPS = 200_000, 200_000
_ROUNDS = 3


def one_switch() -> Topology:
    nodes = (Node.switch(1, "edge", 0), Node.host(0, "10.0.0.2/24"), Node.host(1, "10.0.1.2/24"))
    links = tuple(Link("s1", port, f"h{port}", 0, 10**12, 0) for port in (1, 2))
    return Topology(nodes, links, name="one-switch")


def lookups() -> dict[str, list[list[float]]]:
    """By kind: [entries, ns of one look-up] for each size; the least of a few rounds."""
    return {
        name: [[size, min(lookup_ns(kind, size, _LOOKUPS) for _ in range(_ROUNDS))] for size in ENTRIES]
        for name, kind in KINDS.items()
    }


def hops(program: CompiledProgram) -> list[list[float]]:
    """[switches in the process, packet-hops a second of processor time] for each size; median of a few rounds."""
    curve = []
    for topology in [one_switch(), *(fattree(k, rate_bps=100 * 10**9, delay_ns=1000) for k in FAT_TREES)]:
        with MemoryFabric(topology, program) as fabric:
            rates = [fabric.round(_HOPS).per_cpu_second for _ in range(_ROUNDS)]
        curve.append([len(topology.switches), statistics.median(rates)])
    return curve


def explain(curves: dict[str, Any]) -> list[str]:
    lines = [
        "  ns a look-up against entries (random 32-bit keys; LPM /8 to /32; ternary of 32 masks and 64 priorities)"
    ]
    lines.append("    entries   " + "".join(f"{size:>10,}" for size in ENTRIES))
    for name, points in curves["entries"].items():
        lines.append(f"    {name:<10}" + "".join(f"{cost:10,.0f}" for _, cost in points))
    lines.append(
        "  packet-hops a second of processor time against switches in the process (one switch, then fat-trees)"
    )
    lines.append("    switches  " + "".join(f"{count:>10,}" for count, _ in curves["switches"]))
    lines.append("    hops/s    " + "".join(f"{rate:>10,.0f}" for _, rate in curves["switches"]))
    return lines
