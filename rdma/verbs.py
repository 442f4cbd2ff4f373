"""RDMA verbs for applications, in the terms of libibverbs and pyverbs.

    with Device.open("/run/lab/h1.rdma.sock") as device:
        pd = device.alloc_pd()
        mr = pd.reg_mr(1 << 20, Access.LOCAL_WRITE | Access.REMOTE_WRITE)
        cq = device.create_cq(64)
        qp = pd.create_qp(cq)
        # exchange qp.qpn, a PSN, device.ipv4, mr.addr and mr.rkey with the peer by any means, then:
        qp.modify_rtr(dest_qpn=..., dest_ip=..., rq_psn=...)
        qp.modify_rts(sq_psn=...)
        mr.buf[:5] = b"hello"
        qp.post_send(Write(wr_id=1, mr=mr, length=5, remote_addr=..., rkey=...))
        print(cq.wait(timeout=1.0))

Data goes through `mr.buf`, which is the very memory that the NIC reads and writes.  A `Device` may be used by several
threads; everything made from it is gone when it closes.
"""

from __future__ import annotations

import mmap
import os
import select
import socket
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntFlag
from typing import Any, Self

from rdma.protocol import (
    LINE_MAX,
    LOCAL_WRITE,
    MESSAGE_MAX,
    POLL_MAX,
    POST_MAX,
    REMOTE_READ,
    REMOTE_WRITE,
    VERSION,
    RequestError,
    decode,
    encode,
)


class Access(IntFlag):
    LOCAL_WRITE = LOCAL_WRITE
    REMOTE_WRITE = REMOTE_WRITE
    REMOTE_READ = REMOTE_READ


class VerbsError(Exception):
    """The agent refused (`name` says why in a word), or cannot be reached (`name` is "DISCONNECTED")."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(f"{message} [{name}]")
        self.name = name


@dataclass(frozen=True, slots=True)
class Completion:
    """`status` is a name of libibverbs' ibv_wc_status without its prefix: SUCCESS, REM_ACCESS_ERR, WR_FLUSH_ERR, ..."""

    wr_id: int
    qpn: int
    status: str
    byte_len: int

    @property
    def ok(self) -> bool:
        return self.status == "SUCCESS"


class Device:
    """A connection to one host's agent."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._lock = threading.Lock()
        self._number = 0
        self._pending = b""
        about, descriptors = self._call("open")
        if about["version"] != VERSION or len(descriptors) != 1:
            raise VerbsError("VERSION", f"the agent speaks version {about['version']}, not {VERSION}")
        self._arena_fd = descriptors[0]
        self.name: str = about["host"]
        self.ipv4: str = about["ipv4"]
        self.mac: str = about["mac"]
        self.gateway_mac: str | None = about["gateway_mac"]
        self.path_mtu: int = about["path_mtu"]
        self.rate_bps: int = about["rate_bps"]
        self.transport: str = about["transport"]
        self.memory_bytes: int = about["memory_bytes"]

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(os.fspath(path))
        except OSError as error:
            connection.close()
            raise VerbsError("DISCONNECTED", f"no agent at {os.fspath(path)}: {error.strerror}") from error
        return cls(connection)

    def close(self) -> None:
        self._socket.close()
        if self._arena_fd >= 0:
            os.close(self._arena_fd)
            self._arena_fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read_reply(self) -> tuple[dict[str, Any], list[int]]:
        descriptors: list[int] = []
        while b"\n" not in self._pending:
            data, received, _, _ = socket.recv_fds(self._socket, LINE_MAX, 4)
            descriptors += received
            if not data:
                raise VerbsError("DISCONNECTED", "the agent has gone")
            self._pending += data
        line, _, self._pending = self._pending.partition(b"\n")
        return decode(line), descriptors

    def _call(self, op: str, **members: Any) -> tuple[dict[str, Any], list[int]]:
        with self._lock:
            self._number += 1
            try:
                self._socket.sendall(encode({"id": self._number, "op": op, **members}))
                reply, descriptors = self._read_reply()
            except OSError as error:
                raise VerbsError("DISCONNECTED", f"the agent has gone: {error.strerror}") from error
            except RequestError as error:
                raise VerbsError(error.name, str(error)) from error
        if "error" in reply:
            raise VerbsError(reply["error"], reply["message"])
        return reply, descriptors

    def call(self, op: str, **members: Any) -> dict[str, Any]:
        """One request of the agent's protocol, for what has no method here."""
        return self._call(op, **members)[0]

    def alloc_pd(self) -> ProtectionDomain:
        return ProtectionDomain(self, self.call("alloc_pd")["pd"])

    def create_cq(self, cqe: int = 256) -> CompletionQueue:
        reply, descriptors = self._call("create_cq", cqe=cqe)
        return CompletionQueue(self, reply["cq"], descriptors[0])

    def counters(self) -> dict[str, int]:
        """Counters of the host's NIC: one for each name of nic_event_t, and totals."""
        return self.call("counters")["counters"]

    def map_arena(self, offset: int, length: int) -> mmap.mmap:
        return mmap.mmap(self._arena_fd, length, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE, offset=offset)


