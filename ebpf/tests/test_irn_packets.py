"""IRN and the ideal receiver on the wire, natively and in XDP: section 5 of the paper, packet by packet."""

from __future__ import annotations

import random
import struct
from typing import Any

import pytest

from ebpf.tests import packets as p
from ebpf.tests.rigs import (
    DROP,
    MTU,
    QP_BYTES,
    QPN,
    RECV_BYTES,
    REMOTE_QPN,
    RKEY,
    SLOTS,
    TRANSPORTS,
    TX,
    VA,
    Bench,
    NativeRig,
    XdpRig,
    ffi,
)
from wire.codes import BthOpcode, QpState

PSNS = 1 << 24
FIRST = PSNS - 3
FIRST_RECV, FIRST_FETCH = PSNS - 1, PSNS - 2
L = 16
EXTENSION_DATA, EXTENSION_ACK = 1, 2
SACK_VALID, ECE, AGAIN = 0x80, 0x40, 0x20  # xack_t
CE = 3
QP_CREDITS, QP_SRQ, QP_CNP = 0x1, 0x2, 0x10
IMMEDIATE, INVALIDATE, WRITE = 1, 2, 4  # nic_recv.flags
RIGHTS = 0xF
RETH = p.reth(VA, RKEY, 4096)


def psn(number: int) -> int:
    return (FIRST + number) % PSNS


def prepare(bench: Bench, transport: str = "irn", receives: int = 8) -> Bench:
    bench.reset(epsn=FIRST, snd_una=FIRST, snd_nxt=FIRST)
    qp = bench.qp
    qp.config.transport = TRANSPORTS.index(transport)
    qp.config.slots = qp.config.window = L
    qp.receiver[1].epsn = FIRST
    bench.region.access = RIGHTS
    qp.receiver[0].completed = qp.receiver[0].allotted = qp.emitter[0].served = FIRST_RECV
    qp.receiver[0].fetches = qp.emitter[1].served = FIRST_FETCH
    rq = bench.rig.rqs[0]
    rq.mask, rq.posted, rq.in_use = SLOTS - 1, (FIRST_RECV + receives) % PSNS, 1
    for number in range(receives):
        one = recv(bench, number)
        one.va, one.length, one.lkey = VA + 4096 + number * 512, 512, RKEY
    return bench


def recv(bench: Bench, number: int) -> Any:
    return bench.rig.recvs[(FIRST_RECV + number) % SLOTS]


@pytest.fixture
def irn(bench: Bench) -> Bench:
    return prepare(bench)


def data(
    number: int, opcode: BthOpcode, body: bytes = b"", *, ipsn: int = 0, wqe_sn: int = 0, extension: bytes = b"",
    again: bool = False, ecn: int = 2,
) -> bytes:  # fmt: skip
    xdata = struct.pack("!IIII", 0x80000000 * again | 0x777, ipsn, wqe_sn % PSNS, 0)
    return p.frame(int(opcode), psn(number), QPN, body, xdata + extension, ip={"tos": ecn}, resv7=EXTENSION_DATA)


def write(number: int, first: int = 0, packets: int = 4, rkey: int = RKEY, va: int = VA, **more: Any) -> bytes:
    """Packet `number` of a WRITE that starts with packet `first`; the RETH is that of the whole message."""
    ipsn = number - first
    last = ipsn == packets - 1
    opcode = ("ONLY" if packets == 1 else "LAST") if last else "FIRST" if ipsn == 0 else "MIDDLE"
    body = bytes([1 + number]) * (100 if last else MTU)
    reth = p.reth(va, rkey, (packets - 1) * MTU + 100)
    return data(number, BthOpcode[f"RC_WRITE_{opcode}"], body, ipsn=ipsn, extension=reth, **more)


