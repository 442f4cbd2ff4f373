"""Routes that people want otherwise than the policy: static overrides, from a TOML file.

    [[route]]
    switch = "s5"
    destination = "10.1.0.0/24"     # or a host's name
    ports = [3]

On that switch all routes to addresses inside the destination have these ports. Ports that are down are left out; while
all of them are, the policy's own next hops hold.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

from controller.destinations import Destinations, Route
from controller.errors import ControllerError
from mininet_topos.topology import Link, Topology


@dataclass(frozen=True, slots=True)
class Override:
    switch: str
    destination: IPv4Network
    ports: tuple[int, ...]


def load_overrides(path: Path, topology: Topology) -> tuple[Override, ...]:
    """ControllerError names the file, the route and the field that cannot be."""
    try:
        document = tomllib.loads(path.read_text())
    except OSError as error:
        raise ControllerError(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise ControllerError(f"{path}: {error}") from None
    listed = document.pop("route", [])
    if document or not isinstance(listed, list):
        raise ControllerError(f"{path}: holds [[route]] sections only")
    return tuple(_override(f"{path}: route {number}", item, topology) for number, item in enumerate(listed, 1))


def _override(where: str, item: Any, topology: Topology) -> Override:
    fields = ("switch", "destination", "ports")
    if not isinstance(item, dict) or set(item) != set(fields):
        raise ControllerError(f"{where}: has exactly {', '.join(fields)}")
    switch, destination, ports = (item[field] for field in fields)
    names = [node.name for node in topology.switches]
    if switch not in names:
        raise ControllerError(f"{where}: switch: no switch {switch!r}; there are {', '.join(names[:8])}, …")
    known = topology.ports(switch)
    if not isinstance(ports, list) or not ports or any(port not in known for port in ports):
        raise ControllerError(f"{where}: ports: {ports!r}; a list of some of {switch}'s ports {list(known)}")
    return Override(switch, _network(f"{where}: destination", destination, topology), tuple(ports))


def _network(where: str, text: Any, topology: Topology) -> IPv4Network:
    if isinstance(text, str) and text in topology.by_name and topology.by_name[text].is_host:
        return IPv4Network(topology.by_name[text].address)
    try:
        return IPv4Network(text) if isinstance(text, str) else IPv4Network("")
    except ValueError:
        raise ControllerError(f"{where}: {text!r} is no host and no prefix such as 10.1.0.0/24") from None


def overridden(
    found: Destinations, topology: Topology, overrides: Iterable[Override], down: frozenset[Link]
) -> Destinations:
    """The routes with overrides in place of the policy's; those further down in a file win."""
    for override in overrides:
        live = tuple(
            hop for hop in topology.neighbors(override.switch) if hop.port in override.ports and hop.link not in down
        )
        if not live:
            continue
        routes = found[override.switch]
        inside = [route for route in routes if route.prefix.subnet_of(override.destination)]
        changed = {route.prefix: route._replace(hops=live) for route in inside}
        if not inside:
            changed[override.destination] = Route(override.destination, live, _distance(routes, override.destination))
        kept = [changed.pop(route.prefix, route) for route in routes]
        found[override.switch] = kept + list(changed.values())
    return found


def _distance(routes: Iterable[Route], destination: IPv4Network) -> int:
    """Of the route that would have been taken; 0 where there is none."""
    around = [route for route in routes if destination.subnet_of(route.prefix)]
    return max(around, key=lambda route: route.prefix.prefixlen).distance if around else 0
