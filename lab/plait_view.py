"""A Plait fabric's links, asked of the switch daemon's control socket."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from fastswitch.control import Client
from lab.fabric_view import COUNTER_NAMES, Counters, Direction, FlowKey, Flows
from mininet_topos.network import LabNetwork
from mininet_topos.topology import Link, Topology, interface_name


class PlaitView:
    """Starts recording flows at once.

    The daemon knows a link between switches by its two ports where it is in memory, else as two attached interfaces; a
    host's link is one attached interface. The far end of an attached interface has no port.
    """

    def __init__(self, network: LabNetwork) -> None:
        self._topology = network.topology
        self._client = Client(network.runner.control_socket or Path())
        self._captured: list[str] = []
        self._client.record_flows()

    def _directions(self, link: dict[str, Any]) -> Iterator[tuple[str, Direction]]:
        """The topology's directions that one of the daemon's links carries, with the daemon's name of each."""
        (name, port), far = link["a"], link["b"]
        if isinstance(far, list):
            yield "a_to_b", (name, far[0])
            yield "b_to_a", (far[0], name)
            return
        neighbor = next(peer.node for peer in self._topology.neighbors(name) if peer.port == port)
        yield "a_to_b", (name, neighbor.name)
        # Between switches the other end's interface counts this direction as its own.
        if neighbor.is_host:
            yield "b_to_a", (neighbor.name, name)

    def counters(self) -> Counters:
        found: dict[Direction, dict[str, int]] = {}
        for link in self._client.links():
            for key, direction in self._directions(link):
                cell = found.setdefault(direction, dict.fromkeys(COUNTER_NAMES, 0))
                for name in COUNTER_NAMES:
                    value = link[key][name]
                    cell[name] = max(cell[name], value) if name == "max_queue_bytes" else cell[name] + value
        return found

    def flows(self) -> Flows:
        ends = {link["name"]: dict(self._directions(link)) for link in self._client.links()}
        found: dict[Direction, dict[FlowKey, tuple[int, int]]] = {}
        for flow in self._client.flows():
            if direction := ends[flow["link"]].get(flow["direction"]):
                key = (flow["src"], flow["dst"], flow["proto"], flow["sport"], flow["dport"])
                packets, size = found.setdefault(direction, {}).get(key, (0, 0))
                found[direction][key] = (packets + flow["packets"], size + flow["bytes"])
        return found

    def capture(self, link: Link, path: Path) -> None:
        known = daemon_link(self._client.links(), self._topology, link)
        self._client.capture_start(known, path)
        self._captured.append(known)

    def stop_captures(self) -> None:
        for name in self._captured:
            self._client.capture_stop(name)
        self._captured.clear()

    def close(self) -> None:
        self._client.close()


def daemon_link(links: Iterable[Mapping[str, Any]], topology: Topology, link: Link) -> str:
    """What the daemon calls a link: that of its first end which is a switch's."""
    name, port = next(end for end in link.ends if not topology.node(end[0]).is_host)
    return next(
        entry["name"]
        for entry in links
        if [name, port] in (entry["a"], entry["b"]) or interface_name(name, port) == entry["b"]
    )