def answer(
    cumulative: int, named: int, msn: int = 0, syndrome: int = p.ACK, flags: int = 0, stream: int = 0, here: int = 1
) -> bytes:  # fmt: skip
    """ACK: all before `cumulative` have come; NACK: `cumulative` is missing.  `here`: `named` has come."""
    upto = psn(cumulative if syndrome & 0x60 else cumulative - 1)
    xack = struct.pack("!IHH", (flags | SACK_VALID * here) << 24 | psn(named), p.ENDS.src_port, 0)
    to = p.ENDS
    back = p.Ends(to.dst_mac, to.src_mac, to.dst_ip, to.src_ip, to.src_port)
    opcode = (BthOpcode.RC_ACKNOWLEDGE, BthOpcode.RC_READ_ACKNOWLEDGE)[stream]
    extension = xack + p.aeth(syndrome, msn)
    ip = {"tos": 0, "ttl": 64}
    return p.frame(int(opcode), upto, REMOTE_QPN, extension=extension, ends=back, ip=ip, resv7=EXTENSION_ACK)


def test_every_write_packet_knows_its_place(irn: Bench) -> None:
    """First packet issues: the RETH is in all; the last one comes first, and counts when all before it have come."""
    assert irn.receive(write(3)) == (TX, answer(0, 3, syndrome=p.NAK_SEQUENCE))
    assert irn.data[3 * MTU : 3 * MTU + 100] == bytes([4]) * 100
    for number in (2, 1):
        assert irn.receive(write(number)) == (TX, answer(0, number, syndrome=p.NAK_SEQUENCE))
    assert irn.receive(write(0)) == (TX, answer(4, 0, msn=1))
    assert bytes(irn.data[: 3 * MTU + 100]) == b"".join(bytes([n]) * (100 if n == 4 else MTU) for n in (1, 2, 3, 4))
    assert irn.events() == {"REQUEST_OUT_OF_ORDER": 3, "REQUEST_PLACED": 1}
    assert irn.canaries_intact()


def test_a_packet_that_comes_twice_is_answered_and_not_placed_again(irn: Bench) -> None:
    irn.receive(write(0))
    irn.receive(write(2))
    irn.data[:] = bytes(len(irn.data))
    assert irn.receive(write(0, again=True, ecn=CE)) == (TX, answer(1, 0, flags=AGAIN | ECE))
    assert irn.receive(write(2)) == (TX, answer(1, 2, syndrome=p.NAK_SEQUENCE))
    assert bytes(irn.data) == bytes(len(irn.data))
    assert irn.events()["REQUEST_DUPLICATE"] == 2


def test_beyond_the_bdp_cap_there_is_no_place(irn: Bench) -> None:
    far = write(L, first=L, packets=1)
    assert irn.receive(far) == (TX, answer(0, L, syndrome=p.NAK_SEQUENCE, here=0))
    assert irn.events() == {"REQUEST_BEYOND": 1}
    assert bytes(irn.data) == bytes(len(irn.data))


def test_completions_are_made_early_and_delivered_in_order(irn: Bench) -> None:
    """WQE matching and last packet issues: recv_WQE_SN names the receive, the CQE waits in it."""
    second = data(2, BthOpcode.RC_SEND_ONLY_IMM, b"second", wqe_sn=FIRST_RECV + 1, extension=struct.pack("!I", 0xABCD))
    assert irn.receive(second)[0] == TX
    assert irn.data[4096 + 512 : 4096 + 518] == b"second"
    done = recv(irn, 1)
    assert (done.byte_len, done.immediate, done.flags) == (6, 0xABCD, IMMEDIATE)
    assert irn.qp.receiver[0].completed == FIRST_RECV
    last = data(
        1, BthOpcode.RC_SEND_LAST_INVALIDATE, b"end", ipsn=1, wqe_sn=FIRST_RECV, extension=struct.pack("!I", 77)
    )
    irn.receive(last)
    assert irn.data[4096 + MTU : 4096 + MTU + 3] == b"end"
    first = data(0, BthOpcode.RC_SEND_FIRST, bytes(MTU), wqe_sn=FIRST_RECV)
    assert irn.receive(first) == (TX, answer(3, 0, msn=2))
    assert (recv(irn, 0).byte_len, recv(irn, 0).immediate, recv(irn, 0).flags) == (MTU + 3, 77, INVALIDATE)
    assert irn.qp.receiver[0].completed == (FIRST_RECV + 2) % PSNS


