"""Jellyfish: a random graph of equal switches (Singla, Hong, Popa and Godfrey, NSDI 2012).

Switch s<i + 1> is rack i; its ports 1..n lead down to its hosts, 10.<i / 256>.<i % 256>.(2+j)/24, the others to other
switches. Graphs are made as in the paper (section 3), by joining random pairs of free ports.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from mininet_topos.building import (
    MAX_RACK_HOSTS,
    MAX_SWITCHES,
    check_count,
    checked_wire,
    rack_host,
    tier_wire,
)
from mininet_topos.topology import Link, Node, Topology, TopologyError

MAX_PORTS = 1024

# A random graph with three links a switch is connected but for a vanishing share; sparse ones take some tries.
_TRIES = 200


def jellyfish(
    ports: Sequence[int],
    hosts: int,
    seed: int,
    rate_bps: int,
    delay_ns: int,
    *,
    host_rate_bps: int | None = None,
    host_delay_ns: int | None = None,
    loss: float = 0.0,
) -> Topology:
    """Switches with `ports` ports each, of which the hosts take the share that is even; all others join switches.

    One port stays free where their number is odd. The same arguments give the same network on every machine. Rates are
    bits per second, delays nanoseconds one way, loss a probability per packet and link; None is `rate_bps` or
    `delay_ns`. TopologyError names the parameter, and says why where no such network exists.
    """
    check_count("switches", len(ports), 1, MAX_SWITCHES)
    for count in ports:
        check_count("ports", count, 1, MAX_PORTS)
    check_count("hosts", hosts, 0, sum(ports))
    wire = checked_wire(rate_bps, delay_ns, loss)
    to_host = tier_wire("host", wire, host_rate_bps, host_delay_ns)
    hosts_at = spread(hosts, ports)
    degrees = [count - down for count, down in zip(ports, hosts_at, strict=True)]
    check_degrees(degrees)
    edges = random_graph(degrees, random.Random(seed))
    switches = [Node.switch(1 + i, "rack", i, place=f"rack {i}") for i in range(len(ports))]
    next_port = [down + 1 for down in hosts_at]
    links: list[Link] = []
    nodes: list[Node] = []
    for a, b in edges:
        links.append(wire.link(switches[a], next_port[a], switches[b], next_port[b]))
        next_port[a] += 1
        next_port[b] += 1
    for rack, down in enumerate(hosts_at):
        for position in range(down):
            nodes.append(rack_host(len(nodes), rack, position, f"rack {rack}"))
            links.append(to_host.host_link(switches[rack], position + 1, nodes[-1]))
    return Topology((*switches, *nodes), tuple(links), name=f"jellyfish-{len(ports)}-{seed}")


def spread(hosts: int, ports: Sequence[int]) -> list[int]:
    """How many hosts each switch has: in proportion to its ports, and evenly over the order of the switches."""
    total, before, shares = sum(ports), 0, []
    for count in ports:
        after = before + count
        shares.append(after * hosts // total - before * hosts // total)
        before = after
    crowded = next((i for i, share in enumerate(shares) if share > MAX_RACK_HOSTS), None)
    if crowded is not None:
        reason = f"{hosts} are {shares[crowded]} at s{crowded + 1}: at most {MAX_RACK_HOSTS} can be"
        raise TopologyError("hosts", reason)
    return shares


def check_degrees(degrees: Sequence[int]) -> None:
    """TopologyError unless a connected graph without parallel links has these degrees (one less where the sum is odd).

    Erdős and Gallai's condition: the n largest degrees fit among themselves and into what the others have.
    """
    count = len(degrees)
    if count == 1:
        if degrees[0]:
            raise TopologyError("ports", f"1 switch has {degrees[0]} ports for other switches, and there are none")
        return
    lonely = next((i for i, degree in enumerate(degrees) if degree < 1), None)
    if lonely is not None:
        raise TopologyError("hosts", f"they take all ports of s{lonely + 1}: none is left for other switches")
    ordered = sorted(_even(degrees), reverse=True)
    if sum(ordered) < 2 * (count - 1):
        raise TopologyError("ports", f"{sum(ordered)} ports for other switches cannot connect {count} switches")
    for n in range(1, count + 1):
        if sum(ordered[:n]) > n * (n - 1) + sum(min(degree, n) for degree in ordered[n:]):
            raise TopologyError(
                "ports", f"{count} switches with {ordered[0]} ports for other switches: no graph has these degrees"
            )


def _even(degrees: Sequence[int]) -> list[int]:
    """The degrees with an even sum: where it is odd, a switch of the most has one less."""
    even = list(degrees)
    if sum(even) % 2:
        even[even.index(max(even))] -= 1
    return even


def random_graph(degrees: Sequence[int], draw: random.Random) -> list[tuple[int, int]]:
    """A connected random graph, without parallel links, of `check_degrees`' degrees, as ordered pairs in order."""
    for _ in range(_TRIES):
        edges = _join_ports(_even(degrees), draw)
        if edges is not None and _connected(len(degrees), edges):
            return sorted(edges)
    raise TopologyError("seed", f"no connected graph came up in {_TRIES} tries; another seed may give one")


