"""What a requester does when the other end, or its own interface, misbehaves."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ebpf.tests import packets as p
from rdma.tests.lab import Lab, Link, Pair, eventually, ip_in, lab

# Only first packets are answered: a NAK of a later one would acknowledge what nobody has received.
FIRST_PACKETS = (p.WRITE_FIRST, p.WRITE_ONLY)


def answer_to(frame: bytes, qpn: int, syndrome: int) -> bytes:
    """An acknowledge packet for the PSN of `frame`, as its receiver would have sent it."""
    ends = p.Ends(
        frame[:6].hex(":"),
        frame[6:12].hex(":"),
        ".".join(map(str, frame[30:34])),
        ".".join(map(str, frame[26:30])),
    )
    return p.frame(p.ACKNOWLEDGE, int.from_bytes(frame[51:54], "big"), qpn, extension=p.aeth(syndrome), ends=ends)


def answering(pair: Pair, times: int, syndrome: int) -> Callable[[bytes], bytes | None]:
    left = times

    def answer(frame: bytes) -> bytes | None:
        nonlocal left
        if left and frame[12:14] == b"\x08\x00" and frame[36:38] == b"\x12\xb7" and frame[42] in FIRST_PACKETS:
            left -= 1
            return answer_to(frame, pair.qps[0].qp_num, syndrome)
        return None

    return answer


def test_receiver_not_ready(folder: Path) -> None:
    link = Link()
    with lab(folder, link) as made:
        pair = made.pair(3000)
        pair.regions[0].buf[:] = os.urandom(3000)
        link.answer = answering(pair, 2, p.RNR | 5)
        pair.qps[0].post_send(pair.write())
        assert [c.status for c in pair.cqs[0].wait(5)] == ["SUCCESS"]
        assert pair.regions[0].buf == pair.regions[1].buf
        assert pair.qps[0].stats()["rnr_naks"] >= 1
        assert pair.qps[0].stats()["timeouts"] == 0

        second = made.pair(100, rnr_retry=2)
        link.answer = answering(second, 1000, p.RNR | 1)
        second.qps[0].post_send(second.write())
        assert [c.status for c in second.cqs[0].wait(5)] == ["RNR_RETRY_EXC_ERR"]

        for syndrome, status in ((p.NAK_OPERATION, "REM_OP_ERR"), (p.NAK_INVALID, "REM_INV_REQ_ERR")):
            failing = made.pair(100)
            link.answer = answering(failing, 1, syndrome)
            failing.qps[0].post_send(failing.write())
            assert [c.status for c in failing.cqs[0].wait(5)] == [status]


@pytest.mark.parametrize("end", [0, 1])
def test_an_interface_that_goes_down_for_a_moment(folder: Path, end: int) -> None:
    with lab(folder, Link(), rate_bps=100_000_000, min_timeout_us=50_000) as made:
        pair = made.pair(2_000_000)
        pair.regions[0].buf[:] = os.urandom(2_000_000)
        pair.qps[0].post_send(pair.write())

        def some_way(made: Lab = made) -> bool:
            return pair.qps[0].stats()["packets"] > 300

        assert eventually(some_way)
        ip_in(made.namespaces[end], "link", "set", "v0", "down")
        assert not pair.cqs[0].wait(0.12)
        ip_in(made.namespaces[end], "link", "set", "v0", "up")
        assert [c.status for c in pair.cqs[0].wait(10)] == ["SUCCESS"]
        assert pair.regions[0].buf == pair.regions[1].buf
        assert pair.devices[1].counters()["REQUEST_PLACED"] == 1954
        errors = pair.devices[0].counters()["sent_socket_errors"]
        assert (errors > 0) == (end == 0)
