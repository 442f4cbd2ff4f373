"""A small laboratory: two hosts in namespaces of their own, a forwarder that can misbehave between them, the daemon."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rdma.verbs import CQ, MR, PD, QP, WC, Access, Device, Opcode, RecvWR, SendWR, connect

EVERYTHING = Access.LOCAL_WRITE | Access.REMOTE_WRITE | Access.REMOTE_READ | Access.REMOTE_ATOMIC
ROOT = Path(__file__).resolve().parent.parent.parent
_numbers = itertools.count()
_SOL_PACKET, _PACKET_IGNORE_OUTGOING, _ETH_P_ALL = 263, 23, 3


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


def ip_in(pid: int, *words: str) -> str:
    """`ip` in the network namespace of a process; what it prints."""
    command = ["nsenter", f"--net=/proc/{pid}/ns/net", "ip", *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@dataclass
class Link:
    """What the forwarder does to RoCEv2 frames (the others pass)."""

    loss: float = 0.0
    repeat: float = 0.0
    reorder: float = 0.0
    mark: float = 0.0
    seed: int = 1
    answer: Callable[[bytes], bytes | None] | None = None  # a frame to send back instead of forwarding
    seen: int = 0
    dropped: int = 0


class Forwarder(threading.Thread):
    """Joins two interfaces of our namespace, frame by frame."""

    def __init__(self, interfaces: tuple[str, str], link: Link) -> None:
        super().__init__(daemon=True)
        self._sockets = [self._open(name) for name in interfaces]
        self._link = link
        self._chance = random.Random(link.seed)
        self._stop_read, self._stop_write = os.pipe()

    @staticmethod
    def _open(interface: str) -> socket.socket:
        opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETH_P_ALL))
        opened.setsockopt(_SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        opened.bind((interface, 0))
        opened.setblocking(False)
        return opened

    def _treat(self, frame: bytes) -> list[bytes]:
        link, chance = self._link, self._chance.random
        if frame[12:14] != b"\x08\x00" or frame[23] != 17:
            return [frame]
        link.seen += 1
        if chance() < link.loss:
            link.dropped += 1
            return []
        if chance() < link.mark and frame[15] & 3:
            frame = self._mark(frame)
        return [frame, frame] if chance() < link.repeat else [frame]

    @staticmethod
    def _mark(frame: bytes) -> bytes:
        """ECN CE, with the checksum updated as RFC 1624 has it."""
        new = bytearray(frame)
        new[15] |= 3
        total = (~int.from_bytes(frame[24:26], "big") & 0xFFFF) + (new[15] - frame[15])
        new[24:26] = (~((total & 0xFFFF) + (total >> 16)) & 0xFFFF).to_bytes(2, "big")
        return bytes(new)

    def run(self) -> None:
        other = {self._sockets[0]: self._sockets[1], self._sockets[1]: self._sockets[0]}
        while True:
            ready, _, _ = select.select([*self._sockets, self._stop_read], [], [])
            if self._stop_read in ready:
                return
            for source in ready:
                batch: list[bytes] = []
                with contextlib.suppress(BlockingIOError):
                    while len(batch) < 32:
                        frame = source.recv(4096)
                        back = self._link.answer(frame) if self._link.answer else None
                        if back:
                            source.send(back)
                        else:
                            batch += self._treat(frame)
                for index in range(len(batch) - 1):
                    if self._chance.random() < self._link.reorder:
                        batch[index], batch[index + 1] = batch[index + 1], batch[index]
                for frame in batch:
                    with contextlib.suppress(BlockingIOError, OSError):
                        other[source].send(frame)

    def stop(self) -> None:
        os.write(self._stop_write, b"x")
        self.join()
        for opened in self._sockets:
            opened.close()
        os.close(self._stop_read)
        os.close(self._stop_write)


@dataclass
class Lab:
    folder: Path
    daemon: subprocess.Popen[str]
    namespaces: tuple[int, int]  # processes that live in them
    peers: tuple[str, str] | None
    devices: list[Device] = field(default_factory=list)

    def device(self, host: int) -> Device:
        self.devices.append(Device.open(self.socket(host)))
        return self.devices[-1]

    def socket(self, host: int) -> Path:
        return self.folder / f"h{host}.rdma.sock"

    def forget_devices(self) -> None:
        """What tests have made is free again, soon."""
        while self.devices:
            self.devices.pop().close()

    def pair(self, length: int, psns: tuple[int, int] = (0, 0), rtr: dict[str, Any] | None = None, **rts: Any) -> Pair:
        return Pair(self.device(1), self.device(2), length, psns, rtr, rts)

    def xdp_attached(self) -> list[bool]:
        return ["xdp" in ip_in(pid, "link", "show", "v0") for pid in self.namespaces]


class Pair:
    """A region and a connected queue pair at each of two hosts."""

    def __init__(
        self,
        one: Device,
        other: Device,
        length: int,
        psns: tuple[int, int],
        rtr: dict[str, Any] | None,
        rts: dict[str, Any],
    ) -> None:
        self.devices = (one, other)
        self.pds: list[PD] = [device.alloc_pd() for device in self.devices]
        self.regions: list[MR] = [pd.reg_mr(length, EVERYTHING) for pd in self.pds]
        self.cqs: list[CQ] = [device.create_cq() for device in self.devices]
        self.qps: list[QP] = [pd.create_qp(cq, max_recv_wr=64) for pd, cq in zip(self.pds, self.cqs, strict=True)]
        connect(self.qps[0], self.qps[1], psns, rtr, **rts)

    def request(
        self, opcode: Opcode, sender: int = 0, offset: int = 0, length: int | None = None, **changes: Any
    ) -> SendWR:
        """From or to the sender's region at `offset`, with the peer's at its start."""
        here, there = self.regions[sender], self.regions[1 - sender]
        remote = {"remote_addr": there.addr, "rkey": there.rkey}
        return SendWR(**{"wr_id": 1, "opcode": opcode, "sg": here.sge(offset, length), **remote, **changes})

    def write(self, sender: int = 0, **changes: Any) -> SendWR:
        return self.request(Opcode.RDMA_WRITE, sender, **changes)

    def recv(self, receiver: int = 1, offset: int = 0, length: int | None = None, wr_id: int = 1) -> RecvWR:
        return RecvWR(wr_id, self.regions[receiver].sge(offset, length))


@dataclass
class Network:
    """A laboratory whose link changes its behaviour from test to test."""

    made: Lab
    link: Link

    def behave(self, loss: float = 0.0, repeat: float = 0.0, reorder: float = 0.0, mark: float = 0.0) -> None:
        self.link.loss, self.link.repeat, self.link.reorder, self.link.mark = loss, repeat, reorder, mark


def collect(cq: CQ, count: int, seconds: float = 20.0) -> list[WC]:
    """`count` completions and, as they must come exactly once, no more."""
    found: list[WC] = []
    while len(found) < count:
        more = cq.wait(seconds)
        assert more, f"{len(found)} of {count} completions after {seconds} s: {found[-3:]}"
        found += more
    assert len(found) == count
    return found


def _daemon(folder: Path, config: dict[str, Any]) -> subprocess.Popen[str]:
    path = folder / "nic.json"
    path.write_text(json.dumps(config))
    command = [sys.executable, "-m", "rdma.daemon", "--config", str(path), "--exit-with-parent"]
    daemon = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert daemon.stdout
    if daemon.stdout.readline() != "ready\n":
        daemon.stdout.close()
        raise RuntimeError(f"the daemon ended with {daemon.wait()}")
    return daemon


def _namespace() -> subprocess.Popen[str]:
    """A process in a network namespace of its own; both end with the tests, however these end."""
    command = ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "sh", "-c", "echo; exec sleep 1000"]
    holder = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert holder.stdout and holder.stdout.readline() == "\n"
    holder.stdout.close()
    return holder


@contextlib.contextmanager
def lab(folder: Path, link: Link | None = None, rate_bps: int = 0, **config: Any) -> Iterator[Lab]:
    """Two hosts, joined directly (link None) or by a forwarder in our own namespace."""
    macs = ("02:00:00:00:01:01", "02:00:00:00:01:02")
    peers = (f"pt{os.getpid() % 10**7}x{next(_numbers)}", f"pt{os.getpid() % 10**7}x{next(_numbers)}") if link else None
    forwarder = daemon = None
    made: Lab | None = None
    holders: list[subprocess.Popen[str]] = []
    try:
        holders += [_namespace() for _ in range(2)]
        pids = (holders[0].pid, holders[1].pid)
        spaces = (str(pids[0]), str(pids[1]))
        if peers:
            for space, mac, peer in zip(spaces, macs, peers, strict=True):
                ip("link", "add", "v0", "netns", space, "address", mac, "type", "veth", "peer", "name", peer)
                ip("link", "set", peer, "up")
        else:
            veth = ["type", "veth", "peer", "name", "v0", "netns", spaces[1], "address", macs[1]]
            ip("link", "add", "v0", "netns", spaces[0], "address", macs[0], *veth)
        for space in spaces:
            ip_in(int(space), "link", "set", "v0", "up")
        hosts: list[dict[str, Any]] = [
            {"name": f"h{i + 1}", "interface": "v0", "ipv4": f"10.9.0.{i + 1}", "mac": macs[i]} for i in range(2)
        ]
        # One namespace is given by its path, the other by a process that lives in it, as Mininet's are.
        hosts[0]["netns"] = f"/proc/{pids[0]}/ns/net"
        hosts[1]["pid"] = pids[1]
        for host in hosts:
            host["rate_bps"] = rate_bps
        daemon = _daemon(folder, {"hosts": hosts, "run_dir": str(folder), "memory_bytes": 32 << 20, **config})
        if peers and link:
            forwarder = Forwarder(peers, link)
            forwarder.start()
        made = Lab(folder, daemon, pids, peers)
        yield made
    finally:
        if made:
            made.forget_devices()
        if daemon:
            if daemon.poll() is None:
                daemon.send_signal(signal.SIGTERM)
            daemon.wait(10)
            assert daemon.stdout
            daemon.stdout.close()
        if forwarder:
            forwarder.stop()
        for holder in holders:
            holder.kill()
            holder.wait()


def eventually(condition: Any, seconds: float = 3.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.01)
    return bool(condition())
