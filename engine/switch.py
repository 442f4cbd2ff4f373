"""One switch of a fabric."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine._library import check, ffi, lib, new_error, unsigned
from engine.control import Control
from engine.describe import Pipeline, read_pipeline

if TYPE_CHECKING:
    from engine.fabric import Fabric


@dataclass(frozen=True, slots=True)
class PacketIn:
    """A packet for the controller, as it left egress on the CPU port."""

    frame: bytes


@dataclass(frozen=True, slots=True)
class Digest:
    """Packed fields of learn list `list_id`, each big-endian, padded to whole bytes by the program."""

    list_id: int
    fields: bytes


@dataclass(frozen=True, slots=True)
class Log:
    text: str


@dataclass(frozen=True, slots=True)
class Sent:
    """A packet that left on a tapped port; `tag` is that of the injected packet it comes from."""

    port: int
    frame: bytes
    tag: int = 0


@dataclass(frozen=True, slots=True)
class Drained:
    """No packet is left in the fabric: the answer to `drain(tag)`."""

    tag: int


Event = PacketIn | Digest | Log | Sent | Drained

MAX_WAITING_EVENTS = 8192
"""What the engine keeps of them (PLAIT_NOTICE_LIMIT of src/switch.h); more are lost, and counted in drops_event."""


def _event(notice: Any) -> Event:
    data = bytes(ffi.buffer(notice.bytes, notice.length))
    if notice.kind == lib.PLAIT_NOTICE_PACKET_IN:
        return PacketIn(data)
    if notice.kind == lib.PLAIT_NOTICE_DIGEST:
        return Digest(notice.number, data)
    if notice.kind == lib.PLAIT_NOTICE_SENT:
        return Sent(notice.number, data, int(notice.tag))
    if notice.kind == lib.PLAIT_NOTICE_DRAINED:
        return Drained(int(notice.tag))
    return Log(data.decode("utf-8", "replace"))


class Switch(Control):
    """Made by Fabric.add_switch; lives as long as its fabric."""

    def __init__(
        self, fabric: Fabric, pointer: Any, name: str, device_id: int, cpu_port: int, priority_queues: int
    ) -> None:
        self.fabric = fabric
        self.name = name
        self.device_id = device_id
        self.cpu_port = cpu_port
        self.priority_queues = priority_queues
        self._pointer = pointer
        self._pipeline: Pipeline | None = None

    def __repr__(self) -> str:
        return f"Switch({self.name!r}, device_id={self.device_id})"

    def _handle(self) -> Any:
        self.fabric._alive()
        return self._pointer

    # --- program ------------------------------------------------------------------------------------------------

    def load(self, so_path: str | Path) -> None:
        """Starts a program with fresh state, between two packets; packets that wait in queues are dropped."""
        error = new_error()
        path = str(Path(so_path).resolve())
        check(lib.plait_switch_load(self._handle(), path.encode(), error), error)
        self._pipeline = read_pipeline(lib.plait_switch_pipeline(self._pointer))

    def describe(self) -> Pipeline:
        if self._pipeline is None:
            raise ValueError(f"switch {self.name} has no program")
        return self._pipeline

    @property
    def has_program(self) -> bool:
        return self._pipeline is not None

    def _array_size(self, kind: str, index: int) -> int:
        arrays = getattr(self.describe(), kind)
        if not 0 <= index < len(arrays):
            raise IndexError(f"{kind} index {index}: the program has {len(arrays)}")
        return int(arrays[index].size)

    def _register_bytes(self, index: int) -> int:
        registers = self.describe().registers
        if index >= len(registers):
            raise IndexError(f"register index {index}: the program has {len(registers)}")
        return (registers[index].width + 7) // 8

    # --- packets ------------------------------------------------------------------------------------------------

    def inject(self, port: int, frame: bytes, tag: int = 0) -> None:
        """The frame arrives at `port`, now. The port needs no link. Packets that come of it carry `tag` if tapped."""
        error = new_error()
        port, tag = unsigned("port", port), unsigned("tag", tag, 64)
        check(lib.plait_switch_inject(self._handle(), port, tag, frame, len(frame), error), error)

    def drain(self, tag: int = 0) -> None:
        """Asks for one event, Drained(tag): real time, fabric without interfaces. It comes when no packet is left in
        the fabric, after the events of all of them; a program that recirculates without end never drains."""
        error = new_error()
        check(lib.plait_switch_drain(self._handle(), unsigned("tag", tag, 64), error), error)

    def set_port_up(self, port: int, up: bool) -> None:
        """What programs read as the state of a port without link; its packets pass as before."""
        error = new_error()
        check(lib.plait_switch_set_port_up(self._handle(), unsigned("port", port), int(up), error), error)

    def packet_out(self, port: int, frame: bytes) -> None:
        """A packet of the controller: it arrives at `port`, the CPU port for P4Runtime's PacketOut."""
        self.inject(port, frame)

    def tap(self, port: int) -> None:
        """Makes a port without link, whose output poll_events returns as Sent: for tests of a single switch."""
        error = new_error()
        check(lib.plait_switch_tap(self._handle(), unsigned("port", port), error), error)

    def generate(self, port: int, frame: bytes, count: int, interval_ns: int, start_ns: int = 0) -> None:
        """`count` copies of the frame arrive at `port`, the first after start_ns, then one each interval_ns."""
        error = new_error()
        count, start_ns = unsigned("count", count, 64), unsigned("start_ns", start_ns, 64)
        interval_ns, port = unsigned("interval_ns", interval_ns, 64), unsigned("port", port)
        call = lib.plait_switch_generate
        check(call(self._handle(), port, frame, len(frame), count, start_ns, interval_ns, error), error)

    def poll_events(self, timeout: float = 0.0, at_most: int = MAX_WAITING_EVENTS) -> list[Event]:
        """Packets-in, digests, log lines and tapped output that wait; waits `timeout` seconds for the first.

        `at_most` bounds them, since packets may bring new ones faster than they are taken.
        """
        events: list[Event] = []
        wait_ns = max(0, int(timeout * 1e9))
        while len(events) < at_most and (notice := lib.plait_switch_poll(self._handle(), wait_ns)) != ffi.NULL:
            events.append(_event(notice))
            lib.plait_notice_free(notice)
            wait_ns = 0
        return events

    @property
    def event_fd(self) -> int:
        """Readable while events wait: for an event loop's add_reader. The fabric closes it."""
        return int(lib.plait_switch_event_fd(self._handle()))

    # --- ports --------------------------------------------------------------------------------------------------

    def set_queue(
        self,
        port: int,
        rate_bps: int | None = None,
        depth_packets: int | None = None,
        depth_bytes: int | None = None,
        queue: int | None = None,
    ) -> None:
        """Changes what is given; depths are those of one queue, or of all of the port's."""

        def value(what: str, given: int | None, bits: int) -> int:
            return -1 if given is None else unsigned(what, given, bits)

        error = new_error()
        port, number = unsigned("port", port), value("queue", queue, 31)
        rate, packets = value("rate_bps", rate_bps, 63), value("depth_packets", depth_packets, 63)
        size = value("depth_bytes", depth_bytes, 63)
        check(lib.plait_switch_set_queue(self._handle(), port, number, rate, packets, size, error), error)

    def port_stats(self, port: int) -> dict[str, int]:
        stats, error = ffi.new("struct plait_port_stats *"), new_error()
        check(lib.plait_switch_port_stats(self._handle(), unsigned("port", port), stats, error), error)
        return as_dict(stats)

    def stats(self) -> dict[str, int]:
        stats = ffi.new("struct plait_switch_stats *")
        lib.plait_switch_stats(self._handle(), stats)
        return as_dict(stats)


def as_dict(struct: Any) -> dict[str, int]:
    """A C struct of counters by field name."""
    return {name: int(getattr(struct, name)) for name, _ in ffi.typeof(struct).item.fields}
