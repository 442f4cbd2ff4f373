"""Topology files of the RDMA forks of ns-3 (HPCC, ConWeave and their kin).

    6 2 5                       nodes, switches, links
    4 5                         numbers of the switches; all other numbers from 0 are hosts
    0 4 100Gbps 1000ns 0.0      two ends, rate, one-way delay, probability of a lost packet
    ...

What is not in it: names, addresses, port numbers.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from mininet_topos.formats.assembling import Wired, assemble
from mininet_topos.quantities import parse_rate, parse_time
from mininet_topos.topology import Link, Topology, TopologyError

LEAVES_OUT = "names, addresses and port numbers"

_LINK = "a link is `end end rate delay loss`, such as `0 4 100Gbps 1000ns 0.0`"


def parse(text: str, name: str = "") -> Topology:
    """Hosts are h1.. and switches s1.. in the order of their numbers."""
    lines = _lines(text)
    counts = _numbers(*next(lines, (1, [])))
    if len(counts) != 3:
        raise TopologyError("line 1", f"must be the numbers of nodes, switches and links, has {len(counts)} numbers")
    nodes, switch_count, link_count = counts
    switches = _nodes(nodes, switch_count, lines)
    ordered = list(switches)
    wires: list[Wired] = []
    for line, words in lines:
        if len(wires) == link_count:
            raise TopologyError(f"line {line}", f"the first line says {link_count} links, and here is one more")
        wires.append(_wire(line, words, switches, ordered, nodes))
    if len(wires) < link_count:
        raise TopologyError("line 1", f"says {link_count} links, and there are {len(wires)}")
    return assemble(nodes - switch_count, switch_count, wires, name)


def _nodes(nodes: int, switch_count: int, lines: Iterator[tuple[int, list[str]]]) -> dict[int, tuple[str, int]]:
    """Per switch's number in the file, which one it is; from the lines that the switches' numbers take."""
    if switch_count > nodes:
        raise TopologyError("line 1", f"says {switch_count} switches of {nodes} nodes")
    found: list[int] = []
    line = 2
    while len(found) < switch_count:
        line, words = next(lines, (line, []))
        if not words:
            raise TopologyError("line 1", f"says {switch_count} switches, and {len(found)} are listed")
        found += _numbers(line, words)
    wrong = next((each for each in found if each >= nodes), None)
    if wrong is not None:
        raise TopologyError(f"line {line}", f"switch {wrong} is none of the {nodes} nodes, which count from 0")
    different = len(set(found))
    if len(found) != switch_count or different != switch_count:
        raise TopologyError(f"line {line}", f"lists {different} different switches, the first line says {switch_count}")
    return {number: ("switch", index) for index, number in enumerate(sorted(found))}


def _wire(line: int, words: list[str], switches: dict[int, tuple[str, int]], ordered: list[int], nodes: int) -> Wired:
    """`ordered`: the numbers of the switches, ascending."""
    where = f"line {line}"
    if len(words) not in (4, 5):
        raise TopologyError(where, _LINK)
    ends = []
    for number in _numbers(line, words[:2]):
        if number >= nodes:
            raise TopologyError(where, f"{number} is none of the {nodes} nodes, which count from 0")
        # A host's number among hosts: without the switches before it.
        ends.append(switches.get(number) or ("host", number - bisect_left(ordered, number)))
    try:
        rate, delay = parse_rate(words[2]), parse_time(words[3])
        loss = float(words[4]) if len(words) == 5 else 0.0
    except ValueError as error:
        raise TopologyError(where, str(error)) from None
    if not 0.0 <= loss <= 1.0:
        raise TopologyError(where, f"loss {words[4]} is no probability from 0 to 1")
    return Wired(ends[0], ends[1], rate, delay, loss)


def _lines(text: str) -> Iterator[tuple[int, list[str]]]:
    for number, line in enumerate(text.splitlines(), 1):
        if words := line.split():
            yield number, words


def _numbers(line: int, words: list[str]) -> list[int]:
    for word in words:
        if not (word.isascii() and word.isdigit() and len(word) < 10):
            raise TopologyError(f"line {line}", f"{word!r} is not a number")
    return [int(word) for word in words]


def render(topology: Topology) -> str:
    """Hosts take the first numbers, switches the next, each in the topology's order."""
    number = {node.name: i for i, node in enumerate((*topology.hosts, *topology.switches))}
    lines = [f"{len(number)} {len(topology.switches)} {len(topology.links)}"]
    lines.append(" ".join(str(number[switch.name]) for switch in topology.switches))
    for link in topology.links:
        lines.append(f"{number[link.a]} {number[link.b]} {_rate(link)} {link.delay_ns}ns {link.loss}")
    return "\n".join(lines) + "\n"


def _rate(link: Link) -> str:
    """In whole Gb/s, Mb/s or bits per second: ns-3 reads all of them."""
    for unit, size in (("Gbps", 10**9), ("Mbps", 10**6)):
        if link.rate_bps % size == 0:
            return f"{link.rate_bps // size}{unit}"
    return f"{link.rate_bps}bps"
