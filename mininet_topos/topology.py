"""The topology model: nodes, ports and links, validated once, then shared by Mininet, controller, PTF and simulator.

Switch ports count from 1, since port 0 is invalid or special on P4 switches. A host has one port, number 0, so that
`<node>-eth<port>` names the interface of every port: `s3-eth1`, `h1-eth0`. Rates are bits per second, delays
nanoseconds one way, loss a probability per packet. Whatever depends on speed is derived from these values by
`mininet_topos.paths`; nothing is ever derived from a name.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

Kind = Literal["host", "switch"]

HOST_PORT = 0
FORMAT = "plait-topology-1"

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,31}\Z")
_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}\Z")
_MAX_16_BITS = 0xFFFF


class TopologyError(ValueError):
    """A topology that cannot be: names the offending field and says why."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason


def host_mac(address: str) -> str:
    """MAC of the host with this IPv4 address: the address after the locally administered prefix 02:00."""
    return _mac_text(0x02, int(ipaddress.IPv4Address(address)))


def port_mac(device_id: int, port: int) -> str:
    """MAC of a switch port: device id and port after the locally administered prefix 06:00.  Port 0 is the switch's."""
    return _mac_text(0x06, device_id << 16 | port)


def _mac_text(first_byte: int, low_32_bits: int) -> str:
    return ":".join(f"{byte:02x}" for byte in (first_byte, 0, *low_32_bits.to_bytes(4, "big")))


@dataclass(frozen=True, slots=True)
class Node:
    """A host or a switch.

    `index` counts from 0 within the layer. `ipv4` is "address/prefix length", of hosts only; `device_id` is
    P4Runtime's, of switches only. `gateway_ipv4` is a host's gateway where it is not its network's first address.
    `place` tells people where the node stands, such as "pod 1, rack 0".
    """

    name: str
    kind: Kind
    layer: str
    index: int
    mac: str
    ipv4: str | None = None
    device_id: int | None = None
    gateway_ipv4: str | None = None
    place: str | None = None

    @classmethod
    def host(cls, index: int, ipv4: str, name: str = "", place: str | None = None) -> Node:
        """The host number `index` (from 0) with its derived name and MAC."""
        mac = host_mac(ipv4.split("/")[0])
        return cls(name or f"h{index + 1}", "host", "host", index, mac, ipv4, place=place)

    @classmethod
    def switch(cls, device_id: int, layer: str, index: int, name: str = "", place: str | None = None) -> Node:
        """The switch `device_id` (from 1), number `index` (from 0) of its layer, with its derived name and MAC."""
        mac = port_mac(device_id, 0)
        return cls(name or f"s{device_id}", "switch", layer, index, mac, device_id=device_id, place=place)

    @property
    def is_host(self) -> bool:
        return self.kind == "host"

    @property
    def address(self) -> str:
        """A host's IPv4 address without prefix length."""
        return self._host_ipv4.split("/")[0]

    @property
    def network(self) -> ipaddress.IPv4Network:
        """The IPv4 network that a host is in."""
        return ipaddress.IPv4Network(self._host_ipv4, strict=False)

    @property
    def gateway(self) -> str:
        """The IPv4 address of a host's gateway: the first of its network unless told otherwise."""
        if self.gateway_ipv4 is not None:
            return self.gateway_ipv4
        network = self.network
        if network.prefixlen == 31:  # RFC 3021: two addresses, one at either end
            return str(next(each for each in network if str(each) != self.address))
        return str(network.network_address + 1)

    @property
    def _host_ipv4(self) -> str:
        if self.ipv4 is None:
            raise TopologyError(self.name, "only hosts have IPv4 addresses")
        return self.ipv4


@dataclass(frozen=True, slots=True)
class Link:
    """A full-duplex link; rate (bits/s), one-way delay (ns) and loss (probability) hold for each direction."""

    a: str
    port_a: int
    b: str
    port_b: int
    rate_bps: int
    delay_ns: int
    loss: float = 0.0

    @property
    def name(self) -> str:
        return f"{interface_name(self.a, self.port_a)}:{interface_name(self.b, self.port_b)}"

    @property
    def ends(self) -> tuple[tuple[str, int], tuple[str, int]]:
        return (self.a, self.port_a), (self.b, self.port_b)


@dataclass(frozen=True, slots=True)
class Neighbor:
    """What a node sees through one of its ports."""

    port: int
    node: Node
    node_port: int
    link: Link


