"""A fabric: switches and links on one clock, run by one thread."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Any, Literal

from engine._library import failure, ffi, lib, new_error, unsigned
from engine.link import Link
from engine.switch import Switch

EVENTS_PER_SLICE = 1_000_000
"""Virtual time returns to Python so often, for Ctrl-C."""

NEVER = (1 << 64) - 1
INTERFACE_NAME_MAX = 15


def _name(what: str, name: str) -> bytes:
    if not isinstance(name, str) or not name or not name.isprintable():
        raise ValueError(f"{what}: {name!r} is not a printable, non-empty name")
    return name.encode()


def interface_name(name: str) -> bytes:
    """An interface name that the kernel would take: no path, no space, at most 15 bytes."""
    encoded = _name("interface", name)
    if len(encoded) > INTERFACE_NAME_MAX:
        raise ValueError(f"interface: {name!r} is longer than {INTERFACE_NAME_MAX} bytes")
    if name in (".", "..") or any(c in "/:" or c.isspace() for c in name):
        raise ValueError(f"interface: {name!r} contains a character that interface names cannot have")
    return encoded


class Fabric:
    """Owns its switches and links; they are unusable after close()."""

    def __init__(self, clock: Literal["real", "virtual"] = "virtual", seed: int = 1) -> None:
        if clock not in ("real", "virtual"):
            raise ValueError(f"clock: {clock!r} is neither 'real' nor 'virtual'")
        error = new_error()
        pointer = lib.plait_fabric_create(clock == "real", unsigned("seed", seed, 64), error)
        if pointer == ffi.NULL:
            raise failure(error)
        self.clock = clock
        self.seed = seed
        self.switches: dict[str, Switch] = {}
        self.links: dict[str, Link] = {}
        self._pointer: Any = pointer
        self._thread: threading.Thread | None = None
        self._loop_error: Exception | None = None

    def _alive(self) -> Any:
        if self._pointer is None:
            raise ValueError("the fabric is closed")
        return self._pointer

    # --- building -----------------------------------------------------------------------------------------------

    def add_switch(
        self, name: str, device_id: int = 1, drop_port: int = 511, cpu_port: int = 0, priority_queues: int = 1
    ) -> Switch:
        """A switch without program or ports; cpu_port 0: none."""
        if name in self.switches:
            raise ValueError(f"switch: {name!r} exists in this fabric")
        error = new_error()
        numbers = [
            unsigned("drop_port", drop_port),
            unsigned("cpu_port", cpu_port),
            unsigned("priority_queues", priority_queues),
        ]
        pointer = lib.plait_fabric_add_switch(self._alive(), _name("switch", name), *numbers, error)
        if pointer == ffi.NULL:
            raise failure(error)
        self.switches[name] = Switch(self, pointer, name, device_id, cpu_port, priority_queues)
        return self.switches[name]

    def connect(
        self,
        sw_a: Switch,
        port_a: int,
        sw_b: Switch,
        port_b: int,
        rate_bps: int,
        delay_ns: int,
        loss: float = 0.0,
        queue_packets: int | None = None,
        queue_bytes: int | None = None,
        name: str | None = None,
    ) -> Link:
        """A full-duplex link in memory. Rate 0: unlimited; depths hold for each queue of either port."""
        name = name or f"{sw_a.name}:{port_a}-{sw_b.name}:{port_b}"
        spec = self._spec(name, rate_bps, delay_ns, loss, queue_packets, queue_bytes)
        error = new_error()
        port_a, port_b = unsigned("port_a", port_a), unsigned("port_b", port_b)
        ends = (sw_a._handle(), port_a, sw_b._handle(), port_b)
        pointer = lib.plait_fabric_connect(self._alive(), _name("link", name), *ends, spec, error)
        return self._add_link(pointer, error, name, (sw_a.name, port_a), (sw_b.name, port_b))

    def attach(
        self,
        switch: Switch,
        port: int,
        interface: str,
        rate_bps: int = 0,
        delay_ns: int = 0,
        loss: float = 0.0,
        queue_packets: int | None = None,
        queue_bytes: int | None = None,
        name: str | None = None,
    ) -> Link:
        """Connects a port to an interface of the calling thread's network namespace; needs CAP_NET_RAW."""
        name = name or f"{switch.name}:{port}-{interface}"
        encoded = interface_name(interface)
        spec = self._spec(name, rate_bps, delay_ns, loss, queue_packets, queue_bytes)
        error = new_error()
        port = unsigned("port", port)
        call = lib.plait_fabric_attach
        pointer = call(self._alive(), _name("link", name), switch._handle(), port, encoded, spec, error)
        return self._add_link(pointer, error, name, (switch.name, port), (interface, None))

    def _spec(self, name: str, rate_bps: int, delay_ns: int, loss: float, packets: int | None, size: int | None) -> Any:
        if name in self.links:
            raise ValueError(f"link: {name!r} exists in this fabric")
        return ffi.new(
            "struct plait_port_spec *",
            {
                "rate_bps": unsigned("rate_bps", rate_bps, 63),
                "delay_ns": unsigned("delay_ns", delay_ns, 63),
                "loss": float(loss),
                "queue_packets": -1 if packets is None else unsigned("queue_packets", packets, 63),
                "queue_bytes": -1 if size is None else unsigned("queue_bytes", size, 63),
            },
        )

    def _add_link(self, pointer: Any, error: Any, name: str, a: tuple[str, int], b: tuple[str, int | None]) -> Link:
        if pointer == ffi.NULL:
            raise failure(error)
        self.links[name] = Link(self, pointer, name, a, b)
        return self.links[name]

    # --- running ------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Real time: runs the C loop in a thread of its own."""
        if self.clock != "real":
            raise ValueError("start: the fabric's clock is virtual, use run_until")
        if self._thread is not None:
            raise ValueError("start: the fabric is running")
        self._thread = threading.Thread(target=self._run, name="plait-fabric", args=(self._alive(),), daemon=True)
        self._thread.start()

    def _run(self, pointer: Any) -> None:
        error = new_error()
        if lib.plait_fabric_run_real(pointer, error) < 0:
            self._loop_error = failure(error)

    def stop(self) -> None:
        """Real time: ends the loop and waits for its thread. Does nothing if it is not running."""
        if self._thread is None:
            return
        lib.plait_fabric_stop(self._alive())
        self._thread.join()
        self._thread = None
        if self._loop_error is not None:
            error, self._loop_error = self._loop_error, None
            raise error

    def run_until(self, ns: int) -> int:
        """Virtual time: fires all events up to `ns` and leaves the clock there. Returns how many fired."""
        if self.clock != "virtual":
            raise ValueError("run_until: the fabric's clock is real, use start")
        fired = 0
        done = ffi.new("int *")
        until = unsigned("ns", ns, 64)
        while not done[0]:
            fired += lib.plait_fabric_run_until(self._alive(), until, EVENTS_PER_SLICE, done)
        return fired

    def run(self) -> int:
        """Virtual time: fires events until none is left."""
        return self.run_until(NEVER)

    @property
    def now_ns(self) -> int:
        return int(lib.plait_fabric_now(self._alive()))

    @property
    def next_event_ns(self) -> int | None:
        time = int(lib.plait_fabric_next_event(self._alive()))
        return None if time == NEVER else time

    @property
    def packets_alive(self) -> int:
        """Packets in queues, on links and in receive batches."""
        return int(lib.plait_fabric_packets_alive(self._alive()))

    @property
    def hops(self) -> int:
        """Runs of an ingress pipeline, of all switches."""
        return int(lib.plait_fabric_hops(self._alive()))

    @property
    def events(self) -> int:
        """Events fired."""
        return int(lib.plait_fabric_events(self._alive()))

    def close(self) -> None:
        if self._pointer is None:
            return
        self.stop()
        pointer, self._pointer = self._pointer, None
        lib.plait_fabric_destroy(pointer)

    def __enter__(self) -> Fabric:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_pointer", None) is not None and getattr(self, "_thread", None) is None:
            self.close()
