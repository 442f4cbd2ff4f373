"""MP-RDMA on the wire, natively and in XDP: what a data packet is answered with, what an acknowledgement does."""

from __future__ import annotations

import random
import struct

import pytest

from ebpf.tests import packets as p
from ebpf.tests.rigs import (
    DROP,
    MTU,
    PD,
    QP_BYTES,
    QPN,
    REMOTE_QPN,
    RKEY,
    TRANSPORTS,
    TX,
    VA,
    Bench,
    NativeRig,
    XdpRig,
    ffi,
    ip_number,
)

FIRST = (1 << 24) - 6
PSNS = 1 << 24
EXTENSION_DATA, EXTENSION_ACK = 1, 2
RETRANSMISSION, SYNCHRONISE = 0x80, 0x40  # xdata_t
SACK_VALID, ECE, AGAIN = 0x80, 0x40, 0x20  # xack_t
CE = 3
SLOTS = 16


def psn(number: int) -> int:
    return (FIRST + number) % PSNS


def prepare(bench: Bench) -> Bench:
    bench.reset(epsn=FIRST, snd_una=FIRST, snd_nxt=FIRST)
    config = bench.qp.config
    config.transport = TRANSPORTS.index("mprdma")
    config.slots, config.delta, config.window, config.initial_window = SLOTS, 4, 32, 8
    config.probe_per_mille, config.source_port, config.random_seed = 100, 0xC000, 7
    config.first_psn[0] = FIRST
    bench.emitter.posted = psn(4096)
    return bench


@pytest.fixture
def mp(bench: Bench) -> Bench:
    return prepare(bench)


def data(number: int, flags: int = 0, ecn: int = 2, path: int = 0xC123, ipsn: int = 0, ask: int = 1) -> bytes:
    """A WRITE of one packet to its own place in the region."""
    body = bytes([number % 251]) * MTU
    xdata = struct.pack("!IIII", flags << 24 | number % PSNS, ipsn, 0, 0)
    address = p.reth(VA + number % 48 * MTU, RKEY, MTU)
    ends = p.with_ends(src_port=path)
    return p.frame(
        p.WRITE_ONLY, psn(number), QPN, body, xdata + address, ends, {"tos": ecn}, resv7=EXTENSION_DATA, ackreq=ask
    )


def ack(
    cumulative: int, sack: int, flags: int = SACK_VALID, path: int = 0xC123, syndrome: int = p.ACK, msn: int = 0
) -> bytes:
    """An ACK names the last packet in order, a NAK the first that is missing."""
    named = psn(cumulative if syndrome & 0x60 else cumulative - 1)
    xack = struct.pack("!IHH", flags << 24 | psn(sack), path, 0)
    return p.frame(p.ACKNOWLEDGE, named, QPN, extension=xack + p.aeth(syndrome, msn), resv7=EXTENSION_ACK)


def answer(
    cumulative: int, sack: int, flags: int = SACK_VALID, path: int = 0xC123, syndrome: int = p.ACK, msn: int = 0
) -> bytes:
    named = psn(cumulative if syndrome & 0x60 else cumulative - 1)
    xack = struct.pack("!IHH", flags << 24 | psn(sack), path, 0)
    to = p.with_ends(src_port=path)
    back = p.Ends(to.dst_mac, to.src_mac, to.dst_ip, to.src_ip, path)
    extension = xack + p.aeth(syndrome, msn)
    return p.frame(
        p.ACKNOWLEDGE, named, REMOTE_QPN, extension=extension, ends=back, ip={"tos": 0, "ttl": 64}, resv7=EXTENSION_ACK
    )


def test_a_packet_in_turn_is_placed_and_acknowledged_with_its_path(mp: Bench) -> None:
    assert mp.receive(data(0, path=0xDEAD)) == (TX, answer(1, 0, path=0xDEAD, msn=1))
    assert mp.data[:MTU] == bytes(MTU)
    assert mp.events() == {"REQUEST_PLACED": 1}


def test_marks_and_retransmission_are_echoed(mp: Bench) -> None:
    assert mp.receive(data(0, RETRANSMISSION, CE)) == (TX, answer(1, 0, SACK_VALID | ECE | AGAIN, msn=1))


