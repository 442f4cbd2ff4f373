"""`topology.json` of the P4 tutorials (p4lang/tutorials, utils/run_exercise.py).

    {"hosts":    {"h1": {"ip": "10.0.1.1/24", "mac": "08:00:00:00:01:11", "commands": ["route add default gw ..."]}},
     "switches": {"s1": {"runtime_json": "s1-runtime.json"}},
     "links":    [["h1", "s1-p1"], ["s1-p2", "s2-p1", "5ms", 100]]}     ends, latency (ms without unit), Mb/s

Of a host's commands, the one that sets its gateway is understood; the others configure what a laboratory configures.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import json
import re
from typing import Any

from mininet_topos.formats.assembling import tiers_above
from mininet_topos.quantities import parse_time, time_text
from mininet_topos.topology import HOST_PORT, Link, Node, Topology, TopologyError

LEAVES_OUT = "losses and layers"

_HOST_KEYS = {"ip", "mac", "commands"}
_SWITCH_KEYS = {"runtime_json", "cli_input", "program", "cpu_port", "priority_queues"}
_SWITCH_END = re.compile(r"(.+)-p(\d{1,5})\Z")
_GATEWAY = re.compile(r"route\s+add\s+default\s+(?:gw|via)\s+([0-9.]+)")
_NS_PER_MS = 1_000_000
_BPS_PER_MBPS = 1_000_000


def parse(document: dict[str, Any], rate_bps: int, delay_ns: int, name: str = "") -> Topology:
    """`rate_bps` and `delay_ns` are those of links that say none."""
    _refuse_unknown("document", document, {"hosts", "switches", "links"})
    hosts, switches = _objects(document, "hosts"), _objects(document, "switches")
    raw_links = document.get("links")
    if not isinstance(raw_links, list):
        raise TopologyError("links", "must be a list")
    links = [_link(f"links[{i}]", raw, hosts, switches, rate_bps, delay_ns) for i, raw in enumerate(raw_links)]
    number = {switch: i for i, switch in enumerate(switches)}
    edges = {end for link in links for end in (link.a, link.b) if {link.a, link.b} & set(hosts) and end in number}
    pairs = [(number[link.a], number[link.b]) for link in links if link.a in number and link.b in number]
    tiers = tiers_above(len(number), (number[edge] for edge in edges), pairs)
    held: dict[int, int] = {}
    nodes = []
    for (switch, fields), tier in zip(switches.items(), tiers, strict=True):
        _refuse_unknown(f"switches.{switch}", fields, _SWITCH_KEYS)
        nodes.append(Node.switch(number[switch] + 1, f"tier{tier}", held.get(tier, 0), switch))
        held[tier] = held.get(tier, 0) + 1
    nodes += [_host(i, host, fields) for i, (host, fields) in enumerate(hosts.items())]
    return Topology(tuple(nodes), tuple(links), name=name)


def _objects(document: dict[str, Any], key: str) -> dict[str, dict[str, Any]]:
    found = document.get(key)
    if not isinstance(found, dict):
        raise TopologyError(key, "must be an object")
    for name, fields in found.items():
        if not isinstance(fields, dict):
            raise TopologyError(f"{key}.{name}", "must be an object")
    return found


def _refuse_unknown(where: str, fields: dict[str, Any], known: set[str]) -> None:
    for name in sorted(set(fields) - known):
        raise TopologyError(where, f"unknown field {name!r}; known are {', '.join(sorted(known))}")


def _host(index: int, name: str, fields: dict[str, Any]) -> Node:
    where = f"hosts.{name}"
    _refuse_unknown(where, fields, _HOST_KEYS)
    commands = fields.get("commands", [])
    if not isinstance(commands, list) or not all(isinstance(command, str) for command in commands):
        raise TopologyError(f"{where}.commands", "must be a list of texts")
    for key in ("ip", "mac"):
        if not isinstance(fields.get(key, ""), str):
            raise TopologyError(f"{where}.{key}", "must be text")
    if "ip" not in fields:
        raise TopologyError(f"{where}.ip", "missing")
    try:
        interface = ipaddress.IPv4Interface(fields["ip"])
    except ValueError as error:
        raise TopologyError(f"{where}.ip", str(error)) from None
    node = Node.host(index, fields["ip"], name)
    if "mac" in fields:
        node = dataclasses.replace(node, mac=fields["mac"].lower())
    gateway = next((found[1] for command in commands if (found := _GATEWAY.search(command))), None)
    if gateway is None and interface.network.prefixlen < 31 and interface.ip == interface.network.network_address + 1:
        gateway = str(interface.network.broadcast_address - 1)
    if gateway is not None and interface.network.prefixlen < 31:
        node = dataclasses.replace(node, gateway_ipv4=gateway)
    return node


def _link(
    where: str, raw: Any, hosts: dict[str, Any], switches: dict[str, Any], rate_bps: int, delay_ns: int
) -> Link:
    if not isinstance(raw, list) or not 2 <= len(raw) <= 4:
        raise TopologyError(where, 'must be ["end", "end", latency, Mb/s], of which the last two may be left out')
    ends = [_end(f"{where}[{i}]", text, hosts, switches) for i, text in enumerate(raw[:2])]
    if len(raw) > 2:
        delay_ns = _latency(f"{where}[2]", raw[2])
    if len(raw) > 3 and raw[3] is not None:
        rate_bps = _bandwidth(f"{where}[3]", raw[3])
    return Link(*ends[0], *ends[1], rate_bps, delay_ns)


def _end(where: str, text: Any, hosts: dict[str, Any], switches: dict[str, Any]) -> tuple[str, int]:
    if not isinstance(text, str):
        raise TopologyError(where, f"must be a node, such as h1 or s1-p2, not {text!r}")
    if text in hosts:
        return text, HOST_PORT
    found = _SWITCH_END.match(text)
    if not found or found[1] not in switches:
        raise TopologyError(where, f"{text!r} is no host, and no switch with a port such as s1-p2")
    return found[1], int(found[2])


def _latency(where: str, value: Any) -> int:
    """Milliseconds as a number; as text, what `tc` takes: microseconds where it has no unit."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        if not 0 <= value < 10**9:
            raise TopologyError(where, f"latency {value} is not from 0 to 10^9 ms")
        return round(value * _NS_PER_MS)
    try:
        return parse_time(value + "us" if re.fullmatch(r"[\d.]+", value) else value)
    except (TypeError, ValueError):
        raise TopologyError(where, f"{value!r} is no latency, such as 5 (ms) or \"50us\"") from None


