"""`plait-switch`: one switch, or a whole fabric of them, in one process.

Threads: the engine's loop has one of its own; gRPC, the control socket and all P4Runtime state live in the asyncio
loop of the main thread.
"""

import asyncio
import contextlib
import ctypes
import functools
import gc
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import engine
from fastswitch import flags
from fastswitch.carrier import CarrierWatch
from fastswitch.config import ConfigError
from fastswitch.control import ControlError, ControlServer
from fastswitch.queues import QueueVerbs, set_up
from fastswitch.server import Device, P4RuntimeServer
from fastswitch.server.dataplane import DataplaneServer
from fastswitch.server.errors import P4RuntimeError
from fastswitch.server.gnmi import Interfaces
from fastswitch.server.program import ProgramStore
from fastswitch.server.service import PortInUseError

_log = logging.getLogger("plait-switch")

EXIT_OK, EXIT_FAILED, EXIT_USAGE = 0, 1, 2
_PR_SET_PDEATHSIG = 1
_GC_THRESHOLD = 100_000  # objects: entries are in no cycles, and looking for some costs a tenth of an insert
_EVENTS_A_TURN = 256  # of one switch, between two turns of the event loop
_LEVELS = {"trace": 5, "debug": 10, "info": 20, "warn": 30, "error": 40, "critical": 50, "off": 100}


class StartError(Exception):
    """The fabric cannot start on this machine; the sentence says why."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run until a signal, `stop` on the control socket, or an error. Returns the exit code."""
    try:
        options = flags.parse(list(sys.argv[1:] if argv is None else argv))
    except (flags.UsageError, ConfigError) as error:
        print(f"plait-switch: {error}", file=sys.stderr)
        return EXIT_USAGE
    for note in options.notes:
        print(f"plait-switch: {note}", file=sys.stderr)
    if options.die_with_parent:
        _die_with_parent()
    try:
        _set_up_logging(options)
        gc.set_threshold(_GC_THRESHOLD)
        asyncio.run(_run(options))
    except (StartError, PortInUseError) as error:
        print(f"plait-switch: {error}", file=sys.stderr)
        return EXIT_FAILED
    return EXIT_OK


async def _run(options: flags.Options) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    daemon = Daemon(options, stop)
    try:
        await daemon.start()
        print("ready", flush=True)
        await stop.wait()
    finally:
        await daemon.stop()