def test_a_packet_ahead_of_its_turn_is_placed_and_sacked(mp: Bench) -> None:
    assert mp.receive(data(3)) == (TX, answer(0, 3))
    assert mp.data[3 * MTU : 4 * MTU] == bytes([3]) * MTU
    # The missing ones fill the gap: MSN moves over all four at once.
    for number in (1, 2):
        assert mp.receive(data(number)) == (TX, answer(0, number))
    assert mp.receive(data(0)) == (TX, answer(4, 0, msn=4))
    assert mp.events() == {"REQUEST_OUT_OF_ORDER": 3, "REQUEST_PLACED": 1}


def test_a_packet_beyond_the_slots_is_dropped_with_a_nack(mp: Bench) -> None:
    assert mp.receive(data(SLOTS)) == (TX, answer(0, SLOTS, 0, syndrome=p.NAK_SEQUENCE))
    assert bytes(mp.data) == bytes(len(mp.data))
    assert mp.receive(data(SLOTS - 1)) == (TX, answer(0, SLOTS - 1))
    assert mp.events() == {"REQUEST_BEYOND": 1, "REQUEST_OUT_OF_ORDER": 1}


def test_duplicates_are_acknowledged_again_and_change_nothing(mp: Bench) -> None:
    mp.receive(data(0))
    mp.receive(data(2))
    mp.data[:] = bytes(len(mp.data))
    assert mp.receive(data(0)) == (TX, answer(1, 0, msn=1))
    assert mp.receive(data(2)) == (TX, answer(1, 2, msn=1))
    assert bytes(mp.data) == bytes(len(mp.data))
    assert mp.events()["REQUEST_DUPLICATE"] == 2


def test_a_synchronise_packet_waits_for_all_before_its_message(mp: Bench) -> None:
    assert mp.receive(data(1, SYNCHRONISE)) == (TX, answer(0, 1, 0, syndrome=p.NAK_SEQUENCE))
    assert mp.receive(data(0)) == (TX, answer(1, 0, msn=1))
    assert mp.receive(data(1, SYNCHRONISE)) == (TX, answer(2, 1, msn=2))
    assert mp.events() == {"SYNCHRONISE_REFUSED": 1, "REQUEST_PLACED": 2}


def test_a_packet_without_the_extension_is_dropped(mp: Bench) -> None:
    frame = p.frame(p.WRITE_ONLY, FIRST, QPN, bytes(MTU), p.reth(VA, RKEY, MTU))
    assert mp.receive(frame)[0] == DROP
    assert mp.events() == {"DROP_BAD_HEADER": 1}
    assert mp.receive(p.frame(p.ACKNOWLEDGE, FIRST, QPN, extension=p.aeth(p.ACK)))[0] == DROP
    assert mp.events() == {"DROP_BAD_HEADER": 2}


def credits(bench: Bench) -> list[tuple[int, int, int]]:
    """(kind, count, path) of what was let go and not fetched."""
    head, tail = bench.sender.transport.mprdma.head, bench.emitter.transport.mprdma.tail
    ring = bench.qp.credits[0]
    return [(c.kind, c.count, c.path) for c in (ring[at % len(ring)] for at in range(tail, head))]


def test_an_acknowledgement_lets_a_packet_go_on_its_path(mp: Bench) -> None:
    mp.qp.config.probe_per_mille = 0
    mp.emitter.snd_nxt = psn(8)
    mp.emitter.transport.mprdma.granted = 8
    assert mp.receive(ack(1, 0, path=0xCAFE))[0] == DROP
    assert mp.sender.snd_una == psn(1)
    assert credits(mp) == [(0, 1, 0xCAFE)]
    assert mp.receive(ack(1, 2, SACK_VALID | ECE, path=0xCAFF))[0] == DROP
    assert mp.events() == {"ACK_RECEIVED": 1, "SACK_RECEIVED": 1}
    # 8 + 1/8 - 1/2: one less may be in flight.
    assert mp.sender.transport.mprdma.cwnd == 8 * 65536 + 8192 - 32768
    assert credits(mp) == [(0, 1, 0xCAFE)]