def _bandwidth(where: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 10**9:
        raise TopologyError(where, f"{value!r} is no bandwidth in Mb/s")
    return round(value * _BPS_PER_MBPS)


def render(topology: Topology) -> str:
    """With the commands that tell a host its gateway; a laboratory's controller takes the place of runtime_json."""
    hosts = {}
    for host in topology.hosts:
        gateway_mac = topology.gateway_mac(host.name)
        commands = [
            f"route add default gw {host.gateway} dev eth0",
            f"arp -i eth0 -s {host.gateway} {gateway_mac}",
        ]
        hosts[host.name] = {"ip": host.ipv4, "mac": host.mac, "commands": commands}
    links = [
        [
            *(name if topology.node(name).is_host else f"{name}-p{port}" for name, port in link.ends),
            time_text(link.delay_ns),
            _mbps(link.rate_bps),
        ]
        for link in topology.links
    ]
    rows = ",\n  ".join(json.dumps(link) for link in links)
    return (
        f'{{\n "hosts": {json.dumps(hosts, indent=1)},\n "switches": '
        f'{json.dumps({switch.name: {} for switch in topology.switches})},\n "links": [\n  {rows}\n ]\n}}\n'
    )


def _mbps(rate_bps: int) -> int | float:
    whole, rest = divmod(rate_bps, _BPS_PER_MBPS)
    return rate_bps / _BPS_PER_MBPS if rest else whole