def test_a_write_with_immediate_consumes_its_receive_with_the_last_packet(irn: Bench) -> None:
    reth = p.reth(VA, RKEY, MTU + 1)
    last = data(1, BthOpcode.RC_WRITE_LAST_IMM, b"!", ipsn=1, wqe_sn=FIRST_RECV, extension=reth + struct.pack("!I", 5))
    irn.receive(last)
    irn.receive(data(0, BthOpcode.RC_WRITE_FIRST, bytes(MTU), extension=reth))
    assert (recv(irn, 0).byte_len, recv(irn, 0).immediate) == (MTU + 1, 5)
    assert recv(irn, 0).flags == IMMEDIATE | WRITE
    assert irn.qp.receiver[0].completed == (FIRST_RECV + 1) % PSNS


def test_a_message_without_a_receive_is_refused_in_its_turn_only(bench: Bench) -> None:
    irn = prepare(bench, receives=0)
    early, first = (data(n, BthOpcode.RC_SEND_ONLY, b"x", wqe_sn=FIRST_RECV + n) for n in (1, 0))
    assert irn.receive(early)[0] == DROP
    action, reply = irn.receive(first)
    assert action == TX and reply[62] & 0x60 == p.RNR
    assert irn.events() == {"REQUEST_EARLY_FAULT": 1, "RNR_NAK_SENT": 1}
    irn.rig.rqs[0].posted = (FIRST_RECV + 2) % PSNS
    for number in range(2):
        one = recv(irn, number)
        one.va, one.length, one.lkey = VA + number * 512, 512, RKEY
    irn.receive(early)
    irn.receive(first)
    assert irn.qp.receiver[0].completed == (FIRST_RECV + 2) % PSNS


def test_a_shared_queue_gives_receives_as_packets_need_them(bench: Bench) -> None:
    """Appendix B: numbers are allotted when receives are dequeued, up to the one that is needed."""
    irn = prepare(bench)
    irn.qp.config.flags = QP_SRQ
    irn.rig.rqs[0].taken = (FIRST_RECV + 2) % PSNS  # another queue pair has had two
    irn.receive(data(1, BthOpcode.RC_SEND_ONLY, b"two", wqe_sn=FIRST_RECV + 1))
    assert irn.data[4096 + 3 * 512 : 4096 + 3 * 512 + 3] == b"two"
    assert irn.rig.rqs[0].taken == (FIRST_RECV + 4) % PSNS
    irn.receive(data(0, BthOpcode.RC_SEND_ONLY, b"one", wqe_sn=FIRST_RECV))
    assert irn.data[4096 + 2 * 512 : 4096 + 2 * 512 + 3] == b"one"
    assert irn.qp.receiver[0].completed == (FIRST_RECV + 2) % PSNS


def test_an_early_read_request_waits_in_the_read_wqe_buffer(irn: Bench) -> None:
    reth = p.reth(VA + 8, RKEY, 700)
    atomic = struct.pack("!QIQQ", VA + 16, RKEY, 5, 0)
    irn.receive(data(2, BthOpcode.RC_FETCH_ADD, wqe_sn=FIRST_FETCH + 1, extension=atomic))
    irn.receive(data(1, BthOpcode.RC_READ_REQUEST, wqe_sn=FIRST_FETCH, extension=reth))
    assert irn.qp.receiver[0].fetches == FIRST_FETCH
    assert irn.receive(write(0, packets=1)) == (TX, answer(3, 0, msn=3))
    assert irn.qp.receiver[0].fetches == (FIRST_FETCH + 2) % PSNS
    read, add = (irn.qp.incoming[(FIRST_FETCH + n) % 16] for n in range(2))
    assert (read.va, read.length, read.opcode) == (VA + 8, 700, BthOpcode.RC_READ_REQUEST)
    assert (add.va, add.swap_add, add.opcode) == (VA + 16, 5, BthOpcode.RC_FETCH_ADD)


def test_a_read_request_that_the_agent_may_be_executing_is_not_written_over(irn: Bench) -> None:
    first = data(0, BthOpcode.RC_READ_REQUEST, wqe_sn=FIRST_FETCH, extension=p.reth(VA + 8, RKEY, 700))
    assert irn.receive(first) == (TX, answer(1, 0, msn=1))
    again = data(2, BthOpcode.RC_READ_REQUEST, wqe_sn=FIRST_FETCH, extension=p.reth(VA, RKEY, 4096))
    assert irn.receive(again)[0] == DROP
    read = irn.qp.incoming[FIRST_FETCH % 16]
    assert (read.va, read.length) == (VA + 8, 700)
    assert irn.events() == {"REQUEST_PLACED": 1, "REQUEST_EARLY_FAULT": 1}