def _join_ports(free: list[int], draw: random.Random) -> set[tuple[int, int]] | None:
    """Joins free ports of switches that are not joined; where none are left, breaks a random link up for two of them.

    None where it gets stuck.
    """
    joined: list[set[int]] = [set() for _ in free]
    edges: set[tuple[int, int]] = set()

    def add(a: int, b: int) -> None:
        joined[a].add(b)
        joined[b].add(a)
        edges.add((min(a, b), max(a, b)))
        free[a] -= 1
        free[b] -= 1

    def remove(a: int, b: int) -> None:
        joined[a].discard(b)
        joined[b].discard(a)
        edges.discard((min(a, b), max(a, b)))
        free[a] += 1
        free[b] += 1

    while open_switches := [i for i, count in enumerate(free) if count]:
        a, b = _pair(open_switches, joined, draw)
        if a != b:
            add(a, b)
            continue
        # Two free ports: of one switch, or of two that are joined already.
        a = open_switches[0]
        b = a if free[a] > 1 else open_switches[1]
        for x, y in _shuffled(edges, draw):
            if not {x, y} & {a, b} and x not in joined[a] and y not in joined[b]:
                remove(x, y)
                add(a, x)
                add(b, y)
                break
        else:
            return None
    return edges


def _pair(open_switches: list[int], joined: list[set[int]], draw: random.Random) -> tuple[int, int]:
    """Two random switches with free ports that are not joined; the same one twice where there are none."""
    for _ in range(8):  # nearly always enough while many are left
        a, b = (open_switches[draw.randrange(len(open_switches))] for _ in range(2))
        if a != b and b not in joined[a]:
            return a, b
    pairs = [(a, b) for i, a in enumerate(open_switches) for b in open_switches[i + 1 :] if b not in joined[a]]
    return pairs[draw.randrange(len(pairs))] if pairs else (-1, -1)


def _shuffled(edges: set[tuple[int, int]], draw: random.Random) -> list[tuple[int, int]]:
    """All edges in a random order, each in a random direction."""
    ordered = [(b, a) if draw.random() < 0.5 else (a, b) for a, b in sorted(edges)]
    draw.shuffle(ordered)
    return ordered


def _connected(count: int, edges: set[tuple[int, int]]) -> bool:
    neighbors: list[list[int]] = [[] for _ in range(count)]
    for a, b in edges:
        neighbors[a].append(b)
        neighbors[b].append(a)
    seen, waiting = {0}, [0]
    while waiting:
        for there in neighbors[waiting.pop()]:
            if there not in seen:
                seen.add(there)
                waiting.append(there)
    return len(seen) == count
