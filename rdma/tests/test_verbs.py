"""Every verb over every transport, through loss, repetition and reordering: against a model of memory in Python."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import random
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from ebpf.c_module import SANITIZE_VARIABLE, sanitizer_environment
from ebpf.loader import transport_names
from rdma.tests.lab import ROOT, Network, Pair, collect, eventually
from rdma.verbs import SGE, Access, Opcode, RecvWR, SendFlags, SendWR, WCFlags, WCOpcode, connect

TRANSPORTS = transport_names()
PART = 1 << 18
SOURCE, SINK, SERVED, TARGET = (part * PART for part in range(4))  # what a region's quarters are for
WORD = TARGET - 8  # for atomics, in the responder's part that READs take from
RECEIVES = {Opcode.SEND, Opcode.SEND_WITH_IMM, Opcode.SEND_WITH_INV, Opcode.RDMA_WRITE_WITH_IMM}
WC_OPCODES = {
    **dict.fromkeys((Opcode.SEND, Opcode.SEND_WITH_IMM), WCOpcode.SEND),
    **dict.fromkeys((Opcode.RDMA_WRITE, Opcode.RDMA_WRITE_WITH_IMM), WCOpcode.RDMA_WRITE),
    Opcode.RDMA_READ: WCOpcode.RDMA_READ,
    Opcode.ATOMIC_CMP_AND_SWP: WCOpcode.COMP_SWAP,
    Opcode.ATOMIC_FETCH_AND_ADD: WCOpcode.FETCH_ADD,
}


@dataclass
class Program:
    """Random requests, and what they must leave in both regions: all targets are apart, but for the atomics' word."""

    pair: Pair
    chance: random.Random
    requests: list[SendWR] = field(default_factory=list)
    receives: list[RecvWR] = field(default_factory=list)
    expected_sends: list[tuple[int, str, WCOpcode]] = field(default_factory=list)
    expected_receives: list[tuple[int, WCOpcode, int, WCFlags, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for region in self.pair.regions:
            region.buf[:] = self.chance.randbytes(4 * PART)
        self.model = [bytearray(region.buf) for region in self.pair.regions]
        self.sink, self.target = SINK, TARGET

    def add(self, opcode: Opcode, length: int) -> None:
        here, there = self.pair.regions
        number = len(self.requests)
        sg, remote = here.sge(SOURCE + self.chance.randrange(PART - length), length), 0
        changes = {}
        if opcode in (Opcode.ATOMIC_CMP_AND_SWP, Opcode.ATOMIC_FETCH_AND_ADD):
            sg, remote = self._atomic(opcode, changes)
        elif opcode == Opcode.RDMA_READ:
            remote = SERVED + self.chance.randrange(PART - 8 - length)
            sg = here.sge(self.sink, length)
            self.model[0][self.sink : self.sink + length] = self.model[1][remote : remote + length]
            self.sink += length
        else:
            remote, self.target = self.target, self.target + length
            first = sg.addr - here.addr
            self.model[1][remote : remote + length] = self.model[0][first : first + length]
        flags = WCFlags.NONE
        if opcode in (Opcode.SEND_WITH_IMM, Opcode.RDMA_WRITE_WITH_IMM):
            changes["imm_data"], flags = self.chance.getrandbits(32), WCFlags.WITH_IMM
        signaled = self.chance.random() < 0.7
        fence = SendFlags.FENCE if self.chance.random() < 0.1 else SendFlags.NONE
        if signaled:
            self.expected_sends.append((number, "SUCCESS", WC_OPCODES[opcode]))
        if opcode in RECEIVES:
            written = opcode == Opcode.RDMA_WRITE_WITH_IMM
            # A SEND's receive has some room to spare; a WRITE with immediate leaves its receive's memory alone.
            receive = there.sge(remote, length + 5 * (not written))
            self.receives.append(RecvWR(number, SGE(0, 0, 0) if written else receive))
            wc_opcode = WCOpcode.RECV_RDMA_WITH_IMM if written else WCOpcode.RECV
            self.expected_receives.append((number, wc_opcode, length, flags, changes.get("imm_data", 0)))
        request = SendWR(number, opcode, sg, remote_addr=there.addr + remote, rkey=there.rkey, **changes)
        send_flags = fence | (SendFlags.SIGNALED if signaled else SendFlags.NONE)
        self.requests.append(dataclasses.replace(request, send_flags=send_flags))

    def _atomic(self, opcode: Opcode, changes: dict[str, int]) -> tuple[SGE, int]:
        place, self.sink = self.sink, self.sink + 8
        value = int.from_bytes(self.model[1][WORD : WORD + 8], sys.byteorder)
        self.model[0][place : place + 8] = self.model[1][WORD : WORD + 8]
        if opcode == Opcode.ATOMIC_FETCH_AND_ADD:
            changes["compare_add"] = self.chance.getrandbits(64)
            value = (value + changes["compare_add"]) % 2**64
        else:
            changes["compare_add"] = value if self.chance.random() < 0.5 else self.chance.getrandbits(64)
            changes["swap"] = self.chance.getrandbits(64)
            value = changes["swap"] if changes["compare_add"] == value else value
        self.model[1][WORD : WORD + 8] = value.to_bytes(8, sys.byteorder)
        return self.pair.regions[0].sge(place, 8), WORD

    def run(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        """`meanwhile` is done when all is posted."""
        pair = self.pair
        self.requests[-1] = dataclasses.replace(self.requests[-1], send_flags=SendFlags.SIGNALED)
        if not self.expected_sends or self.expected_sends[-1][0] != len(self.requests) - 1:
            last = self.requests[-1]
            self.expected_sends.append((last.wr_id, "SUCCESS", WC_OPCODES[last.opcode]))
        pair.qps[1].post_recv(*self.receives)
        pair.qps[0].post_send(*self.requests)
        meanwhile()
        sends = collect(pair.cqs[0], len(self.expected_sends))
        assert [(wc.wr_id, wc.status, wc.opcode) for wc in sends] == self.expected_sends
        assert {wc.qp_num for wc in sends} == {pair.qps[0].qp_num}
        receives = collect(pair.cqs[1], len(self.receives))
        seen = [(wc.wr_id, wc.opcode, wc.byte_len, wc.wc_flags, wc.imm_data) for wc in receives]
        assert seen == self.expected_receives and all(wc.ok for wc in receives)
        for region, model in zip(pair.regions, self.model, strict=True):
            assert hashlib.sha256(region.buf).digest() == hashlib.sha256(model).digest()
        assert not pair.cqs[0].poll() and not pair.cqs[1].poll()


def mixture(pair: Pair, seed: int, count: int = 50) -> Program:
    program = Program(pair, random.Random(seed))
    opcodes = [opcode for opcode in Opcode if opcode != Opcode.SEND_WITH_INV]
    lengths = (0, 1, 8, 1023, 1024, 1025, 3000, 9000)
    for number in range(count):
        opcode = opcodes[number] if number < len(opcodes) else program.chance.choice(opcodes)
        program.add(opcode, program.chance.choice(lengths))
    return program


@pytest.mark.parametrize("loss", [0.001, 0.02, 0.1])
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_every_verb_over_a_bad_network(network: Network, transport: str, loss: float) -> None:
    """PSNs wrap on the way; the payload's hashes are the model's, completions come in order and once."""
    network.behave(loss, repeat=loss / 2, reorder=min(0.05, loss), mark=0.05)
    pair = network.made.pair(4 * PART, psns=((1 << 24) - 60, 7), rtr={"transport": transport})
    mixture(pair, seed=int(loss * 1000)).run()


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_link_that_fails_and_returns(network: Network, transport: str) -> None:
    network.behave(loss=1.0)
    pair = network.made.pair(4 * PART, rtr={"transport": transport}, timeout_us=20_000)

    def repair() -> None:
        assert eventually(lambda: pair.qps[0].stats()["timeouts"] > 0)
        network.behave()

    mixture(pair, seed=3, count=25).run(repair)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_every_verb_of_both_sides_at_once(network: Network, transport: str) -> None:
    """Requests of one side and responses to the other share a queue pair."""
    pair = network.made.pair(1 << 16, rtr={"transport": transport})
    here, there = pair.regions
    for region in pair.regions:
        region.buf[: 1 << 15] = os.urandom(1 << 15)
    half = 1 << 15
    for side, (mine, theirs) in enumerate(((here, there), (there, here))):
        sink = mine.sge(half, 20_000)
        pair.qps[side].post_send(
            *[SendWR(i, Opcode.RDMA_READ, sink, remote_addr=theirs.addr, rkey=theirs.rkey) for i in range(20)]
        )
    for cq in pair.cqs:
        assert [wc.wr_id for wc in collect(cq, 20)] == list(range(20))
    assert here.buf[half : half + 20_000] == there.buf[:20_000]
    assert there.buf[half : half + 20_000] == here.buf[:20_000]


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_synchronise(network: Network, transport: str) -> None:
    """Every message waits for those before it, however the transport does that."""
    network.behave(reorder=0.02)
    pair = network.made.pair(1 << 16, rtr={"transport": transport})
    pair.regions[0].buf[:] = os.urandom(1 << 16)
    there = pair.regions[1].addr
    flags = SendFlags.SIGNALED | SendFlags.SYNCHRONISE
    requests = [
        pair.write(wr_id=i, offset=4000 * i, length=4000, remote_addr=there + 4000 * i, send_flags=flags)
        for i in range(16)
    ]
    pair.qps[0].post_send(*requests)
    assert [wc.wr_id for wc in collect(pair.cqs[0], 16)] == list(range(16))
    assert pair.regions[1].buf[:64_000] == pair.regions[0].buf[:64_000]


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_shared_receive_queue(network: Network, transport: str) -> None:
    """Three queue pairs of one host take receives in the order of need; each completes its own messages in order."""
    one, other = network.made.device(1), network.made.device(2)
    pds = one.alloc_pd(), other.alloc_pd()
    source, target = pds[0].reg_mr(4096), pds[1].reg_mr(60 * 100)
    source.buf[:] = os.urandom(4096)
    srq = pds[1].create_srq(60)
    assert srq.max_wr == 64
    cqs = one.create_cq(), other.create_cq(4)
    senders = [pds[0].create_qp(cqs[0]) for _ in range(3)]
    receivers = [pds[1].create_qp(cqs[1], srq=srq) for _ in range(3)]
    for sender, receiver in zip(senders, receivers, strict=True):
        connect(sender, receiver, rtr={"transport": transport})
    srq.post_recv(*[RecvWR(i, target.sge(100 * i, 100)) for i in range(60)])
    for message in range(20):
        for index, sender in enumerate(senders):
            sg = source.sge(30 * message + index, 90)
            sender.post_send(SendWR(message, Opcode.SEND_WITH_IMM, sg, imm_data=message))
    collect(cqs[0], 60)
    found = collect(cqs[1], 60)
    assert sorted(wc.wr_id for wc in found) == list(range(60))
    for index, receiver in enumerate(receivers):
        own = [wc for wc in found if wc.qp_num == receiver.qp_num]
        assert [wc.imm_data for wc in own] == list(range(20))
        for wc in own:
            first = 30 * wc.imm_data + index
            assert target.buf[100 * wc.wr_id : 100 * wc.wr_id + 90] == source.buf[first : first + 90]
    srq.post_recv(RecvWR(99, target.sge(0, 100)))
    senders[2].post_send(SendWR(5, Opcode.SEND, source.sge(0, 90)))
    assert [wc.wr_id for wc in collect(cqs[1], 1)] == [99]


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_hundreds_of_queue_pairs(network: Network, transport: str) -> None:
    one, other = network.made.device(1), network.made.device(2)
    pds, count = (one.alloc_pd(), other.alloc_pd()), 200
    source, target = pds[0].reg_mr(count * 3000), pds[1].reg_mr(count * 3000, Access.LOCAL_WRITE | Access.REMOTE_WRITE)
    source.buf[:] = os.urandom(count * 3000)
    cqs = one.create_cq(count), other.create_cq(count)
    for index in range(count):
        qps = pds[0].create_qp(cqs[0], max_send_wr=1), pds[1].create_qp(cqs[1], max_recv_wr=1)
        connect(*qps, rtr={"transport": transport})
        remote = target.addr + 3000 * index
        qps[0].post_send(
            SendWR(index, Opcode.RDMA_WRITE, source.sge(3000 * index, 3000), remote_addr=remote, rkey=target.rkey)
        )
    found = collect(cqs[0], count)
    assert sorted(wc.wr_id for wc in found) == list(range(count)) and all(wc.ok for wc in found)
    assert source.buf == target.buf


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_end_to_end_credits(network: Network, transport: str) -> None:
    """More SENDs than receives: the sender waits for credits, and goes on when receives are posted."""
    network.behave(loss=0.01)
    pair = network.made.pair(64 * 100, rtr={"transport": transport, "credits": True, "min_rnr_timer": 1})
    pair.regions[0].buf[:] = os.urandom(6400)
    pair.qps[1].post_recv(*[pair.recv(offset=100 * i, length=100, wr_id=i) for i in range(10)])
    pair.qps[0].post_send(
        *[pair.request(Opcode.SEND, wr_id=i, offset=100 * i, length=100) for i in range(30)]
    )
    assert [wc.wr_id for wc in collect(pair.cqs[1], 10)] == list(range(10))
    pair.qps[1].post_recv(*[pair.recv(offset=100 * i, length=100, wr_id=i) for i in range(10, 30)])
    assert [wc.wr_id for wc in collect(pair.cqs[1], 20)] == list(range(10, 30))
    assert [wc.wr_id for wc in collect(pair.cqs[0], 30)] == list(range(30))
    assert pair.regions[0].buf[:3000] == pair.regions[1].buf[:3000]


@pytest.mark.parametrize("choice", [{"hold_last": True}, {"selective": True}, {"selective": True, "hold_last": True}])
def test_eunomias_variants(network: Network, choice: dict[str, bool]) -> None:
    network.behave(loss=0.02, reorder=0.05)
    pair = network.made.pair(4 * PART, rtr={"transport": "eunomia", **choice})
    mixture(pair, seed=5, count=30).run()


def pause_frame(mac: str, priority: int, quanta: int) -> bytes:
    """IEEE 802.1Qbb: class enable vector and eight times."""
    times = b"".join((quanta if each == priority else 0).to_bytes(2, "big") for each in range(8))
    source = bytes.fromhex(mac.replace(":", ""))
    frame = bytes.fromhex("0180c2000001") + source + b"\x88\x08\x01\x01" + bytes([0, 1 << priority]) + times
    return frame.ljust(60, b"\0")


def test_a_pause_stops_one_priority(network: Network) -> None:
    """The other one goes on; what waited goes when the pause is taken back."""
    assert network.made.peers
    peer = network.made.peers[0]
    mac = Path(f"/sys/class/net/{peer}/address").read_text().strip()
    paused, free = (network.made.pair(4096, rtr={"priority": priority}) for priority in (3, 5))
    paused.regions[0].buf[:] = os.urandom(4096)
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as raw:
        raw.bind((peer, 0))
        for _ in range(50):
            before, sent = paused.devices[0].counters()["PAUSE_RECEIVED"], paused.qps[0].stats()
            begin = time.monotonic()
            raw.send(pause_frame(mac, 3, 0xFFFF))
            assert eventually(lambda seen=before: paused.devices[0].counters()["PAUSE_RECEIVED"] > seen)
            paused.qps[0].post_send(paused.write())
            free.qps[0].post_send(free.write())
            collect(free.cqs[0], 1)
            stayed = paused.qps[0].stats()["packets"] == sent["packets"]
            # 65535 quanta of 512 bit times at 300 Mb/s; on a machine that is slower than that, nothing can be told.
            in_time = time.monotonic() - begin < 0.11
            raw.send(pause_frame(mac, 3, 0))
            collect(paused.cqs[0], 1)
            if in_time:
                break
    assert in_time and stayed
    assert paused.regions[0].buf == paused.regions[1].buf


def test_dcqcn_slows_down_when_packets_are_marked(network: Network) -> None:
    network.behave(mark=0.5)
    pair = network.made.pair(1 << 20, rtr={"transport": "irn", "congestion": "dcqcn"})
    pair.regions[0].buf[:] = os.urandom(1 << 20)
    assert pair.qps[0].stats()["rate_bps"] == 300_000_000
    pair.qps[0].post_send(pair.write())
    collect(pair.cqs[0], 1)
    assert pair.regions[0].buf == pair.regions[1].buf
    sent, received = pair.qps[0].stats(), pair.qps[1].stats()
    assert 0 < sent["cnps_received"] <= received["cnps_sent"]
    assert sent["rate_bps"] < 300_000_000


def test_the_documentations_program(network: Network, capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "docs/verbs.md").read_text()
    (program,) = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert "/run/plait/" in program
    exec(program.replace("/run/plait/", f"{network.made.folder}/"), {})
    first, second, third = capsys.readouterr().out.splitlines()
    assert "wr_id=1, " in first and "status='SUCCESS'" in first
    assert (second, third) == ("b'hello'", "42")


@pytest.mark.skipif(SANITIZE_VARIABLE in os.environ, reason="this is the sanitized run")
def test_all_verbs_are_clean_under_sanitizers(can_run: None) -> None:
    sanitizers = sanitizer_environment()
    if sanitizers is None:
        pytest.skip("the C compiler has no sanitizers")
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", __file__, "-k", "bad and 0.02"]
    result = subprocess.run(command, cwd=ROOT, env={**os.environ, **sanitizers}, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    assert f"{len(TRANSPORTS)} passed" in result.stdout or "[100%]" in result.stdout

