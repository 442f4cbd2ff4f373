"""Eunomia on the wire, natively and in XDP: packets out of order, what answers them, and what memory they take."""

from __future__ import annotations

import random
import struct
from typing import Any

import pytest

from ebpf.models.eunomia_bitmap import Connection, Host, Outcome, Slot
from ebpf.models.eunomia_memory import Controller
from ebpf.tests import packets as p
from ebpf.tests.rigs import (
    DROP,
    MTU,
    QPN,
    REMOTE_QPN,
    RKEY,
    SIZES,
    TRANSPORTS,
    TX,
    VA,
    Bench,
    NativeRig,
    XdpRig,
    ffi,
)
from wire.codes import BthOpcode

PSNS = 1 << 24
FIRST = PSNS - 3
HOLD_LAST = 0x4
HOLD_AT = 4096
EXTENSION_DATA, EXTENSION_ACK = 1, 2
SACK_VALID = 0x80  # xack_t
LAST = 0x20  # xdata_t
LAST_BYTES = 100  # of the last packet of a WRITE


def psn(number: int) -> int:
    return (FIRST + number) % PSNS


def prepare(bench: Bench, flags: int = 0) -> Bench:
    bench.reset(epsn=FIRST, snd_una=FIRST, snd_nxt=FIRST)
    bench.qp.config.transport = TRANSPORTS.index("eunomia")
    bench.qp.config.flags = flags
    bench.qp.config.hold_at = HOLD_AT
    return bench


@pytest.fixture
def eunomia(bench: Bench) -> Bench:
    return prepare(bench)


def write(number: int, packets: int = 4, *, rkey: int = RKEY, head: int = FIRST) -> bytes:
    """Packet of a WRITE that starts with packet 0."""
    ends = number == packets - 1
    opcode = BthOpcode[f"RC_WRITE_{'LAST' if ends else 'FIRST' if number == 0 else 'MIDDLE'}"]
    flags = LAST if ends else 0
    xdata = struct.pack("!IIII", flags << 24 | 0x777, number, 0, head)
    reth = p.reth(VA, rkey, (packets - 1) * MTU + LAST_BYTES)
    body = bytes([1 + number % 255]) * (LAST_BYTES if ends else MTU)
    return p.frame(int(opcode), psn(number), QPN, body, xdata + reth, ip={"tos": 2}, resv7=EXTENSION_DATA)


def answer(cumulative: int, named: int, msn: int = 0, syndrome: int = p.ACK) -> bytes:
    """ACK or SACK: all before `cumulative` has come; NACK: `cumulative` is missing, and `named` was dropped."""
    nack = syndrome != p.ACK
    xack = struct.pack("!IHH", (0 if nack else SACK_VALID) << 24 | psn(named), p.ENDS.src_port, 0)
    to = p.ENDS
    back = p.Ends(to.dst_mac, to.src_mac, to.dst_ip, to.src_ip, to.src_port)
    upto = psn(cumulative if nack else cumulative - 1)
    extension = xack + p.aeth(syndrome, msn)
    ip = {"tos": 0, "ttl": 64}
    return p.frame(
        int(BthOpcode.RC_ACKNOWLEDGE), upto, REMOTE_QPN, extension=extension, ends=back, ip=ip, resv7=EXTENSION_ACK
    )


def memory(bench: Bench) -> Any:
    return bench.rig.host_states[bench.rig.host].memory.stats


def message(packets: int = 4) -> bytes:
    return b"".join(bytes([1 + n]) * (LAST_BYTES if n == packets - 1 else MTU) for n in range(packets))


def test_packets_go_to_their_place_in_any_order_and_count_in_turn(eunomia: Bench) -> None:
    for number in (3, 1, 2):
        assert eunomia.receive(write(number)) == (TX, answer(0, number))
    assert list(memory(eunomia).blocks) == [24, 1, 3]
    assert eunomia.data[MTU : 3 * MTU + LAST_BYTES] == message()[MTU:]
    assert eunomia.receive(write(0)) == (TX, answer(4, 0, msn=1))
    assert eunomia.data[: len(message())] == message()
    assert list(memory(eunomia).blocks) == [0, 0, 0] and memory(eunomia).collected == 1
    assert eunomia.events() == {"REQUEST_OUT_OF_ORDER": 3, "REQUEST_PLACED": 1}
    assert eunomia.receive(write(3)) == (TX, answer(4, 3, msn=1))
    assert eunomia.canaries_intact()


def test_a_packet_that_was_tracked_is_not_placed_again(eunomia: Bench) -> None:
    eunomia.receive(write(2))
    eunomia.data[:] = bytes(len(eunomia.data))
    assert eunomia.receive(write(2)) == (TX, answer(0, 2))
    assert eunomia.data == bytes(len(eunomia.data))


def test_what_no_bitmap_can_hold_gets_a_nack(eunomia: Bench) -> None:
    far = p.frame(
        int(BthOpcode.RC_WRITE_MIDDLE), psn(256), QPN, bytes(MTU),
        struct.pack("!IIII", 0, 1, 0, FIRST) + p.reth(VA, RKEY, 8 * MTU), resv7=EXTENSION_DATA,
    )  # fmt: skip
    assert eunomia.receive(far) == (TX, answer(0, 256, syndrome=p.NAK_SEQUENCE))
    eunomia.rig.host_states[eunomia.rig.host].memory.block_alloc_bitmap = [0xFFFFFFFF] * 32
    memory(eunomia).blocks = [0, 1024, 0]
    assert eunomia.receive(write(1)) == (TX, answer(0, 1, syndrome=p.NAK_SEQUENCE))
    assert eunomia.events() == {"REQUEST_BEYOND": 1, "REQUEST_NO_BITMAP": 1}
    assert eunomia.data == bytes(len(eunomia.data))
    assert eunomia.receive(write(0))[0] == TX  # in order, so it needs no memory
    assert eunomia.receiver.epsn == psn(1)


