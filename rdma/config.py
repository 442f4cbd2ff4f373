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
# What an interface's MTU must hold beside a path MTU: IPv4, UDP, BTH, xdata, RETH, ImmDt, ICRC.
HEADER_BYTES = 20 + 8 + 12 + 16 + 16 + 4 + 4
FRAME_BYTES = 14 + HEADER_BYTES
SLOTS_MAX = 256  # NIC_BITMAP_SLOTS of ebpf/core/state.h
SLOTS_MIN = 64  # one word of a bitmap; MP-RDMA's L (section 5.1)
WINDOW_MIN = 16
WINDOW_UNPACED = 128  # packets, where no rate is known to derive a window from
WINDOW_MAX = (1 << 16) - 1
CONGESTION_CONTROLS = ("window", "dcqcn", "none")


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
    """The whole file.  What a queue pair may choose stands here as its default; 0: derived from rate and round trip.

    congestion: "window" keeps at most window_packets in flight, "dcqcn" sets a rate besides, "none" takes the largest
    window there is.  MP-RDMA and Eunomia bring what they have of their own in any case.
    """

    hosts: tuple[HostConfig, ...]
    run_dir: str
    memory_bytes: int = 64 << 20
    mtu: int = 1024  # path MTU: payload bytes a packet
    transport: str = "gbn"
    transports: tuple[str, ...] = ()  # others that queue pairs may ask for; each takes a while to load
    check_icrc: bool = False
    congestion: str = "window"
    queue_pairs: int = 4096
    regions: int = 4096
    receive_queues: int = 4096
    receives: int = 1 << 17  # of all queues together
    window_packets: int = 0
    slots: int = 0  # packets that a receiver tracks out of order, a power of two: IRN's BDP cap, MP-RDMA's L
    delta: int = 0  # MP-RDMA, section 3.3: by how many packets paths may differ
    initial_window: int = 0  # MP-RDMA, section 3.2: packets
    probe_per_mille: int = 10  # MP-RDMA, section 3.5: p = 1 %
    alpha_per_mille: int = 1000  # MP-RDMA, section 5.4: alpha = 1
    priority: int = 0  # PFC
    min_rnr_timer: int = 12  # IBTA vol. 1, table 45: 0.64 ms
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
        for name in self.transports:
            _expect(isinstance(name, str), where, "'transports' must be names")
        for key in ("exit_with_parent", "check_icrc"):
            _expect(isinstance(getattr(self, key), bool), where, f"{key!r} must be true or false")
        _expect(all(isinstance(name, str) for name in self.transports), where, "'transports' must be a list of names")
        _expect(isinstance(self.check_icrc, bool), where, "'check_icrc' must be true or false")
        for key, low, high in (
            ("memory_bytes", 4096, 1 << 40),
            ("queue_pairs", 1, 1 << 20),
            ("regions", 1, 1 << 20),
            ("receive_queues", 1, 1 << 20),
            ("receives", 1, 1 << 22),
            ("window_packets", 0, WINDOW_MAX),
            ("slots", 0, SLOTS_MAX),
            ("delta", 0, SLOTS_MAX),
            ("initial_window", 0, SLOTS_MAX),
            ("probe_per_mille", 0, 1000),
            ("alpha_per_mille", 0, 60_000),
            ("priority", 0, 7),
            ("min_rnr_timer", 0, 31),
            ("ack_interval", 1, 1 << 20),
            ("rtt_us", 1, 60_000_000),
            ("min_timeout_us", 1, 60_000_000),
            ("retry_count", 0, 7),
            ("rnr_retry_count", 0, 7),
        ):
            value = getattr(self, key)
            _expect(_is_int(value) and low <= value <= high, where, f"{key!r} must be an integer in {low}..{high}")
        _expect(not self.slots & (self.slots - 1), where, "'slots' must be a power of two")
        controls = ", ".join(CONGESTION_CONTROLS)
        _expect(self.congestion in CONGESTION_CONTROLS, where, f"'congestion' must be one of {controls}")
        for key in ("name", "mac", "ipv4"):
            values = [getattr(host, key) for host in self.hosts]
            double = next((value for value in values if values.count(value) > 1), None)
            _expect(double is None, where, f"two hosts have the {key} {double!r}")

    @property
    def loaded_transports(self) -> tuple[str, ...]:
        """The default first."""
        return tuple(dict.fromkeys((self.transport, *self.transports)))

    def bdp_packets(self, rate_bps: int) -> int:
        """Full packets that a path of that rate holds for a round trip, rounded up."""
        return -(-rate_bps * self.rtt_us // (8 * 10**6 * (self.mtu + FRAME_BYTES)))

    def window(self, rate_bps: int) -> int:
        """Packets in flight at most: two bandwidth-delay products, so that jitter does not stall the sender."""
        if self.window_packets or not rate_bps:
            return self.window_packets or WINDOW_UNPACED
        return min(max(WINDOW_MIN, 2 * self.bdp_packets(rate_bps)), SLOTS_MAX)

    def slots_for(self, window: int) -> int:
        """A window's packets fit, since a receiver drops what it cannot track."""
        return self.slots or min(max(SLOTS_MIN, 1 << (window - 1).bit_length()), SLOTS_MAX)

    def delta_for(self, slots: int) -> int:
        """Half of the slots, as the paper's 32 of 64 (MP-RDMA, section 5.1)."""
        return self.delta or slots // 2

    def initial_window_for(self, rate_bps: int, window: int) -> int:
        """One bandwidth-delay product (MP-RDMA, section 3.2)."""
        return self.initial_window or max(1, min(self.bdp_packets(rate_bps) or window, window))

    def timeout_ns(self, rate_bps: int) -> int:
        """The first retransmission timeout: some round trips and the time that two windows take on the wire."""
        window_bytes = self.window(rate_bps) * (self.mtu + FRAME_BYTES)
        window_ns = window_bytes * 8 * 10**9 // rate_bps if rate_bps else 0
        return min(max(self.min_timeout_us * 1000, 4 * self.rtt_us * 1000 + 2 * window_ns), 60 * 10**9)

    def timeout_low_ns(self, timeout_ns: int) -> int:
        """IRN's RTO_low, for the last packets of a message: a third of RTO_high, as 100 of its 320 microseconds."""
        return max(1, timeout_ns * 100 // 320)


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
    transports = values.get("transports", [])
    _expect(isinstance(transports, list), where, "'transports' must be a list of names")
    config = NicConfig(**{**values, "hosts": tuple(hosts), "transports": tuple(transports)})
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
