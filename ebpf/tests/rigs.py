"""Two places to run the NIC: natively, and as the loaded XDP program under BPF_PROG_RUN.  They look the same."""

from __future__ import annotations

import mmap
from typing import Any, Protocol

from ebpf import build
from ebpf.bpf_syscall import Runner
from ebpf.loader import ROOT, Nic, NicSizes, mac_number, transport_names
from ebpf.tests import packets
from wire.codes import NicEvent, QpState

LOOPBACK = 1  # BPF_PROG_RUN pretends that frames came in by lo
OTHER_MAC = "02:00:00:00:00:08"  # of a host with another interface
HOST_MAC, HOST_IP = packets.ENDS.dst_mac, packets.ENDS.dst_ip
PARTNER_MAC = "02:00:00:00:00:77"  # of the other end of the host's link
RATE_BPS = 10**9
SIZES = NicSizes(
    memory_bytes=1 << 17,
    hosts=3,
    queue_pairs=16,
    regions=16,
    receive_queues=16,
    receives=16,
    doorbell_pages=1,
    chunk_shift_max=16,
)
DROP, PASS, TX = 1, 2, 3
ffi, lib = build.NATIVE.load(ROOT)

SLOTS = 16  # of queue pairs, regions, receive queues and receives
QP_BYTES, REGION_BYTES, COUNTER_BYTES = (ffi.sizeof(f"struct nic_{name}") for name in ("qp", "region", "counters"))
RQ_BYTES, RECV_BYTES = ffi.sizeof("struct nic_rq"), ffi.sizeof("struct nic_recv")
STATE_BYTES = ffi.sizeof("struct nic_host_state")
TRANSPORTS = transport_names()


def ip_number(text: str) -> int:
    return int.from_bytes(bytes(map(int, text.split("."))), "big")


class Rig(Protocol):
    qps: Any
    regions: Any
    rqs: Any
    recvs: Any
    counters: Any
    host_states: Any
    arena: memoryview
    host: int

    def receive(self, frame: bytes) -> tuple[int, bytes]: ...
    def close(self) -> None: ...


class NativeRig:
    """`grow`: frames may grow, as under BPF_PROG_RUN; on a veth they cannot."""

    host = 1

    def __init__(self, grow: bool = False, check_icrc: bool = False) -> None:
        self._room = 74 if grow else 0
        self.now = 0
        self._nic = ffi.new("struct nic_native *")
        self.qps = self._nic.qps = self._qps = ffi.new("struct nic_qp[16]")
        self.regions = self._nic.regions = self._regions = ffi.new("struct nic_region[16]")
        self.rqs = self._nic.rqs = self._rqs = ffi.new("struct nic_rq[16]")
        self.recvs = self._nic.recvs = self._recvs = ffi.new("struct nic_recv[16]")
        self.counters = self._nic.counters = self._counters = ffi.new("struct nic_counters[4]")
        self.host_states = self._nic.host_states = self._states = ffi.new("struct nic_host_state[4]")
        self._nic.partner = mac_number(PARTNER_MAC)
        self._nic.pause_quantum_ps = 512 * 10**12 // RATE_BPS
        self._nic.check_icrc = check_icrc
        self._arena = ffi.new("wire_u8[]", SIZES.memory_bytes)
        self._nic.arena = self._arena
        self.arena = memoryview(ffi.buffer(self._arena))
        self._nic.arena_bytes = SIZES.memory_bytes
        self._nic.max_qps = self._nic.max_regions = self._nic.max_rqs = self._nic.max_recvs = SLOTS

    def receive(self, frame: bytes) -> tuple[int, bytes]:
        # No more on the heap than the frame needs, so that a sanitizer sees a read behind it.
        room = max(len(frame), self._room)
        buffer = ffi.new("wire_u8[]", room)
        ffi.memmove(buffer, frame, len(frame))
        length = ffi.new("wire_u32 *", len(frame))
        action = lib.nic_native_receive(self._nic, mac_number(HOST_MAC), self.host, buffer, length, room, self.now)
        return action, bytes(ffi.buffer(buffer, length[0]))

    def close(self) -> None:
        pass


