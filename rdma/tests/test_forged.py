"""A peer that lies about which of our receives its messages fill, or asks for more than PSNs can number."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import Any

import pytest

from ebpf.loader import NicError
from ebpf.tests import packets as p
from ebpf.tests.rigs import HOST_IP, HOST_MAC, MTU, RKEY, TX, VA, XdpRig
from rdma.transmit import Engine, ip_number
from wire.codes import QpState

EXTENSION_DATA = 1
PD, SHARED = 1, 15
LIAR, VICTIM = 0x111111, 0x222222
RECEIVES, LENGTH = 4, 1024
ALL_RIGHTS = 0xF


class Host:
    """An engine that is attended by hand, and two queue pairs of IRN at its NIC."""

    def __init__(self, rig: XdpRig) -> None:
        self.rig = rig
        self.engine = Engine(rig.nic)
        self.cqs: dict[int, int] = {}
        self.engine.add_region(RKEY, 0, RECEIVES * LENGTH, VA, ALL_RIGHTS, PD, HOST_IP)

    def connect(self, qpn: int, rq: int) -> None:
        cq, _ = self.engine.create_cq(16)
        self.cqs[qpn] = cq
        self.engine.create_qp(qpn, host=self.rig.host, pd=PD, rq=rq, max_send_wr=4, send_cq=cq, recv_cq=cq)
        self.engine.to_rtr(
            qpn, p.ENDS.src_mac, remote_qpn=1, remote_ip=ip_number(p.ENDS.src_ip), udp_source_port=50_000,
            path_mtu=MTU, pkey=0xFFFF, receive_psn=0, transport=self.engine.transports["irn"], slots=16, rtt_ns=1000,
        )  # fmt: skip
        self.engine.to_rts(
            qpn, send_psn=0, window_packets=16, initial_window=1, ack_interval=1, retry_count=7, rnr_retry_count=7,
            max_rd_atomic=16, timeout_ns=10**10, timeout_low_ns=10**10,
        )  # fmt: skip

    def queue(self, rq: int, shared: bool) -> None:
        self.engine.create_rq(rq, 8 * (rq != SHARED), 8, shared=shared)

    def post_receives(self, rq: int) -> None:
        for number in range(RECEIVES):
            self.engine.post_recv(rq, wr_id=100 + number, va=VA + number * LENGTH, lkey=RKEY, length=LENGTH)

    def send(self, qpn: int, psn: int, wqe_sn: int, body: bytes = b"abcd", opcode: int = p.SEND_ONLY) -> None:
        xdata = struct.pack("!IIII", 0, psn if opcode == p.SEND_LAST else 0, wqe_sn, 0)
        assert self.rig.receive(p.frame(opcode, psn, qpn, body, xdata, resv7=EXTENSION_DATA))[0] == TX

    def attend(self, qpn: int) -> list[tuple[int, str]]:
        """What a doorbell would cause; the queue pair's completions of receives since."""
        nothing = dict.fromkeys(("va", "lkey", "length", "remote_va", "rkey", "compare_add", "swap", "immediate"), 0)
        self.engine.post_send(qpn, "RDMA_WRITE", wr_id=0, flags=0, **nothing)
        found: list[dict[str, Any]] = self.engine.poll_cq(self.cqs[qpn], 16)
        return [(c["wr_id"], c["status"]) for c in found if c["opcode"] == "RECV"]

    def lie(self) -> None:
        """Six messages, all said to fill receive 0, that come into order at once."""
        for psn in (*range(1, 6), 0):
            self.send(LIAR, psn, wqe_sn=0)


@pytest.fixture
def host() -> Iterator[Host]:
    if os.geteuid() != 0:
        pytest.skip("loading an XDP program needs root")
    try:
        rig = XdpRig(("irn",))
    except NicError as error:
        pytest.skip(f"no XDP here: {error}")
    made = Host(rig)
    namespace = os.open("/proc/self/ns/net", os.O_RDONLY)
    made.engine.add_host(rig.host, namespace, "lo", HOST_MAC, HOST_IP, 0)
    yield made
    made.engine.close()
    rig.close()
    os.close(namespace)


def test_answers_wait_until_their_psns_compare_with_those_before(host: Host) -> None:
    """Two READs whose responses are half of all PSNs together."""
    host.queue(0, shared=False)
    host.connect(VICTIM, 0)
    packets = 1 << 22
    host.rig.regions[RKEY % 16].length = 1 << 32
    for number in range(2):
        extension = struct.pack("!IIII", 0, 0, number, 0) + p.reth(VA, RKEY, packets * MTU)
        frame = p.frame(p.READ_REQUEST, number, VICTIM, b"", extension, resv7=EXTENSION_DATA)
        assert host.rig.receive(frame)[0] == TX
    host.attend(VICTIM)
    responses = host.rig.qps[VICTIM % 16].emitter[1]
    assert (responses.posted, responses.served) == (packets, 1)


def test_of_a_shared_queue_only_what_the_queue_pair_has_taken(host: Host) -> None:
    host.queue(SHARED, shared=True)
    for qpn in (VICTIM, LIAR):
        host.connect(qpn, SHARED)
    host.post_receives(SHARED)
    host.send(VICTIM, 0, wqe_sn=0, body=b"v" * MTU, opcode=p.SEND_FIRST)
    host.lie()
    assert host.attend(LIAR) == [(101, "SUCCESS")]
    assert host.engine.qp_state(LIAR) == QpState.ERROR
    host.send(VICTIM, 1, wqe_sn=0, body=b"end", opcode=p.SEND_LAST)
    assert host.attend(VICTIM) == [(100, "SUCCESS")]
    assert bytes(host.rig.arena[: MTU + 3]) == b"v" * MTU + b"end"
    assert host.engine.qp_state(VICTIM) == QpState.RTS


def test_what_a_queue_pair_had_taken_when_it_goes_is_a_free_place_again(host: Host) -> None:
    host.queue(SHARED, shared=True)
    for qpn in (VICTIM, LIAR):
        host.connect(qpn, SHARED)
    host.post_receives(SHARED)
    host.send(LIAR, 0, wqe_sn=0, body=b"x" * MTU, opcode=p.SEND_FIRST)
    host.engine.destroy_qp(LIAR)
    for number in range(3):
        host.send(VICTIM, number, wqe_sn=number)
    assert host.attend(VICTIM) == [(101, "SUCCESS"), (102, "SUCCESS"), (103, "SUCCESS")]
    for _ in range(2):
        host.post_receives(SHARED)


def test_of_its_own_queue_only_what_is_posted(host: Host) -> None:
    host.queue(0, shared=False)
    host.connect(LIAR, 0)
    host.post_receives(0)
    host.lie()
    assert [wr_id for wr_id, _ in host.attend(LIAR)] == [100, 101, 102, 103]
    assert host.engine.qp_state(LIAR) == QpState.ERROR
    host.engine.post_recv(0, wr_id=200, va=VA, lkey=RKEY, length=LENGTH)
    assert host.attend(LIAR) == [(200, "WR_FLUSH_ERR")]
