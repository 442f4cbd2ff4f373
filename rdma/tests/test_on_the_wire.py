"""What the engine's packets say, read from the link with struct alone: IBTA's headers and p4src/include/headers.p4."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from rdma.tests.lab import Network, collect
from rdma.verbs import Opcode, SendFlags, SendWR

READ_REQUEST, READ_RESPONSE_MIDDLE = 0x0C, 0x0E
SWALLOWED = bytes(60)  # goes back where the frame came from, and nobody takes it


@dataclass(frozen=True)
class Packet:
    opcode: int
    dscp: int
    psn: int
    extension: int
    rest: bytes

    @classmethod
    def read(cls, frame: bytes) -> Packet | None:
        if frame[12:14] != b"\x08\x00" or frame[36:38] != b"\x12\xb7":
            return None
        psn = int.from_bytes(frame[51:54], "big")
        return cls(frame[42], frame[15] >> 2, psn, frame[50] & 0x7F, frame[54:])

    @property
    def xdata(self) -> tuple[int, int, int, int, int, int]:
        """synchronise, last, msn, ipsn, wqe_sn, head"""
        flags, ipsn, wqe_sn, head = struct.unpack("!IIII", self.rest[:16])
        return flags >> 30 & 1, flags >> 29 & 1, flags & 0xFFFFFF, ipsn, wqe_sn, head


def recorder(
    seen: list[Packet], swallow: Callable[[Packet], bool] = lambda _: False
) -> Callable[[bytes], bytes | None]:
    """A link's `answer` that notes every packet, and lets some of them disappear."""

    def look(frame: bytes) -> bytes | None:
        packet = Packet.read(frame)
        if packet:
            seen.append(packet)
        return SWALLOWED if packet and swallow(packet) else None

    return look


def test_every_packet_says_where_it_belongs(network: Network) -> None:
    """MP-RDMA, section 3.1, IRN's sequence numbers, Eunomia's Head, over a wrap of the PSNs."""
    seen: list[Packet] = []
    pair = network.made.pair(8192, psns=(0xFFFFFE, 50), rtr={"transport": "irn", "priority": 2})
    network.link.answer = recorder(seen)
    pair.qps[1].post_recv(*[pair.recv(length=4000, wr_id=i) for i in range(2)])
    sync = SendFlags.SIGNALED | SendFlags.SYNCHRONISE
    pair.qps[0].post_send(
        pair.write(wr_id=1, length=2500),
        pair.request(Opcode.SEND, wr_id=2, length=1500, send_flags=sync),
        pair.request(Opcode.RDMA_READ, wr_id=3, length=1030),
        pair.request(Opcode.RDMA_WRITE_WITH_IMM, wr_id=4, length=1),
    )
    collect(pair.cqs[0], 4)
    collect(pair.cqs[1], 2)
    head = 0xFFFFFE
    requests = {p.psn: (p.opcode, *p.xdata[:1], *p.xdata[2:]) for p in seen if p.extension == 1 and p.xdata[5] == head}
    assert requests == {  # opcode, synchronise, msn, ipsn, wqe_sn, head
        0xFFFFFE: (0x06, 0, 0, 0, 0, head),
        0xFFFFFF: (0x07, 0, 0, 1, 0, head),
        0x000000: (0x08, 0, 0, 2, 0, head),
        0x000001: (0x00, 1, 1, 0, 0, head),
        0x000002: (0x02, 1, 1, 1, 0, head),
        0x000003: (READ_REQUEST, 0, 2, 0, 0, head),
        0x000004: (0x0B, 0, 3, 0, 1, head),
    }
    last = {p.psn: p.xdata[1] for p in seen if p.extension == 1 and p.xdata[5] == head}
    assert last[0x000004] == 1
    # The answers are a stream of their own; it starts with the number that the peer's requests start with.
    answers = {p.psn: (p.opcode, p.xdata[3]) for p in seen if p.opcode in range(0x0D, 0x11)}
    assert answers == {50: (0x0D, 0), 51: (0x0F, 1)}
    assert {p.dscp for p in seen if p.extension == 1} == {2 << 3}


def test_go_back_n_asks_for_the_rest_of_a_read(network: Network) -> None:
    """A response is lost: the request comes again from there on (IBTA vol. 1, section 9.7.5.1.7)."""
    seen: list[Packet] = []
    pair = network.made.pair(8192, psns=(100, 7), rtr={"transport": "gbn"})
    pair.regions[1].buf[:] = os.urandom(8192)
    left = 1

    def third(packet: Packet) -> bool:
        nonlocal left
        lost = left > 0 and (packet.opcode, packet.psn) == (READ_RESPONSE_MIDDLE, 102)
        left -= lost
        return lost

    network.link.answer = recorder(seen, third)
    pair.qps[0].post_send(pair.request(Opcode.RDMA_READ, length=5000))
    collect(pair.cqs[0], 1)
    assert pair.regions[0].buf[:5000] == pair.regions[1].buf[:5000]
    there = pair.regions[1]
    asked = [(p.psn, *struct.unpack("!QII", p.rest[:16])) for p in seen if p.opcode == READ_REQUEST]
    assert asked[0] == (100, there.addr, there.rkey, 5000)
    assert (102, there.addr + 2048, there.rkey, 5000 - 2048) in asked[1:]


def test_an_atomic_that_is_asked_for_again_is_done_once(network: Network) -> None:
    """Its answer is lost; go-back-N's responder gives what it had the first time (IBTA vol. 1, section 9.7.4.3)."""
    seen: list[Packet] = []
    pair = network.made.pair(64, rtr={"transport": "gbn"})
    lost = iter([True, True])
    network.link.answer = recorder(seen, lambda packet: packet.opcode == 0x12 and next(lost, False))
    there = pair.regions[1]
    add = SendWR(1, Opcode.ATOMIC_FETCH_AND_ADD, pair.regions[0].sge(8, 8), there.addr, there.rkey, compare_add=5)
    pair.qps[0].post_send(add)
    collect(pair.cqs[0], 1)
    assert int.from_bytes(there.buf[:8], "little") == 5
    assert int.from_bytes(pair.regions[0].buf[8:16], "little") == 0
    assert sum(p.opcode == 0x14 for p in seen) >= 3


@pytest.mark.parametrize("transport", ["mprdma", "irn"])
def test_paths(network: Network, transport: str) -> None:
    """MP-RDMA's first packets take random UDP source ports, and acknowledgements keep those; the others have one."""
    ports: set[bytes] = set()

    def look(frame: bytes) -> None:
        packet = Packet.read(frame)
        if packet and packet.extension == 1:
            ports.add(frame[34:36])

    pair = network.made.pair(100_000, rtr={"transport": transport, "udp_source_port": 50_000})
    network.link.answer = look
    pair.qps[0].post_send(pair.write())
    collect(pair.cqs[0], 1)
    assert (len(ports) == 1) if transport == "irn" else (len(ports) > 1), ports
    assert transport != "irn" or ports == {(50_000).to_bytes(2, "big")}
