"""Network namespaces: entering one for a moment, and finding the two ends of a veth pair."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyroute2 import IPRoute

_libc = ctypes.CDLL(None, use_errno=True)
_CLONE_NEWNET = 0x40000000


def _setns(fd: int) -> None:
    if _libc.setns(fd, _CLONE_NEWNET):
        code = ctypes.get_errno()
        raise OSError(code, f"cannot enter the network namespace: {os.strerror(code)}")


def open_namespace(of: int | str | Path | None) -> int:
    """A file descriptor of a namespace: of a process id, a name under /run/netns, a path, or (None) our own."""
    if of is None:
        path = "/proc/thread-self/ns/net"
    elif isinstance(of, int):
        path = f"/proc/{of}/ns/net"
    else:
        path = str(of) if "/" in str(of) else f"/run/netns/{of}"
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC)


@contextmanager
def inside(namespace: int) -> Iterator[None]:
    """The calling thread lives in `namespace` (a file descriptor) for the length of the block."""
    home = open_namespace(None)
    try:
        _setns(namespace)
        try:
            yield
        finally:
            _setns(home)
    finally:
        os.close(home)


@dataclass(frozen=True, slots=True)
class Interface:
    name: str
    index: int
    peer_index: int | None  # in the peer's namespace
    mtu: int
    mac: str
    kind: str | None
    has_xdp: bool


def _describe(link: object) -> Interface:
    get, nested = link.get_attr, link.get_nested  # type: ignore[attr-defined]
    xdp = get("IFLA_XDP")
    return Interface(
        name=get("IFLA_IFNAME"),
        index=link["index"],  # type: ignore[index]
        peer_index=get("IFLA_LINK"),
        mtu=get("IFLA_MTU"),
        mac=get("IFLA_ADDRESS") or "",
        kind=nested("IFLA_LINKINFO", "IFLA_INFO_KIND"),
        has_xdp=bool(xdp and xdp.get_attr("IFLA_XDP_ATTACHED")),
    )


def interfaces(namespace: int) -> list[Interface]:
    with inside(namespace), IPRoute() as route:
        return [_describe(link) for link in route.get_links()]


def interface(namespace: int, name: str) -> Interface:
    found = interfaces(namespace)
    for candidate in found:
        if candidate.name == name:
            return candidate
    raise LookupError(f"no interface {name!r} in that namespace; it has {', '.join(sorted(i.name for i in found))}")


def are_veth_ends(one: Interface, other: Interface) -> bool:
    """Whether two interfaces, each seen from its own namespace, name each other as peer."""
    return other.kind == "veth" and (other.index, other.peer_index) == (one.peer_index, one.index)