class ProtectionDomain:
    def __init__(self, device: Device, handle: int) -> None:
        self.device = device
        self.handle = handle

    def reg_mr(self, length: int, access: Access = Access.LOCAL_WRITE) -> MemoryRegion:
        """Registers `length` bytes of the lab's memory, all zero.  (The NIC cannot reach a process's own memory.)"""
        reply = self.device.call("reg_mr", pd=self.handle, length=length, access=int(access))
        return MemoryRegion(self, length, reply)

    def create_qp(self, cq: CompletionQueue, max_send_wr: int = 64) -> QueuePair:
        reply = self.device.call("create_qp", pd=self.handle, cq=cq.handle, max_send_wr=max_send_wr)
        return QueuePair(self, reply["qpn"])

    def dealloc(self) -> None:
        self.device.call("dealloc_pd", pd=self.handle)


class MemoryRegion:
    """Registered memory.  `buf` is the memory itself; what a peer writes appears there by itself."""

    def __init__(self, pd: ProtectionDomain, length: int, reply: dict[str, Any]) -> None:
        self.pd = pd
        self.length = length
        self.lkey: int = reply["lkey"]
        self.rkey: int = reply["rkey"]
        self.addr: int = reply["addr"]
        self._map = pd.device.map_arena(reply["offset"], length)
        self.buf = memoryview(self._map)

    def dereg(self) -> None:
        """Gives the memory back; `buf` must not be in use any more."""
        self.buf.release()
        self._map.close()
        self.pd.device.call("dereg_mr", key=self.lkey)


