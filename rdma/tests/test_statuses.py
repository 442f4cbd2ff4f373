"""What goes wrong, and what it is called: completions with libibverbs' statuses, and refusals with their texts."""

from __future__ import annotations

from typing import Any

import pytest

from ebpf.loader import transport_names
from rdma.protocol import MESSAGE_MAX
from rdma.tests.lab import Network, Pair, collect, eventually
from rdma.verbs import CQ, NOTHING, SGE, Access, Opcode, RecvWR, SendFlags, VerbsError, WCFlags, connect

TRANSPORTS = transport_names()
WORD = {"length": 8}
ATOMICS = (Opcode.ATOMIC_CMP_AND_SWP, Opcode.ATOMIC_FETCH_AND_ADD)


def statuses(cq: CQ, count: int) -> list[tuple[int, str]]:
    return [(wc.wr_id, wc.status) for wc in collect(cq, count)]


def pair_of(network: Network, transport: str, length: int = 8192, **rts: Any) -> Pair:
    return network.made.pair(length, rtr={"transport": transport, "min_rnr_timer": 1}, **rts)


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("opcode", [Opcode.RDMA_WRITE, Opcode.RDMA_READ, *ATOMICS])
def test_a_wrong_rkey(network: Network, transport: str, opcode: Opcode) -> None:
    pair = pair_of(network, transport)
    length = 8 if opcode in ATOMICS else 100
    bad = pair.request(opcode, length=length, rkey=pair.regions[1].rkey ^ 0x1000)
    pair.qps[1].post_recv(pair.recv(wr_id=7))
    pair.qps[0].post_send(bad, pair.write(wr_id=2, length=1, send_flags=SendFlags.NONE))
    assert statuses(pair.cqs[0], 2) == [(1, "REM_ACCESS_ERR"), (2, "WR_FLUSH_ERR")]
    assert statuses(pair.cqs[1], 1) == [(7, "WR_FLUSH_ERR")]
    assert [qp.state for qp in pair.qps] == ["ERROR", "ERROR"]
    assert not any(pair.regions[1].buf)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_rights_of_a_region(network: Network, transport: str) -> None:
    wanted = {Opcode.RDMA_WRITE: Access.REMOTE_WRITE, Opcode.RDMA_READ: Access.REMOTE_READ}
    for opcode in (*wanted, *ATOMICS):
        pair = pair_of(network, transport)
        right = wanted.get(opcode, Access.REMOTE_ATOMIC)
        every = Access.LOCAL_WRITE | Access.REMOTE_WRITE | Access.REMOTE_READ | Access.REMOTE_ATOMIC
        for access, status in ((right, "SUCCESS"), (every & ~right, "REM_ACCESS_ERR")):
            region = pair.pds[1].reg_mr(64, access)
            request = pair.request(opcode, length=8, remote_addr=region.addr, rkey=region.rkey)
            pair.qps[0].post_send(request)
            assert statuses(pair.cqs[0], 1) == [(1, status)], (opcode, access)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_message_longer_than_its_receive(network: Network, transport: str) -> None:
    pair = pair_of(network, transport)
    pair.qps[1].post_recv(pair.recv(length=2000, wr_id=5), pair.recv(wr_id=6))
    pair.qps[0].post_send(pair.request(Opcode.SEND, length=2001))
    assert statuses(pair.cqs[0], 1) == [(1, "REM_INV_REQ_ERR")]
    assert statuses(pair.cqs[1], 2) == [(5, "LOC_LEN_ERR"), (6, "WR_FLUSH_ERR")]


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_receive_in_memory_that_is_not_there(network: Network, transport: str) -> None:
    pair = pair_of(network, transport)
    mine = pair.regions[1]
    pair.qps[1].post_recv(RecvWR(5, SGE(mine.addr, 100, mine.lkey ^ 0x1000)), pair.recv(wr_id=6))
    pair.qps[0].post_send(pair.request(Opcode.SEND, length=100))
    assert statuses(pair.cqs[0], 1) == [(1, "REM_OP_ERR")]
    assert statuses(pair.cqs[1], 2) == [(5, "LOC_PROT_ERR"), (6, "WR_FLUSH_ERR")]
    assert not any(mine.buf)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_receiver_that_is_not_ready(network: Network, transport: str) -> None:
    patient = pair_of(network, transport)
    patient.regions[0].buf[:3] = b"now"
    patient.qps[0].post_send(patient.request(Opcode.SEND, length=3000))
    assert eventually(lambda: patient.qps[0].stats()["rnr_naks"] > 0)
    patient.qps[1].post_recv(patient.recv())
    assert statuses(patient.cqs[0], 1) == [(1, "SUCCESS")]
    assert bytes(patient.regions[1].buf[:3]) == b"now"

    hasty = pair_of(network, transport, rnr_retry=2)
    hasty.qps[0].post_send(hasty.request(Opcode.RDMA_WRITE_WITH_IMM, length=10), hasty.write(wr_id=2, length=1))
    assert statuses(hasty.cqs[0], 2) == [(1, "RNR_RETRY_EXC_ERR"), (2, "WR_FLUSH_ERR")]
    assert hasty.qps[0].stats()["rnr_naks"] >= 3


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_nobody_answers(network: Network, transport: str) -> None:
    pair = pair_of(network, transport, timeout_us=2000, retry_cnt=2)
    network.behave(loss=1.0)
    pair.qps[0].post_send(pair.request(Opcode.RDMA_READ, length=100), pair.write(wr_id=2, length=1))
    assert statuses(pair.cqs[0], 2) == [(1, "RETRY_EXC_ERR"), (2, "WR_FLUSH_ERR")]
    assert pair.qps[0].stats()["timeouts"] == 3


