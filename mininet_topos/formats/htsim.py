"""`.topo` files of htsim: regular trees of two or three tiers.

    Nodes 16                    hosts
    Tiers 3
    Podsize 4                   hosts of a pod
    Tier 0                      ToRs; 1: aggregation, 2: core
    Downlink_speed_Gbps 100     of the links downwards, as everything of a tier
    Radix_Down 2                ports downwards
    Radix_Up 2                  ports upwards, of all tiers but the highest
    Downlink_Latency_ns 1000
    Switch_Latency_ns 0         optional
    Oversubscribed 1            optional: capacity downwards over capacity upwards
    Bundle 1                    optional: parallel links to each switch below

How many switches a tier has follows from speeds and oversubscription, as in htsim's FatTreeTopology. Keys are read
without regard to case. Switches take no time here: each link takes half of that of the switches at its ends, so that
whole paths take as long as in htsim.
"""

from __future__ import annotations

from dataclasses import dataclass

from mininet_topos.formats.assembling import Wired, assemble
from mininet_topos.topology import Link, Node, Topology, TopologyError

LEAVES_OUT = "names, addresses, port numbers and losses"

_HEADER = ("nodes", "tiers", "podsize")
_TIER_KEYS = {
    "downlink_speed_gbps": None,
    "radix_down": None,
    "downlink_latency_ns": None,
    "radix_up": 0,
    "switch_latency_ns": 0,
    "oversubscribed": 1,
    "bundle": 1,
}  # fmt: skip
_BPS_PER_GBPS = 10**9
_MAX = 10**6


@dataclass(frozen=True, slots=True)
class _Tier:
    """One tier, with what its links downwards are."""

    speed: int
    down: int
    latency_ns: int
    up: int
    switch_ns: int
    oversubscribed: int
    bundle: int


def parse(text: str, name: str = "") -> Topology:
    """Hosts h1.., switches s1.. from the highest tier down: as many as the file implies, or TopologyError."""
    header, tiers = _read(text)
    hosts, pod_hosts = header["nodes"], header["podsize"]
    tor = tiers[0]
    if hosts % pod_hosts:
        raise TopologyError("Podsize", f"{hosts} nodes are not a multiple of {pod_hosts}")
    if pod_hosts % tor.down:
        raise TopologyError("Podsize", f"{pod_hosts} is not a multiple of Radix_Down {tor.down} of tier 0")
    # With two tiers all ToRs reach all switches above, so that there is one pod.
    pods = hosts // pod_hosts if len(tiers) == 3 else 1
    tors = hosts // tor.down // pods  # of a pod
    uplinks = _uplinks("tier 0", hosts * tor.speed, tiers[1].speed * tor.oversubscribed)
    aggs = _ratio("tier 1", uplinks, pods * tiers[1].down, "ToRs' uplinks", "ports downwards")
    _check("tier 0", "Radix_Up", tor.up, aggs * tiers[1].bundle, "links to the switches above")
    _check("tier 1", "Radix_Down", tiers[1].down, tors * tiers[1].bundle, "links to the ToRs below")
    cores = 0
    if len(tiers) == 3:
        above = _uplinks("tier 1", uplinks * tiers[1].speed, tiers[2].speed * tiers[1].oversubscribed)
        cores = _ratio("tier 2", above, tiers[2].down, "uplinks of tier 1", "ports downwards")
        _check("tier 1", "Radix_Up", tiers[1].up * pods * aggs, cores * tiers[2].down, "links to the core, in all")
        _check("tier 2", "Radix_Down", tiers[2].down, pods * tiers[2].bundle, "links to the pods below")
    wires = _wires(tiers, hosts, pods, tors, aggs, cores)
    return assemble(hosts, cores + pods * (aggs + tors), wires, name)