def test_a_read_whose_response_has_more_psns_than_compare(irn: Bench) -> None:
    irn.region.length = 1 << 32
    longest = MTU * ((PSNS >> 1) - 1)

    def read(number: int, length: int) -> bytes:
        wqe_sn = FIRST_FETCH + number
        return data(number, BthOpcode.RC_READ_REQUEST, wqe_sn=wqe_sn, extension=p.reth(VA, RKEY, length))

    assert irn.receive(read(0, longest)) == (TX, answer(1, 0, msn=1))
    assert irn.receive(read(1, longest + 1)) == (TX, answer(1, 1, msn=1, syndrome=p.NAK_INVALID, here=0))
    assert irn.events() == {"REQUEST_PLACED": 1, "NAK_LENGTH": 1}


def test_responses_have_psns_and_acknowledgements_of_their_own(irn: Bench) -> None:
    """Supporting RDMA Reads and Atomics: the requester sends read (N)ACKs."""
    out = irn.qp.outgoing[FIRST_FETCH % 16]
    out.va, out.lkey, out.length, out.kind = VA + 512, RKEY, MTU + 9, 1
    last = data(1, BthOpcode.RC_READ_RESPONSE_LAST, b"r" * 9, ipsn=1, wqe_sn=FIRST_FETCH, extension=p.aeth(p.ACK))
    assert irn.receive(last) == (TX, answer(0, 1, syndrome=p.NAK_SEQUENCE, stream=1))
    first = data(0, BthOpcode.RC_READ_RESPONSE_FIRST, b"R" * MTU, wqe_sn=FIRST_FETCH, extension=p.aeth(p.ACK))
    assert irn.receive(first) == (TX, answer(2, 0, msn=1, stream=1))
    assert bytes(irn.data[512 : 512 + MTU + 9]) == b"R" * MTU + b"r" * 9
    assert irn.events() == {"RESPONSE_OUT_OF_ORDER": 1, "RESPONSE_PLACED": 1}
    assert irn.qp.receiver[0].epsn == FIRST


@pytest.mark.parametrize(
    ("frame", "event", "syndrome"),
    [
        (write(0, rkey=RKEY ^ 0x100), "NAK_RKEY", p.NAK_ACCESS),
        (write(0, va=VA + 12_000), "NAK_BOUNDS", p.NAK_ACCESS),
        (data(0, BthOpcode.RC_WRITE_MIDDLE, bytes(MTU), extension=RETH), "NAK_OPCODE_SEQ", p.NAK_INVALID),
        (data(0, BthOpcode.RC_WRITE_ONLY, b"x", extension=RETH), "NAK_LENGTH", p.NAK_INVALID),
    ],
)
def test_a_fault_gets_its_nak_in_its_turn(irn: Bench, frame: bytes, event: str, syndrome: int) -> None:
    irn.qp.receiver[0].epsn = psn(-1)
    assert irn.receive(frame)[0] == DROP  # ahead of its turn it is dropped: a NAK would acknowledge what is missing
    irn.qp.receiver[0].epsn = psn(0)
    assert irn.receive(frame) == (TX, answer(0, 0, syndrome=syndrome, here=0))
    assert irn.events() == {"REQUEST_EARLY_FAULT": 1, event: 1}
    assert irn.qp.config.state == QpState.ERROR
    assert bytes(irn.data) == bytes(len(irn.data))


def test_credits_say_how_many_receives_are_left(irn: Bench) -> None:
    irn.qp.config.flags = QP_CREDITS
    first = data(0, BthOpcode.RC_SEND_ONLY, b"x", wqe_sn=FIRST_RECV)
    assert irn.receive(first) == (TX, answer(1, 0, msn=1, syndrome=5))  # seven are left: code 6 says eight, 5 says six
    assert irn.qp.receiver[0].completed == (FIRST_RECV + 1) % PSNS


def test_the_ideal_receiver_complains_about_nothing(bench: Bench) -> None:
    ideal = prepare(bench, "ideal")
    assert ideal.receive(write(3)) == (TX, answer(0, 3))
    assert ideal.receive(write(1)) == (TX, answer(0, 1))
    assert ideal.receive(write(1)) == (TX, answer(0, 1))
    assert ideal.qp.receiver[0].gaps == 0