@pytest.mark.parametrize("transport", [name for name in TRANSPORTS if name != "gbn"])
def test_a_responder_that_dies(network: Network, transport: str) -> None:
    """The request is acknowledged, and then nothing comes: the responder's repeats have an end, and ours follows."""
    pair = pair_of(network, transport, timeout_us=1000, retry_cnt=1)
    responses = range(0x0D, 0x11)
    network.link.answer = lambda frame: b"\0" * 60 if frame[12:14] == b"\x08\x00" and frame[42] in responses else None
    pair.qps[0].post_send(pair.request(Opcode.RDMA_READ, length=100))
    assert statuses(pair.cqs[0], 1) == [(1, "RETRY_EXC_ERR")]


@pytest.mark.parametrize("transport", ["gbn", "irn"])
def test_local_memory(network: Network, transport: str) -> None:
    """As libibverbs has it: not refused when it is posted, but a completion in its turn."""
    other = pair_of(network, transport)
    for sg in (
        lambda pair: SGE(pair.regions[0].addr, 8193, pair.regions[0].lkey),
        lambda pair: SGE(pair.regions[0].addr - 1, 1, pair.regions[0].lkey),
        lambda pair: SGE(pair.regions[0].addr, 1, pair.regions[0].lkey ^ 0x1000),
        lambda pair: SGE(other.regions[0].addr, 1, other.regions[0].lkey),
    ):
        pair = pair_of(network, transport)
        pair.qps[0].post_send(pair.write(wr_id=1, length=9), pair.write(wr_id=2, sg=sg(pair)), pair.write(wr_id=3))
        assert statuses(pair.cqs[0], 3) == [(1, "SUCCESS"), (2, "LOC_PROT_ERR"), (3, "WR_FLUSH_ERR")]
    read_only = pair_of(network, transport)
    sink = read_only.pds[0].reg_mr(64, Access.REMOTE_READ)
    read_only.qps[0].post_send(read_only.request(Opcode.RDMA_READ, sg=sink.sge()))
    assert statuses(read_only.cqs[0], 1) == [(1, "LOC_PROT_ERR")]


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_send_with_invalidate(network: Network, transport: str) -> None:
    pair = pair_of(network, transport)
    lent = pair.pds[1].reg_mr(64, Access.LOCAL_WRITE | Access.REMOTE_WRITE)
    pair.qps[1].post_recv(*[pair.recv(wr_id=i) for i in range(3)])
    reach = {"remote_addr": lent.addr, "rkey": lent.rkey}
    pair.qps[0].post_send(
        pair.write(length=64, **reach),
        pair.request(Opcode.SEND_WITH_INV, wr_id=2, length=2000, invalidate_rkey=lent.rkey),
    )
    assert statuses(pair.cqs[0], 2) == [(1, "SUCCESS"), (2, "SUCCESS")]
    (received,) = collect(pair.cqs[1], 1)
    assert (received.wc_flags, received.invalidated_rkey, received.byte_len) == (WCFlags.WITH_INV, lent.rkey, 2000)
    pair.qps[0].post_send(pair.write(wr_id=3, length=64, **reach))
    assert statuses(pair.cqs[0], 1) == [(3, "REM_ACCESS_ERR")]
    lent.dereg()

    foreign = pair_of(network, transport)
    foreign.qps[1].post_recv(foreign.recv(wr_id=1), foreign.recv(wr_id=2))
    key = pair.regions[1].rkey
    foreign.qps[0].post_send(foreign.request(Opcode.SEND_WITH_INV, length=1, invalidate_rkey=key))
    assert statuses(foreign.cqs[1], 2) == [(1, "LOC_PROT_ERR"), (2, "WR_FLUSH_ERR")]


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_limits_of_reads_and_fences(network: Network, transport: str) -> None:
    """Forty READs with two outstanding; a fenced WRITE behind them, over what they read, changes nothing of it."""
    pair = pair_of(network, transport, max_rd_atomic=2)
    pair.regions[1].buf[:] = bytes(range(256)) * 32
    expected = bytes(pair.regions[1].buf[:100])
    reads = [pair.request(Opcode.RDMA_READ, wr_id=i, offset=200 + 100 * i, length=100) for i in range(40)]
    over = pair.write(wr_id=40, length=100, send_flags=SendFlags.SIGNALED | SendFlags.FENCE)
    pair.qps[0].post_send(*reads, over)
    assert statuses(pair.cqs[0], 41) == [(i, "SUCCESS") for i in range(41)]
    assert bytes(pair.regions[0].buf[200:4200]) == expected * 40
    assert not any(pair.regions[1].buf[:100])


