"""One link of a fabric: in memory between two switches, or from a switch to an interface."""

from __future__ import annotations

import ipaddress
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine._library import check, ffi, lib, new_error, unsigned
from engine.switch import as_dict

if TYPE_CHECKING:
    from engine.fabric import Fabric

FlowKey = tuple[str, str, int, int, int]
"""(source address, destination address, protocol, source port, destination port)"""

DIRECTIONS = ("a_to_b", "b_to_a")
DEFAULT_FLOWS = 65536


class Link:
    """Made by Fabric.connect and Fabric.attach.

    `a` and `b` are (switch name, port); b of an attached link is (interface, None).
    """

    def __init__(self, fabric: Fabric, pointer: Any, name: str, a: tuple[str, int], b: tuple[str, int | None]) -> None:
        self.fabric = fabric
        self.name = name
        self.a = a
        self.b = b
        self._pointer = pointer

    def __repr__(self) -> str:
        return f"Link({self.name!r})"

    def _handle(self) -> Any:
        self.fabric._alive()
        return self._pointer

    def stats(self) -> dict[str, dict[str, int]]:
        """By direction: packets and bytes that reached its end, drops by cause, depth of the queue that feeds it.

        `drops_interface` towards an interface are among `packets`; from an interface they were lost before the link.
        """
        result = {}
        for number, direction in enumerate(DIRECTIONS):
            stats = ffi.new("struct plait_direction_stats *")
            lib.plait_link_stats(self._handle(), number, stats)
            result[direction] = as_dict(stats)
        return result

    def interface_stats(self) -> dict[str, int]:
        """What the interface of an attached link has read, sent, completed and dropped."""
        stats = ffi.new("struct plait_interface_stats *")
        if lib.plait_link_interface_stats(self._handle(), stats) < 0:
            raise ValueError(f"link {self.name} has no interface")
        return as_dict(stats)

    def set_up(self, up: bool) -> None:
        """A link that is down loses what arrives, packets in flight included."""
        lib.plait_link_set_up(self._handle(), int(up))

    def set(self, rate_bps: int | None = None, delay_ns: int | None = None, loss: float | None = None) -> None:
        """Changes both directions. Packets in flight keep their time of arrival, and order is kept."""
        if loss is not None and not 0 <= loss <= 1:
            raise ValueError(f"loss of link {self.name}: {loss} is not in 0..1")
        rate = -1 if rate_bps is None else unsigned("rate_bps", rate_bps, 63)
        delay = -1 if delay_ns is None else unsigned("delay_ns", delay_ns, 63)
        error = new_error()
        check(lib.plait_link_set(self._handle(), rate, delay, -1.0 if loss is None else loss, error), error)

    def capture(self, path: str | Path) -> None:
        """Writes what arrives at either end to a pcap file with ns timestamps, until capture_stop."""
        encoded = os.fsencode(path)
        if b"\0" in encoded:
            raise ValueError(f"capture path {str(path)!r}: it contains a null character")
        error = new_error()
        check(lib.plait_link_capture(self._handle(), encoded, error), error)

    def capture_stop(self) -> None:
        """Raises OSError if a write failed meanwhile."""
        error = new_error()
        check(lib.plait_link_capture_stop(self._handle(), error), error)

    def record_flows(self, limit: int = DEFAULT_FLOWS) -> None:
        """Starts counting by IPv4 5-tuple from zero; packets of flows beyond `limit` are only counted as unrecorded."""
        error = new_error()
        check(lib.plait_link_record_flows(self._handle(), unsigned("limit", limit), error), error)

    def _flows(self, direction: int) -> tuple[dict[FlowKey, tuple[int, int]], int]:
        unrecorded = ffi.new("uint64_t *")
        room = 0
        while True:
            flows = ffi.new("struct plait_flow[]", max(1, room))
            found = lib.plait_link_flows(self._handle(), direction, flows, room, unrecorded)
            if found <= room:
                break
            room = found + found // 8
        result = {}
        for i in range(found):
            f = flows[i]
            source, destination = str(ipaddress.IPv4Address(f.source)), str(ipaddress.IPv4Address(f.destination))
            key = (source, destination, f.protocol, f.source_port, f.destination_port)
            result[key] = (int(f.packets), int(f.bytes))
        return result, int(unrecorded[0])

    def flows(self) -> dict[str, dict[FlowKey, tuple[int, int]]]:
        """By direction: (packets, bytes) of each flow that was delivered since record_flows."""
        return {name: self._flows(number)[0] for number, name in enumerate(DIRECTIONS)}

    def unrecorded_packets(self) -> dict[str, int]:
        """By direction: packets that flows() leaves out, being no IPv4 or beyond the limit."""
        return {name: self._flows(number)[1] for number, name in enumerate(DIRECTIONS)}
