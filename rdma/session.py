"""One client of a host's agent: what it may ask, and what it owns.

Everything a client has made is its own: another client's numbers do not exist for it, and all goes when it leaves.
"""

from __future__ import annotations

import errno
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rdma.allocate import Exhausted, Ranges, SlotNumbers
from rdma.config import (
    CONGESTION_CONTROLS,
    PATH_MTUS,
    SLOTS_MAX,
    WINDOW_MAX,
    HostConfig,
    NicConfig,
    is_ipv4,
    is_mac,
)
from rdma.protocol import (
    MESSAGE_MAX,
    POLL_MAX,
    POST_MAX,
    RD_ATOMIC_MAX,
    VERSION,
    Choice,
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
CQ = Whole(0, 1 << 30)
WR_OPCODES = (
    *("RDMA_WRITE", "RDMA_WRITE_WITH_IMM", "SEND", "SEND_WITH_IMM", "SEND_WITH_INV"),
    *("RDMA_READ", "ATOMIC_CMP_AND_SWP", "ATOMIC_FETCH_AND_ADD"),
)
RECV = {"wr_id": ADDRESS, "lkey": KEY, "addr": ADDRESS, "length": Whole(0, MESSAGE_MAX)}
SEND = {
    **{"wr_id": ADDRESS, "lkey": KEY, "addr": ADDRESS, "length": Whole(0, MESSAGE_MAX)},
    **{"remote_addr": ADDRESS, "rkey": KEY, "compare_add": ADDRESS, "swap": ADDRESS},
    **{"imm_data": KEY, "opcode": Choice(WR_OPCODES), "send_flags": Whole(0, 0x1FF)},
}
# nic_qp_config.flags of ebpf/core/qp.h
_CREDITS, _HOLD_LAST, _SELECTIVE, _CNP = 0x1, 0x4, 0x8, 0x10
DCQCN_RATE_MIN = 10**6  # what nic_dcqcn_derive() takes
IRN_LOW_PACKETS = 3  # N of IRN's two timeouts (SIGCOMM 2018, section 4.1)
VA_BASE = 0x10_0000_0000  # regions' addresses: this plus their place in the arena, so no two in a lab overlap


@dataclass(slots=True)
class Shared:
    """What all hosts and clients of a daemon have in common."""

    engine: Engine
    arena: Ranges
    arena_fd: int
    arena_bytes: int
    transports: tuple[str, ...]
    qps_fd: int  # struct nic_qp of all queue pairs, for reading only
    qp_slots: int
    qpns: SlotNumbers
    keys: SlotNumbers
    rqs: Ranges
    receives: Ranges
    config: NicConfig
    later: Callable[[Callable[[], None]], None]  # runs something once no packet can be on its way through the NIC
    pairs: dict[int, Pair] = field(default_factory=dict)  # queue pairs of all hosts and clients, by number


@dataclass(slots=True)
class Region:
    key: int
    pd: int
    va: int
    length: int
    offset: int


@dataclass(slots=True)
class ReceiveQueue:
    """Number `number`, with `capacity` places from `base` on."""

    number: int
    base: int
    capacity: int
    pd: int


@dataclass(slots=True)
class Pair:
    """A queue pair: what it belongs to, and what has been chosen when it went to RTR."""

    host: str
    pd: int
    rq: ReceiveQueue
    shared: bool
    transport: str = ""
    congestion: str = ""
    slots: int = 0
    held: tuple[int, int] | None = None  # arena offset and bytes of a packet that Eunomia's receiver holds


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
        self._srqs: dict[int, ReceiveQueue] = {}
        self._qps: dict[int, Pair] = {}

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
        for srq in list(self._srqs):
            self.destroy_srq(srq=srq)
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
            "transports": list(self._shared.transports),
            "congestion": config.congestion,
            "memory_bytes": self._shared.arena_bytes,
            "queue_pair_slots": self._shared.qp_slots,
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
        owned: list[Pair | ReceiveQueue | Region] = [
            *self._qps.values(),
            *self._srqs.values(),
            *self._regions.values(),
        ]
        if any(thing.pd == pd for thing in owned):
            raise RequestError("EBUSY", "the protection domain still has queue pairs, receive queues or regions")
        self._pds.discard(pd)
        return Reply()

    @operation(pd=KEY, length=Whole(1, 1 << 40), access=Whole(0, 15))
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
        try:
            self._engine.remove_region(key)
        except EngineError as error:
            if error.code != errno.ENOENT:  # a peer's SEND has invalidated it
                raise
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

    @operation(cq=CQ)
    def destroy_cq(self, cq: int) -> Reply:
        self._own("completion queue", cq, self._cqs)
        self._engine.destroy_cq(cq)
        self._cqs.discard(cq)
        return Reply()

    @operation(cq=CQ, max=Whole(1, POLL_MAX))
    def poll_cq(self, cq: int, max: int) -> Reply:
        self._own("completion queue", cq, self._cqs)
        return Reply({"completions": self._engine.poll_cq(cq, max)})

    def _new_queue(self, pd: int, max_wr: int, shared: bool) -> ReceiveQueue:
        capacity = 1 << (max_wr - 1).bit_length()
        number = self._shared.rqs.take(1)
        try:
            base = self._shared.receives.take(capacity)
        except Exhausted:
            self._shared.rqs.give_back(number, 1)
            raise
        self._engine.create_rq(number, base, capacity, shared)
        return ReceiveQueue(number, base, capacity, pd)

    def _drop_queue(self, rq: ReceiveQueue) -> None:
        self._engine.destroy_rq(rq.number)

        def give_back() -> None:
            self._shared.rqs.give_back(rq.number, 1)
            self._shared.receives.give_back(rq.base, rq.capacity)

        self._shared.later(give_back)

    @operation(pd=KEY, max_wr=Whole(1, 1 << 16))
    def create_srq(self, pd: int, max_wr: int) -> Reply:
        self._own("protection domain", pd, self._pds)
        rq = self._new_queue(pd, max_wr, shared=True)
        self._srqs[rq.number] = rq
        return Reply({"srq": rq.number, "max_wr": rq.capacity})

    @operation(srq=CQ)
    def destroy_srq(self, srq: int) -> Reply:
        self._own("shared receive queue", srq, self._srqs)
        self._drop_queue(self._srqs[srq])
        del self._srqs[srq]
        return Reply()

    @operation(
        pd=KEY,
        send_cq=CQ,
        recv_cq=CQ,
        srq=Optional(CQ),
        max_send_wr=Whole(1, 1 << 16),
        max_recv_wr=Whole(1, 1 << 16),
    )
    def create_qp(
        self, pd: int, send_cq: int, recv_cq: int, srq: int | None, max_send_wr: int, max_recv_wr: int
    ) -> Reply:
        self._own("protection domain", pd, self._pds)
        for cq in (send_cq, recv_cq):
            self._own("completion queue", cq, self._cqs)
        if srq is not None:
            self._own("shared receive queue", srq, self._srqs)
            if self._srqs[srq].pd != pd:
                raise RequestError("BAD_VALUE", "the shared receive queue is of another protection domain")
        rq = self._new_queue(pd, max_recv_wr, shared=False) if srq is None else self._srqs[srq]
        try:
            qpn = self._shared.qpns.take()
        except Exhausted:
            if srq is None:
                self._drop_queue(rq)
            raise
        self._engine.create_qp(
            qpn, host=self._slot, pd=pd, send_cq=send_cq, recv_cq=recv_cq, max_send_wr=max_send_wr, rq=rq.number
        )
        self._qps[qpn] = self._shared.pairs[qpn] = Pair(self._host.name, pd, rq, srq is not None)
        return Reply({"qpn": qpn, "max_recv_wr": rq.capacity})

    @operation(qpn=QPN)
    def destroy_qp(self, qpn: int) -> Reply:
        self._own("queue pair", qpn, self._qps)
        pair = self._qps.pop(qpn)
        del self._shared.pairs[qpn]
        self._engine.destroy_qp(qpn)
        if not pair.shared:
            self._drop_queue(pair.rq)

        def give_back() -> None:
            self._shared.qpns.give_back(qpn)
            if pair.held:
                self._shared.arena.give_back(*pair.held)

        self._shared.later(give_back)
        return Reply()

    @operation()
    def queue_pairs(self) -> Reply:
        """Those of all clients of the host, for whoever looks at the NIC."""
        found = [
            {"qpn": qpn, "transport": pair.transport, "congestion": pair.congestion, "slots": pair.slots}
            for qpn, pair in self._shared.pairs.items()
            if pair.host == self._host.name
        ]
        return Reply({"queue_pairs": found})

    @operation()
    def open_queue_pairs(self) -> Reply:
        return Reply({}, (self._shared.qps_fd,))

    def _transport(self, name: str | None) -> str:
        transport = name or self._shared.config.transport
        if transport not in self._shared.transports:
            raise RequestError(
                "BAD_VALUE", f"no transport {transport!r}; loaded are {', '.join(self._shared.transports)}"
            )
        return transport

    @operation(
        qpn=QPN,
        dest_qpn=QPN,
        dest_ip=Text(is_ipv4, "an IPv4 address"),
        dest_mac=Optional(Text(is_mac, "a MAC address")),
        rq_psn=PSN,
        path_mtu=Optional(Whole(256, 4096)),
        udp_source_port=Optional(Whole(1, 65535)),
        transport=Optional(Text(lambda value: isinstance(value, str), "a transport's name")),
        congestion=Optional(Choice(CONGESTION_CONTROLS)),
        slots=Optional(Whole(1, SLOTS_MAX)),
        delta=Optional(Whole(1, SLOTS_MAX)),
        priority=Optional(Whole(0, 7)),
        min_rnr_timer=Optional(Whole(0, 31)),
        credits=Optional(Truth()),
        hold_last=Optional(Truth()),
        selective=Optional(Truth()),
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
        transport: str | None,
        congestion: str | None,
        slots: int | None,
        delta: int | None,
        priority: int | None,
        min_rnr_timer: int | None,
        credits: bool | None,
        hold_last: bool | None,
        selective: bool | None,
    ) -> Reply:
        self._own("queue pair", qpn, self._qps)
        pair, config, rate = self._qps[qpn], self._shared.config, self._host.rate_bps
        mac = dest_mac or self._host.gateway_mac
        mtu = path_mtu or config.mtu
        # From 49152, where RoCEv2 takes its source ports (IBTA Annex A17.4.5.3); spread by the queue pair's number.
        port = udp_source_port or 0xC000 | (qpn * 0x9E37 >> 2 & 0x3FFF)
        if mac is None:
            raise RequestError("BAD_VALUE", "dest_mac is needed: the host has no gateway_mac")
        if mtu not in PATH_MTUS or mtu > config.mtu:
            raise RequestError("BAD_VALUE", f"path_mtu must be one of {PATH_MTUS}, at most {config.mtu}")
        transport = self._transport(transport)
        congestion = congestion or config.congestion
        slots = slots or config.slots_for(config.window(rate))
        if slots & (slots - 1):
            raise RequestError("BAD_VALUE", "slots must be a power of two")
        if hold_last and not pair.held:
            pair.held = self._shared.arena.take(mtu), mtu
        flags = {_CREDITS: credits, _HOLD_LAST: hold_last, _SELECTIVE: selective, _CNP: congestion == "dcqcn"}
        self._engine.to_rtr(
            qpn,
            mac,
            remote_qpn=dest_qpn,
            remote_ip=int.from_bytes(bytes(map(int, dest_ip.split("."))), "big"),
            udp_source_port=port,
            path_mtu=mtu,
            pkey=codes.ROCEV2_DEFAULT_PKEY,
            receive_psn=rq_psn,
            transport=self._engine.transports[transport],
            ack_every=0,
            flags=sum(bit for bit, on in flags.items() if on),
            priority=config.priority if priority is None else priority,
            rnr_timer=config.min_rnr_timer if min_rnr_timer is None else min_rnr_timer,
            slots=slots,
            delta=delta or config.delta_for(slots),
            rtt_ns=config.rtt_us * 1000,
            cnp_rate_bps=rate,
            hold_at=pair.held[0] if pair.held else 0,
        )
        pair.transport, pair.congestion, pair.slots = transport, congestion, slots
        return Reply({"path_mtu": mtu, "udp_source_port": port, "slots": slots})

    def _window(self, pair: Pair, asked: int | None) -> int:
        """What is asked for, or the default cut to what the peer can track, if it has the same number of slots."""
        config = self._shared.config
        tracks = pair.slots if self._engine.tracks(pair.transport) else WINDOW_MAX
        if pair.congestion == "none" and asked is None:
            return tracks
        window = asked or config.window(self._host.rate_bps)
        if asked and asked > tracks:
            raise RequestError("BAD_VALUE", f"window_packets is {asked}, but {pair.transport} has {tracks} slots")
        return min(window, tracks)

    @operation(
        qpn=QPN,
        sq_psn=PSN,
        window_packets=Optional(Whole(1, WINDOW_MAX)),
        initial_window=Optional(Whole(1, SLOTS_MAX)),
        probe_per_mille=Optional(Whole(0, 1000)),
        alpha_per_mille=Optional(Whole(0, 60_000)),
        timeout_us=Optional(Whole(1, 60_000_000)),
        retry_cnt=Optional(Whole(0, 7)),
        rnr_retry=Optional(Whole(0, 7)),
        max_rd_atomic=Optional(Whole(1, RD_ATOMIC_MAX)),
        mark_remaining=Optional(Truth()),
    )
    def modify_qp_rts(
        self,
        qpn: int,
        sq_psn: int,
        window_packets: int | None,
        initial_window: int | None,
        probe_per_mille: int | None,
        alpha_per_mille: int | None,
        timeout_us: int | None,
        retry_cnt: int | None,
        rnr_retry: int | None,
        max_rd_atomic: int | None,
        mark_remaining: bool | None,
    ) -> Reply:
        self._own("queue pair", qpn, self._qps)
        pair, config, rate = self._qps[qpn], self._shared.config, self._host.rate_bps
        if not pair.transport:
            raise RequestError("QP_STATE", "the queue pair is not in RTR")
        window = self._window(pair, window_packets)
        timeout_ns = timeout_us * 1000 if timeout_us else config.timeout_ns(rate)
        if pair.congestion == "dcqcn" and rate < DCQCN_RATE_MIN:
            raise RequestError("BAD_VALUE", f"dcqcn needs a host with a rate_bps of at least {DCQCN_RATE_MIN:,}")
        self._engine.to_rts(
            qpn,
            send_psn=sq_psn,
            window_packets=window,
            initial_window=initial_window or config.initial_window_for(rate, window),
            probe_per_mille=config.probe_per_mille if probe_per_mille is None else probe_per_mille,
            alpha_per_mille=config.alpha_per_mille if alpha_per_mille is None else alpha_per_mille,
            ack_interval=config.ack_interval,
            retry_count=config.retry_count if retry_cnt is None else retry_cnt,
            rnr_retry_count=config.rnr_retry_count if rnr_retry is None else rnr_retry,
            max_rd_atomic=max_rd_atomic or RD_ATOMIC_MAX,
            timeout_ns=timeout_ns,
            timeout_low_ns=config.timeout_low_ns(timeout_ns),
            timeout_low_packets=IRN_LOW_PACKETS,
            dcqcn_rate_bps=rate if pair.congestion == "dcqcn" else 0,
            mark_remaining=bool(mark_remaining),
        )
        return Reply({"window_packets": window})

    @operation(qpn=QPN)
    def modify_qp_error(self, qpn: int) -> Reply:
        self._own("queue pair", qpn, self._qps)
        self._engine.to_error(qpn)
        return Reply()

    @operation(qpn=QPN)
    def query_qp(self, qpn: int) -> Reply:
        self._own("queue pair", qpn, self._qps)
        return Reply({"state": codes.QpState(self._engine.qp_state(qpn)).name, "stats": self._engine.qp_stats(qpn)})

    def _post(self, items: list[dict[str, Any]], post: Callable[[dict[str, Any]], None]) -> Reply:
        """Posts in order until one is refused; the error then says how many went in."""
        for index, item in enumerate(items):
            try:
                post(item)
            except EngineError as error:
                name = {errno.ENOMEM: "QUEUE_FULL", errno.ENOTCONN: "QP_STATE"}.get(error.code, "EINVAL")
                raise RequestError(name, f"work request {index}: {error}; {index} were posted") from error
        return Reply()

    @operation(qpn=QPN, requests=Objects(SEND, POST_MAX))
    def post_send(self, qpn: int, requests: list[dict[str, Any]]) -> Reply:
        self._own("queue pair", qpn, self._qps)

        def post(wr: dict[str, Any]) -> None:
            self._engine.post_send(
                qpn,
                wr["opcode"],
                wr_id=wr["wr_id"],
                va=wr["addr"],
                lkey=wr["lkey"],
                length=wr["length"],
                remote_va=wr["remote_addr"],
                rkey=wr["rkey"],
                compare_add=wr["compare_add"],
                swap=wr["swap"],
                immediate=wr["imm_data"],
                flags=wr["send_flags"],
            )

        return self._post(requests, post)

    def _post_receives(self, rq: ReceiveQueue, receives: list[dict[str, Any]]) -> Reply:
        def post(wr: dict[str, Any]) -> None:
            self._engine.post_recv(rq.number, wr_id=wr["wr_id"], va=wr["addr"], lkey=wr["lkey"], length=wr["length"])

        return self._post(receives, post)

    @operation(qpn=QPN, receives=Objects(RECV, POST_MAX))
    def post_recv(self, qpn: int, receives: list[dict[str, Any]]) -> Reply:
        self._own("queue pair", qpn, self._qps)
        if self._qps[qpn].shared:
            raise RequestError("BAD_VALUE", "the queue pair takes its receives from a shared receive queue")
        return self._post_receives(self._qps[qpn].rq, receives)

    @operation(srq=CQ, receives=Objects(RECV, POST_MAX))
    def post_srq_recv(self, srq: int, receives: list[dict[str, Any]]) -> Reply:
        self._own("shared receive queue", srq, self._srqs)
        return self._post_receives(self._srqs[srq], receives)