class CompletionQueue:
    def __init__(self, device: Device, handle: int, event_fd: int) -> None:
        self.device = device
        self.handle = handle
        self._event_fd = event_fd

    def __del__(self) -> None:
        if self._event_fd >= 0:
            os.close(self._event_fd)
            self._event_fd = -1

    def fileno(self) -> int:
        """Readable while there may be completions; for select, epoll or an event loop."""
        return self._event_fd

    def poll(self, most: int = 16) -> list[Completion]:
        """What has completed, without waiting."""
        reply = self.device.call("poll_cq", cq=self.handle, max=min(most, POLL_MAX))
        return [Completion(**completion) for completion in reply["completions"]]

    def wait(self, timeout: float | None = None, most: int = 16) -> list[Completion]:
        """At least one completion, or none when `timeout` seconds have passed."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            found = self.poll(most)
            if found:
                return found
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                return []
            # Emptied before the next poll, never after it: a completion in between leaves the event set.
            if select.select([self._event_fd], [], [], left)[0]:
                os.eventfd_read(self._event_fd)

    def destroy(self) -> None:
        self.device.call("destroy_cq", cq=self.handle)


@dataclass(frozen=True, slots=True)
class Write:
    """An RDMA WRITE of `length` bytes at `offset` of a local region (by default all the rest) to a remote address."""

    wr_id: int
    mr: MemoryRegion
    remote_addr: int
    rkey: int
    offset: int = 0
    length: int | None = None
    signaled: bool = True

    def encode(self) -> dict[str, Any]:
        length = self.mr.length - self.offset if self.length is None else self.length
        if length > MESSAGE_MAX:
            raise VerbsError("TOO_LONG", f"one WRITE has at most {MESSAGE_MAX} bytes; split {length} into several")
        return {
            "wr_id": self.wr_id,
            "lkey": self.mr.lkey,
            "addr": self.mr.addr + self.offset,
            "length": length,
            "remote_addr": self.remote_addr,
            "rkey": self.rkey,
            "signaled": self.signaled,
        }


class QueuePair:
    def __init__(self, pd: ProtectionDomain, qpn: int) -> None:
        self.pd = pd
        self.qpn = qpn

    def modify_rtr(
        self,
        dest_qpn: int,
        dest_ip: str,
        rq_psn: int,
        dest_mac: str | None = None,
        path_mtu: int | None = None,
        udp_source_port: int | None = None,
    ) -> None:
        """INIT to RTR.  `dest_mac` is the next hop's (default: the host's gateway); the source port picks the path."""
        self.pd.device.call(
            "modify_qp_rtr",
            qpn=self.qpn,
            dest_qpn=dest_qpn,
            dest_ip=dest_ip,
            dest_mac=dest_mac,
            rq_psn=rq_psn,
            path_mtu=path_mtu,
            udp_source_port=udp_source_port,
        )

    def modify_rts(
        self,
        sq_psn: int,
        window_packets: int | None = None,
        timeout_us: int | None = None,
        retry_cnt: int | None = None,
        rnr_retry: int | None = None,
        mark_remaining: bool = False,
    ) -> None:
        """RTR to RTS; what is None has the agent's default.

        mark_remaining: data packets say in their DSCP how much of their message is left (p4src/include/codes.p4), for
        switches that schedule by it.
        """
        self.pd.device.call(
            "modify_qp_rts",
            qpn=self.qpn,
            sq_psn=sq_psn,
            window_packets=window_packets,
            timeout_us=timeout_us,
            retry_cnt=retry_cnt,
            rnr_retry=rnr_retry,
            mark_remaining=mark_remaining,
        )

    def modify_error(self) -> None:
        """Any state to ERROR: what is outstanding completes with WR_FLUSH_ERR."""
        self.pd.device.call("modify_qp_error", qpn=self.qpn)

    def post_send(self, *writes: Write) -> None:
        """Posts in order.  On an error, its text says how many of the batch went in."""
        encoded: Sequence[dict[str, Any]] = [write.encode() for write in writes]
        for first in range(0, len(encoded), POST_MAX):
            self.pd.device.call("post_send", qpn=self.qpn, writes=encoded[first : first + POST_MAX])

    @property
    def state(self) -> str:
        return self.pd.device.call("query_qp", qpn=self.qpn)["state"]

    def stats(self) -> dict[str, int]:
        """packets, bytes, retransmissions, timeouts, naks, rnr_naks, acks, gaps, messages_received, outstanding"""
        return self.pd.device.call("query_qp", qpn=self.qpn)["stats"]

    def destroy(self) -> None:
        self.pd.device.call("destroy_qp", qpn=self.qpn)


def connect(one: QueuePair, other: QueuePair, psns: tuple[int, int] = (0, 0), **rts: Any) -> None:
    """Connects two queue pairs of one process: `one` starts at psns[0], `other` at psns[1].

    The next hop is each host's gateway, or the peer itself where it has none.
    """
    for here, there, sends, receives in ((one, other, *psns), (other, one, psns[1], psns[0])):
        near, far = here.pd.device, there.pd.device
        here.modify_rtr(there.qpn, far.ipv4, receives, dest_mac=near.gateway_mac or far.mac)
        here.modify_rts(sends, **rts)