def random_frame(chance: random.Random, epsn: int, una: int) -> bytes:
    number = epsn + chance.randint(-1, L + 1)
    wqe_sn = FIRST_RECV + chance.randrange(10)
    kind = chance.randrange(6)
    if kind == 0:
        upto = psn(una + chance.randint(-1, 3))
        syndrome = chance.choice((p.ACK, p.ACK, 3, p.NAK_SEQUENCE, p.RNR | 3))
        named = chance.choice((0, SACK_VALID, SACK_VALID | ECE)) << 24 | psn(una + chance.randint(-2, 12))
        extension = struct.pack("!IHH", named, 0xC123, 0) + p.aeth(syndrome, chance.randrange(9))
        opcode = chance.choice((BthOpcode.RC_ACKNOWLEDGE, BthOpcode.RC_READ_ACKNOWLEDGE))
        return p.frame(int(opcode), upto, QPN, extension=extension, resv7=EXTENSION_ACK)
    if kind == 1:
        ecn = chance.choice((2, CE))
        return data(number, BthOpcode.RC_SEND_ONLY_IMM, b"abc", wqe_sn=wqe_sn, extension=bytes(4), ecn=ecn)
    if kind == 2:
        fetch = FIRST_FETCH + chance.randrange(4)
        return data(number, BthOpcode.RC_READ_REQUEST, wqe_sn=fetch, extension=p.reth(VA, RKEY, chance.randrange(999)))
    if kind == 3:
        opcode, ipsn = chance.choice(((BthOpcode.RC_READ_RESPONSE_FIRST, 0), (BthOpcode.RC_READ_RESPONSE_LAST, 1)))
        body = bytes([number % 251]) * (9 if ipsn else MTU)
        return data(number, opcode, body, ipsn=ipsn, wqe_sn=FIRST_FETCH, extension=p.aeth(p.ACK))
    return write(number, number - chance.randrange(3), again=chance.random() < 0.2, ecn=chance.choice((2, 3)))


@pytest.mark.parametrize(("transport", "flags"), [("irn", 0), ("irn", QP_CREDITS | QP_CNP), ("ideal", QP_SRQ)])
def test_xdp_and_native_do_the_same(xdp_rig: XdpRig, transport: str, flags: int) -> None:
    benches = [prepare(Bench(NativeRig(grow=True)), transport), prepare(Bench(xdp_rig), transport)]
    for bench in benches:
        qp = bench.qp
        qp.config.host, qp.config.flags = benches[0].rig.host, flags
        qp.config.cnp_interval_ns = 1 << 62  # the first mark only, since clocks differ
        out = qp.outgoing[FIRST_FETCH % 16]
        out.va, out.lkey, out.length, out.kind = VA + 512, RKEY, MTU + 9, 1
        qp.sender[1].snd_una = qp.emitter[1].snd_nxt = FIRST
    chance = random.Random(3)
    epsn = una = sent = 0
    for _ in range(150):
        sent += chance.choice((0, 0, 1, 3))
        frame = random_frame(chance, epsn, una)
        for bench in benches:
            bench.emitter.snd_nxt = bench.qp.emitter[1].snd_nxt = psn(sent)
        replies = [bench.receive(frame) for bench in benches]
        assert replies[0] == replies[1]
        for bench in benches:
            bench.qp.receiver[0].cnp_time = 0
        states = [bytes(ffi.buffer(ffi.addressof(bench.qp), QP_BYTES)) for bench in benches]
        assert states[0] == states[1]
        assert benches[0].data == benches[1].data
        received = [bytes(ffi.buffer(bench.rig.recvs, SLOTS * RECV_BYTES)) for bench in benches]
        assert received[0] == received[1]
        epsn = (benches[0].receiver.epsn - FIRST) % PSNS
        una = (benches[0].sender.snd_una - FIRST) % PSNS
        if benches[0].qp.config.state == QpState.ERROR:
            for bench in benches:
                bench.qp.config.state = QpState.RTS
    assert benches[0].events() == benches[1].events()
    assert len(benches[0].events()) > 8
    assert all(bench.canaries_intact() for bench in benches)