def _wires(tiers: list[_Tier], hosts: int, pods: int, tors: int, aggs: int, cores: int) -> list[Wired]:
    """`tors` and `aggs` are those of a pod."""
    first_agg, first_tor = cores, cores + pods * aggs
    found: list[Wired] = []

    def add(a: tuple[str, int], b: tuple[str, int], tier: int) -> None:
        near = tiers[tier - 1].switch_ns if tier else 0
        delay = tiers[tier].latency_ns + (tiers[tier].switch_ns + near) // 2
        found.extend([Wired(a, b, tiers[tier].speed, delay, 0.0)] * tiers[tier].bundle)

    for core in range(cores):
        for pod in range(pods):
            add(("switch", core), ("switch", first_agg + pod * aggs + core % aggs), 2)
    for agg in range(pods * aggs):
        for tor in range(tors):
            add(("switch", first_agg + agg), ("switch", first_tor + agg // aggs * tors + tor), 1)
    for host in range(hosts):
        add(("switch", first_tor + host // tiers[0].down), ("host", host), 0)
    return found


def _uplinks(where: str, capacity: int, uplink: int) -> int:
    if capacity % uplink:
        raise TopologyError(where, "speeds and Oversubscribed give no whole number of uplinks")
    if capacity // uplink > _MAX:
        raise TopologyError(where, f"has {capacity // uplink} uplinks: at most {_MAX} can be")
    return capacity // uplink


def _ratio(where: str, links: int, ports: int, what: str, of: str) -> int:
    if not links or links % ports:
        raise TopologyError(f"{where}.Radix_Down", f"{links} {what} do not fill switches with {ports} {of}")
    return links // ports


def _check(where: str, key: str, value: int, needed: int, what: str) -> None:
    if value != needed:
        raise TopologyError(f"{where}.{key}", f"is {value}, and there are {needed} {what}")


def _read(text: str) -> tuple[dict[str, int], list[_Tier]]:
    header: dict[str, int] = {}
    tiers: dict[int, dict[str, int]] = {}
    here: dict[str, int] = header
    for line, raw in enumerate(text.splitlines(), 1):
        words = raw.split()
        if not words or words[0].startswith("#"):
            continue
        key, where = words[0].lower(), f"line {line}"
        if len(words) != 2 or not (words[1].isascii() and words[1].isdigit() and int(words[1]) <= _MAX * 10**3):
            raise TopologyError(where, f"must be a key and a whole number, is {raw.strip()!r}")
        value = int(words[1])
        if key == "tier":
            if value > 2 or value in tiers:
                why = "is there already" if value in tiers else "is none of 0, 1 and 2"
                raise TopologyError(where, f"tier {value} {why}")
            here = tiers[value] = {}
            continue
        known = _HEADER if here is header else tuple(_TIER_KEYS)
        if key not in known:
            raise TopologyError(where, f"unknown key {words[0]!r}; known are {', '.join(known)}")
        if key in here:
            raise TopologyError(where, f"{words[0]} is there already")
        here[key] = value
    for key in _HEADER:
        if not 0 < header.get(key, 0) <= _MAX:
            raise TopologyError(key.capitalize(), f"must be 1 to {_MAX}, is {header.get(key, 'missing')}")
    if header["tiers"] not in (2, 3) or sorted(tiers) != list(range(header["tiers"])):
        reason = f"must be 2 or 3, each with a section, is {header['tiers']} and has sections of {sorted(tiers)}"
        raise TopologyError("Tiers", reason)
    return header, [_tier(number, tiers[number], header["tiers"]) for number in sorted(tiers)]


def _tier(number: int, values: dict[str, int], tiers: int) -> _Tier:
    found = {}
    for key, default in _TIER_KEYS.items():
        value = values.get(key, default)
        if value is None:
            raise TopologyError(f"tier {number}.{key.capitalize()}", "missing")
        least = 0 if key.endswith("_ns") or (key == "radix_up" and number == tiers - 1) else 1
        if value < least:
            raise TopologyError(f"tier {number}.{key.capitalize()}", f"must be {least} or more, is {value}")
        found[key] = value
    if number == 0 and found["bundle"] != 1:
        raise TopologyError("tier 0.Bundle", "hosts have one link")
    return _Tier(
        found["downlink_speed_gbps"] * _BPS_PER_GBPS, found["radix_down"], found["downlink_latency_ns"],
        found["radix_up"], found["switch_latency_ns"], found["oversubscribed"], found["bundle"],
    )  # fmt: skip


# --- writing ---


def render(topology: Topology) -> str:
    """TopologyError where the topology is no regular tree of two or three tiers, as the format describes them."""
    refusal = TopologyError("topology", f"{topology.name or 'it'} is no regular tree as htsim's .topo describes them")
    tiers = _tiers(topology)
    if tiers is None:
        raise refusal
    below = [{host.name for host in topology.hosts}, *({switch.name for switch in tier} for tier in tiers)]
    header, sections = [f"Nodes {len(topology.hosts)}", f"Tiers {len(tiers)}"], []
    pod_hosts = len(topology.hosts)
    if len(tiers) == 3:
        under = {n.node.name for n in topology.neighbors(tiers[1][0].name)} & below[1]
        pod_hosts = sum(len(topology.hosts_of(tor)) for tor in under)
    header.append(f"Podsize {pod_hosts}")
    for number, tier in enumerate(tiers):
        # The first switch tells of all: whether that is so is seen when the text is read back.
        neighbors = topology.neighbors(tier[0].name)
        down = [n for n in neighbors if n.node.name in below[number]]
        up = [n for n in neighbors if n.node.name not in below[number]]
        sections += ["", f"Tier {number}", f"Downlink_speed_Gbps {_gbps(down[0].link)}", f"Radix_Down {len(down)}"]
        if up:
            capacity, upwards = (sum(n.link.rate_bps for n in side) for side in (down, up))
            if capacity % upwards:
                reason = f"tier {number} is oversubscribed {capacity}:{upwards}; .topo has whole numbers only"
                raise TopologyError("rate_bps", reason)
            sections += [f"Radix_Up {len(up)}", f"Oversubscribed {capacity // upwards}"]
        bundle = sum(n.node == down[0].node for n in down)
        sections += [f"Downlink_Latency_ns {down[0].link.delay_ns}", f"Bundle {bundle}"]
    text = "\n".join([*header, *sections]) + "\n"
    try:
        same = _shape(parse(text)) == _shape(topology)
    except TopologyError:
        raise refusal from None
    if not same:
        raise refusal
    return text


def _gbps(link: Link) -> int:
    if link.rate_bps % _BPS_PER_GBPS:
        raise TopologyError("rate_bps", f"{link.rate_bps} is no whole number of Gb/s, as .topo needs it")
    return link.rate_bps // _BPS_PER_GBPS


def _tiers(topology: Topology) -> list[list[Node]] | None:
    """Switches by how far they are from the hosts, lowest first; None unless there are two or three tiers of them."""
    found: list[list[Node]] = []
    seen: set[str] = set()
    here = [switch for switch in topology.switches if topology.hosts_of(switch.name)]
    while here:
        found.append(here)
        seen |= {switch.name for switch in here}
        near = {n.node.name for switch in here for n in topology.neighbors(switch.name) if not n.node.is_host} - seen
        here = [switch for switch in topology.switches if switch.name in near]
    return found if len(found) in (2, 3) and len(seen) == len(topology.switches) else None


def _shape(topology: Topology) -> tuple[object, ...]:
    """What two topologies have in common if only names, ports and addresses differ (Weisfeiler and Leman's test)."""
    colour: dict[str, object] = {node.name: node.kind for node in topology.nodes}
    for _ in range(4):  # the diameter of a half of the tree, and one
        seen = {
            name: (colour[name], tuple(sorted((_link_shape(n.link), colour[n.node.name]) for n in neighbors)))
            for name, neighbors in topology.adjacency.items()
        }
        number = {shape: i for i, shape in enumerate(sorted(set(seen.values()), key=repr))}
        colour = {name: number[shape] for name, shape in seen.items()}
    return len(topology.links), tuple(sorted(seen.values(), key=repr))


def _link_shape(link: Link) -> tuple[int, int]:
    return link.rate_bps, link.delay_ns
