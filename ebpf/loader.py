"""Compiles, loads and attaches the XDP RNIC: typed Python around BCC.

    nic = Nic(NicSizes(memory_bytes=64 << 20), transports=("gbn", "irn"))
    slot = nic.add_host(namespace_fd, "h1-eth0", mac="02:00:00:00:00:01", rate_bps=10**9)
    nic.cover_peers([own_namespace_fd])

One `Nic` serves all hosts of a lab on this machine.  Closing it, or the death of its process, detaches everything.
"""

from __future__ import annotations

import ctypes
import os
import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ebpf import bpf_syscall, netns

ROOT = Path(__file__).resolve().parent.parent
_PAGE = os.sysconf("SC_PAGESIZE")
NOMINAL_RATE = 10**10
_READS_WORDS_ANYWHERE = ("x86_64", "aarch64")  # little-endian ones, in eBPF: see wire.h


class NicError(Exception):
    """The RNIC cannot be compiled, loaded or attached; the text says what to do about it."""


@dataclass(frozen=True, slots=True)
class NicSizes:
    """How much of everything one loaded program has; all but memory are rounded up to powers of two."""

    memory_bytes: int = 64 << 20
    hosts: int = 256
    queue_pairs: int = 4096
    regions: int = 4096
    receive_queues: int = 4096
    receives: int = 1 << 16
    doorbell_pages: int = 64
    # The arena is an array of chunks.  The verifier would allow 2^28 bytes, but BCC's compiler writes a whole chunk of
    # zeros into its object, several times over.
    chunk_shift_max: int = 20

    def __post_init__(self) -> None:
        if self.memory_bytes <= 0 or min(self.hosts, self.queue_pairs, self.regions, self.doorbell_pages) < 1:
            raise NicError("every size of the RNIC must be positive")
        if self.queue_pairs > 1 << 20 or self.regions > 1 << 20:
            raise NicError("more than 2^20 queue pairs or regions leave no random part in their numbers")

    @property
    def chunk_shift(self) -> int:
        return min(self.chunk_shift_max, max(16, (self.memory_bytes - 1).bit_length()))

    @property
    def chunks(self) -> int:
        return -(-self.memory_bytes >> self.chunk_shift)

    def defines(self) -> dict[str, int]:
        return {
            "NIC_MAX_HOSTS": _power_of_two(self.hosts + 1),  # slot 0 is nobody's
            "NIC_MAX_QPS": _power_of_two(self.queue_pairs),
            "NIC_MAX_REGIONS": _power_of_two(self.regions),
            "NIC_MAX_RQS": _power_of_two(self.receive_queues),
            "NIC_MAX_RECVS": _power_of_two(self.receives),
            "NIC_CHUNK_SHIFT": self.chunk_shift,
            "NIC_CHUNKS": self.chunks,
            "NIC_DOORBELL_PAGES": _power_of_two(self.doorbell_pages),
        }


def _power_of_two(at_least: int) -> int:
    return 1 << max(0, (at_least - 1).bit_length())


def transport_names() -> tuple[str, ...]:
    """The transports that the core has, by number."""
    text = (ROOT / "ebpf/core/transport.h").read_text()
    found = re.search(r"^#define NIC_TRANSPORTS\(X\)((?:.*\\\n)*.*)$", text, re.MULTILINE)
    assert found
    return tuple(re.findall(r"X\((\w+)\)", found[1]))


def mac_number(mac: str) -> int:
    return int(mac.replace(":", ""), 16)


def _import_bcc() -> Any:
    try:
        from bcc import BPF
    except ImportError as error:
        raise NicError(
            "BCC's Python is missing: install python3-bpfcc, and use a Python that sees the system's packages"
        ) from error
    return BPF


def _check_headers() -> None:
    modules = Path("/lib/modules") / platform.release()
    if Path("/sys/kernel/kheaders.tar.xz").exists():
        return
    # Debian splits the headers: `build` leads to the architecture's, `source` to the common ones.
    if not any((modules / name / "include/linux/kconfig.h").is_file() for name in ("source", "build")):
        raise NicError(
            f"BCC finds no kernel headers: {modules}/build and {modules}/source must lead to some; install "
            "linux-headers for this kernel, or link those of another one there"
        )


