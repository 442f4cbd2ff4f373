"""What the daemon runs, as checked values: `fabric.json`, or the command line of a single switch in the same form.

{"seed": 1,
 "switches": [{"name": "s1", "device_id": 1, "grpc_addr": "127.0.0.1:9559", "priority_queues": 4,
               "buffer": {"total_bytes": 12000000, "alpha": "1/2",
                          "pfc": {"priorities": [3], "xoff_bytes": 64000, "headroom_bytes": 30000}},
               "queues": [{"port": 3, "priority": 1, "rate_bps": 50000000}]}],
 "links": [{"a": ["s1", 1], "b": ["s2", 1], "rate_bps": 1000000000, "delay_ns": 1000, "loss": 0.0}],
 "interfaces": [{"switch": "s1", "port": 3, "interface": "s1-eth3"}],
 "control": "/run/user/0/fabric.sock"}
"""

import json
from collections.abc import Iterable
from dataclasses import MISSING, dataclass, fields
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

from engine.buffer import Buffer, Pfc, fraction

T = TypeVar("T")

MAX_PORT = 511
_MAX_RATE = 10**14
_MAX_DELAY_NS = 60 * 10**9
_MAX_QUEUE = 1 << 40


class ConfigError(ValueError):
    """A value that cannot be used: which field, and why."""

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(f"{where}: {reason}")
        self.where = where
        self.reason = reason


@dataclass(frozen=True, slots=True)
class QueueSpec:
    """One queue of a port, or all (priority None), as engine.Switch.set_queue takes them."""

    port: int
    priority: int | None = None
    rate_bps: int | None = None
    rate_pps: int | None = None
    depth_packets: int | None = None
    depth_bytes: int | None = None
    reserved_bytes: int | None = None
    alpha: Fraction | None = None

    def check(self, where: str, switch: "SwitchSpec") -> None:
        """ConfigError if a value is out of range, or does not fit the switch."""
        if self.priority is not None:
            _in_range(where + ".priority", self.priority, 0, switch.priority_queues - 1)
            if self.rate_bps is not None and self.rate_pps is not None:
                raise ConfigError(where, "a queue has a rate in bits or in packets a second, not both")
        for name in ("rate_bps", "rate_pps"):
            if (value := getattr(self, name)) is not None:
                _in_range(f"{where}.{name}", value, 0, _MAX_RATE)
        for name in ("depth_packets", "depth_bytes", "reserved_bytes"):
            if (value := getattr(self, name)) is not None:
                _in_range(f"{where}.{name}", value, 0, _MAX_QUEUE)
        if switch.buffer is None and (self.reserved_bytes is not None or self.alpha is not None):
            raise ConfigError(where, "reserved_bytes and alpha need a shared buffer, the switch's field 'buffer'")


@dataclass(frozen=True, slots=True)
class SwitchSpec:
    """One switch. `program` is a BMv2 JSON to run from the start."""

    name: str
    device_id: int
    grpc_addr: str
    cpu_port: int = 0
    drop_port: int = MAX_PORT
    priority_queues: int = 1
    program: str | None = None
    buffer: Buffer | None = None
    queues: tuple[QueueSpec, ...] = ()

    def check(self, where: str) -> None:
        """ConfigError if a value is out of range."""
        _check_name(where + ".name", self.name)
        _in_range(where + ".device_id", self.device_id, 0, (1 << 64) - 1)
        check_address(where + ".grpc_addr", self.grpc_addr)
        _in_range(where + ".cpu_port", self.cpu_port, 0, MAX_PORT)
        _in_range(where + ".drop_port", self.drop_port, 0, MAX_PORT)
        if self.cpu_port == self.drop_port:
            raise ConfigError(where + ".cpu_port", f"{self.cpu_port} is the drop port too")
        _in_range(where + ".priority_queues", self.priority_queues, 1, 8)
        for priority in self.buffer.pfc.priorities if self.buffer is not None and self.buffer.pfc else ():
            _in_range(where + ".buffer.pfc.priorities", priority, 0, self.priority_queues - 1)
        for i, queue in enumerate(self.queues):
            queue.check(f"{where}.queues[{i}]", self)