class Daemon:
    """A fabric with its servers."""

    def __init__(self, options: flags.Options, stop: asyncio.Event) -> None:
        self._options = options
        self._spec = options.fabric
        self._stop = stop
        self._started = time.monotonic()
        self._fabric = engine.Fabric(clock="real", seed=self._spec.seed)
        self._running = False
        self._switches: dict[str, Any] = {}
        self._links: list[LinkHandle] = []
        self._attached: dict[int, LinkHandle] = {}  # by interface index
        self._carriers: CarrierWatch | None = None
        self._devices: dict[str, Device] = {}
        self._interfaces: dict[str, Interfaces] = {}
        self._server: P4RuntimeServer | None = None
        self._dataplane: DataplaneServer | None = None
        self._control: ControlServer | None = None
        self._addresses: list[str] = []
        self._readers: list[int] = []

    async def start(self) -> None:
        """Build the fabric, listen, run. StartError or PortInUseError if that is not possible."""
        self._build()
        programs = ProgramStore()
        for spec in self._spec.switches:
            switch = self._switches[spec.name]
            port_up = functools.partial(self._port_up, spec.name)
            device = Device(switch, programs, cpu_port=spec.cpu_port, port_up=port_up)
            device.started = functools.partial(self._powered, spec.name, True)
            self._devices[spec.name] = device
            self._interfaces[spec.name] = Interfaces(spec.name, self._port_names(spec.name), port_up)
        for spec in self._spec.switches:
            if spec.program is not None:
                await self._load(self._devices[spec.name], Path(spec.program))
        self._server = P4RuntimeServer(self._devices.values(), self._options.tls, list(self._interfaces.values()))
        ports = await self._server.start([spec.grpc_addr for spec in self._spec.switches])
        for spec, port in zip(self._spec.switches, ports, strict=True):
            host = spec.grpc_addr.rpartition(":")[0]
            self._addresses.append(spec.grpc_addr if host == "unix" else f"{host}:{port}")
        if self._options.dataplane is not None:
            await self._start_dataplane(self._options.dataplane)
        if self._spec.control is not None:
            control = ControlServer(Path(self._spec.control), self._verbs())
            try:
                await control.start()
            except OSError as error:
                raise StartError(f"control socket {self._spec.control}: {error.strerror or error}") from None
            self._control = control
        self._fabric.start()
        self._running = True
        self._watch_notices()
        self._watch_carriers()

    async def stop(self) -> None:
        """Take everything down again; safe at any stage of `start`."""
        loop = asyncio.get_running_loop()
        for descriptor in self._readers:
            loop.remove_reader(descriptor)
        self._readers.clear()
        if self._carriers is not None:
            self._carriers.close()
        if self._control is not None:
            await self._control.stop()
        if self._dataplane is not None:
            await self._dataplane.stop()
        if self._server is not None:
            await self._server.stop()
        if self._running:
            self._running = False
            self._fabric.stop()
        self._fabric.close()

    def _build(self) -> None:
        spec = self._spec
        for s in spec.switches:
            self._switches[s.name] = self._fabric.add_switch(
                s.name, s.device_id, drop_port=s.drop_port, cpu_port=s.cpu_port, priority_queues=s.priority_queues
            )
        for link in spec.links:
            handle = self._fabric.connect(
                self._switches[link.a[0]],
                link.a[1],
                self._switches[link.b[0]],
                link.b[1],
                rate_bps=link.rate_bps,
                delay_ns=link.delay_ns,
                loss=link.loss,
                queue_packets=link.queue_packets,
                queue_bytes=link.queue_bytes,
            )
            self._links.append(LinkHandle(handle))
        for attached in spec.interfaces:
            self._links.append(self._attach(attached))
        for s in spec.switches:
            try:
                set_up(self._switches[s.name], s)
            except ValueError as error:
                raise StartError(str(error)) from None

    def _attach(self, spec: Any) -> "LinkHandle":
        try:
            index = socket.if_nametoindex(spec.interface)
        except OSError:
            raise StartError(f"port {spec.port} of '{spec.switch}': there is no interface {spec.interface}") from None
        try:
            handle = self._fabric.attach(
                self._switches[spec.switch],
                spec.port,
                spec.interface,
                rate_bps=spec.rate_bps,
                delay_ns=spec.delay_ns,
                loss=spec.loss,
                queue_packets=spec.queue_packets,
                queue_bytes=spec.queue_bytes,
            )
        except OSError as error:
            hint = "; raw sockets need root or CAP_NET_RAW" if isinstance(error, PermissionError) else ""
            raise StartError(f"interface {spec.interface}: {error.strerror or error}{hint}") from None
        if self._options.pcap is not None:
            path = self._options.pcap / f"{spec.interface}.pcap"
            try:
                handle.capture(str(path))
            except OSError as error:
                raise StartError(f"--pcap: cannot write {path}: {error.strerror or error}") from None
        self._attached[index] = LinkHandle(handle)
        return self._attached[index]

    async def _load(self, device: Device, path: Path) -> None:
        try:
            json = path.read_bytes()
            await device.load_json(json)
        except OSError as error:
            raise StartError(f"{path}: {error.strerror or error}") from None
        except P4RuntimeError as error:
            raise StartError(f"{path}: {error.message}") from None

    async def _start_dataplane(self, address: str) -> None:
        (spec,) = self._spec.switches
        switch, device = self._switches[spec.name], self._devices[spec.name]
        self._dataplane = DataplaneServer(
            switch,
            reserved={spec.drop_port, spec.cpu_port} if spec.cpu_port else {spec.drop_port},
            take_events=functools.partial(self._take_notices, switch, device),
            port_changed=functools.partial(self._port_changed, spec.name),
        )
        await self._dataplane.start(address)

    def _port_up(self, switch: str, port: int) -> bool:
        if self._dataplane is not None:
            return self._dataplane.port_up(port)
        return all(link.up for link in self._links if (switch, port) in link.ends)

    def _port_names(self, switch: str) -> dict[int, str]:
        """What gNMI calls the ports with a link: the interface's name where there is one."""
        return {
            port: next((other for other in link.interfaces if len(link.ends) == 1), f"{switch}-eth{port}")
            for link in self._links
            for name, port in link.ends
            if name == switch
        }

    def _watch_notices(self) -> None:
        loop = asyncio.get_running_loop()
        for name, device in self._devices.items():
            switch = self._switches[name]
            descriptor = switch.event_fd
            loop.add_reader(descriptor, self._take_notices, switch, device)
            self._readers.append(descriptor)

    def _watch_carriers(self) -> None:
        """An attached interface without carrier is a link that is down: `plait.port_up` and watch ports see it."""
        if not self._attached:
            return
        self._carriers = CarrierWatch(self._carrier_changed)
        asyncio.get_running_loop().add_reader(self._carriers.fileno(), self._carriers.read)
        self._readers.append(self._carriers.fileno())
        self._carriers.start()
        self._carriers.read()

    def _carrier_changed(self, index: int, up: bool) -> None:
        if (link := self._attached.get(index)) is not None:
            self._change_link(link, carrier=up)

    def _change_link(self, link: "LinkHandle", *, carrier: bool | None = None, wanted: bool | None = None) -> None:
        before = link.up
        link.carrier = link.carrier if carrier is None else carrier
        link.wanted = link.wanted if wanted is None else wanted
        self._tell_change(link, before)

    def _tell_change(self, link: "LinkHandle", before: bool) -> None:
        if link.up != before:
            link.handle.set_up(link.up)
            for end in link.ends:
                self._port_changed(*end)

    def _port_changed(self, switch: str, port: int) -> None:
        self._devices[switch].port_changed(port)
        self._interfaces[switch].changed(port)

    def _switch_set(self, switch: str, up: bool) -> None:
        """Takes a switch's power, with its program and entries, or gives it back.

        Its links come up again when it has a program: until then nothing would come of a packet.
        """
        if switch not in self._devices:
            raise ControlError(f"no switch is named {switch!r}; known are {', '.join(self._devices)}")
        if not isinstance(up, bool):
            raise ControlError("up must be true or false")
        if up:
            self._devices[switch].switch_on()
        else:
            self._devices[switch].switch_off()
            self._powered(switch, False)
        self._interfaces[switch].switch_off(not up)

    def _powered(self, switch: str, powered: bool) -> None:
        for link in self._links:
            if any(name == switch for name, _ in link.ends):
                before = link.up
                (link.without_power.discard if powered else link.without_power.add)(switch)
                self._tell_change(link, before)

    def _take_notices(self, switch: Any, device: Device) -> bool:
        """Hand over events that wait, up to a turn's. Returns whether there may be more."""
        events = switch.poll_events(at_most=_EVENTS_A_TURN)
        for event in events:
            if isinstance(event, engine.PacketIn):
                device.packet_in(event.frame)
            elif isinstance(event, engine.Digest):
                device.digest(event.list_id, event.fields)
            elif isinstance(event, engine.Sent):
                if self._dataplane is not None:
                    self._dataplane.sent(event.port, event.frame, event.tag)
            elif isinstance(event, engine.Drained):
                if self._dataplane is not None:
                    self._dataplane.drained(event.tag)
            else:
                _log.info("%s: %s", switch.name, event.text)
        return len(events) == _EVENTS_A_TURN

    # Verbs of the control socket

    def _verbs(self) -> dict[str, Any]:
        return {
            "status": self._status,
            "links": self._link_statistics,
            "ports": self._port_statistics,
            "flows": self._flows,
            "record_flows": self._record_flows,
            "capture_start": self._capture_start,
            "capture_stop": self._capture_stop,
            "link_set": self._link_set,
            "switch_set": self._switch_set,
            **QueueVerbs(self._switches).verbs(),
            "stop": self._stop.set,
        }

    def _status(self) -> dict[str, Any]:
        switches = []
        for spec, address in zip(self._spec.switches, self._addresses, strict=True):
            state = self._devices[spec.name].state
            switches.append(
                {
                    "name": spec.name,
                    "device_id": spec.device_id,
                    "grpc_addr": address,
                    "program": state.program.code.name if state is not None else spec.program,
                    "has_config": state is not None,
                    "up": not self._interfaces[spec.name].off,
                }
            )
        return {"pid": os.getpid(), "uptime_s": time.monotonic() - self._started, "switches": switches}

    def _link_statistics(self) -> list[dict[str, Any]]:
        return [link.statistics() for link in self._links]

    def _port_statistics(self) -> list[dict[str, Any]]:
        ends = sorted(end for link in self._links for end in link.ends)
        return [{"switch": name, "port": port, **self._switches[name].port_stats(port)} for name, port in ends]

    def _flows(self, link: str | None = None) -> list[dict[str, Any]]:
        chosen = [self._link(link)] if link is not None else self._links
        return [flow for one in chosen for flow in one.flows()]

    def _record_flows(self, link: str | None = None) -> None:
        for one in [self._link(link)] if link is not None else self._links:
            one.handle.record_flows()

    def _capture_start(self, link: str, path: str) -> None:
        if not isinstance(path, str) or not path.startswith("/"):
            raise ControlError("path must be absolute")
        self._link(link).handle.capture(path)

    def _capture_stop(self, link: str) -> None:
        self._link(link).handle.capture_stop()

    def _link_set(
        self,
        link: str,
        up: bool | None = None,
        rate_bps: int | None = None,
        delay_ns: int | None = None,
        loss: float | None = None,
    ) -> None:
        chosen = self._link(link)
        given = {"rate_bps": rate_bps, "delay_ns": delay_ns, "loss": loss}
        changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        for name, value in changes.items():
            if isinstance(value, bool) or not isinstance(value, int | (float if name == "loss" else int)):
                raise ControlError(f"{name} must be a number")
            if value < 0 or (name == "loss" and value > 1):
                raise ControlError(f"{name} {value} is out of range")
        if up is not None and not isinstance(up, bool):
            raise ControlError("up must be true or false")
        if changes:
            chosen.handle.set(**changes)
        if up is not None:
            self._change_link(chosen, wanted=up)

    def _link(self, name: str) -> "LinkHandle":
        """A link by its name, or by an end of it as SWITCH:PORT or as an interface's name."""
        for link in self._links:
            if name in link.names:
                return link
        known = ", ".join(link.handle.name for link in self._links[:20])
        raise ControlError(f"no link is named {name!r}; known are {known}")