def test_an_early_packet_that_may_not_be_executed_gets_a_nack(eunomia: Bench) -> None:
    """In its turn it gets the NAK that ends the connection."""
    bad = RKEY ^ 0x100
    assert eunomia.receive(write(1, rkey=bad)) == (TX, answer(0, 1, syndrome=p.NAK_SEQUENCE))
    assert eunomia.receive(write(0, rkey=bad)) == (TX, answer(0, 0, syndrome=p.NAK_ACCESS))
    assert eunomia.events() == {"REQUEST_EARLY_FAULT": 1, "NAK_RKEY": 1}


def test_another_head_is_another_connection(eunomia: Bench) -> None:
    assert eunomia.receive(write(1, head=FIRST - 1))[0] == DROP
    assert eunomia.events() == {"DROP_BAD_HEADER": 1}
    assert eunomia.receive(write(1)) == (TX, answer(0, 1))


def test_an_early_last_packet_is_held(bench: Bench) -> None:
    """Appendix A.1: nothing of it shows before all else is there."""
    eunomia = prepare(bench, flags=HOLD_LAST)
    assert eunomia.receive(write(3)) == (TX, answer(0, 3))
    assert eunomia.data == bytes(len(eunomia.data))
    assert eunomia.rig.arena[HOLD_AT : HOLD_AT + LAST_BYTES] == bytes([4]) * LAST_BYTES
    for number in (1, 2, 3):
        assert eunomia.receive(write(number)) == (TX, answer(0, number))
    assert eunomia.data[3 * MTU : 3 * MTU + LAST_BYTES] == bytes(LAST_BYTES)
    assert eunomia.receive(write(0)) == (TX, answer(4, 0, msn=1))
    assert eunomia.data[: len(message())] == message()
    assert not eunomia.receiver.transport.eunomia.held


def test_a_held_packet_goes_nowhere_when_its_region_is_gone(bench: Bench) -> None:
    eunomia = prepare(bench, flags=HOLD_LAST)
    eunomia.receive(write(1, packets=2))
    eunomia.region.access = 0
    eunomia.receive(write(0, packets=2))
    assert eunomia.data == bytes(len(eunomia.data))


@pytest.mark.parametrize("before", [1, 37, 99])
def test_a_held_packet_may_span_two_chunks_of_the_arena(bench: Bench, before: int) -> None:
    eunomia = prepare(bench, flags=HOLD_LAST)
    chunk = 1 << SIZES.chunk_shift
    eunomia.region.arena_offset = chunk - MTU - before
    eunomia.receive(write(1, packets=2))
    eunomia.receive(write(0, packets=2))
    at = chunk - before
    assert eunomia.rig.arena[at : at + LAST_BYTES] == bytes([2]) * LAST_BYTES
    assert eunomia.rig.arena[at - 1] == 1 and eunomia.rig.arena[at + LAST_BYTES] == Bench.CANARY


def test_only_one_packet_is_held_at_a_time(bench: Bench) -> None:
    eunomia = prepare(bench, flags=HOLD_LAST)
    assert eunomia.receive(write(3)) == (TX, answer(0, 3))
    assert eunomia.receive(write(5, packets=6)) == (TX, answer(0, 5, syndrome=p.NAK_SEQUENCE))
    assert eunomia.events()["REQUEST_NO_BITMAP"] == 1


def test_xdp_tracks_as_the_model_does(xdp_rig: XdpRig) -> None:
    """The verifier's programs are gcc's: random orders, with side rows, growth, absorption and collection."""
    chance = random.Random(8)
    native, xdp = prepare(Bench(NativeRig())), prepare(Bench(xdp_rig))
    connection = Connection(Host(Controller()))
    events = {
        Outcome.ADVANCED: "REQUEST_PLACED",
        Outcome.TRACKED: "REQUEST_OUT_OF_ORDER",
        Outcome.CAPPED: "REQUEST_BEYOND",
    }
    counts: dict[str, int] = {}
    for _ in range(600):
        far = chance.random() < 0.02
        ahead = chance.randint(100, 280) if far else chance.choice((0, 0, chance.randint(-2, 12)))
        number = max(0, connection.expected + ahead)
        ends, last = chance.random() < 0.2, chance.random() < 0.1
        outcome, _ = connection.receive(number, Slot.TAIL if ends else Slot.RECEIVED, last)
        event = events.get(outcome, "REQUEST_DUPLICATE")
        counts[event] = counts.get(event, 0) + 1
        opcode = BthOpcode.RC_WRITE_LAST if ends else BthOpcode.RC_WRITE_MIDDLE
        xdata = struct.pack("!IIII", (LAST if last else 0) << 24, 1, 0, FIRST)
        reth = p.reth(VA, RKEY, MTU + 1 if ends else 3 * MTU)
        frame = p.frame(int(opcode), psn(number), QPN, bytes(1 if ends else MTU), xdata + reth, resv7=EXTENSION_DATA)
        assert native.receive(frame) == xdp.receive(frame)
    assert xdp.events() == native.events() == counts
    assert xdp.receiver.epsn == psn(connection.expected)
    state = ffi.sizeof("struct nic_mc")
    for bench in (native, xdp):
        states = connection.bitmap.metadata + 1 if connection.bitmap else 0
        assert bench.receiver.transport.eunomia.bitmap.states == states
    both = [bytes(ffi.buffer(ffi.addressof(b.rig.host_states[b.rig.host].memory), state)) for b in (native, xdp)]
    assert both[0] == both[1]
    assert counts["REQUEST_BEYOND"] and counts["REQUEST_DUPLICATE"] and memory(xdp).collected
