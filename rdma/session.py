"""One client of a host's agent: what it may ask, and what it owns.

Everything a client has made is its own: another client's numbers do not exist for it, and all goes when it leaves.
"""

from __future__ import annotations

import errno
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rdma.allocate import Arena, Exhausted, SlotNumbers
from rdma.config import PATH_MTUS, HostConfig, NicConfig, is_ipv4, is_mac
from rdma.protocol import (
    MESSAGE_MAX,
    POLL_MAX,
    POST_MAX,
    VERSION,
    Objects,
    Optional,
    RequestError,
    Text,
    Truth,
    Whole,
    read_members,
)
from rdma.transmit import Engine, EngineError
from wire import codes

PSN = Whole(0, (1 << 24) - 1)
QPN = Whole(1, (1 << 24) - 1)
KEY = Whole(0, (1 << 32) - 1)
ADDRESS = Whole(0, (1 << 64) - 1)
VA_BASE = 0x10_0000_0000  # regions' addresses: this plus their place in the arena, so no two in a lab overlap


@dataclass(slots=True)
class Shared:
    """What all hosts and clients of a daemon have in common."""

    engine: Engine
    arena: Arena
    arena_fd: int
    arena_bytes: int
    qpns: SlotNumbers
    keys: SlotNumbers
    config: NicConfig
    later: Callable[[Callable[[], None]], None]  # runs something once no packet can be on its way through the NIC


@dataclass(slots=True)
class Region:
    key: int
    pd: int
    va: int
    length: int
    offset: int


@dataclass(slots=True)
class Reply:
    members: dict[str, Any] = field(default_factory=dict)
    descriptors: tuple[int, ...] = ()


_OPERATIONS: dict[str, tuple[Callable[..., Reply], dict[str, Any]]] = {}


def operation(**members: Any) -> Callable[[Callable[..., Reply]], Callable[..., Reply]]:
    """Makes a method an operation of the protocol under its own name, with these members."""

    def register(method: Callable[..., Reply]) -> Callable[..., Reply]:
        assert method.__name__ not in _OPERATIONS
        _OPERATIONS[method.__name__] = (method, members)
        return method

    return register


