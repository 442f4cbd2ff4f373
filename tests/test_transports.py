"""Every transport over a fat-tree that sprays, loses packets and loses a link: bytes equal, each message once."""

from __future__ import annotations

import hashlib
import random
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from fastswitch.control import Client
from lab import running
from lab.config import DEFAULT_PROGRAM, LabConfig
from lab.emulation import Emulation
from lab.nics import TRANSPORTS, plain
from mininet_topos.catalogue import parse_choice
from mininet_topos.fabric import CONTROL_SOCKET
from rdma.verbs import Access, Device, Opcode, RecvWR, SendWR
from tests.conftest import needs_root

pytestmark = needs_root

PAIRS = (("h1", "h9"), ("h5", "h13"), ("h2", "h16"))  # through the core
WRITE_BYTES, SEND_BYTES, SENDS = 200_000, 20_000, 4
PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def lab() -> Iterator[Emulation]:
    config = LabConfig.from_options(
        parse_choice("fattree:k=4,rate=50M,loss=0.002"),
        program=DEFAULT_PROGRAM.with_name("spray.p4"),
        nic_memory_bytes=16 << 20,
        transports=TRANSPORTS,
    )
    with Emulation(config, lambda text: None) as lab:
        yield lab


class Transfer:
    """Of one pair of hosts: a WRITE, SENDs, and a READ of what the peer holds, all at once on one queue pair."""

    def __init__(
        self, lab: Emulation, stack: ExitStack, transport: str, src: str, dst: str, chance: random.Random
    ) -> None:
        here, there = (stack.enter_context(Device.open(lab.verbs_socket(name))) for name in (src, dst))
        pd, peer_pd = here.alloc_pd(), there.alloc_pd()
        every = Access.LOCAL_WRITE | Access.REMOTE_WRITE | Access.REMOTE_READ
        self.source, self.fetched = pd.reg_mr(WRITE_BYTES), pd.reg_mr(WRITE_BYTES)
        self.written, self.held = peer_pd.reg_mr(WRITE_BYTES, every), peer_pd.reg_mr(WRITE_BYTES, every)
        self.inbox = peer_pd.reg_mr(SENDS * SEND_BYTES)
        self.source.buf[:] = chance.randbytes(WRITE_BYTES)
        self.held.buf[:] = chance.randbytes(WRITE_BYTES)
        self.cq, self.peer_cq = here.create_cq(), there.create_cq()
        self.pair, peer = pd.create_qp(self.cq), peer_pd.create_qp(self.peer_cq)
        lab.connect(src, self.pair, dst, peer, chance, plain(transport))
        peer.post_recv(*(RecvWR(number, self.inbox.sge(number * SEND_BYTES, SEND_BYTES)) for number in range(SENDS)))
        self.pair.post_send(
            SendWR(1, Opcode.RDMA_WRITE, self.source.sge(), self.written.addr, self.written.rkey),
            SendWR(2, Opcode.RDMA_READ, self.fetched.sge(), self.held.addr, self.held.rkey),
            *(SendWR(3 + n, Opcode.SEND, self.source.sge(n * SEND_BYTES, SEND_BYTES)) for n in range(SENDS)),
        )
        self.sent: list[int] = []
        self.received: list[int] = []

    def done(self) -> bool:
        for cq, ended in ((self.cq, self.sent), (self.peer_cq, self.received)):
            for completion in cq.poll():
                assert completion.ok, completion
                ended.append(completion.wr_id)
        return len(self.sent) == 2 + SENDS and len(self.received) == SENDS

    def check(self) -> None:
        assert self.sent == list(range(1, 3 + SENDS))
        assert self.received == list(range(SENDS))
        for one, other in (
            (self.source.buf, self.written.buf),
            (self.held.buf, self.fetched.buf),
            (self.source.buf[: SENDS * SEND_BYTES], self.inbox.buf),
        ):
            assert hashlib.sha256(one).digest() == hashlib.sha256(other).digest()


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_bytes_arrive_over_paths_that_reorder_lose_and_fail(lab: Emulation, transport: str) -> None:
    chance = random.Random(transport)
    with ExitStack() as stack, Client(running.RUN_DIR / CONTROL_SOCKET) as fabric:
        transfers = [Transfer(lab, stack, transport, src, dst, chance) for src, dst in PAIRS]
        # The way up of the first pair's edge switch: half of its packets' paths, for as long as most of them fly.
        edge = lab.topology.host_port(PAIRS[0][0]).node.name
        above = f"{edge}:{next(peer.port for peer in lab.topology.neighbors(edge) if not peer.node.is_host)}"
        fabric.link_set(above, up=False)
        started = time.monotonic()
        try:
            while not all([transfer.done() for transfer in transfers]):
                assert time.monotonic() - started < PATIENCE_S, [(t.sent, t.received) for t in transfers]
                if time.monotonic() - started > 0.1:
                    fabric.link_set(above, up=True)
                time.sleep(0.005)
        finally:
            fabric.link_set(above, up=True)
        for transfer in transfers:
            transfer.check()
