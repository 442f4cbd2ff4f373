"""One switch of a fabric."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine._library import check, ffi, lib, new_error, unsigned
from engine.buffer import Buffer, fraction
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
        self._buffer: Buffer | None = None

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
        *,
        rate_pps: int | None = None,
        reserved_bytes: int | None = None,
        alpha: Fraction | None = None,
    ) -> None:
        """Changes what is given, of one queue (a priority), or of all of the port's. It holds at once, also for the
        packet in service.

        `rate_bps` is in bits a second: of the port, or of the one queue at the most. `rate_pps` is in packets a second
        of each queue by itself, as BMv2's set_queue_rate. A queue has one or the other; 0: none. Depths are what may
        wait in each queue; `reserved_bytes` and `alpha` are its part in the shared buffer, which there must be.
        """

        def value(what: str, given: int | None, bits: int) -> int:
            return -1 if given is None else unsigned(what, given, bits)

        if queue is not None and rate_bps is not None and rate_pps is not None:
            raise ValueError("set_queue: a queue has a rate in bits or in packets a second, not both")
        change = {
            "rate_bps": value("rate_bps", rate_bps, 63),
            "rate_pps": value("rate_pps", rate_pps, 63),
            "depth_packets": value("depth_packets", depth_packets, 63),
            "depth_bytes": value("depth_bytes", depth_bytes, 63),
            "reserved_bytes": value("reserved_bytes", reserved_bytes, 63),
            "alpha": (0, 0) if alpha is None else _fraction("alpha", alpha),
        }
        error = new_error()
        port, number = unsigned("port", port), value("queue", queue, 31)
        spec = ffi.new("struct plait_queue_change *", change)
        check(lib.plait_switch_set_queue(self._handle(), port, number, spec, error), error)

    def hold_queue(self, port: int, queue: int | None = None, *, hold: bool) -> None:
        """Stops or goes on serving a queue, or all of the port's; packets still enter it, as its depth allows."""
        error = new_error()
        number = -1 if queue is None else unsigned("queue", queue, 31)
        check(lib.plait_switch_hold_queue(self._handle(), unsigned("port", port), number, int(hold), error), error)

    def queue_state(self, port: int, queue: int) -> dict[str, int]:
        """What waits in a queue, its limits, and why packets were dropped: `struct plait_queue_state` of src/api.h."""
        state, error = ffi.new("struct plait_queue_state *"), new_error()
        port, queue = unsigned("port", port), unsigned("queue", queue)
        check(lib.plait_switch_queue_state(self._handle(), port, queue, state, error), error)
        return as_dict(state)

    def ports(self) -> list[int]:
        """Numbers of the ports that exist."""
        ports = ffi.new("uint32_t[]", 512)
        return [int(ports[i]) for i in range(lib.plait_switch_ports(self._handle(), ports))]

    def set_buffer(self, buffer: Buffer | None) -> None:
        """Gives the switch a shared buffer, with flow control if it says so; None: each queue has its own limits only.

        Packets that wait stay, and are charged by the new rules; queues get the buffer's reserve and alpha; pauses of
        the old rules end. ValueError if a value is out of range, or if reserves and headroom leave no pool.
        """
        spec: dict[str, Any] = {"total_bytes": 0}
        if buffer is not None:
            buffer.check()
            spec = {
                "total_bytes": buffer.total_bytes,
                "reserved_bytes": buffer.reserved_bytes,
                "alpha": _fraction("alpha", buffer.alpha),
            }
        if buffer is not None and (pfc := buffer.pfc) is not None:
            spec |= {
                "lossless": sum(1 << priority for priority in pfc.priorities),
                "xoff_bytes": pfc.xoff_bytes or 0,
                "xoff_alpha": (0, 0) if pfc.xoff_alpha is None else _fraction("xoff_alpha", pfc.xoff_alpha),
                "xon_gap_bytes": pfc.xon_gap_bytes,
                "headroom_bytes": pfc.headroom_bytes,
                "pause_quanta": pfc.pause_quanta,
            }
        error = new_error()
        given = ffi.new("struct plait_buffer_spec *", spec)
        check(lib.plait_switch_set_buffer(self._handle(), given, error), error)
        self._buffer = buffer

    @property
    def buffer(self) -> Buffer | None:
        """What set_buffer gave."""
        return self._buffer

    def buffer_state(self) -> dict[str, int]:
        """Bytes of the pool, how many are used, and the most that ever were; all 0 without a shared buffer."""
        state = ffi.new("struct plait_buffer_state *")
        lib.plait_switch_buffer_state(self._handle(), state)
        return as_dict(state)

    def port_stats(self, port: int) -> dict[str, int]:
        stats, error = ffi.new("struct plait_port_stats *"), new_error()
        check(lib.plait_switch_port_stats(self._handle(), unsigned("port", port), stats, error), error)
        return as_dict(stats)

    def stats(self) -> dict[str, int]:
        stats = ffi.new("struct plait_switch_stats *")
        lib.plait_switch_stats(self._handle(), stats)
        return as_dict(stats)


def _fraction(what: str, value: Fraction) -> tuple[int, int]:
    checked = fraction(what, value)
    return checked.numerator, checked.denominator


def as_dict(struct: Any) -> dict[str, int]:
    """A C struct of counters by field name."""
    return {name: int(getattr(struct, name)) for name, _ in ffi.typeof(struct).item.fields}