def interface_name(node: str, port: int) -> str:
    """The name of the network interface of a node's port."""
    return f"{node}-eth{port}"


@dataclass(frozen=True)
class Topology:
    """Nodes and links, checked on construction (`TopologyError`).  `name` is a label and has no meaning."""

    nodes: tuple[Node, ...]
    links: tuple[Link, ...]
    name: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "nodes", tuple(self.nodes))
        object.__setattr__(self, "links", tuple(self.links))
        _validate(self)

    @cached_property
    def hosts(self) -> tuple[Node, ...]:
        return tuple(node for node in self.nodes if node.is_host)

    @cached_property
    def switches(self) -> tuple[Node, ...]:
        return tuple(node for node in self.nodes if not node.is_host)

    @cached_property
    def by_name(self) -> dict[str, Node]:
        return {node.name: node for node in self.nodes}

    @cached_property
    def adjacency(self) -> dict[str, tuple[Neighbor, ...]]:
        """Per node, its neighbours in the order of its ports."""
        found: dict[str, list[Neighbor]] = {node.name: [] for node in self.nodes}
        for link in self.links:
            found[link.a].append(Neighbor(link.port_a, self.by_name[link.b], link.port_b, link))
            found[link.b].append(Neighbor(link.port_b, self.by_name[link.a], link.port_a, link))
        return {name: tuple(sorted(seen, key=lambda n: n.port)) for name, seen in found.items()}

    def node(self, name: str) -> Node:
        """The node of that name; TopologyError if there is none."""
        if name not in self.by_name:
            raise TopologyError("node", f"no node named {name!r} among {_some(list(self.by_name))}")
        return self.by_name[name]

    def neighbors(self, name: str) -> tuple[Neighbor, ...]:
        """The neighbours of a node in the order of its ports; parallel links give one each."""
        return self.adjacency[self.node(name).name]

    def ports(self, name: str) -> tuple[int, ...]:
        return tuple(neighbor.port for neighbor in self.neighbors(name))

    def port_of(self, name: str, neighbor: str) -> int:
        """The first port of `name` that leads to `neighbor`."""
        for seen in self.neighbors(name):
            if seen.node.name == neighbor:
                return seen.port
        raise TopologyError("link", f"no link between {name!r} and {neighbor!r}")

    def host_port(self, host: str) -> Neighbor:
        """The switch port a host hangs on, as the host sees it: `.node` the switch, `.node_port` its port."""
        if not self.node(host).is_host:
            raise TopologyError("host", f"{host!r} is a switch")
        return self.neighbors(host)[0]

    def hosts_of(self, switch: str) -> tuple[Node, ...]:
        """The hosts that hang on a switch, in the order of its ports."""
        return tuple(neighbor.node for neighbor in self.neighbors(switch) if neighbor.node.is_host)

    def links_between(self, a: str, b: str) -> tuple[Link, ...]:
        """All links between two nodes, in the order of `a`'s ports; empty where there is none."""
        return tuple(neighbor.link for neighbor in self.neighbors(a) if neighbor.node.name == self.node(b).name)

    def without(self, links: Iterable[Link]) -> Topology:
        """The topology with these links gone, as after a failure.  TopologyError if one was a host's only link."""
        gone = set(links)
        return Topology(self.nodes, tuple(link for link in self.links if link not in gone), self.name)

    def mac(self, name: str, port: int) -> str:
        """The MAC address of a node's port."""
        node = self.node(name)
        return node.mac if node.device_id is None else port_mac(node.device_id, port)

    def gateway_mac(self, host: str) -> str:
        """The MAC address of the switch port that a host hangs on."""
        attached = self.host_port(host)
        return self.mac(attached.node.name, attached.node_port)

    def path_rtt_ns(self, src: str, dst: str, frame_bytes: int) -> int:
        """See `mininet_topos.paths.rtt_ns`."""
        from mininet_topos import paths

        return paths.rtt_ns(self, src, dst, frame_bytes)

    def bdp_bytes(self, src: str, dst: str, frame_bytes: int) -> int:
        """See `mininet_topos.paths.bdp_bytes`."""
        from mininet_topos import paths

        return paths.bdp_bytes(self, src, dst, frame_bytes)

    def to_json(self) -> str:
        """The topology as a JSON text that `from_json` reads back to an equal object."""
        document = {
            "format": FORMAT,
            "name": self.name,
            "nodes": [_without_nones(dataclasses.asdict(node)) for node in self.nodes],
            "links": [dataclasses.asdict(link) for link in self.links],
        }
        return json.dumps(document, indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes) -> Topology:
        """Reads what `to_json` wrote; TopologyError names the field that is missing, unknown or of the wrong type."""
        try:
            document = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise TopologyError("document", f"not JSON: {error}") from None
        if not isinstance(document, dict):
            raise TopologyError("document", "must be a JSON object")
        if document.get("format") != FORMAT:
            raise TopologyError("format", f"must be {FORMAT!r}, not {document.get('format')!r}")
        _refuse_unknown("document", document, {"format", "name", "nodes", "links"})
        name = document.get("name", "")
        if not isinstance(name, str):
            raise TopologyError("name", "must be a string")
        return cls(
            nodes=tuple(_record(Node, "nodes", i, item) for i, item in enumerate(_list(document, "nodes"))),
            links=tuple(_record(Link, "links", i, item) for i, item in enumerate(_list(document, "links"))),
            name=name,
        )