class Session:
    def __init__(self, shared: Shared, host: HostConfig, slot: int) -> None:
        self._shared = shared
        self._engine = shared.engine
        self._host = host
        self._slot = slot
        self._pds: set[int] = set()
        self._regions: dict[int, Region] = {}
        self._cqs: set[int] = set()
        self._qps: dict[int, int] = {}  # QPN: protection domain

    def handle(self, request: dict[str, Any]) -> Reply:
        """Serves a request whose "id" has been taken out; whatever is wrong with it becomes a RequestError."""
        name = request.pop("op", None)
        if not isinstance(name, str) or name not in _OPERATIONS:
            raise RequestError("UNKNOWN_OP", f"no operation {name!r}; there are {', '.join(sorted(_OPERATIONS))}")
        method, members = _OPERATIONS[name]
        try:
            return method(self, **read_members(members, request, name))
        except Exhausted as error:
            raise RequestError("NO_RESOURCES", str(error)) from error
        except EngineError as error:
            raise RequestError(errno.errorcode.get(error.code, str(error.code)), str(error)) from error

    def close(self) -> None:
        for qpn in list(self._qps):
            self.destroy_qp(qpn=qpn)
        for cq in list(self._cqs):
            self.destroy_cq(cq=cq)
        for key in list(self._regions):
            self.dereg_mr(key=key)

    @staticmethod
    def _own(kind: str, number: int, owned: Any) -> None:
        if number not in owned:
            raise RequestError("NOT_FOUND", f"this client has no {kind} {number:#x}")

    @operation()
    def open(self) -> Reply:
        config = self._shared.config
        members = {
            "version": VERSION,
            "host": self._host.name,
            "ipv4": self._host.ipv4,
            "mac": self._host.mac,
            "gateway_mac": self._host.gateway_mac,
            "rate_bps": self._host.rate_bps,
            "path_mtu": config.mtu,
            "transport": config.transport,
            "memory_bytes": self._shared.arena_bytes,
        }
        return Reply(members, (self._shared.arena_fd,))

    @operation()
    def counters(self) -> Reply:
        return Reply({"counters": self._engine.counters(self._slot)})

    @operation()
    def alloc_pd(self) -> Reply:
        pd = 1 + secrets.randbelow((1 << 32) - 1)
        self._pds.add(pd)
        return Reply({"pd": pd})

    @operation(pd=KEY)
    def dealloc_pd(self, pd: int) -> Reply:
        self._own("protection domain", pd, self._pds)
        if pd in self._qps.values() or any(region.pd == pd for region in self._regions.values()):
            raise RequestError("EBUSY", "the protection domain still has queue pairs or regions")
        self._pds.discard(pd)
        return Reply()

    @operation(pd=KEY, length=Whole(1, 1 << 40), access=Whole(0, 7))
    def reg_mr(self, pd: int, length: int, access: int) -> Reply:
        self._own("protection domain", pd, self._pds)
        shared = self._shared
        offset = shared.arena.take(length)
        try:
            key = shared.keys.take()
        except Exhausted:
            shared.arena.give_back(offset, length)
            raise
        region = Region(key, pd, VA_BASE + offset, length, offset)
        self._engine.add_region(key, offset, length, region.va, access, pd, self._host.ipv4)
        self._regions[key] = region
        return Reply({"lkey": key, "rkey": key, "addr": region.va, "offset": offset})

    @operation(key=KEY)
    def dereg_mr(self, key: int) -> Reply:
        self._own("memory region", key, self._regions)
        region = self._regions.pop(key)
        self._engine.remove_region(key)
        shared = self._shared

        def give_back() -> None:
            shared.arena.give_back(region.offset, region.length)
            shared.keys.give_back(key)

        shared.later(give_back)
        return Reply()

    @operation(cqe=Whole(1, 1 << 20))
    def create_cq(self, cqe: int) -> Reply:
        cq, event_fd = self._engine.create_cq(cqe)
        self._cqs.add(cq)
        return Reply({"cq": cq}, (event_fd,))

    @operation(cq=Whole(0, 1 << 30))
    def destroy_cq(self, cq: int) -> Reply:
        self._own("completion queue", cq, self._cqs)
        self._engine.destroy_cq(cq)
        self._cqs.discard(cq)
        return Reply()

    @operation(cq=Whole(0, 1 << 30), max=Whole(1, POLL_MAX))
    def poll_cq(self, cq: int, max: int) -> Reply:
        self._own("completion queue", cq, self._cqs)
        return Reply({"completions": self._engine.poll_cq(cq, max)})

    @operation(pd=KEY, cq=Whole(0, 1 << 30), max_send_wr=Whole(1, 1 << 16))
    def create_qp(self, pd: int, cq: int, max_send_wr: int) -> Reply:
        self._own("protection domain", pd, self._pds)
        self._own("completion queue", cq, self._cqs)
        qpn = self._shared.qpns.take()
        try:
            self._engine.create_qp(qpn, self._slot, pd, cq, max_send_wr)
        except EngineError:
            self._shared.qpns.give_back(qpn)
            raise
        self._qps[qpn] = pd
        return Reply({"qpn": qpn})

    @operation(qpn=QPN)
    def destroy_qp(self, qpn: int) -> Reply:
        self._own("queue pair", qpn, self._qps)
        del self._qps[qpn]
        self._engine.destroy_qp(qpn)
        self._shared.later(lambda: self._shared.qpns.give_back(qpn))
        return Reply()

    @operation(
        qpn=QPN,
        dest_qpn=QPN,
        dest_ip=Text(is_ipv4, "an IPv4 address"),
        dest_mac=Optional(Text(is_mac, "a MAC address")),
        rq_psn=PSN,
        path_mtu=Optional(Whole(256, 4096)),
        udp_source_port=Optional(Whole(1, 65535)),
    )
    def modify_qp_rtr(
        self,
        qpn: int,
        dest_qpn: int,
        dest_ip: str,
        dest_mac: str | None,
        rq_psn: int,
        path_mtu: int | None,
        udp_source_port: int | None,
    ) -> Reply:
        self._own("queue pair", qpn, self._qps)
        config = self._shared.config
        mac = dest_mac or self._host.gateway_mac
        mtu = path_mtu or config.mtu
        # From 49152, where RoCEv2 takes its source ports (IBTA Annex A17.4.5.3); spread by the queue pair's number.
        port = udp_source_port or 0xC000 | (qpn * 0x9E37 >> 2 & 0x3FFF)
        if mac is None:
            raise RequestError("BAD_VALUE", "dest_mac is needed: the host has no gateway_mac")
        if mtu not in PATH_MTUS or mtu > config.mtu:
            raise RequestError("BAD_VALUE", f"path_mtu must be one of {PATH_MTUS}, at most {config.mtu}")
        self._engine.to_rtr(
            qpn,
            mac,
            remote_qpn=dest_qpn,
            remote_ip=int.from_bytes(bytes(map(int, dest_ip.split("."))), "big"),
            udp_source_port=port,
            path_mtu=mtu,
            pkey=codes.ROCEV2_DEFAULT_PKEY,
            receive_psn=rq_psn,
            transport=self._engine.transports[config.transport],
            ack_every=0,
        )
        return Reply({"path_mtu": mtu, "udp_source_port": port})

    @operation(
        qpn=QPN,
        sq_psn=PSN,
        window_packets=Optional(Whole(1, (1 << 23) - 1)),
        timeout_us=Optional(Whole(1, 60_000_000)),
        retry_cnt=Optional(Whole(0, 7)),
        rnr_retry=Optional(Whole(0, 7)),
        mark_remaining=Optional(Truth()),
    )
    def modify_qp_rts(
        self,
        qpn: int,
        sq_psn: int,
        window_packets: int | None,
        timeout_us: int | None,
        retry_cnt: int | None,
        rnr_retry: int | None,
        mark_remaining: bool | None,
    ) -> Reply:
        self._own("queue pair", qpn, self._qps)
        config = self._shared.config
        self._engine.to_rts(
            qpn,
            send_psn=sq_psn,
            window_packets=window_packets or config.window_packets,
            ack_interval=config.ack_interval,
            retry_count=config.retry_count if retry_cnt is None else retry_cnt,
            rnr_retry_count=config.rnr_retry_count if rnr_retry is None else rnr_retry,
            timeout_ns=timeout_us * 1000 if timeout_us else config.timeout_ns(self._host.rate_bps),
            mark_remaining=bool(mark_remaining),
        )
        return Reply()

    @operation(qpn=QPN)
    def modify_qp_error(self, qpn: int) -> Reply:
        self._own("queue pair", qpn, self._qps)
        self._engine.to_error(qpn)
        return Reply()

    @operation(qpn=QPN)
    def query_qp(self, qpn: int) -> Reply:
        self._own("queue pair", qpn, self._qps)
        return Reply({"state": codes.QpState(self._engine.qp_state(qpn)).name, "stats": self._engine.qp_stats(qpn)})

    def _local_offset(self, lkey: int, addr: int, length: int, pd: int) -> int:
        region = self._regions.get(lkey)
        if region is None or region.pd != pd:
            raise RequestError("LOCAL_KEY", f"this client has no memory region {lkey:#x} in the protection domain")
        if addr < region.va or addr + length > region.va + region.length:
            raise RequestError("LOCAL_BOUNDS", f"{length} bytes at {addr:#x} are not inside the memory region")
        return region.offset + addr - region.va

    @operation(
        qpn=QPN,
        writes=Objects(
            {
                "wr_id": ADDRESS,
                "lkey": KEY,
                "addr": ADDRESS,
                "length": Whole(0, MESSAGE_MAX),
                "remote_addr": ADDRESS,
                "rkey": KEY,
                "signaled": Truth(),
            },
            POST_MAX,
        ),
    )
    def post_send(self, qpn: int, writes: list[dict[str, Any]]) -> Reply:
        """Posts in order until one is refused; the error then says how many went in."""
        self._own("queue pair", qpn, self._qps)
        for index, w in enumerate(writes):
            try:
                offset = self._local_offset(w["lkey"], w["addr"], w["length"], self._qps[qpn]) if w["length"] else 0
                self._engine.post_write(
                    qpn, w["wr_id"], offset, w["length"], w["remote_addr"], w["rkey"], w["signaled"]
                )
            except EngineError as error:
                name = {errno.ENOMEM: "QUEUE_FULL", errno.ENOTCONN: "QP_STATE"}.get(error.code, "EINVAL")
                raise RequestError(name, f"work request {index}: {error}; {index} were posted") from error
            except RequestError as error:
                raise RequestError(error.name, f"work request {index}: {error}; {index} were posted") from error
        return Reply()
