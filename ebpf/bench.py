"""How long the XDP RNIC takes for a packet: `python -m ebpf.bench`.

BPF_PROG_RUN gives the mean time of many repetitions in the kernel, without interface and driver: `empty_ns` for an
empty XDP program, the others, in the same run, for the whole of ours.  Every repetition starts from the same state;
putting it back is measured apart and taken off (see the end of rnic_xdp.c).  Packets carry 1,024 bytes, and placing
them is included:

- `in_order_ns`: a data packet in its turn.  go-back-N says nothing to it; the others acknowledge each packet.
- `acknowledged_ns`: go-back-N, and the packet asks for an acknowledgement.
- `out_of_order_ns`: a data packet behind a gap.  go-back-N drops it, the others place it and send SACK.
- `ack_ns`: an acknowledge packet that comes to the sender, without payload.
"""

from __future__ import annotations

import ipaddress
import json
import mmap
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ebpf import build
from ebpf.bpf_syscall import Runner
from ebpf.loader import ROOT, Nic, NicSizes, transport_names
from wire import codes

REPEAT = 100_000
ROUNDS = 7
_PAYLOAD = 1024
_XDP_DROP, _XDP_TX = 1, 3
_LOOPBACK = 1  # BPF_PROG_RUN pretends that frames came in by lo
_MAC, _PEER_MAC = "02:00:00:00:00:01", "02:00:00:00:00:02"
_IP, _PEER_IP = "10.0.0.1", "10.0.0.2"
_QPN, _KEY, _PSN, _UNA = 0x10001, 0x10001, 1000, 5000
_GAP = 5
_MESSAGE = 1 << 16
_HEAD = 96


@dataclass(frozen=True, slots=True)
class _Case:
    name: str
    frame: bytes
    verdict: int
    event: codes.NicEvent  # what it must count as, so that the figure means what its name says


def _frame(bth: Any, after: Any, payload: int) -> bytes:
    from scapy.layers.inet import IP, UDP
    from scapy.layers.l2 import Ether
    from scapy.packet import Raw

    ip = IP(src=_PEER_IP, dst=_IP, id=0, flags="DF", tos=2)
    udp = UDP(sport=50000, dport=codes.ROCEV2_UDP_PORT, chksum=0)
    packet = Ether(src=_PEER_MAC, dst=_MAC) / ip / udp / bth
    packet = packet / after if after is not None else packet
    made = bytes(packet / Raw(bytes(payload)) if payload else packet)
    return made.ljust(_HEAD, b"\0")  # as a link pads


def _data(psn: int, extended: bool, ack_req: bool = False) -> bytes:
    """From the middle of a WRITE of _MESSAGE bytes whose first packet is two before _PSN."""
    from wire.layers import BTH, RETH, XData

    bth = BTH(opcode=codes.BthOpcode.RC_WRITE_MIDDLE, dest_qpn=_QPN, psn=psn, ack_req=int(ack_req))
    if not extended:
        return _frame(bth, None, _PAYLOAD)
    bth.extension = codes.BthExtension.DATA
    xdata = XData(ipsn=psn - _PSN + 2, head=_PSN)
    return _frame(bth, xdata / RETH(virtual_address=0, rkey=_KEY, dma_length=_MESSAGE), _PAYLOAD)


def _ack(extended: bool) -> bytes:
    from wire.layers import AETH, BTH, XAck

    bth = BTH(opcode=codes.BthOpcode.RC_ACKNOWLEDGE, dest_qpn=_QPN, psn=_UNA)
    aeth = AETH(syndrome=codes.AETH_CREDITS_INVALID, msn=1)
    if not extended:
        return _frame(bth, aeth, 0)
    bth.extension = codes.BthExtension.ACK
    return _frame(bth, XAck(sack_valid=1, sack_psn=_UNA, path=50000) / aeth, 0)


def _cases(transport: str) -> list[_Case]:
    placed, early = codes.NicEvent.REQUEST_PLACED, codes.NicEvent.REQUEST_OUT_OF_ORDER
    extended = transport != "gbn"
    ack = _Case("ack_ns", _ack(extended), _XDP_DROP, codes.NicEvent.ACK_RECEIVED)
    if extended:
        return [
            _Case("in_order_ns", _data(_PSN, True), _XDP_TX, placed),
            _Case("out_of_order_ns", _data(_PSN + _GAP, True), _XDP_TX, early),
            ack,
        ]
    return [
        _Case("in_order_ns", _data(_PSN, False), _XDP_DROP, placed),
        _Case("acknowledged_ns", _data(_PSN, False, ack_req=True), _XDP_TX, placed),
        _Case("out_of_order_ns", _data(_PSN + _GAP, False), _XDP_DROP, codes.NicEvent.REQUEST_SEQ_ERROR),
        ack,
    ]


def _ip_number(text: str) -> int:
    return int(ipaddress.IPv4Address(text))


