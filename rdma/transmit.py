"""The transmit engine (csrc/) as a Python object: one method a function of api.h, errors as exceptions."""

from __future__ import annotations

import ipaddress
import os
import threading
from collections.abc import Callable
from typing import Any

from ebpf.loader import ROOT, Nic
from rdma import build
from wire.codes import NicEvent


class EngineError(Exception):
    """The engine refused; `code` is the errno."""

    def __init__(self, doing: str, code: int) -> None:
        super().__init__(f"{doing}: {os.strerror(code)}")
        self.code = code


def ip_number(text: str) -> int:
    return int(ipaddress.IPv4Address(text))


class Engine:
    """Sends for all hosts of a `Nic`; its loop runs in a thread of its own, without Python's lock."""

    def __init__(self, nic: Nic) -> None:
        self._ffi, self._lib = build.ENGINE.load(ROOT)
        maps = self._ffi.new("struct rdma_maps *")
        for name in ("arena", "qps", "regions", "rqs", "recvs", "counters", "host_states", "icrc", "doorbells"):
            setattr(maps, f"{name}_fd", nic.map_fd("icrc_tables" if name == "icrc" else name))
        maps.max_hosts = nic.defines["NIC_MAX_HOSTS"]
        maps.max_qps = nic.defines["NIC_MAX_QPS"]
        maps.max_regions = nic.defines["NIC_MAX_REGIONS"]
        maps.max_rqs = nic.defines["NIC_MAX_RQS"]
        maps.max_recvs = nic.defines["NIC_MAX_RECVS"]
        maps.arena_bytes = nic.arena_bytes
        maps.doorbell_bytes = nic.doorbell_bytes
        out = self._ffi.new("struct rdma_engine **")
        self._check("open the transmit engine", self._lib.rdma_engine_open(maps, out))
        self._engine = out[0]
        self._thread: threading.Thread | None = None
        self._result = 0
        self._status = self._names("rdma_status", "RDMA_")
        self._wc_opcodes = self._names("rdma_wc_opcode", "RDMA_WC_")
        self._wr_opcodes = {name: value for value, name in self._names("rdma_wr_opcode", "RDMA_WR_").items()}
        transports = self._ffi.string(self._lib.rdma_transport_names()).decode().split()
        self.transports = {name: number for number, name in enumerate(transports) if name in nic.transports}

    def _names(self, enum: str, prefix: str) -> dict[int, str]:
        elements = self._ffi.typeof(f"enum {enum}").relements
        return {value: name.removeprefix(prefix) for name, value in elements.items()}

    @staticmethod
    def _check(doing: str, result: int) -> int:
        if result < 0:
            raise EngineError(doing, -result)
        return result

    def start(self, failed: Callable[[], None]) -> None:
        """Starts the loop; `failed` is called in its thread should it end by itself, and check() then says why."""

        def loop() -> None:
            self._result = self._lib.rdma_engine_run(self._engine)
            if self._result < 0:
                failed()

        self._thread = threading.Thread(target=loop, name="rdma-engine")
        self._thread.start()

    def check(self) -> None:
        self._check("run the transmit engine", self._result)

    def close(self) -> None:
        self._lib.rdma_engine_stop(self._engine)
        if self._thread:
            self._thread.join()
        self._lib.rdma_engine_close(self._engine)

    def die_with_parent(self) -> None:
        self._check("ask to end with the parent process", self._lib.rdma_die_with_parent())

    def add_host(self, slot: int, namespace: int, interface: str, mac: str, ip: str, rate_bps: int) -> None:
        self._check(
            f"open a packet socket on {interface}",
            self._lib.rdma_host_add(
                *(self._engine, slot, namespace, interface.encode()),
                *(bytes.fromhex(mac.replace(":", "")), ip_number(ip), rate_bps),
            ),
        )

    def _read(self, kind: str, function: Any, *key: int) -> dict[str, int]:
        out = self._ffi.new(f"struct {kind} *")
        self._check(kind, function(self._engine, *key, out))
        return {name: getattr(out, name) for name, _ in self._ffi.typeof(f"struct {kind}").fields}

    def counters(self, slot: int) -> dict[str, int]:
        """The NIC's counters of a host by the names of nic_event_t, its totals, and the sender's."""
        value = self._ffi.new("uint64_t *")
        result = {}
        for event in NicEvent:
            self._check("read a counter", self._lib.rdma_host_event(self._engine, slot, int(event), value))
            result[event.name] = value[0]
        totals = self._read("rdma_nic_totals", self._lib.rdma_host_totals, slot)
        sent = self._read("rdma_host_stats", self._lib.rdma_host_stats, slot)
        return {**result, **totals, **{f"sent_{name}": number for name, number in sent.items()}}

    def create_cq(self, capacity: int) -> tuple[int, int]:
        """(number, event file descriptor)"""
        cq, event_fd = self._ffi.new("int *"), self._ffi.new("int *")
        self._check("create a completion queue", self._lib.rdma_cq_create(self._engine, capacity, cq, event_fd))
        return cq[0], event_fd[0]

    def destroy_cq(self, cq: int) -> None:
        self._check("destroy a completion queue", self._lib.rdma_cq_destroy(self._engine, cq))

    def poll_cq(self, cq: int, most: int) -> list[dict[str, int | str]]:
        out = self._ffi.new("struct rdma_completion[]", most)
        count = self._check("poll a completion queue", self._lib.rdma_cq_poll(self._engine, cq, out, most))
        return [
            {
                "wr_id": c.wr_id,
                "qp_num": c.qpn,
                "status": self._status[c.status],
                "opcode": self._wc_opcodes[c.opcode],
                "byte_len": c.byte_len,
                "wc_flags": c.flags,
                "imm_data": c.immediate,
            }
            for c in out[0:count]
        ]

    def add_region(self, rkey: int, offset: int, length: int, va: int, access: int, pd: int, owner_ip: str) -> None:
        owner = ip_number(owner_ip)
        result = self._lib.rdma_region_add(self._engine, rkey, offset, length, va, access, pd, owner)
        self._check("register memory", result)

    def remove_region(self, rkey: int) -> None:
        self._check("deregister memory", self._lib.rdma_region_remove(self._engine, rkey))

    def create_rq(self, rq: int, base: int, capacity: int, shared: bool) -> None:
        result = self._lib.rdma_rq_create(self._engine, rq, base, capacity, int(shared))
        self._check("create a receive queue", result)

    def destroy_rq(self, rq: int) -> None:
        self._check("destroy a receive queue", self._lib.rdma_rq_destroy(self._engine, rq))

    def post_recv(self, rq: int, **receive: int) -> None:
        wr = self._ffi.new("struct rdma_recv_wr *", receive)
        self._check("post a receive", self._lib.rdma_post_recv(self._engine, rq, wr))

    def create_qp(self, qpn: int, **init: int) -> None:
        attributes = self._ffi.new("struct rdma_qp_init *", init)
        self._check("create a queue pair", self._lib.rdma_qp_create(self._engine, qpn, attributes))

    def destroy_qp(self, qpn: int) -> None:
        self._check("destroy a queue pair", self._lib.rdma_qp_destroy(self._engine, qpn))

    def to_rtr(self, qpn: int, remote_mac: str, **path: int) -> None:
        attributes = self._ffi.new("struct rdma_qp_path *", path)
        attributes.remote_mac = list(bytes.fromhex(remote_mac.replace(":", "")))
        self._check("move the queue pair to RTR", self._lib.rdma_qp_to_rtr(self._engine, qpn, attributes))

    def to_rts(self, qpn: int, **sending: int) -> None:
        attributes = self._ffi.new("struct rdma_qp_sending *", sending)
        self._check("move the queue pair to RTS", self._lib.rdma_qp_to_rts(self._engine, qpn, attributes))

    def to_error(self, qpn: int) -> None:
        self._check("move the queue pair to ERROR", self._lib.rdma_qp_to_error(self._engine, qpn))

    def qp_state(self, qpn: int) -> int:
        out = self._ffi.new("uint32_t *")
        self._check("query the queue pair", self._lib.rdma_qp_state(self._engine, qpn, out))
        return out[0]

    def qp_stats(self, qpn: int) -> dict[str, int]:
        return self._read("rdma_qp_stats", self._lib.rdma_qp_stats, qpn)

    def post_send(self, qpn: int, opcode: str, **request: int) -> None:
        """`opcode`: a name of libibverbs' ibv_wr_opcode without its prefix."""
        wr = self._ffi.new("struct rdma_send_wr *", {"opcode": self._wr_opcodes[opcode], **request})
        self._check(f"post a {opcode}", self._lib.rdma_qp_post_send(self._engine, qpn, wr))

    def tracks(self, transport: str) -> bool:
        """Whether its receiver has a slot for each packet of the window."""
        return bool(self._lib.rdma_transport_tracks(self.transports[transport]))
