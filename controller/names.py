"""Names that people may write for values: hosts and switches of a topology, as one of its switches sees them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from controller.errors import EntryTextError
from mininet_topos.topology import Topology, interface_name

IPV4_BITS, MAC_BITS, PORT_BITS = 32, 48, 9

_PORT_NAME = re.compile(r"(^|[._])(\w*port|egress_spec)$")


@dataclass(frozen=True, slots=True)
class Names:
    """Per name, what it stands for: an IPv4 address (of a host), a MAC address, or the port that leads there.

    nodes: all names of the topology's nodes, also of those that stand for nothing here.
    """

    ipv4: Mapping[str, str] = field(default_factory=dict)
    mac: Mapping[str, str] = field(default_factory=dict)
    port: Mapping[str, int] = field(default_factory=dict)
    nodes: frozenset[str] = frozenset()

    def value(self, text: str, bitwidth: int, name: str) -> str | int | None:
        """What `text` stands for in a field of this width and name; None for a text that is no name.

        EntryTextError for a name that means nothing there.
        """
        if text not in self.nodes and text not in self.mac:
            return None
        found: str | int | None = None
        if bitwidth == PORT_BITS or _PORT_NAME.search(name):
            found = self.port.get(text)
        elif bitwidth == IPV4_BITS:
            found = self.ipv4.get(text)
        elif bitwidth == MAC_BITS:
            found = self.mac.get(text)
        if found is None:
            raise EntryTextError(f"{name}: {text} has no {_wanted(bitwidth, name)} that this switch knows")
        return found


def _wanted(bitwidth: int, name: str) -> str:
    if bitwidth == PORT_BITS or _PORT_NAME.search(name):
        return "port"
    return {IPV4_BITS: "IPv4 address", MAC_BITS: "MAC address"}.get(bitwidth, f"value of {bitwidth} bits")


NO_NAMES = Names()


def names_of(topology: Topology, switch: str) -> Names:
    """Hosts are known by address, MAC and port where they hang on this switch; switches by the MAC and port of the
    first link to them; interfaces, such as s5-eth1, by MAC."""
    neighbors = topology.neighbors(switch)[::-1]  # the first of parallel links wins
    macs = {
        interface_name(end, port): topology.mac(end, port)
        for node in topology.nodes
        for end, port in ((node.name, port) for port in topology.ports(node.name))
    }
    macs |= {near.node.name: topology.mac(near.node.name, near.node_port) for near in neighbors}
    macs |= {host.name: host.mac for host in topology.hosts}
    return Names(
        ipv4={host.name: host.address for host in topology.hosts},
        mac=macs,
        port={near.node.name: near.port for near in neighbors},
        nodes=frozenset(topology.by_name),
    )
