"""What a switch knows of its own ports: the neighbours' addresses, and where each queue is marked."""

from __future__ import annotations

from dataclasses import dataclass

import finsy as fy

from controller.errors import ControllerError
from controller.routes import Entries
from mininet_topos import paths
from mininet_topos.topology import Neighbor, Topology

# Names in p4src/include/neighbors.p4 and p4src/aqm/red.p4.
NEIGHBOR, EGRESS_SPEC, SET_MACS = "neighbor", "standard_metadata.egress_spec", "set_macs"
RED, EGRESS_PORT, SET_RED = "red_curve", "standard_metadata.egress_port", "set_red"

_SLOPE_ONE = 1 << 32
_MAX_BYTES = (1 << 32) - 1


def neighbor_entries(topology: Topology) -> Entries:
    """Per port, the MACs of the link: the port's own, and its neighbour's."""
    return {
        switch.name: [
            fy.P4TableEntry(
                NEIGHBOR,
                match=fy.Match({EGRESS_SPEC: hop.port}),
                action=fy.Action(
                    SET_MACS,
                    src_mac=topology.mac(switch.name, hop.port),
                    dst_mac=topology.mac(hop.node.name, hop.node_port),
                ),
            )
            for hop in topology.neighbors(switch.name)
        ]
        for switch in topology.switches
    }


@dataclass(frozen=True, slots=True)
class RedCurve:
    """Marking probability over the queue depth: 0 up to kmin_bytes, rising to pmax at kmax_bytes, 1 above.

    kmin_bytes = kmax_bytes is DCTCP's step (RFC 8257, section 3.1). ControllerError names the field that cannot be.
    """

    kmin_bytes: int
    kmax_bytes: int
    pmax: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.kmin_bytes <= _MAX_BYTES:
            raise ControllerError(f"kmin: {self.kmin_bytes} bytes; 0 to {_MAX_BYTES} can be")
        if not self.kmin_bytes <= self.kmax_bytes <= _MAX_BYTES:
            raise ControllerError(f"kmax: {self.kmax_bytes} bytes; {self.kmin_bytes} (kmin) to {_MAX_BYTES} can be")
        if not 0 < self.pmax <= 1:
            raise ControllerError(f"pmax: {self.pmax}; it is a probability above 0")

    @classmethod
    def from_action(cls, kmin_bytes: int, kmax_bytes: int, slope_per_byte: int) -> RedCurve:
        """The curve whose `action` this is; its pmax to four digits, and 1 for a step, which has none."""
        width = kmax_bytes - kmin_bytes
        pmax = float(f"{slope_per_byte * width / _SLOPE_ONE:.4g}") if width else 1.0
        return cls(kmin_bytes, kmax_bytes, min(1.0, pmax))

    def action(self) -> fy.Action:
        """`slope_per_byte` is pmax / (kmax - kmin) in units of 2^-32, since P4 does not divide."""
        width = self.kmax_bytes - self.kmin_bytes
        slope = max(1, min(_MAX_BYTES, round(self.pmax * _SLOPE_ONE / width))) if width else 0
        return fy.Action(SET_RED, kmin_bytes=self.kmin_bytes, kmax_bytes=self.kmax_bytes, slope_per_byte=slope)


@dataclass(frozen=True, slots=True)
class Marking:
    """How curves follow from a port: in bandwidth-delay products (its rate times the topology's largest round trip).

    DCTCP needs a step at 1/7 of it (RFC 8257, section 4.1) for long flows; one whole leaves room for bursts.
    min_packets: no threshold is lower, since the burst of a single sender would be marked.
    """

    kmin_bdps: float = 1.0
    kmax_bdps: float = 1.0
    pmax: float = 1.0
    min_packets: int = 8

    def curve(self, port: Neighbor, rtt_ns: int, packet_bytes: int) -> RedCurve:
        bdp = paths.link_bdp_bytes(port.link, rtt_ns)
        least = self.min_packets * packet_bytes
        kmin, kmax = (min(_MAX_BYTES, max(least, round(bdps * bdp))) for bdps in (self.kmin_bdps, self.kmax_bdps))
        return RedCurve(kmin, kmax, self.pmax)


def red_entries(topology: Topology, marking: Marking, packet_bytes: int) -> Entries:
    rtt_ns = paths.max_rtt_ns(topology, packet_bytes)
    return {
        switch.name: [
            fy.P4TableEntry(
                RED,
                match=fy.Match({EGRESS_PORT: hop.port}),
                action=marking.curve(hop, rtt_ns, packet_bytes).action(),
            )
            for hop in topology.neighbors(switch.name)
        ]
        for switch in topology.switches
    }
