"""What a fabric's links carried, whichever target runs the switches: counters, flows, captures."""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from mininet_topos.topology import Link

# A link's direction, as (from, to).
Direction = tuple[str, str]
# (src ip, dst ip, protocol, src port, dst port)
FlowKey = tuple[str, str, int, int, int]
Counters = Mapping[Direction, Mapping[str, int]]
Flows = Mapping[Direction, Mapping[FlowKey, tuple[int, int]]]

COUNTER_NAMES = ("packets", "bytes", "drops_queue", "drops_loss", "max_queue_bytes", "queue_bytes")


class FabricView(Protocol):
    def counters(self) -> Counters:
        """Per direction COUNTER_NAMES -> value since the fabric began, queue_bytes: what waits now.

        Parallel links are added up. BMv2 does not tell its queues: theirs are 0.
        """

    def flows(self) -> Flows:
        """Per direction the IPv4 flows seen since the fabric began: (packets, bytes) each."""

    def capture(self, link: Link, path: Path) -> None:
        """Writes every packet of a link, both directions, to a pcap file."""

    def stop_captures(self) -> None:
        """Ends all captures; their files are whole afterwards."""

    def close(self) -> None:
        """Lets go of the fabric."""