def test_a_nack_lets_a_retransmission_go(mp: Bench) -> None:
    mp.emitter.snd_nxt = psn(8)
    mp.emitter.transport.mprdma.granted = 8
    assert mp.receive(ack(3, 0, 0, 0xCAFE, p.NAK_SEQUENCE))[0] == DROP
    assert mp.sender.snd_una == psn(3)
    assert mp.sender.naks == 1
    assert credits(mp) == [(1, 1, 0xCAFE)]
    assert mp.qp.credits[0][0].psn == psn(3)


@pytest.mark.parametrize(
    "frame",
    [
        ack(9, 0),                          # AACK of what was not sent
        ack(1, 8),                          # SACK of what was not sent
        ack(9, 0, 0, syndrome=p.NAK_SEQUENCE),
        ack(8, 0, 0, syndrome=p.NAK_ACCESS),  # a fault of a packet that was not sent
    ],
)
def test_what_was_not_sent_cannot_be_acknowledged(mp: Bench, frame: bytes) -> None:
    mp.emitter.snd_nxt = psn(8)
    mp.emitter.transport.mprdma.granted = 8
    before = bytes(ffi.buffer(ffi.addressof(mp.qp)))
    assert mp.receive(frame)[0] == DROP
    assert mp.events() == {"ACK_STALE": 1}
    assert bytes(ffi.buffer(ffi.addressof(mp.qp))) == before


def test_a_fatal_nak_ends_the_connection(mp: Bench) -> None:
    mp.emitter.snd_nxt = psn(8)
    mp.receive(ack(2, 0, 0, syndrome=p.NAK_ACCESS))
    assert (mp.sender.error, mp.sender.error_psn) == (p.NAK_ACCESS, psn(2))


def test_an_rnr_nak_is_left_to_the_agent(mp: Bench) -> None:
    mp.emitter.snd_nxt = psn(8)
    mp.receive(ack(2, 0, 0, syndrome=p.RNR | 14))
    assert (mp.sender.rnr_naks, mp.sender.rnr_timer, mp.sender.snd_una) == (1, 14, psn(2))
    assert not credits(mp)


@pytest.mark.parametrize("seed", range(3))
def test_xdp_and_native_do_the_same(xdp_rig: XdpRig, seed: int) -> None:
    benches = [prepare(Bench(NativeRig(grow=True))), prepare(Bench(xdp_rig))]
    for bench in benches:
        bench.qp.config.host = benches[0].rig.host
    chance = random.Random(seed)
    sent = una = epsn = 0
    for _ in range(150):
        sent += chance.choice((0, 0, 1, 3))
        for bench in benches:
            bench.emitter.snd_nxt = psn(sent)
            bench.emitter.transport.mprdma.granted = sent % 5
            bench.emitter.transport.mprdma.tail = bench.sender.transport.mprdma.head
            bench.emitter.posted = psn(sent + 20 * (seed != 2))
        path = 0xC000 | chance.getrandbits(14)
        if chance.random() < 0.5:
            flags = chance.choice((0, 0, RETRANSMISSION, SYNCHRONISE))
            frame = data(epsn + chance.randint(-1, SLOTS + 1) % PSNS, flags, chance.choice((2, 3)), path)
        else:
            syndrome = chance.choice((p.ACK, p.ACK, p.ACK, p.NAK_SEQUENCE, p.RNR | 3))
            flags = chance.choice((ECE, AGAIN, 0)) | (SACK_VALID if syndrome == p.ACK else 0)
            frame = ack(una + chance.randint(-1, 3), una + chance.randint(-2, 12), flags, path, syndrome)
        replies = [bench.receive(frame) for bench in benches]
        assert replies[0] == replies[1]
        states = [bytes(ffi.buffer(ffi.addressof(bench.qp), QP_BYTES)) for bench in benches]
        assert states[0] == states[1]
        assert benches[0].data == benches[1].data
        epsn = (benches[0].receiver.epsn - FIRST) % PSNS
        una = (benches[0].sender.snd_una - FIRST) % PSNS
    assert benches[0].events() == benches[1].events()
    assert len(benches[0].events()) > 6
    assert benches[0].qp.config.pd == PD and benches[0].qp.config.local_ip == ip_number(p.ENDS.dst_ip)