class _Bench:
    def __init__(self, nic: Nic) -> None:
        self._ffi, self._lib = build.NATIVE.load(ROOT)
        self._maps: list[mmap.mmap] = []
        self._slot = nic.register_host(_MAC, _LOOPBACK)
        sizeof = self._ffi.sizeof
        qps = self._array(nic, "qps", nic.defines["NIC_MAX_QPS"], "struct nic_qp")
        regions = self._array(nic, "regions", nic.defines["NIC_MAX_REGIONS"], "struct nic_region")
        self._counters = self._array(nic, "counters", nic.defines["NIC_MAX_HOSTS"], "struct nic_counters")[self._slot]
        self._states = self._array(nic, "host_states", nic.defines["NIC_MAX_HOSTS"], "struct nic_host_state")
        words = self._lib.nic_native_icrc_tables(self._ffi.NULL)
        self._lib.nic_native_icrc_tables(self._array(nic, "icrc_tables", words // 4, "wire_u32"))
        saved = sum(sizeof(f"struct nic_{part}") for part in ("receiver", "sender", "host_state")) + 16 + _HEAD
        self._saved = self._map(nic, "bench", saved)
        self._qp_slot = _QPN % nic.defines["NIC_MAX_QPS"]
        self._qp = qps[self._qp_slot]
        self._region = regions[_KEY % nic.defines["NIC_MAX_REGIONS"]]

    def _map(self, nic: Nic, name: str, length: int) -> mmap.mmap:
        self._maps.append(mmap.mmap(nic.map_fd(name), -(-length // mmap.PAGESIZE) * mmap.PAGESIZE))
        return self._maps[-1]

    def _array(self, nic: Nic, name: str, count: int, kind: str) -> Any:
        memory = self._map(nic, name, count * self._ffi.sizeof(kind))
        return self._ffi.cast(f"{kind} *", self._ffi.from_buffer(memory))

    def prepare(self, transport: int, frame: bytes, host_state: bool, nak_outstanding: bool) -> None:
        """The state that every repetition starts from: _PSN is expected, inside a long message; _UNA is outstanding."""
        ffi, qp = self._ffi, self._qp
        ffi.memmove(ffi.addressof(qp), bytes(ffi.sizeof(qp)), ffi.sizeof(qp))
        ffi.memmove(self._states + self._slot, bytes(4096), ffi.sizeof("struct nic_host_state"))
        config, receiver, region = qp.config, qp.receiver[0], self._region
        config.local_ip, config.remote_ip = _ip_number(_IP), _ip_number(_PEER_IP)
        config.remote_qpn, config.pd, config.host, config.path_mtu = 5, 1, self._slot, _PAYLOAD
        config.pkey, config.state, config.transport = codes.ROCEV2_DEFAULT_PKEY, codes.QpState.RTS, transport
        config.slots, config.window, config.delta, config.initial_window = 64, 64, 32, 10
        config.flags, config.random_seed = self._lib.NIC_QP_SELECTIVE, 1
        config.first_psn = [_UNA, 0]
        self._lib.nic_native_icrc_bases(ffi.addressof(config))
        config.qpn = _QPN
        region.va, region.length, region.access, region.pd, region.rkey = 0, _MESSAGE, 7, 1, _KEY
        region.owner_ip = config.local_ip
        receiver.epsn, receiver.next_va, receiver.remaining, receiver.rkey = _PSN, 0, _MESSAGE, _KEY
        receiver.nak_outstanding = nak_outstanding
        qp.sender[0].snd_una, qp.emitter[0].snd_nxt, qp.emitter[0].posted = _UNA, _UNA + 20, _UNA + 20
        state = bytes(ffi.buffer(ffi.addressof(qp.receiver[0]))) + bytes(ffi.buffer(ffi.addressof(qp.sender[0])))
        state += bytes(ffi.buffer(ffi.addressof(self._states[self._slot])))
        host = self._slot if host_state else 0
        numbers = b"".join(number.to_bytes(4, sys.byteorder) for number in (self._qp_slot, host, len(frame), 0))
        saved = state + numbers + frame[:_HEAD]
        self._saved[: len(saved)] = saved

    def events(self, event: codes.NicEvent) -> int:
        return int(self._counters.events[event])


def run(
    repeat: int = REPEAT, rounds: int = ROUNDS, transports: Sequence[str] | None = None, check_icrc: bool = False
) -> dict[str, Any]:
    """Medians over `rounds`, each of `repeat` repetitions, in nanoseconds a packet."""
    names = transport_names()
    with Nic(NicSizes(memory_bytes=1 << 20), transports or names, check_icrc, extra_flags=["-DNIC_BENCH"]) as nic:
        bench = _Bench(nic)
        empty, restore = Runner(nic.pass_fd), Runner(nic.load("restore"))
        plain = _data(_PSN, False)
        empty_ns = statistics.median(empty.run(plain, repeat).nanoseconds for _ in range(rounds))
        results: dict[str, dict[str, float]] = {}
        for name in nic.transports:
            program, costs = Runner(nic.program_fd(name)), results.setdefault(name, {})
            for case in _cases(name):
                bench.prepare(names.index(name), case.frame, name == "eunomia", case.name == "out_of_order_ns")
                before = bench.events(case.event)
                if program.run(case.frame).verdict != case.verdict or bench.events(case.event) != before + 1:
                    raise RuntimeError(f"{name}: the packet for {case.name} was not taken as meant")
                pairs = [
                    (program.run(case.frame, repeat).nanoseconds, restore.run(case.frame, repeat).nanoseconds)
                    for _ in range(rounds)
                ]
                costs[case.name] = empty_ns + statistics.median(one - other for one, other in pairs)
        return {"empty_ns": empty_ns, "payload_bytes": _PAYLOAD, "repeat": repeat, "transports": results}


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