class XdpRig:
    def __init__(self, transports: tuple[str, ...] = TRANSPORTS, check_icrc: bool = False) -> None:
        self.nic = Nic(SIZES, transports, check_icrc)
        self.host = self.nic.register_host(HOST_MAC, LOOPBACK, RATE_BPS, PARTNER_MAC)
        self.nic.register_host(OTHER_MAC, LOOPBACK + 76)
        self._maps: list[mmap.mmap] = []
        self.qps = ffi.cast("struct nic_qp *", self._map("qps", SLOTS * QP_BYTES))
        self.regions = ffi.cast("struct nic_region *", self._map("regions", SLOTS * REGION_BYTES))
        self.rqs = ffi.cast("struct nic_rq *", self._map("rqs", SLOTS * RQ_BYTES))
        self.recvs = ffi.cast("struct nic_recv *", self._map("recvs", SLOTS * RECV_BYTES))
        self.counters = ffi.cast("struct nic_counters *", self._map("counters", 4 * COUNTER_BYTES))
        self.host_states = ffi.cast("struct nic_host_state *", self._map("host_states", 4 * STATE_BYTES))
        words = ffi.cast("wire_u32 *", self._map("icrc_tables", lib.nic_native_icrc_tables(ffi.NULL)))
        lib.nic_native_icrc_tables(words)
        self._map("arena", self.nic.arena_bytes)
        self.arena = memoryview(self._maps[-1])
        self._runner = Runner(self.nic.program_fd())

    def _map(self, name: str, length: int) -> Any:
        self._maps.append(mmap.mmap(self.nic.map_fd(name), -(-length // mmap.PAGESIZE) * mmap.PAGESIZE))
        return ffi.from_buffer(self._maps[-1])

    def receive(self, frame: bytes) -> tuple[int, bytes]:
        result = self._runner.run(frame)
        return result.verdict, result.frame

    def close(self) -> None:
        self.nic.close()


QPN = 0x123452  # slot 2
REMOTE_QPN = 0xABCDE1
RKEY = 0x9ABCDEF3  # slot 3
PD = 77
VA = 0x7F00_1234_5000
REGION_AT, REGION_LENGTH = 8192, 3 * 4096
MTU = 256


class Bench:
    """A rig with one connected queue pair and one region, surrounded by canaries."""

    CANARY = 0xA5

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.reset()

    def reset(self, epsn: int = 100, snd_una: int = 5000, snd_nxt: int = 5000) -> None:
        rig = self.rig
        for array, length in (
            (rig.qps, SLOTS * QP_BYTES),
            (rig.regions, SLOTS * REGION_BYTES),
            (rig.rqs, SLOTS * RQ_BYTES),
            (rig.recvs, SLOTS * RECV_BYTES),
            (rig.counters, 4 * COUNTER_BYTES),
            (rig.host_states, 4 * STATE_BYTES),
        ):
            ffi.memmove(array, bytes(length), length)
        rig.arena[:] = bytes([self.CANARY]) * len(rig.arena)
        rig.arena[REGION_AT : REGION_AT + REGION_LENGTH] = bytes(REGION_LENGTH)
        config = self.qp.config
        config.remote_qpn, config.pd, config.host = REMOTE_QPN, PD, rig.host
        config.local_ip, config.remote_ip = ip_number(HOST_IP), ip_number(packets.ENDS.src_ip)
        config.path_mtu, config.pkey, config.state = MTU, 0xFFFF, QpState.RTS
        lib.nic_native_icrc_bases(ffi.addressof(config))
        config.qpn = QPN
        self.emitter.snd_nxt = snd_nxt
        self.receiver.epsn = epsn
        self.sender.snd_una = snd_una
        region = self.region
        region.va, region.length, region.arena_offset = VA, REGION_LENGTH, REGION_AT
        region.access, region.pd, region.owner_ip, region.rkey = 3, PD, config.local_ip, RKEY

    @property
    def qp(self) -> Any:
        return self.rig.qps[QPN % 16]

    @property
    def receiver(self) -> Any:
        return self.qp.receiver[0]

    @property
    def sender(self) -> Any:
        return self.qp.sender[0]

    @property
    def emitter(self) -> Any:
        return self.qp.emitter[0]

    @property
    def region(self) -> Any:
        return self.rig.regions[RKEY % 16]

    def post_receives(self, *receives: tuple[int, int], lkey: int = RKEY, shared: bool = False, queue: int = 1) -> None:
        """Receives, as (address, length), on a receive queue that becomes the queue pair's."""
        rq = self.rig.rqs[queue]
        rq.mask, rq.in_use = SLOTS - 1, 1
        self.qp.config.rq = queue
        self.qp.config.flags |= lib.NIC_QP_SRQ if shared else 0
        for va, length in receives:
            recv = self.rig.recvs[rq.posted % SLOTS]
            recv.va, recv.length, recv.lkey, recv.flags = va, length, lkey, 0
            rq.posted += 1

    @property
    def data(self) -> memoryview:
        return self.rig.arena[REGION_AT : REGION_AT + REGION_LENGTH]

    def events(self, host: int | None = None) -> dict[str, int]:
        counts = self.rig.counters[self.rig.host if host is None else host].events
        return {event.name: counts[event] for event in NicEvent if counts[event]}

    def canaries_intact(self) -> bool:
        arena = self.rig.arena
        before, after = arena[:REGION_AT], arena[REGION_AT + REGION_LENGTH :]
        return all(part == bytes([self.CANARY]) * len(part) for part in (before, after))

    def receive(self, frame: bytes) -> tuple[int, bytes]:
        return self.rig.receive(frame)
