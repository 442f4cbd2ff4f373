"""The daemon's configuration, `nic.json`: typed, checked, with errors that name the place."""

from __future__ import annotations

import difflib
import ipaddress
import json
import re
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, fields
from pathlib import Path
from typing import Any

_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_INTERFACE = re.compile(r"[^/\s]{1,15}")

PATH_MTUS = (256, 512, 1024, 2048, 4096)  # IBTA vol. 1, section 9.7.1
HEADER_BYTES = 20 + 8 + 12 + 16 + 4  # what an interface's MTU must hold beside a path MTU: IPv4, UDP, BTH, RETH, ICRC


class ConfigError(Exception):
    """The configuration cannot be used; the text names the key and what it should be."""


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _expect(condition: bool, where: str, what: str) -> None:
    if not condition:
        raise ConfigError(f"{where}: {what}")


def _take(kind: type, raw: object, where: str) -> dict[str, Any]:
    """The keyword arguments for a dataclass from a JSON object, with no key missing or left over."""
    _expect(isinstance(raw, Mapping), where, "expected an object")
    assert isinstance(raw, Mapping)
    known = {field.name: field for field in fields(kind)}
    for key in raw:
        if key not in known:
            close = difflib.get_close_matches(str(key), known, 1)
            raise ConfigError(f"{where}: unknown key {key!r}" + (f"; did you mean {close[0]!r}?" if close else ""))
    for name, field in known.items():
        _expect(name in raw or _has_default(field), where, f"missing key {name!r}")
    return dict(raw)


def _has_default(field: Field[Any]) -> bool:
    return field.default is not MISSING or field.default_factory is not MISSING


@dataclass(frozen=True, slots=True)
class HostConfig:
    """One host: the namespace of process `pid` (or the namespace `netns` by name or path), and its interface there."""

    name: str
    interface: str
    ipv4: str
    mac: str
    pid: int | None = None
    netns: str | None = None
    gateway_mac: str | None = None  # next hop's; None: a queue pair must name its peer's
    rate_bps: int = 0  # 0: as fast as it goes

    def check(self, where: str) -> None:
        _expect(isinstance(self.name, str) and bool(_NAME.fullmatch(self.name)), where, "'name' must be a simple name")
        _expect(
            isinstance(self.interface, str) and bool(_INTERFACE.fullmatch(self.interface)),
            where,
            "'interface' must be an interface's name",
        )
        _expect(is_ipv4(self.ipv4), where, f"'ipv4' is not an address: {self.ipv4!r}")
        _expect(is_mac(self.mac), where, f"'mac' is not an address: {self.mac!r}")
        _expect(self.gateway_mac is None or is_mac(self.gateway_mac), where, "'gateway_mac' is not an address")
        _expect((self.pid is None) != (self.netns is None), where, "give either 'pid' or 'netns'")
        _expect(self.pid is None or (_is_int(self.pid) and self.pid > 0), where, "'pid' must be a process id")
        _expect(self.netns is None or isinstance(self.netns, str), where, "'netns' must be a name or a path")
        _expect(
            _is_int(self.rate_bps) and 0 <= self.rate_bps <= 10**13, where, "'rate_bps' must be 0 or a rate in bit/s"
        )


@dataclass(frozen=True, slots=True)
class NicConfig:
    """The whole file.  Times and the window are defaults for queue pairs that do not set their own."""

    hosts: tuple[HostConfig, ...]
    run_dir: str
    memory_bytes: int = 64 << 20
    mtu: int = 1024  # path MTU: payload bytes a packet
    transport: str = "gbn"
    queue_pairs: int = 4096
    regions: int = 4096
    window_packets: int = 128
    ack_interval: int = 8  # ask for an acknowledgement at least each so many packets
    rtt_us: int = 1000
    min_timeout_us: int = 20_000  # below this, a busy machine's scheduling looks like loss
    retry_count: int = 7
    rnr_retry_count: int = 7
    exit_with_parent: bool = False

    def check(self, where: str) -> None:
        _expect(bool(self.hosts), where, "'hosts' is empty")
        _expect(isinstance(self.run_dir, str) and bool(self.run_dir), where, "'run_dir' must be a folder's path")
        _expect(self.mtu in PATH_MTUS, where, f"'mtu' must be one of {', '.join(map(str, PATH_MTUS))}")
        _expect(isinstance(self.transport, str), where, "'transport' must be a name")
        for key, low, high in (
            ("memory_bytes", 4096, 1 << 40),
            ("queue_pairs", 1, 1 << 20),
            ("regions", 1, 1 << 20),
            ("window_packets", 1, (1 << 23) - 1),
            ("ack_interval", 1, 1 << 20),
            ("rtt_us", 1, 60_000_000),
            ("min_timeout_us", 1, 60_000_000),
            ("retry_count", 0, 7),
            ("rnr_retry_count", 0, 7),
        ):
            value = getattr(self, key)
            _expect(_is_int(value) and low <= value <= high, where, f"{key!r} must be an integer in {low}..{high}")
        _expect(isinstance(self.exit_with_parent, bool), where, "'exit_with_parent' must be true or false")
        for key in ("name", "mac", "ipv4"):
            values = [getattr(host, key) for host in self.hosts]
            double = next((value for value in values if values.count(value) > 1), None)
            _expect(double is None, where, f"two hosts have the {key} {double!r}")

    def timeout_ns(self, rate_bps: int) -> int:
        """The first retransmission timeout: some round trips and the time that two windows take on the wire."""
        window_ns = self.window_packets * (self.mtu + HEADER_BYTES) * 8 * 10**9 // rate_bps if rate_bps else 0
        return min(max(self.min_timeout_us * 1000, 4 * self.rtt_us * 1000 + 2 * window_ns), 60 * 10**9)


def is_mac(text: object) -> bool:
    return isinstance(text, str) and bool(_MAC.fullmatch(text.lower()))


def is_ipv4(text: object) -> bool:
    try:
        return isinstance(text, str) and bool(ipaddress.IPv4Address(text))
    except ValueError:
        return False


def _lower_macs(values: dict[str, Any]) -> dict[str, Any]:
    return {k: v.lower() if k in ("mac", "gateway_mac") and isinstance(v, str) else v for k, v in values.items()}


def parse(raw: object, where: str = "nic.json") -> NicConfig:
    values = _take(NicConfig, raw, where)
    _expect(isinstance(values["hosts"], list), where, "'hosts' must be a list")
    hosts = []
    for index, item in enumerate(values["hosts"]):
        place = f"{where}: hosts[{index}]"
        hosts.append(HostConfig(**_lower_macs(_take(HostConfig, item, place))))
        hosts[-1].check(place)
    config = NicConfig(**{**values, "hosts": tuple(hosts)})
    config.check(where)
    return config


def load(path: Path) -> NicConfig:
    try:
        raw = json.loads(path.read_text())
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise ConfigError(f"{path}: not JSON: {error}") from error
    return parse(raw, str(path))