# --- reading JSON ---


def _without_nones(record: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in record.items() if value is not None}


def _list(document: dict[str, Any], key: str) -> list[Any]:
    value = document.get(key)
    if not isinstance(value, list):
        raise TopologyError(key, "must be a list")
    return value


def _refuse_unknown(where: str, record: dict[str, Any], known: set[str]) -> None:
    unknown = sorted(set(record) - known)
    if unknown:
        raise TopologyError(where, f"unknown field {unknown[0]!r}; known are {', '.join(sorted(known))}")


_JSON_TYPES: dict[str, tuple[type, ...]] = {"str": (str,), "int": (int,), "float": (int, float), "Kind": (str,)}


def _record(cls: type[Any], key: str, position: int, item: Any) -> Any:
    where = f"{key}[{position}]"
    if not isinstance(item, dict):
        raise TopologyError(where, "must be an object")
    fields = {field.name: field for field in dataclasses.fields(cls)}
    _refuse_unknown(where, item, set(fields))
    for name, field in fields.items():
        if name not in item:
            if field.default is dataclasses.MISSING:
                raise TopologyError(f"{where}.{name}", "missing")
            continue
        type_name = str(field.type).removesuffix(" | None")
        value = item[name]
        if isinstance(value, bool) or not isinstance(value, _JSON_TYPES[type_name]):
            raise TopologyError(f"{where}.{name}", f"must be {type_name}, not {value!r}")
    return cls(**item)


# --- validation ---


def _some(names: list[str]) -> str:
    return ", ".join(names[:8]) + (f", … ({len(names)} in all)" if len(names) > 8 else "")


def _validate(topology: Topology) -> None:
    _check_nodes(topology)
    _check_links(topology)
    _check_attachment(topology)


def _check_nodes(topology: Topology) -> None:
    holders: dict[tuple[str, object], int] = {}
    for position, node in enumerate(topology.nodes):
        where = f"nodes[{position}]"
        for field, reason in _node_faults(node):
            raise TopologyError(f"{where}.{field}", reason)
        for field, value in _unique_values(node):
            holder = holders.setdefault((field, value), position)
            if holder != position:
                other = f"nodes[{holder}], {topology.nodes[holder].name!r}"
                raise TopologyError(f"{where}.{field}", f"{value!r} is already taken by {other}")


def _unique_values(node: Node) -> Iterator[tuple[str, object]]:
    yield "name", node.name
    yield "mac", node.mac
    if node.ipv4 is not None:
        yield "ipv4", node.address
    if node.device_id is not None:
        yield "device_id", node.device_id


def _node_faults(node: Node) -> Iterator[tuple[str, str]]:
    if not _NAME.match(node.name):
        yield "name", f"{node.name!r} must be a letter and up to 31 letters, digits or underscores"
    if node.kind not in ("host", "switch"):
        yield "kind", f"must be 'host' or 'switch', not {node.kind!r}"
    if not _MAC.match(node.mac):
        yield "mac", f"{node.mac!r} must be six lower-case hexadecimal bytes with colons"
    elif int(node.mac[:2], 16) & 1:
        yield "mac", f"{node.mac} is a multicast address"
    if node.index < 0:
        yield "index", f"must not be negative, is {node.index}"
    if node.is_host:
        yield from _host_faults(node)
    elif node.ipv4 is not None or node.gateway_ipv4 is not None:
        yield ("gateway_ipv4" if node.ipv4 is None else "ipv4"), "a switch has no IPv4 address"
    elif node.device_id is None or not 1 <= node.device_id <= _MAX_16_BITS:
        yield "device_id", f"of a switch must be 1 to {_MAX_16_BITS}, is {node.device_id}"


