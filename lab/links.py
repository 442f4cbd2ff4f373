"""Links of the running laboratory: which there are, whether they are up, and how one is taken down and up again."""

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from controller.defaults import RUN_DIR
from fastswitch.control import Client
from lab.arguments import known
from lab.errors import UsageError
from lab.running import LabRecord
from mininet_topos.fabric import CONTROL_SOCKET
from mininet_topos.system import set_swallowing
from mininet_topos.topology import Link, Topology, interface_name

_END = re.compile(r"(?P<node>\w+?)(?:(?::|-eth)(?P<port>\d+))?\Z")


@dataclass(frozen=True, slots=True)
class LinkState:
    """why: what keeps it down, in words; "" while it is up."""

    link: Link
    up: bool
    why: str = ""


def chosen(topology: Topology, a: str, b: str) -> list[Link]:
    """The links between two nodes, or the one of a port such as s1:3 or s1-eth3; UsageError if there are none."""
    ends = [_end(topology, text) for text in (a, b)]
    (name, _), (other, _) = ends
    found = [link for link in topology.links_between(name, other) if all(_has(link, *end) for end in ends)]
    if not found:
        neighbors = dict.fromkeys(neighbor.node.name for neighbor in topology.neighbors(name))
        raise UsageError(f"no link between {a} and {b}; {name} has links to {', '.join(neighbors)}.")
    return found


def _end(topology: Topology, text: str) -> tuple[str, int | None]:
    match = _END.match(text)
    node, port = (match["node"], match["port"]) if match else (text, None)
    return known("node", node, topology.by_name), None if port is None else int(port)


def _has(link: Link, node: str, port: int | None) -> bool:
    return any(end == (node, end[1] if port is None else port) for end in link.ends)


@contextmanager
def fabric() -> Iterator[Client]:
    """The control client of the laboratory's fabric; ControlError if it does not answer."""
    with Client(RUN_DIR / CONTROL_SOCKET) as client:
        yield client


def set_up(lab: LabRecord, topology: Topology, link: Link, up: bool) -> None:
    """Takes a link down, or up again; does nothing where it is so already.  ControlError, or NetworkError."""
    ends = [(name, port) for name, port in link.ends if not topology.node(name).is_host]
    if lab.target == "plait":
        with fabric() as client:
            for name, port in ends:  # a link in memory has one state, links that are interfaces one at each end
                client.link_set(f"{name}:{port}", up=up)
        return
    # BMv2 stands still while one of its interfaces is down, so that the link is made to swallow everything.
    if states(lab, topology)[link].up != up:
        for name, port in link.ends:
            prefix = ["mnexec", "-a", str(lab.pids[name])] if topology.node(name).is_host else []
            set_swallowing(interface_name(name, port), not up, prefix)


def states(lab: LabRecord, topology: Topology) -> dict[Link, LinkState]:
    """Of all links, in the topology's order."""
    if lab.target != "plait":
        return {link: LinkState(link, not why, why) for link, why in _swallowed(topology).items()}
    with fabric() as client:
        ports = {
            tuple(end): link["up"] for link in client.links() for end in (link["a"], link["b"]) if isinstance(end, list)
        }
        off = {switch["name"] for switch in client.status()["switches"] if not switch["up"]}
    found = {}
    for link in topology.links:
        up = all(ports.get(end, True) for end in link.ends)
        without = [name for name, _ in link.ends if name in off]
        why = "" if up else f"{' and '.join(without)} is off" if without else "taken down"
        found[link] = LinkState(link, up, why)
    return found


def _swallowed(topology: Topology) -> dict[Link, str]:
    shown = subprocess.run(["tc", "qdisc", "show"], capture_output=True, text=True, check=True).stdout
    swallowing = set(re.findall(r"qdisc blackhole \S+ dev (\S+) root", shown))
    return {
        link: "taken down" if any(interface_name(*end) in swallowing for end in link.ends) else ""
        for link in topology.links
    }
