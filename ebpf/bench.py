"""How long the XDP RNIC takes for a packet: `python -m ebpf.bench`.

BPF_PROG_RUN gives the mean time of many repetitions in the kernel, without interface and driver: `empty_ns` for an
empty XDP program, the others, in the same run, for the whole of ours.  For packets that change the queue pair, every
repetition starts from the same state; putting it back is measured apart and taken off (see the end of rnic_xdp.c).
Packets carry 1,024 bytes; `in_order_ns` includes placing them, `acknowledged_ns` the ACK too.
"""

from __future__ import annotations

import ipaddress
import json
import mmap
import statistics
import sys
from typing import Any

from ebpf import build
from ebpf.bpf_syscall import Runner
from ebpf.loader import ROOT, Nic, NicSizes
from wire import codes

REPEAT = 100_000
ROUNDS = 7
_PAYLOAD = 1024
_XDP_DROP, _XDP_TX = 1, 3
_LOOPBACK = 1  # BPF_PROG_RUN pretends that frames came in by lo
_MAC, _PEER_MAC = "02:00:00:00:00:01", "02:00:00:00:00:02"
_IP, _PEER_IP = "10.0.0.1", "10.0.0.2"
_QPN, _KEY, _PSN = 0x10001, 0x10001, 1000


def _frame(opcode: codes.BthOpcode, psn: int, ack_req: bool = False) -> bytes:
    from scapy.layers.inet import IP, UDP
    from scapy.layers.l2 import Ether
    from scapy.packet import Raw

    from wire.layers import BTH

    bth = BTH(opcode=opcode, dest_qpn=_QPN, psn=psn, ack_req=int(ack_req))
    ip = IP(src=_PEER_IP, dst=_IP, id=0, flags="DF", tos=2)
    udp = UDP(sport=50000, dport=codes.ROCEV2_UDP_PORT, chksum=0)
    return bytes(Ether(src=_PEER_MAC, dst=_MAC) / ip / udp / bth / Raw(bytes(_PAYLOAD)))


def _ip_number(text: str) -> int:
    return int(ipaddress.IPv4Address(text))


class _Bench:
    def __init__(self, nic: Nic) -> None:
        self._ffi, self._lib = build.NATIVE.load(ROOT)
        self._maps: list[mmap.mmap] = []
        slot = nic.register_host(_MAC, _LOOPBACK)
        qps = self._cast(
            "struct nic_qp *", self._map(nic, "qps", nic.defines["NIC_MAX_QPS"] * self._ffi.sizeof("struct nic_qp"))
        )
        regions = self._cast("struct nic_region *", self._map(nic, "regions", nic.defines["NIC_MAX_REGIONS"] * 64))
        self._lib.nic_native_icrc_tables(
            self._cast("wire_u32 *", self._map(nic, "icrc_tables", self._lib.nic_native_icrc_tables(self._ffi.NULL)))
        )
        self._saved = self._map(nic, "bench", 4096)
        self.qp = qps[_QPN % nic.defines["NIC_MAX_QPS"]]
        self._qp_slot = _QPN % nic.defines["NIC_MAX_QPS"]
        config = self.qp.config
        config.local_ip, config.remote_ip = _ip_number(_IP), _ip_number(_PEER_IP)
        config.remote_qpn, config.pd, config.host, config.path_mtu = 5, 1, slot, _PAYLOAD
        config.pkey, config.state = codes.ROCEV2_DEFAULT_PKEY, codes.QpState.RTS
        self._lib.nic_native_icrc_bases(self._ffi.addressof(config))
        config.qpn = _QPN
        region = regions[_KEY % nic.defines["NIC_MAX_REGIONS"]]
        region.va, region.length, region.access, region.pd, region.rkey = 0, 1 << 16, 7, 1, _KEY
        region.owner_ip = config.local_ip

    def _map(self, nic: Nic, name: str, length: int) -> mmap.mmap:
        self._maps.append(mmap.mmap(nic.map_fd(name), -(-length // mmap.PAGESIZE) * mmap.PAGESIZE))
        return self._maps[-1]

    def _cast(self, kind: str, where: mmap.mmap) -> Any:
        return self._ffi.cast(kind, self._ffi.from_buffer(where))

    def inside_message(self, frame: bytes, nak_outstanding: bool = False) -> None:
        """The state that every repetition starts from: _PSN is expected, inside a long message."""
        responder = self.qp.receiver[0]
        responder.epsn, responder.next_va, responder.remaining, responder.rkey = _PSN, 0, 1 << 16, _KEY
        responder.nak_outstanding = nak_outstanding
        state = bytes(self._ffi.buffer(self._ffi.addressof(responder)))
        numbers = self._qp_slot.to_bytes(4, sys.byteorder) + len(frame).to_bytes(4, sys.byteorder)
        saved = state + numbers + frame[:80]
        self._saved[: len(saved)] = saved


def run(repeat: int = REPEAT, rounds: int = ROUNDS) -> dict[str, Any]:
    """Medians over `rounds`, each of `repeat` repetitions, in nanoseconds a packet."""
    with Nic(NicSizes(memory_bytes=1 << 20), ("gbn",), extra_flags=["-DNIC_BENCH"]) as nic:
        bench = _Bench(nic)
        empty, rnic = Runner(nic.pass_fd), Runner(nic.program_fd())
        restore, receive = (Runner(nic.load(name)) for name in ("bench_restore_only", "bench_gbn"))
        middle = codes.BthOpcode.RC_WRITE_MIDDLE
        plain, asking, ahead = _frame(middle, _PSN), _frame(middle, _PSN, True), _frame(middle, _PSN + 5)

        def net(runner: Runner, frame: bytes, base: Runner) -> float:
            pairs = [(runner.run(frame, repeat), base.run(frame, repeat)) for _ in range(rounds)]
            return statistics.median(one.nanoseconds - other.nanoseconds for one, other in pairs)

        result: dict[str, float] = {}
        empty_ns = statistics.median(empty.run(plain, repeat).nanoseconds for _ in range(rounds))
        for name, frame, verdict in (("in_order_ns", plain, _XDP_DROP), ("acknowledged_ns", asking, _XDP_TX)):
            bench.inside_message(frame)
            if receive.run(frame).verdict != verdict or bench.qp.receiver[0].epsn != _PSN + 1:
                raise RuntimeError(f"the packet for {name} was not taken as meant; the figures would mean nothing")
            result[name] = empty_ns + net(receive, frame, restore)
        bench.inside_message(ahead, nak_outstanding=True)
        result["out_of_order_ns"] = empty_ns + net(rnic, ahead, empty)
        return {
            "empty_ns": empty_ns,
            "payload_bytes": _PAYLOAD,
            "repeat": repeat,
            "transports": {"gbn": result},
        }


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
