"""End to end: verbs, daemon, transmit engine, XDP, and back, between network namespaces."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ebpf.c_module import SANITIZE_VARIABLE, sanitizer_environment
from rdma.protocol import MESSAGE_MAX
from rdma.tests.lab import ROOT, Lab, Link, eventually, lab
from rdma.verbs import Access, Opcode, SendFlags, SendWR, VerbsError, connect


def digest(data: memoryview) -> bytes:
    return hashlib.sha256(data).digest()


def test_a_file_crosses_a_rough_network(folder: Path, rough: Link) -> None:
    """Loss, repetition and reordering, both ways; PSNs wrap on the way."""
    with lab(folder, rough, rate_bps=200_000_000, window_packets=32) as made:
        pair = made.pair(1 << 20, psns=((1 << 24) - 300, 5))
        pair.regions[0].buf[:] = os.urandom(1 << 20)
        pair.qps[0].post_send(pair.write())
        assert [c.status for c in pair.cqs[0].wait(20)] == ["SUCCESS"]
        assert digest(pair.regions[0].buf) == digest(pair.regions[1].buf)
        stats = pair.qps[0].stats()
        assert stats["retransmissions"] > 0 and stats["naks"] > 0
        counters = pair.devices[1].counters()
        assert counters["REQUEST_PLACED"] == 1024
        assert counters["bytes_placed"] == 1 << 20
        assert counters["REQUEST_SEQ_ERROR"] > 0 and counters["ce_marked"] > 0
        assert rough.dropped > 0


def test_packets_say_what_is_left_of_their_message(folder: Path) -> None:
    """Two messages of one queue pair: each packet's DSCP is the class of what it and those behind it carry.

    Expected classes are from the bounds in p4src/include/codes.p4.
    """
    frames: list[bytes] = []
    quiet = Link(answer=lambda frame: frames.append(frame))
    with lab(folder, quiet) as made:
        pair = made.pair(8192, mark_remaining=True)
        pair.qps[0].post_send(pair.write(length=5000), pair.write(length=100))
        done = [completion for _ in range(2) for completion in pair.cqs[0].wait(10, num_entries=1)]
        assert [completion.status for completion in done] == ["SUCCESS", "SUCCESS"]
        roce = [frame for frame in frames if frame[12:14] == b"\x08\x00"]
        writes = {frame[51:54]: frame[15] >> 2 for frame in roce if 6 <= frame[42] <= 10}
        # 5,000 bytes are 20 units of 256, then 16, 12, 8 and 4 (904 bytes); 100 bytes are one.
        assert list(writes.values()) == [9, 9, 8, 7, 5, 1]
        acknowledged = {frame[15] >> 2 for frame in roce if frame[42] == 17}
        assert acknowledged == {0}
        assert digest(pair.regions[0].buf[:5000]) == digest(pair.regions[1].buf[:5000])


def test_both_directions_at_once(direct: Lab) -> None:
    pair = direct.pair(4_000_001)
    half = 2_000_000
    for region in pair.regions:
        region.buf[:half] = os.urandom(half)
    for sender in (0, 1):
        there = pair.regions[1 - sender]
        pair.qps[sender].post_send(pair.write(sender, length=half, remote_addr=there.addr + half))
    for cq in pair.cqs:
        assert [c.status for c in cq.wait(10)] == ["SUCCESS"]
    for sender in (0, 1):
        here, there = pair.regions[sender].buf, pair.regions[1 - sender].buf
        assert digest(here[:half]) == digest(there[half : 2 * half])
        assert there[2 * half] == 0


@pytest.mark.parametrize("length", [0, 1, 3, 1023, 1024, 1025, 4096])
def test_lengths_and_odd_addresses(direct: Lab, length: int) -> None:
    pair = direct.pair(8192)
    pair.regions[0].buf[:] = os.urandom(8192)
    there = pair.regions[1]
    pair.qps[0].post_send(pair.write(offset=7, length=length, remote_addr=there.addr + 13))
    (completion,) = pair.cqs[0].wait(5)
    assert (completion.status, completion.byte_len, completion.qp_num) == ("SUCCESS", length, pair.qps[0].qp_num)
    assert bytes(there.buf[13 : 13 + length]) == bytes(pair.regions[0].buf[7 : 7 + length])
    assert not any(there.buf[:13]) and not any(there.buf[13 + length :])


def test_many_small_writes_complete_in_order(direct: Lab) -> None:
    pair = direct.pair(50 * 100)
    pair.regions[0].buf[:] = os.urandom(5000)
    remote = pair.regions[1].addr
    writes = [
        pair.write(wr_id=i, offset=100 * i, length=100, remote_addr=remote + 100 * i, send_flags=SendFlags(2 * (i % 2)))
        for i in range(50)
    ]
    pair.qps[0].post_send(*writes)
    found: list[int] = []
    while len(found) < 25:
        completions = pair.cqs[0].wait(5)
        assert completions
        found += [c.wr_id for c in completions]
    assert found == list(range(1, 50, 2))
    assert pair.regions[0].buf == pair.regions[1].buf
    assert pair.qps[1].stats()["messages_received"] == 50


def test_a_rate_is_kept_and_shared(folder: Path) -> None:
    with lab(folder, rate_bps=100_000_000) as made:
        pairs = [made.pair(1_000_000) for _ in range(4)]
        start = time.monotonic()
        for pair in pairs:
            pair.qps[0].post_send(pair.write())
        time.sleep(0.15)
        shares = [pair.qps[0].stats()["bytes"] for pair in pairs]
        for pair in pairs:
            assert [c.status for c in pair.cqs[0].wait(5)] == ["SUCCESS"]
        elapsed = time.monotonic() - start
        sent = made.device(1).counters()["sent_bytes"]
        # 4 MB and headers at 100 Mb/s: 0.34 s.  The upper bound is loose, since the machine may be busy.
        assert 0.9 < sent * 8 / 100e6 / elapsed <= 1.02 or elapsed < 1.0
        assert elapsed > 0.95 * sent * 8 / 100e6
        assert max(shares) - min(shares) < 0.1 * max(shares), shares


def test_a_wrong_key_ends_the_connection(direct: Lab) -> None:
    pair = direct.pair(4096)
    bad = pair.write(wr_id=1, rkey=pair.regions[1].rkey ^ 0x1000)
    pair.qps[0].post_send(bad, pair.write(wr_id=2), pair.write(wr_id=3, send_flags=SendFlags.NONE))
    found = []
    while len(found) < 3:
        completions = pair.cqs[0].wait(5)
        assert completions, found
        found += [(c.wr_id, c.status) for c in completions]
    assert found == [(1, "REM_ACCESS_ERR"), (2, "WR_FLUSH_ERR"), (3, "WR_FLUSH_ERR")]
    assert [qp.state for qp in pair.qps] == ["ERROR", "ERROR"]
    pair.qps[0].post_send(pair.write(wr_id=4))
    assert [(c.wr_id, c.status) for c in pair.cqs[0].wait(1)] == [(4, "WR_FLUSH_ERR")]
    assert not any(pair.regions[1].buf)


def test_bounds_and_access_are_the_responders_to_check(direct: Lab) -> None:
    pair = direct.pair(4096)
    pair.qps[0].post_send(pair.write(remote_addr=pair.regions[1].addr + 1))
    assert [c.status for c in pair.cqs[0].wait(5)] == ["REM_ACCESS_ERR"]
    other = direct.pair(4096)
    closed = other.pds[1].reg_mr(4096, Access.LOCAL_WRITE)
    other.qps[0].post_send(other.write(remote_addr=closed.addr, rkey=closed.rkey))
    assert [c.status for c in other.cqs[0].wait(5)] == ["REM_ACCESS_ERR"]
    assert direct.device(2).counters()["NAK_BOUNDS"] == 1


def test_another_clients_region_is_out_of_reach(direct: Lab) -> None:
    """Same host, other protection domain."""
    pair, other = direct.pair(4096), direct.pair(4096)
    target = other.regions[1]
    pair.qps[0].post_send(pair.write(remote_addr=target.addr, rkey=target.rkey))
    assert [c.status for c in pair.cqs[0].wait(5)] == ["REM_ACCESS_ERR"]


def test_nobody_answers(direct: Lab) -> None:
    one = direct.device(1)
    pd, cq = one.alloc_pd(), one.create_cq()
    qp, mr = pd.create_qp(cq), pd.reg_mr(4096)
    qp.modify_rtr(dest_qpn=2, dest_ip="10.9.0.2", rq_psn=0, dest_mac="02:00:00:00:01:02")
    qp.modify_rts(0, timeout_us=2000, retry_cnt=3)
    qp.post_send(*[SendWR(i, Opcode.RDMA_WRITE, mr.sge()) for i in (1, 2)])
    found = []
    while len(found) < 2:
        completions = cq.wait(5)
        assert completions
        found += [c.status for c in completions]
    assert found == ["RETRY_EXC_ERR", "WR_FLUSH_ERR"]
    stats = qp.stats()
    assert stats["timeouts"] == 4 and stats["retransmissions"] == 3 * 8


def test_a_flush_on_request(direct: Lab) -> None:
    one = direct.device(1)
    pd, cq = one.alloc_pd(), one.create_cq()
    qp, mr = pd.create_qp(cq), pd.reg_mr(4096)
    qp.modify_rtr(dest_qpn=2, dest_ip="10.9.0.2", rq_psn=0, dest_mac="02:00:00:00:01:02")
    qp.modify_rts(0, timeout_us=10_000_000)
    qp.post_send(SendWR(1, Opcode.RDMA_WRITE, mr.sge()))
    qp.modify_error()
    assert [c.status for c in cq.wait(1)] == ["WR_FLUSH_ERR"]


def test_limits_are_said(direct: Lab) -> None:
    pair = direct.pair(4096)
    with pytest.raises(VerbsError, match=r"at most 2147483647 bytes.*TOO_LONG"):
        pair.qps[0].post_send(pair.write(length=MESSAGE_MAX + 1))
    with pytest.raises(VerbsError, match="NO_RESOURCES"):
        pair.pds[0].reg_mr(1 << 30)
    with pytest.raises(VerbsError, match="QP_STATE"):
        pair.pds[0].create_qp(pair.cqs[0]).post_send(pair.write())
    small = direct.device(1)
    pd, cq = small.alloc_pd(), small.create_cq(2)
    mr = pd.reg_mr(64)
    qp = pd.create_qp(cq)
    far = pair.pds[1].create_qp(pair.cqs[1])
    connect(qp, far)
    with pytest.raises(VerbsError, match="2 were posted.*QUEUE_FULL"):
        qp.post_send(*[SendWR(i, Opcode.RDMA_WRITE, mr.sge()) for i in range(3)])


def test_what_a_client_leaves_is_free_again(direct: Lab) -> None:
    holder = direct.device(1)
    pd = holder.alloc_pd()
    whole = 24 << 20
    held = pd.reg_mr(whole)
    held.buf[:4] = b"mine"
    other = direct.device(1).alloc_pd()
    with pytest.raises(VerbsError, match="NO_RESOURCES"):
        other.reg_mr(whole)
    held.buf.release()
    holder.close()

    def try_again() -> bool:
        try:
            region = other.reg_mr(whole)
        except VerbsError:
            return False
        assert bytes(region.buf[:4]) == bytes(4)
        region.dereg()
        return True

    assert eventually(try_again)


@pytest.mark.skipif(SANITIZE_VARIABLE in os.environ, reason="this is the sanitized run")
def test_the_engine_is_clean_under_sanitizers(can_run: None) -> None:
    sanitizers = sanitizer_environment()
    if sanitizers is None:
        pytest.skip("the C compiler has no sanitizers")
    which = "both or small or wrong"
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", __file__, "-k", which]
    result = subprocess.run(command, cwd=ROOT, env={**os.environ, **sanitizers}, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
