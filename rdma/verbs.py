"""RDMA verbs for applications, in the terms of libibverbs and pyverbs.

    with Device.open("/run/plait/h1.rdma.sock") as device:
        pd = device.alloc_pd()
        mr = pd.reg_mr(1 << 20, Access.LOCAL_WRITE | Access.REMOTE_WRITE)
        cq = device.create_cq(64)
        qp = pd.create_qp(cq)
        # exchange qp.qp_num, a PSN, device.ipv4, mr.addr and mr.rkey with the peer by any means, then:
        qp.modify_rtr(dest_qpn=..., dest_ip=..., rq_psn=...)
        qp.modify_rts(sq_psn=...)
        mr.buf[:5] = b"hello"
        qp.post_send(SendWR(1, Opcode.RDMA_WRITE, mr.sge(length=5), remote_addr=..., rkey=...))
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
from typing import Any, Self

from rdma.protocol import LINE_MAX, POLL_MAX, VERSION, RequestError, decode, encode
from rdma.queue_pair import QP, SRQ, connect
from rdma.work import NOTHING, SGE, WC, Access, Opcode, RecvWR, SendFlags, SendWR, VerbsError, WCFlags, WCOpcode

__all__ = [
    "CQ",
    "MR",
    "NOTHING",
    "PD",
    "QP",
    "SGE",
    "SRQ",
    "WC",
    "Access",
    "Device",
    "Opcode",
    "RecvWR",
    "SendFlags",
    "SendWR",
    "VerbsError",
    "WCFlags",
    "WCOpcode",
    "connect",
]


class Device:
    """A connection to one host's agent (pyverbs' Context).

    name, ipv4, mac, gateway_mac: the host's; rate_bps: its link's, 0 for "not limited"; path_mtu: payload bytes of a
    packet; transport, congestion: the defaults of queue pairs; transports: those that there are; memory_bytes: of the
    whole lab; queue_pair_slots: see open_queue_pairs.
    """

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
        self.transports: list[str] = about["transports"]
        self.congestion: str = about["congestion"]
        self.memory_bytes: int = about["memory_bytes"]
        self.queue_pair_slots: int = about["queue_pair_slots"]

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

    def alloc_pd(self) -> PD:
        return PD(self, self.call("alloc_pd")["pd"])

    def create_cq(self, cqe: int = 256) -> CQ:
        """A completion queue for `cqe` completions; work that might overrun it is refused (QUEUE_FULL)."""
        reply, descriptors = self._call("create_cq", cqe=cqe)
        return CQ(self, reply["cq"], descriptors[0])

    def counters(self) -> dict[str, int]:
        """Counters of the host's NIC: one for each name of nic_event_t, and totals."""
        return self.call("counters")["counters"]

    def open_queue_pairs(self) -> int:
        """A file descriptor of the NIC's map of struct nic_qp, for reading only (ebpf.bpf_syscall.read_element); the
        caller closes it.  A queue pair's place is qp_num % queue_pair_slots.
        """
        return self._call("open_queue_pairs")[1][0]

    def map_arena(self, offset: int, length: int) -> mmap.mmap:
        return mmap.mmap(self._arena_fd, length, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE, offset=offset)


class PD:
    """A protection domain: its queue pairs reach its regions only, and no others' reach them."""

    def __init__(self, device: Device, handle: int) -> None:
        self.device = device
        self.handle = handle

    def reg_mr(self, length: int, access: Access = Access.LOCAL_WRITE) -> MR:
        """Registers `length` bytes of the lab's memory, all zero.  (The NIC cannot reach a process's own memory.)"""
        reply = self.device.call("reg_mr", pd=self.handle, length=length, access=int(access))
        return MR(self, length, reply)

    def create_srq(self, max_wr: int = 64) -> SRQ:
        """A shared receive queue for at least `max_wr` receives."""
        reply = self.device.call("create_srq", pd=self.handle, max_wr=max_wr)
        return SRQ(self, reply["srq"], reply["max_wr"])

    def create_qp(
        self,
        send_cq: CQ,
        recv_cq: CQ | None = None,
        max_send_wr: int = 64,
        max_recv_wr: int = 16,
        srq: SRQ | None = None,
    ) -> QP:
        """A queue pair in INIT.  recv_cq: by default send_cq; with srq, max_recv_wr means nothing."""
        recv_cq = recv_cq or send_cq
        reply = self.device.call(
            "create_qp",
            pd=self.handle,
            send_cq=send_cq.handle,
            recv_cq=recv_cq.handle,
            srq=srq.handle if srq else None,
            max_send_wr=max_send_wr,
            max_recv_wr=max_recv_wr,
        )
        return QP(self, reply["qpn"], send_cq, recv_cq)

    def dealloc(self) -> None:
        """EBUSY while something belongs to it."""
        self.device.call("dealloc_pd", pd=self.handle)


class MR:
    """Registered memory.

    `buf` is the memory itself, a writable memoryview of `length` bytes; what a peer writes appears there by itself.
    numpy.frombuffer(mr.buf, dtype=...) gives an array on it.
    """

    def __init__(self, pd: PD, length: int, reply: dict[str, Any]) -> None:
        self.pd = pd
        self.length = length
        self.lkey: int = reply["lkey"]
        self.rkey: int = reply["rkey"]
        self.addr: int = reply["addr"]
        self._map = pd.device.map_arena(reply["offset"], length)
        self.buf = memoryview(self._map)

    def sge(self, offset: int = 0, length: int | None = None) -> SGE:
        """`length` bytes (by default all the rest) from `offset` on."""
        return SGE(self.addr + offset, self.length - offset if length is None else length, self.lkey)

    def dereg(self) -> None:
        """Gives the memory back; `buf` must not be in use any more."""
        self.buf.release()
        self._map.close()
        self.pd.device.call("dereg_mr", key=self.lkey)


class CQ:
    """A completion queue, in the order in which work completes."""

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

    def poll(self, num_entries: int = 16) -> list[WC]:
        """At most so many completions, without waiting."""
        reply = self.device.call("poll_cq", cq=self.handle, max=min(num_entries, POLL_MAX))
        return [WC.decode(completion) for completion in reply["completions"]]

    def wait(self, timeout: float | None = None, num_entries: int = 16) -> list[WC]:
        """At least one completion, or none when `timeout` seconds have passed."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            found = self.poll(num_entries)
            if found:
                return found
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                return []
            # Emptied before the next poll, never after it: a completion in between leaves the event set.
            if select.select([self._event_fd], [], [], left)[0]:
                os.eventfd_read(self._event_fd)

    def destroy(self) -> None:
        """EBUSY while a queue pair uses it."""
        self.device.call("destroy_cq", cq=self.handle)