@dataclass(frozen=True, slots=True)
class _Wire:
    """What links and interfaces have in common; a rate of 0 is unlimited."""

    rate_bps: int = 0
    delay_ns: int = 0
    loss: float = 0.0
    queue_packets: int | None = None
    queue_bytes: int | None = None

    def check_wire(self, where: str) -> None:
        """ConfigError if a value is out of range."""
        _in_range(where + ".rate_bps", self.rate_bps, 0, _MAX_RATE)
        _in_range(where + ".delay_ns", self.delay_ns, 0, _MAX_DELAY_NS)
        if not 0.0 <= self.loss <= 1.0:
            raise ConfigError(where + ".loss", f"{self.loss} is not a probability within 0..1")
        if self.queue_packets is not None:
            _in_range(where + ".queue_packets", self.queue_packets, 1, _MAX_QUEUE)
        if self.queue_bytes is not None:
            _in_range(where + ".queue_bytes", self.queue_bytes, 1, _MAX_QUEUE)


@dataclass(frozen=True, slots=True)
class LinkSpec(_Wire):
    """A link in memory between two ports."""

    a: tuple[str, int] = ("", 0)
    b: tuple[str, int] = ("", 0)

    def check(self, where: str) -> None:
        """ConfigError if a value is out of range."""
        self.check_wire(where)


@dataclass(frozen=True, slots=True)
class InterfaceSpec(_Wire):
    """A port on a network interface of the machine."""

    switch: str = ""
    port: int = 0
    interface: str = ""

    def check(self, where: str) -> None:
        """ConfigError if a value is out of range."""
        if not 1 <= len(self.interface.encode()) <= 15 or "/" in self.interface or self.interface in (".", ".."):
            raise ConfigError(where + ".interface", f"{self.interface!r} is no name of a network interface")
        self.check_wire(where)


@dataclass(frozen=True, slots=True)
class FabricSpec:
    """Everything one daemon holds."""

    switches: tuple[SwitchSpec, ...]
    links: tuple[LinkSpec, ...] = ()
    interfaces: tuple[InterfaceSpec, ...] = ()
    seed: int = 1
    control: str | None = None

    def check(self) -> None:
        """ConfigError if parts do not fit each other."""
        if not self.switches:
            raise ConfigError("switches", "the fabric has no switch")
        names = {switch.name for switch in self.switches}
        for i, switch in enumerate(self.switches):
            switch.check(f"switches[{i}]")
        _unique("name", [(f"switches[{i}].name", s.name) for i, s in enumerate(self.switches)])
        _unique("device id", [(f"switches[{i}].device_id", s.device_id) for i, s in enumerate(self.switches)])
        fixed = [(i, s.grpc_addr) for i, s in enumerate(self.switches) if not s.grpc_addr.endswith(":0")]
        _unique("gRPC address", [(f"switches[{i}].grpc_addr", address) for i, address in fixed])
        ends: list[tuple[str, tuple[str, int]]] = []
        for i, link in enumerate(self.links):
            link.check(f"links[{i}]")
            ends += [(f"links[{i}].a", link.a), (f"links[{i}].b", link.b)]
        for i, attached in enumerate(self.interfaces):
            attached.check(f"interfaces[{i}]")
            ends.append((f"interfaces[{i}].port", (attached.switch, attached.port)))
        by_name = {switch.name: switch for switch in self.switches}
        for where, (name, port) in ends:
            if name not in names:
                raise ConfigError(where, f"no switch is named {name!r}")
            _in_range(where, port, 0, MAX_PORT)
            if port == by_name[name].drop_port:
                raise ConfigError(where, f"port {port} is the drop port of '{name}'")
            if port and port == by_name[name].cpu_port:
                raise ConfigError(where, f"port {port} is the CPU port of '{name}'")
        ports = {end for _, end in ends} | {(s.name, s.cpu_port) for s in self.switches if s.cpu_port}
        for i, switch in enumerate(self.switches):
            for j, queue in enumerate(switch.queues):
                if (switch.name, queue.port) not in ports:
                    raise ConfigError(f"switches[{i}].queues[{j}].port", f"port {queue.port} is not connected")
        _unique("port", [(where, f"{name}:{port}") for where, (name, port) in ends])
        _unique("interface", [(f"interfaces[{i}].interface", a.interface) for i, a in enumerate(self.interfaces)])
        if self.control is not None and not 1 <= len(self.control.encode()) <= 107:
            raise ConfigError("control", "the path of a Unix socket has 1 to 107 bytes")