def _host_faults(node: Node) -> Iterator[tuple[str, str]]:
    if node.device_id is not None:
        yield "device_id", "a host has no device id"
    if node.ipv4 is None or "/" not in node.ipv4:
        yield "ipv4", f"of a host must be address/prefix length, is {node.ipv4!r}"
        return
    try:
        interface = ipaddress.IPv4Interface(node.ipv4)
    except ValueError as error:
        yield "ipv4", str(error)
        return
    network = interface.network
    if interface.with_prefixlen != node.ipv4 or network.prefixlen > 31:
        yield "ipv4", f"{node.ipv4}: must be a plain address with a prefix length of at most 31"
    elif _names_network(interface.ip, network):
        yield "ipv4", f"{node.ipv4} is the network or broadcast address of {network}"
    elif node.gateway_ipv4 is not None:
        yield from _gateway_faults(node.gateway_ipv4, interface)
    elif node.address == node.gateway:
        yield "ipv4", f"{node.address} is the gateway of {network}"


def _gateway_faults(text: str, interface: ipaddress.IPv4Interface) -> Iterator[tuple[str, str]]:
    try:
        gateway = ipaddress.IPv4Address(text)
    except ValueError as error:
        yield "gateway_ipv4", str(error)
        return
    if gateway not in interface.network or _names_network(gateway, interface.network):
        yield "gateway_ipv4", f"{text} is no host's address of {interface.network}"
    elif gateway == interface.ip:
        yield "gateway_ipv4", f"{text} is the host's own address"


def _names_network(address: ipaddress.IPv4Address, network: ipaddress.IPv4Network) -> bool:
    """Whether an address means a network or all of it.  In a /31 both addresses are hosts' (RFC 3021)."""
    return network.prefixlen < 31 and address in (network.network_address, network.broadcast_address)


def _check_links(topology: Topology) -> None:
    ends: dict[tuple[str, int], int] = {}
    for position, link in enumerate(topology.links):
        where = f"links[{position}]"
        for field, name, port in (("a", link.a, link.port_a), ("b", link.b, link.port_b)):
            if name not in topology.by_name:
                known = _some(list(topology.by_name))
                raise TopologyError(f"{where}.{field}", f"no node named {name!r} among {known}")
            if topology.by_name[name].is_host:
                if port != HOST_PORT:
                    raise TopologyError(f"{where}.port_{field}", f"a host's port is {HOST_PORT}, not {port}")
            elif not 1 <= port <= _MAX_16_BITS:
                raise TopologyError(f"{where}.port_{field}", f"ports of switches count from 1, not {port}")
            if (name, port) in ends:
                other = ends[name, port]
                raise TopologyError(f"{where}.port_{field}", f"port {port} of {name!r} is used by links[{other}]")
            ends[name, port] = position
        if link.a == link.b:
            raise TopologyError(where, f"connects {link.a!r} with itself")
        if topology.by_name[link.a].is_host and topology.by_name[link.b].is_host:
            raise TopologyError(where, f"connects the hosts {link.a!r} and {link.b!r} without a switch")
        if link.rate_bps <= 0:
            raise TopologyError(f"{where}.rate_bps", f"must be positive, is {link.rate_bps}")
        if link.delay_ns < 0:
            raise TopologyError(f"{where}.delay_ns", f"must not be negative, is {link.delay_ns}")
        if not 0.0 <= link.loss <= 1.0:
            raise TopologyError(f"{where}.loss", f"must be a probability from 0 to 1, is {link.loss}")


def _check_attachment(topology: Topology) -> None:
    port_macs = {
        port_mac(node.device_id, port): f"port {port} of {node.name!r}"
        for node in topology.switches
        if node.device_id is not None
        for port in topology.ports(node.name)
    }
    addresses = {host.address: host.name for host in topology.hosts}
    for position, node in enumerate(topology.nodes):
        if not node.is_host:
            continue
        if len(topology.adjacency[node.name]) != 1:
            raise TopologyError(f"nodes[{position}]", f"host {node.name!r} has no link to a switch")
        if node.mac in port_macs:
            raise TopologyError(f"nodes[{position}].mac", f"{node.mac} is the MAC of {port_macs[node.mac]}")
        if node.gateway in addresses:
            holder = addresses[node.gateway]
            raise TopologyError(f"nodes[{position}].ipv4", f"its gateway {node.gateway} is the address of {holder!r}")
