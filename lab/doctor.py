"""What this machine offers, and what follows from what is missing."""

import os
import platform
import shutil
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from lab.errors import MissingFeatureError


@dataclass(frozen=True, slots=True)
class Finding:
    name: str
    ok: bool
    detail: str
    required: bool  # without it no laboratory starts
    consequence: str  # what its absence means


def _root() -> str:
    if os.geteuid() != 0:
        raise OSError(f"running as user id {os.geteuid()}")
    return "running as root"


def _namespaces() -> str:
    return f"/proc/self/ns/net is {os.readlink('/proc/self/ns/net')}"


def _packet_sockets() -> str:
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW):
        return "AF_PACKET opens"


def _veth_xdp() -> str:
    from pyroute2 import IPRoute  # slow to import, and needed here only

    name = f"pd{os.getpid() % 10**6}"
    with IPRoute() as route:
        try:
            route.link("add", ifname=f"{name}a", kind="veth", peer={"ifname": f"{name}b"})
        except Exception as error:  # pyroute2 raises its own errors of several kinds
            raise OSError(f"cannot make a veth pair: {error}") from error
        index = route.link_lookup(ifname=f"{name}a")[0]
        route.link("del", index=index)
    return "a veth pair could be made"


def _bcc_headers() -> str:
    build = Path("/lib/modules", platform.release(), "build")
    if not build.exists():
        raise OSError(f"{build} does not exist; `make setup` links headers there")
    return f"{build} -> {build.resolve()}"


def _bcc() -> str:
    try:
        import bcc
    except ImportError as error:
        raise OSError(f"Python module bcc: {error}") from error
    return f"bcc {getattr(bcc, '__version__', 'present')}"


def _mininet() -> str:
    try:
        from mininet.net import VERSION
    except ImportError as error:
        raise OSError(f"Python module mininet: {error}") from error
    return f"Mininet {VERSION}"


def _btf() -> str:
    path = Path("/sys/kernel/btf/vmlinux")
    if not path.exists():
        raise OSError(f"{path} does not exist")
    return str(path)


def _on_path(program: str) -> Callable[[], str]:
    def probe() -> str:
        if (found := shutil.which(program)) is None:
            raise OSError("not on PATH")
        return found

    return probe


_PROBES: tuple[tuple[str, Callable[[], str], bool, str], ...] = (
    ("root", _root, True, "namespaces and XDP need it: no laboratory starts"),
    ("network namespaces", _namespaces, True, "hosts cannot be separated"),
    ("packet sockets", _packet_sockets, True, "switches cannot reach host links"),
    ("veth", _veth_xdp, True, "hosts cannot be connected"),
    ("bcc", _bcc, True, "the XDP NIC cannot be loaded"),
    ("kernel headers for bcc", _bcc_headers, True, "the XDP NIC cannot be compiled"),
    ("mininet", _mininet, True, "hosts and the command line of the network are missing"),
    ("gcc", _on_path("gcc"), True, "P4 programs cannot be compiled for the switch"),
    ("kernel BTF", _btf, False, "nothing today: the NIC needs no kernel types"),
    ("tcpdump", _on_path("tcpdump"), False, "captures of host links by hand are missing; `plait inspect` still works"),
    ("p4c-bm2-ss", _on_path("p4c-bm2-ss"), False, "`--target bmv2` is not available"),
    (
        "simple_switch_grpc",
        _on_path("simple_switch_grpc"),
        False,
        "`--target bmv2` is not available",
    ),
)


def findings() -> Iterator[Finding]:
    for name, probe, required, consequence in _PROBES:
        try:
            yield Finding(name, True, probe(), required, consequence)
        except OSError as error:
            yield Finding(name, False, str(error), required, consequence)


def require_laboratory() -> None:
    """MissingFeatureError, in one sentence, for the first thing without which no laboratory starts."""
    for finding in findings():
        if finding.required and not finding.ok:
            raise MissingFeatureError(f"no {finding.name}: {finding.detail} ({finding.consequence}).")