def load_fabric(path: Path) -> FabricSpec:
    """The fabric a file describes; ConfigError names the field that is wrong."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(str(path), getattr(error, "strerror", None) or "not UTF-8 text") from None
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(str(path), f"not JSON: {error}") from None
    return parse_fabric(document)


def parse_fabric(document: Any) -> FabricSpec:
    """The fabric of a JSON document, checked."""
    root = _members(document, "fabric", FabricSpec)
    parts: dict[str, Any] = dict(root)
    for name, part in (("switches", SwitchSpec), ("links", LinkSpec), ("interfaces", InterfaceSpec)):
        if name in root:
            items = _list(root[name], name)
            parts[name] = tuple(_build(part, item, f"{name}[{i}]") for i, item in enumerate(items))
    if "switches" not in parts:
        raise ConfigError("switches", "the field is missing")
    if "seed" in parts:
        parts["seed"] = _typed(parts["seed"], int, "seed")
        _in_range("seed", parts["seed"], 0, (1 << 64) - 1)
    if parts.get("control") is not None:
        parts["control"] = _typed(parts["control"], str, "control")
    spec = FabricSpec(**parts)
    spec.check()
    return spec


def parse_buffer(document: Any, where: str = "buffer") -> Buffer:
    """The shared buffer of a JSON object, checked; fractions are whole numbers or strings such as "1/8"."""
    parts = _arguments(Buffer, document, where, ("total_bytes",))
    if parts.get("pfc") is not None:
        place = f"{where}.pfc"
        pfc = _arguments(Pfc, parts["pfc"], place, ("priorities", "headroom_bytes"))
        priorities = _list(pfc["priorities"], f"{place}.priorities")
        pfc["priorities"] = tuple(_typed(p, int, f"{place}.priorities") for p in priorities)
        parts["pfc"] = Pfc(**pfc)
    buffer = Buffer(**parts)
    try:
        buffer.check(where)
    except ValueError as error:
        field, _, reason = str(error).partition(": ")
        raise ConfigError(field, reason) from None
    return buffer


def _arguments(part: type, value: Any, where: str, required: tuple[str, ...]) -> dict[str, Any]:
    """Members of a Buffer or Pfc: whole numbers and fractions checked, the rest as it is."""
    given = dict(_members(value, where, part))
    for name in required:
        if name not in given:
            raise ConfigError(f"{where}.{name}", "the field is missing")
    for name, member in given.items():
        place = f"{where}.{name}"
        if name.endswith("alpha"):
            given[name] = None if member is None and name != "alpha" else _fraction(member, place)
        elif name not in ("pfc", "priorities"):
            given[name] = _typed(member, int | None if name == "xoff_bytes" else int, place)
    return given


def _fraction(value: Any, where: str) -> Fraction:
    if not (_is_int(value) or isinstance(value, str)):
        raise ConfigError(where, f'must be a whole number or a string such as "1/8", not {_kind(value)}')
    try:
        return fraction(where, value)
    except ValueError as error:
        raise ConfigError(where, str(error).partition(": ")[2]) from None


def check_address(where: str, address: str) -> None:
    """ConfigError unless `address` is HOST:PORT, [IPV6]:PORT or unix:PATH."""
    if address.startswith("unix:") and len(address) > 5:
        return
    host, separator, port = address.rpartition(":")
    is_port = port.isascii() and port.isdigit() and len(port) <= 5 and int(port) <= 65535
    if not separator or not host or not is_port or not address.isprintable():
        raise ConfigError(where, f"{address!r} is not HOST:PORT")


def _build(part: type[T], value: Any, where: str) -> T:
    """An instance of a dataclass from a JSON object, its members checked against the annotations."""
    given = _members(value, where, part)
    arguments: dict[str, Any] = {}
    for member in fields(part):  # type: ignore[arg-type]
        place = f"{where}.{member.name}"
        required = member.name in _REQUIRED[part.__name__]
        if member.name not in given:
            if required or (member.default is MISSING and member.default_factory is MISSING):
                raise ConfigError(place, "the field is missing")
            continue
        arguments[member.name] = _typed(given[member.name], member.type, place)
    return part(**arguments)


_REQUIRED = {
    "SwitchSpec": {"name", "device_id", "grpc_addr"},
    "QueueSpec": {"port"},
    "LinkSpec": {"a", "b"},
    "InterfaceSpec": {"switch", "port", "interface"},
}


def _members(value: Any, where: str, part: type) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ConfigError(where, f"must be an object, not {_kind(value)}")
    known = {member.name for member in fields(part)}
    for name in value:
        if name not in known:
            raise ConfigError(f"{where}.{name}", f"the field is unknown; known are {', '.join(sorted(known))}")
    return value


def _list(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise ConfigError(where, f"must be a list, not {_kind(value)}")
    return value


def _typed(value: Any, wanted: Any, where: str) -> Any:
    if wanted == Buffer | None:
        return None if value is None else parse_buffer(value, where)
    if wanted == Fraction | None:
        return None if value is None else _fraction(value, where)
    if wanted == tuple[QueueSpec, ...]:
        return tuple(_build(QueueSpec, item, f"{where}[{i}]") for i, item in enumerate(_list(value, where)))
    if wanted in (int | None, str | None):
        if value is None:
            return None
        wanted = int if wanted == int | None else str
    if wanted == tuple[str, int]:
        if not (isinstance(value, list) and len(value) == 2 and isinstance(value[0], str) and _is_int(value[1])):
            raise ConfigError(where, 'must be ["switch", port]')
        return (value[0], value[1])
    if wanted is float and _is_int(value):
        try:
            return float(value)
        except OverflowError:
            raise ConfigError(where, "the number is too large") from None
    right = _is_int(value) if wanted is int else isinstance(value, wanted)
    if not right:
        name = {int: "a whole number", str: "a string", float: "a number"}[wanted]
        raise ConfigError(where, f"must be {name}, not {_kind(value)}")
    if wanted is str and not value.isprintable():
        raise ConfigError(where, f"{value[:80]!r} has characters that cannot be printed")
    return value


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), f"{value}")


def _check_name(where: str, name: str) -> None:
    if not 1 <= len(name) <= 64 or not name.isprintable() or any(c in name for c in " :/"):
        raise ConfigError(where, f"{name[:80]!r} is no name of a switch: 1 to 64 characters without space, ':' and '/'")


def _in_range(where: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise ConfigError(where, f"{value} is not within {low}..{high}")


def _unique(what: str, values: Iterable[tuple[str, Any]]) -> None:
    seen: dict[Any, str] = {}
    for where, value in values:
        if value in seen:
            raise ConfigError(where, f"{what} {value} is used by {seen[value]} already")
        seen[value] = where


__all__ = [
    "ConfigError",
    "FabricSpec",
    "InterfaceSpec",
    "LinkSpec",
    "QueueSpec",
    "SwitchSpec",
    "check_address",
    "load_fabric",
    "parse_buffer",
]