def test_a_flush_takes_all(network: Network) -> None:
    pair = pair_of(network, "gbn")
    network.behave(loss=1.0)
    pair.qps[0].post_recv(pair.recv(0, wr_id=10), pair.recv(0, wr_id=11))
    pair.qps[0].post_send(pair.write(wr_id=1), pair.write(wr_id=2, send_flags=SendFlags.NONE))
    pair.qps[0].modify_error()
    flushed = [(1, "WR_FLUSH_ERR"), (2, "WR_FLUSH_ERR"), (10, "WR_FLUSH_ERR"), (11, "WR_FLUSH_ERR")]
    assert statuses(pair.cqs[0], 4) == flushed
    pair.qps[0].post_send(pair.write(wr_id=3))
    pair.qps[0].post_recv(pair.recv(0, wr_id=12))
    assert statuses(pair.cqs[0], 2) == [(3, "WR_FLUSH_ERR"), (12, "WR_FLUSH_ERR")]


def test_a_shared_queue_is_not_flushed(network: Network) -> None:
    """Only what a queue pair had taken of it."""
    pair = pair_of(network, "gbn")
    srq = pair.pds[1].create_srq(4)
    sender, receiver = pair.pds[0].create_qp(pair.cqs[0]), pair.pds[1].create_qp(pair.cqs[1], srq=srq)
    connect(sender, receiver)
    srq.post_recv(*[pair.recv(wr_id=i) for i in range(4)])
    receiver.modify_error()
    assert not pair.cqs[1].poll()
    with pytest.raises(VerbsError, match=r"work request 0: .*; 0 were posted \[QUEUE_FULL\]"):
        srq.post_recv(pair.recv())
    with pytest.raises(VerbsError, match="destroy a receive queue: .* \\[EBUSY\\]"):
        srq.destroy()
    with pytest.raises(VerbsError, match="takes its receives from a shared receive queue"):
        receiver.post_recv(pair.recv())
    receiver.destroy()
    srq.destroy()