class LinkHandle:
    """An engine link, whether it is up, and what it is called: its name, its ends as SWITCH:PORT, its interface.

    It is up if it is wanted so, has a carrier at an interface, and the switches at its ends run.
    """

    def __init__(self, handle: engine.Link) -> None:
        self.handle = handle
        self.wanted = True
        self.carrier = True
        self.without_power: set[str] = set()  # switches at its ends
        self.interfaces = [name for name, port in (handle.a, handle.b) if port is None]
        self.ends: list[tuple[str, int]] = []
        self.names = [handle.name]
        for name, port in (handle.a, handle.b):
            if port is not None:
                self.ends.append((name, port))
            self.names.append(name if port is None else f"{name}:{port}")

    @property
    def up(self) -> bool:
        return self.wanted and self.carrier and not self.without_power

    def statistics(self) -> dict[str, Any]:
        """As the control socket shows it."""
        link = self.handle
        ends = [name if port is None else [name, port] for name, port in (link.a, link.b)]
        return {"name": link.name, "a": ends[0], "b": ends[1], "up": self.up, **link.stats()}

    def flows(self) -> list[dict[str, Any]]:
        """Flows of both directions."""
        found = []
        for direction, flows in self.handle.flows().items():
            for key, (packets, bytes_) in flows.items():
                five_tuple = dict(zip(("src", "dst", "proto", "sport", "dport"), key, strict=True))
                counts = {"packets": packets, "bytes": bytes_}
                found.append({"link": self.handle.name, "direction": direction, **five_tuple, **counts})
        return found


def _die_with_parent() -> None:
    parent = os.getppid()
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:  # it ended before the kernel was told
        os.kill(os.getpid(), signal.SIGTERM)


def _set_up_logging(options: flags.Options) -> None:
    handlers: list[logging.Handler] = []
    if options.log_console:
        handlers.append(logging.StreamHandler(sys.stderr))
    if options.log_file is not None:
        path = options.log_file.with_name(options.log_file.name + ".txt")
        try:
            handlers.append(logging.FileHandler(path))
        except OSError as error:
            raise StartError(f"--log-file: cannot write {path}: {error.strerror or error}") from None
    if not handlers:
        handlers.append(logging.StreamHandler(sys.stderr))
        options.log_level = "error" if options.log_level == "info" else options.log_level
    logging.addLevelName(_LEVELS["trace"], "TRACE")
    form = "%(asctime)s.%(msecs)03d [%(levelname)s] %(name)s: %(message)s"
    logging.basicConfig(level=_LEVELS[options.log_level], handlers=handlers, format=form, datefmt="%H:%M:%S")


__all__ = ["Daemon", "LinkHandle", "StartError", "main"]

if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main())
