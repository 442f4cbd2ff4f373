"""What generators and importers share: links of a tier, free ports, addresses by rack, checks of parameters."""

from __future__ import annotations

from dataclasses import dataclass

from mininet_topos.topology import HOST_PORT, Link, Node, TopologyError

# A rack is two bytes of its hosts' addresses, a host one: 10.<rack / 256>.<rack % 256>.<2 + host>/24.
MAX_RACKS = 1 << 16
MAX_RACK_HOSTS = 253

# More switches than any emulation holds; a typing error must not fill the memory.
MAX_SWITCHES = 10_000


@dataclass(frozen=True, slots=True)
class Wire:
    """What all links of a tier have in common: bits per second, nanoseconds one way, loss of a packet."""

    rate_bps: int
    delay_ns: int
    loss: float = 0.0

    def replaced(self, rate_bps: int | None, delay_ns: int | None) -> Wire:
        """With another rate or delay; None keeps it."""
        return Wire(
            self.rate_bps if rate_bps is None else rate_bps, self.delay_ns if delay_ns is None else delay_ns, self.loss
        )

    def link(self, a: Node, port_a: int, b: Node, port_b: int) -> Link:
        return Link(a.name, port_a, b.name, port_b, self.rate_bps, self.delay_ns, self.loss)

    def host_link(self, switch: Node, port: int, host: Node) -> Link:
        return self.link(switch, port, host, HOST_PORT)


def checked_wire(rate_bps: int, delay_ns: int, loss: float) -> Wire:
    """TopologyError names the parameter, as a generator's user knows it."""
    check_rate("rate", rate_bps)
    check_delay("delay", delay_ns)
    if not 0.0 <= loss <= 1.0:
        raise TopologyError("loss", f"must be a probability from 0 to 1, is {loss}")
    return Wire(rate_bps, delay_ns, loss)


def tier_wire(tier: str, wire: Wire, rate_bps: int | None, delay_ns: int | None) -> Wire:
    """The links of one tier, where its rate or delay may differ; `tier` names them in errors: `host_rate`."""
    if rate_bps is not None:
        check_rate(f"{tier}_rate", rate_bps)
    if delay_ns is not None:
        check_delay(f"{tier}_delay", delay_ns)
    return wire.replaced(rate_bps, delay_ns)


def check_rate(field: str, rate_bps: int) -> None:
    if rate_bps <= 0:
        raise TopologyError(field, f"must be positive, is {rate_bps}")


def check_delay(field: str, delay_ns: int) -> None:
    if delay_ns < 0:
        raise TopologyError(field, f"must not be negative, is {delay_ns}")


def check_count(field: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise TopologyError(field, f"must be from {low} to {high}, is {value}")


def rack_host(index: int, rack: int, position: int, place: str) -> Node:
    """The host number `index` of all, `position` (from 0) of its rack (from 0), with an address that tells both."""
    return Node.host(index, f"10.{rack >> 8}.{rack & 0xFF}.{2 + position}/24", place=f"{place}, host {position}")