def test_what_cannot_be_posted(network: Network) -> None:
    pair = pair_of(network, "gbn")
    for request, says in (
        (pair.write(sg=SGE(0, MESSAGE_MAX + 1, 0)), "a message has at most 2147483647 bytes; split 2147483648 into"),
        (pair.request(Opcode.ATOMIC_FETCH_AND_ADD, length=4), r"an atomic's sg has 8 bytes, not 4 \[BAD_VALUE\]"),
        (
            pair.request(Opcode.ATOMIC_FETCH_AND_ADD, **WORD, remote_addr=pair.regions[1].addr + 4),
            r"an atomic's remote_addr is a multiple of 8 \[BAD_VALUE\]",
        ),
        (pair.write(wr_id=-1), r"wr_id must be an integer in 0\.\."),
        (pair.write(imm_data=1 << 32), r"imm_data must be an integer in 0\.\."),
    ):
        with pytest.raises(VerbsError, match=says):
            pair.qps[0].post_send(request)
    fresh = pair.pds[0].create_qp(pair.cqs[0], max_send_wr=2, max_recv_wr=2)
    fresh.post_recv(RecvWR(1, NOTHING), RecvWR(2, NOTHING))
    with pytest.raises(VerbsError, match="QUEUE_FULL"):
        fresh.post_recv(RecvWR(3, NOTHING))
    with pytest.raises(VerbsError, match="QP_STATE"):
        fresh.post_send(pair.write())
    with pytest.raises(VerbsError, match="the queue pair is not in RTR"):
        fresh.modify_rts(0)


@pytest.mark.parametrize(
    ("rtr", "rts", "says"),
    [
        ({"transport": "tcp"}, {}, r"no transport 'tcp'; loaded are gbn, .*BAD_VALUE"),
        ({"congestion": "cubic"}, {}, r"congestion must be one of window, dcqcn, none \[BAD_VALUE\]"),
        ({"slots": 100}, {}, r"slots must be a power of two \[BAD_VALUE\]"),
        ({"slots": 512}, {}, r"slots must be an integer in 1\.\.256"),
        ({"priority": 8}, {}, r"priority must be an integer in 0\.\.7"),
        ({"path_mtu": 1000}, {}, r"path_mtu must be one of \(256, 512, 1024, 2048, 4096\), at most 1024"),
        ({"transport": "irn", "slots": 16}, {"window_packets": 17}, "window_packets is 17, but irn has 16 slots"),
        ({}, {"max_rd_atomic": 17}, r"max_rd_atomic must be an integer in 1\.\.16"),
        ({}, {"retry_cnt": 8}, r"retry_cnt must be an integer in 0\.\.7"),
        ({}, {"timeout_us": 0}, r"timeout_us must be an integer in 1\.\."),
    ],
)
def test_what_cannot_be_chosen(network: Network, rtr: dict[str, Any], rts: dict[str, Any], says: str) -> None:
    one, other = network.made.device(1), network.made.device(2)
    qps = [device.alloc_pd().create_qp(device.create_cq()) for device in (one, other)]
    with pytest.raises(VerbsError, match=says):
        connect(qps[0], qps[1], rtr=rtr, **rts)


def test_a_protection_domain_of_ones_own(network: Network) -> None:
    pair = pair_of(network, "gbn")
    srq = pair.pds[0].create_srq(4)
    apart = pair.devices[0].alloc_pd()
    with pytest.raises(VerbsError, match="the shared receive queue is of another protection domain"):
        apart.create_qp(pair.cqs[0], srq=srq)
    with pytest.raises(VerbsError, match="still has queue pairs, receive queues or regions .EBUSY."):
        srq.pd.dealloc()