class Nic:
    """The loaded programs, their maps, and the interfaces they are attached to.

    `transports`: those that queue pairs may have; each costs time to compile and to load (about half a second).  The
    first is the one whose program hosts get: packets of the others take a tail call more.  `check_icrc`: packets with a
    wrong ICRC are dropped; it costs more than everything else that is done with a packet.
    """

    def __init__(
        self,
        sizes: NicSizes | None = None,
        transports: Sequence[str] = ("gbn",),
        check_icrc: bool = False,
        extra_flags: Sequence[str] = (),
    ) -> None:
        self.sizes = sizes or NicSizes()
        self.transports = tuple(dict.fromkeys(transports))
        known = transport_names()
        for name in self.transports:
            if name not in known:
                raise NicError(f"no transport {name!r}; there are {', '.join(known)}")
        if not self.transports:
            raise NicError(f"no transport is wanted; there are {', '.join(known)}")
        self.defines = self.sizes.defines()
        self._links: list[int] = []
        self._hosts: dict[int, str] = {}
        self._attached: dict[int, netns.Interface] = {}
        bpf_class = _import_bcc()
        self._xdp = bpf_class.XDP
        _check_headers()
        flags = [f"-I{ROOT / 'ebpf'}", f"-I{ROOT / 'ebpf/core'}", f"-I{ROOT / 'wire'}"]
        flags += [f"-D{name}={value}" for name, value in self.defines.items()]
        flags += [f"-DNIC_PROGRAMS(X)={' '.join(f'X({name})' for name in self.transports)}"]
        flags += ["-DNIC_CHECK_ICRC"] if check_icrc else []
        flags += ["-DWIRE_WORDS"] if platform.machine() in _READS_WORDS_ANYWHERE else []
        try:
            self._bpf = bpf_class(src_file=bytes(ROOT / "ebpf/rnic_xdp.c"), cflags=[*flags, *extra_flags])
            self._programs = {name: self.load(f"rnic_{name}") for name in self.transports}
            if len(self.transports) > 1:
                for name, program_fd in self._programs.items():
                    self._bpf[b"programs"][ctypes.c_int(known.index(name))] = ctypes.c_int(program_fd)
            self._pass = self._bpf.load_func(b"pass", bpf_class.XDP)
        except Exception as error:  # BCC raises nothing more precise
            hint = "" if os.geteuid() == 0 else " (it needs root)"
            raise NicError(f"the XDP RNIC did not compile or load{hint}: {error}") from error

    def program_fd(self, transport: str | None = None) -> int:
        """The program of a transport; without a name, the one that hosts get."""
        return self._programs[transport or self.transports[0]]

    @property
    def pass_fd(self) -> int:
        return self._pass.fd

    def load(self, function: str) -> int:
        """Loads another function of the program as XDP; returns its file descriptor."""
        return self._bpf.load_func(function.encode(), self._xdp).fd

    def map_fd(self, name: str) -> int:
        return self._bpf[name.encode()].map_fd

    @property
    def arena_bytes(self) -> int:
        return self.sizes.chunks << self.sizes.chunk_shift

    @property
    def doorbell_bytes(self) -> int:
        return self.defines["NIC_DOORBELL_PAGES"] * _PAGE

    def register_host(self, mac: str, ifindex: int, rate_bps: int = 0, partner_mac: str | None = None) -> int:
        """Makes a host known by its address, and gives it a slot for counters and queue pairs.

        `rate_bps`: of its link, for the length of PFC's pauses; 0, unlimited: as at 10 Gb/s, what the kernel says of a
        veth.  `partner_mac`: of the other end of its link; pause frames from there are the host's.
        """
        if mac in self._hosts.values():
            raise NicError(f"two hosts have the MAC address {mac}")
        slot = len(self._hosts) + 1
        if slot >= self.defines["NIC_MAX_HOSTS"]:
            raise NicError(f"no room for more than {slot - 1} hosts")
        by_mac, by_slot = self._bpf[b"hosts"], self._bpf[b"host_slots"]
        quantum = 512 * 10**12 // (rate_bps or NOMINAL_RATE)
        by_mac[ctypes.c_ulonglong(mac_number(mac))] = by_mac.Leaf(mac_number(mac), slot, ifindex, quantum)
        by_slot[slot] = by_slot.Leaf(mac_number(mac), slot, ifindex, quantum)
        if partner_mac:
            self._set_partner(slot, partner_mac)
        self._hosts[slot] = mac
        return slot

    def _set_partner(self, slot: int, mac: str) -> None:
        self._bpf[b"partners"][ctypes.c_ulonglong(mac_number(mac))] = ctypes.c_uint(slot)

    def _attach(self, program_fd: int, namespace: int, interface: netns.Interface) -> None:
        try:
            with netns.inside(namespace):
                self._links.append(bpf_syscall.attach_xdp(program_fd, interface.index))
        except OSError as error:
            raise NicError(
                f"cannot attach XDP natively to {interface.name} (MTU {interface.mtu}): {error.strerror}"
            ) from error

    def add_host(self, namespace: int, interface_name: str, mac: str, rate_bps: int = 0) -> int:
        """Attaches the RNIC to a host's veth, given by name in a namespace (a file descriptor); returns its slot."""
        try:
            interface = netns.interface(namespace, interface_name)
        except LookupError as error:
            raise NicError(str(error)) from error
        if interface.mac.lower() != mac.lower():
            raise NicError(f"{interface_name} has the MAC address {interface.mac}, not {mac}")
        slot = self.register_host(mac.lower(), interface.index, rate_bps)
        self._attach(self.program_fd(), namespace, interface)
        self._attached[slot] = interface
        return slot

    def cover_peers(self, namespaces: Sequence[int]) -> None:
        """Gives the other ends of all hosts' veths a bare XDP_PASS, without which what the RNIC sends is lost.

        Their MAC addresses are those that pause frames have to come from.

        To be called when all hosts are added: the other end may be another host, or belong to a switch that runs XDP.
        """
        candidates = [(namespace, found) for namespace in namespaces for found in netns.interfaces(namespace)]
        for slot, host in self._attached.items():
            for namespace, found in candidates:
                if not netns.are_veth_ends(host, found):
                    continue
                self._set_partner(slot, found.mac)
                if not found.has_xdp:
                    self._attach(self.pass_fd, namespace, found)

    def close(self) -> None:
        while self._links:
            os.close(self._links.pop())
        self._bpf.cleanup()

    def __enter__(self) -> Nic:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
