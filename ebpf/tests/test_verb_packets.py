"""SENDs, READs, atomics and their answers with go-back-N, packet by packet, natively and as XDP."""

from __future__ import annotations

from typing import Any

import pytest

from ebpf.tests import packets as p
from ebpf.tests.rigs import DROP, MTU, QPN, REGION_LENGTH, REMOTE_QPN, RKEY, TX, VA, Bench, lib
from wire.codes import QpState

READABLE = 0xF  # all rights
TIMER = 11  # RNR timer code


def reply(syndrome: int, psn: int, msn: int = 0) -> bytes:
    return p.reply(syndrome, psn, msn, REMOTE_QPN)


def send(opcode: int, psn: int, body: bytes, extension: bytes = b"", **more: Any) -> bytes:
    return p.frame(opcode, psn, QPN, body, extension, **more)


def recv(bench: Bench, number: int = 0) -> Any:
    return bench.rig.recvs[number]


# ---- SEND, and WRITE with immediate ----


def test_a_send_fills_its_receive_and_completes_it(bench: Bench) -> None:
    bench.post_receives((VA + 100, 50))
    assert bench.receive(send(p.SEND_ONLY, 100, b"hello")) == (TX, reply(p.ACK, 100, 1))
    assert bytes(bench.data[100:105]) == b"hello" and not any(bench.data[105:])
    assert (recv(bench).byte_len, recv(bench).flags, bench.receiver.completed) == (5, 0, 1)
    assert bench.events() == {"REQUEST_PLACED": 1}


def test_a_send_of_three_packets(bench: Bench) -> None:
    data = bytes(range(256)) * 2 + b"end"
    bench.post_receives((VA, 1000))
    assert bench.receive(send(p.SEND_FIRST, 100, data[:MTU]))[0] == DROP
    assert bench.receiver.completed == 0
    assert bench.receive(send(p.SEND_MIDDLE, 101, data[MTU : 2 * MTU]))[0] == DROP
    assert bench.receive(send(p.SEND_LAST, 102, data[2 * MTU :])) == (TX, reply(p.ACK, 102, 1))
    assert bytes(bench.data[: len(data)]) == data and recv(bench).byte_len == len(data)
    assert bench.canaries_intact()


@pytest.mark.parametrize(
    ("opcode", "extension", "flags"),
    [
        (p.SEND_ONLY_IMM, b"\x01\x02\x03\x04", lib.NIC_RECV_IMMEDIATE),
        (p.SEND_ONLY_INVALIDATE, b"\x01\x02\x03\x04", lib.NIC_RECV_INVALIDATE),
        (p.WRITE_ONLY_IMM, p.reth(VA, RKEY, 5) + b"\x01\x02\x03\x04", lib.NIC_RECV_IMMEDIATE | lib.NIC_RECV_WRITE),
    ],
)
def test_what_a_completion_says(bench: Bench, opcode: int, extension: bytes, flags: int) -> None:
    bench.post_receives((VA, 5))
    assert bench.receive(send(opcode, 100, b"hello", extension)) == (TX, reply(p.ACK, 100, 1))
    assert (recv(bench).flags, recv(bench).immediate, recv(bench).byte_len) == (flags, 0x01020304, 5)
    assert bytes(bench.data[:5]) == b"hello"


def test_an_immediate_at_the_end_of_a_write_tells_all_its_bytes(bench: Bench) -> None:
    bench.post_receives((0, 0))
    bench.receive(p.frame(p.WRITE_FIRST, 100, QPN, bytes(MTU), p.reth(VA, RKEY, MTU + 7)))
    assert bench.receive(send(p.WRITE_LAST_IMM, 101, b"x" * 7, b"\0\0\0\x09")) == (TX, reply(p.ACK, 101, 1))
    assert (recv(bench).byte_len, recv(bench).immediate, bench.receiver.completed) == (MTU + 7, 9, 1)


@pytest.mark.parametrize(
    ("opcode", "extension"), [(p.SEND_ONLY, b""), (p.WRITE_ONLY_IMM, p.reth(VA, RKEY, 5) + bytes(4))]
)
def test_receiver_not_ready(bench: Bench, opcode: int, extension: bytes) -> None:
    """One RNR NAK until the packet comes again; what follows it is dropped in silence."""
    bench.post_receives()
    bench.qp.config.rnr_timer = TIMER
    frame = send(opcode, 100, b"hello", extension)
    assert bench.receive(frame) == (TX, reply(p.RNR | TIMER, 100))
    assert bench.receive(send(p.SEND_ONLY, 101, b"next"))[0] == DROP
    assert bench.receive(frame) == (TX, reply(p.RNR | TIMER, 100))
    bench.post_receives((VA, 10))
    assert bench.receive(frame) == (TX, reply(p.ACK, 100, 1))
    assert bench.events() == {"RNR_NAK_SENT": 2, "REQUEST_SEQ_ERROR": 1, "REQUEST_PLACED": 1}
    assert bytes(bench.data[:5]) == b"hello"


def test_without_a_receive_queue_nobody_is_ready(bench: Bench) -> None:
    assert bench.receive(send(p.SEND_ONLY, 100, b"hello")) == (TX, reply(p.RNR, 100))


def test_a_send_longer_than_its_receive(bench: Bench) -> None:
    bench.post_receives((VA, MTU + 4))
    bench.receive(send(p.SEND_FIRST, 100, bytes(MTU)))
    assert bench.receive(send(p.SEND_LAST, 101, b"12345")) == (TX, reply(p.NAK_INVALID, 101))
    assert recv(bench).flags == lib.NIC_RECV_ERROR and bench.receiver.completed == 0
    assert bench.events() == {"REQUEST_PLACED": 1, "NAK_LENGTH": 1}
    assert bench.qp.config.state == QpState.ERROR


@pytest.mark.parametrize("fault", ["key", "bounds", "right"])
def test_a_receive_in_memory_that_is_not_ours_is_our_own_fault(bench: Bench, fault: str) -> None:
    at = VA + REGION_LENGTH - 4 if fault == "bounds" else VA
    bench.post_receives((at, 100), lkey=RKEY + 16 if fault == "key" else RKEY)
    if fault == "right":
        bench.region.access = 0xE
    assert bench.receive(send(p.SEND_ONLY, 100, b"hello")) == (TX, reply(p.NAK_OPERATION, 100))
    assert recv(bench).flags == lib.NIC_RECV_PROTECTION
    assert not any(bench.data) and bench.canaries_intact()


SEND_FAULTS = {
    "middle without first": [send(p.SEND_MIDDLE, 100, bytes(MTU))],
    "last without first": [send(p.SEND_LAST, 100, b"x")],
    "first inside": [send(p.SEND_FIRST, 100, bytes(MTU)), send(p.SEND_FIRST, 101, bytes(MTU))],
    "write inside": [
        send(p.SEND_FIRST, 100, bytes(MTU)),
        p.frame(p.WRITE_ONLY, 101, QPN, b"abcd", p.reth(VA, RKEY, 4)),
    ],
    "write goes on": [send(p.SEND_FIRST, 100, bytes(MTU)), send(p.WRITE_MIDDLE, 101, bytes(MTU))],
    "read inside": [send(p.SEND_FIRST, 100, bytes(MTU)), p.frame(p.READ_REQUEST, 101, QPN, b"", p.reth(VA, RKEY, 4))],
    "send goes on in a write": [
        p.frame(p.WRITE_FIRST, 100, QPN, bytes(MTU), p.reth(VA, RKEY, 3 * MTU)),
        send(p.SEND_MIDDLE, 101, bytes(MTU)),
    ],
}


@pytest.mark.parametrize("name", SEND_FAULTS)
def test_sends_out_of_sequence(bench: Bench, name: str) -> None:
    bench.post_receives((VA, 10 * MTU))
    *before, last = SEND_FAULTS[name]
    for frame in before:
        bench.receive(frame)
    assert bench.receive(last) == (TX, reply(p.NAK_INVALID, 100 + len(before)))
    assert bench.events().get("NAK_OPCODE_SEQ") == 1


LENGTH_FAULTS = {
    "first not full": [send(p.SEND_FIRST, 100, bytes(MTU - 4))],
    "only over the MTU": [send(p.SEND_ONLY, 100, bytes(MTU + 4))],
    "middle not full": [send(p.SEND_FIRST, 100, bytes(MTU)), send(p.SEND_MIDDLE, 101, bytes(8))],
    "last empty": [send(p.SEND_FIRST, 100, bytes(MTU)), send(p.SEND_LAST, 101, b"") + bytes(20)],
    "read with payload": [p.frame(p.READ_REQUEST, 100, QPN, b"data", p.reth(VA, RKEY, 4))],
    "read too long": [p.frame(p.READ_REQUEST, 100, QPN, b"", p.reth(VA, RKEY, (1 << 31) + 1))],
    "atomic not aligned": [p.frame(p.FETCH_ADD, 100, QPN, b"", p.atomic(VA + 4, RKEY))],
}


@pytest.mark.parametrize("name", LENGTH_FAULTS)
def test_wrong_lengths(bench: Bench, name: str) -> None:
    bench.region.access = READABLE
    bench.post_receives((VA, 10 * MTU))
    *before, last = LENGTH_FAULTS[name]
    for frame in before:
        bench.receive(frame)
    assert bench.receive(last)[0] == TX
    assert bench.events().get("NAK_LENGTH") == 1 and bench.qp.config.state == QpState.ERROR


# ---- credits and shared receive queues ----


@pytest.mark.parametrize(("receives", "code"), [(0, 0), (1, 1), (4, 4), (5, 4), (6, 5), (7, 5), (8, 6), (15, 7)])
def test_acknowledgements_say_how_many_receives_are_left(bench: Bench, receives: int, code: int) -> None:
    bench.qp.config.flags = lib.NIC_QP_CREDITS
    bench.post_receives(*[(VA, 10)] * receives)
    write = p.frame(p.WRITE_ONLY, 100, QPN, b"abcd", p.reth(VA, RKEY, 4))
    assert bench.receive(write) == (TX, reply(code, 100, 1))


def test_a_send_takes_its_receive_out_of_the_credits(bench: Bench) -> None:
    bench.qp.config.flags = lib.NIC_QP_CREDITS
    bench.post_receives((VA, 10), (VA, 10), (VA, 10))
    assert bench.receive(send(p.SEND_ONLY, 100, b"x")) == (TX, reply(2, 100, 1))


@pytest.mark.parametrize(("code", "limit"), [(0, 7), (3, 10), (9, 31), (30, 32775), (31, 0)])
def test_credits_count_from_the_message_number(bench: Bench, code: int, limit: int) -> None:
    bench.reset(snd_una=5000, snd_nxt=5010)
    bench.qp.config.flags = lib.NIC_QP_CREDITS
    bench.receive(p.frame(p.ACKNOWLEDGE, 5003, QPN, extension=p.aeth(code, 7)))
    assert bench.sender.credit_limit == limit
    bench.receive(p.frame(p.ACKNOWLEDGE, 5004, QPN, extension=p.aeth(0, 1)))
    assert bench.sender.credit_limit == (limit if limit else 1)  # never taken back


def test_a_credit_code_never_promises_more_than_there_is() -> None:
    scale = [0, 1] + [(2 + code % 2) << (code // 2 - 1) for code in range(2, 31)]
    for value in [*range(200), 1000, 1023, 1024, 32767, 32768, 1 << 23]:
        assert lib.nic_native_credit_code(value) == max(code for code, worth in enumerate(scale) if worth <= value)


def test_a_shared_queue_gives_its_receives_in_the_order_of_need(bench: Bench) -> None:
    bench.post_receives((VA, 10), (VA + 10, 10), (VA + 20, 10), shared=True)
    bench.rig.rqs[1].taken = 1  # another queue pair was first
    assert bench.receive(send(p.SEND_ONLY, 100, b"one")) == (TX, reply(p.ACK, 100, 1))
    assert bytes(bench.data[10:13]) == b"one" and recv(bench, 1).byte_len == 3
    bench.emitter.served = 1
    bench.rig.rqs[1].taken = 3  # and again
    assert bench.receive(send(p.SEND_ONLY, 101, b"two")) == (TX, reply(p.RNR, 101, 1))
    assert bench.rig.rqs[1].taken == 3  # never past what is posted


def test_a_shared_queue_grants_no_credits(bench: Bench) -> None:
    bench.qp.config.flags = lib.NIC_QP_CREDITS
    bench.post_receives((VA, 10), shared=True)
    assert bench.receive(send(p.SEND_ONLY, 100, b"one")) == (TX, reply(p.ACK, 100, 1))


def test_a_packet_ahead_of_its_turn_takes_nothing_from_a_shared_queue(bench: Bench) -> None:
    bench.post_receives((VA, 10), shared=True)
    assert bench.receive(send(p.SEND_ONLY, 101, b"two")) == (TX, reply(p.NAK_SEQUENCE, 100))
    assert bench.rig.rqs[1].taken == 0


# ---- READ and atomic requests ----


def read(psn: int, length: int, va: int = VA) -> bytes:
    return p.frame(p.READ_REQUEST, psn, QPN, b"", p.reth(va, RKEY, length))


def write(psn: int) -> bytes:
    return p.frame(p.WRITE_ONLY, psn, QPN, b"abcd", p.reth(VA, RKEY, 4))


def test_a_read_goes_to_the_agent_and_takes_a_psn_for_each_response(bench: Bench) -> None:
    bench.region.access = READABLE
    assert bench.receive(read(100, 2 * MTU + 1, VA + 5))[0] == DROP
    incoming = bench.qp.incoming[0]
    assert (incoming.va, incoming.length, incoming.psn, incoming.rkey) == (VA + 5, 2 * MTU + 1, 100, RKEY)
    assert (incoming.opcode, incoming.repeated) == (p.READ_REQUEST, 0)
    assert (bench.receiver.epsn, bench.receiver.msn, bench.receiver.fetches) == (103, 1, 1)
    assert bench.events() == {"REQUEST_PLACED": 1}


def test_an_atomic_goes_to_the_agent(bench: Bench) -> None:
    bench.region.access = READABLE
    bench.receive(p.frame(p.COMPARE_SWAP, 100, QPN, b"", p.atomic(VA + 8, RKEY, 1 << 63, 77)))
    incoming = bench.qp.incoming[0]
    assert (incoming.va, incoming.swap_add, incoming.compare, incoming.length) == (VA + 8, 1 << 63, 77, 8)
    assert bench.receiver.epsn == 101


def test_what_was_asked_again_is_handed_over_again(bench: Bench) -> None:
    bench.region.access = READABLE
    bench.receive(read(100, 3 * MTU))
    bench.receive(read(101, 2 * MTU, VA + MTU))  # the rest of it
    assert (bench.qp.incoming[1].psn, bench.qp.incoming[1].repeated) == (101, 1)
    assert (bench.receiver.epsn, bench.receiver.msn, bench.receiver.fetches) == (103, 1, 2)
    bench.receive(read(101, 3 * MTU))  # more than was asked for
    assert bench.receiver.fetches == 2
    assert bench.events() == {"REQUEST_PLACED": 1, "REQUEST_DUPLICATE": 2}


def test_no_room_for_more_than_sixteen(bench: Bench) -> None:
    bench.region.access = READABLE
    for psn in range(100, 116):
        assert bench.receive(read(psn, 4))[0] == DROP
    assert bench.receive(read(116, 4))[0] == DROP  # the RNR NAK waits for the answers
    assert bench.receive(read(110, 4))[0] == DROP
    assert bench.receiver.fetches == 16
    assert bench.events() == {"REQUEST_PLACED": 16, "RNR_NAK_SENT": 1, "REQUEST_DUPLICATE": 1}
    bench.qp.emitter[1].served = 16
    assert bench.receive(read(116, 4))[0] == DROP
    assert bench.receiver.fetches == 17


def test_replies_do_not_overtake_the_answer_to_a_read(bench: Bench) -> None:
    bench.region.access = READABLE
    bench.receive(read(100, 4))
    assert bench.receive(write(101))[0] == DROP
    assert bench.receiver.transport.gbn.held == 1
    bench.qp.emitter[1].served = 1
    assert bench.receive(write(102)) == (TX, reply(p.ACK, 102, 3))


def test_a_fault_behind_a_read_waits_for_its_answer(bench: Bench) -> None:
    bench.region.access = READABLE
    bench.receive(read(100, 4))
    bad = p.frame(p.WRITE_ONLY, 101, QPN, b"abcd", p.reth(0, RKEY, 4))
    assert bench.receive(bad)[0] == DROP
    assert bench.qp.config.state == QpState.RTS
    bench.qp.emitter[1].served = 1
    assert bench.receive(bad) == (TX, reply(p.NAK_ACCESS, 101, 1))
    assert bench.qp.config.state == QpState.ERROR


@pytest.mark.parametrize("right", [0x4, 0x8])
def test_reads_and_atomics_need_their_own_rights(bench: Bench, right: int) -> None:
    bench.region.access = 0xF & ~right
    frame = read(100, 4) if right == 0x4 else p.frame(p.FETCH_ADD, 100, QPN, b"", p.atomic(VA, RKEY))
    assert bench.receive(frame) == (TX, reply(p.NAK_ACCESS, 100))
    assert bench.events() == {"NAK_RKEY": 1}


# ---- their answers ----


def outgoing(bench: Bench, slot: int, psn: int, length: int, va: int = VA, kind: int = 1) -> None:
    o = bench.qp.outgoing[slot]
    o.va, o.lkey, o.length, o.psn, o.kind = va, RKEY, length, psn, kind


def response(opcode: int, psn: int, body: bytes, syndrome: int = p.ACK) -> bytes:
    return p.frame(opcode, psn, QPN, body, b"" if opcode == p.READ_RESPONSE_MIDDLE else p.aeth(syndrome))


def test_read_responses_are_placed_and_acknowledge_what_was_before(bench: Bench) -> None:
    data = bytes(range(256)) * 2 + b"end"
    bench.reset(snd_una=5000, snd_nxt=5010)
    outgoing(bench, 0, 5004, len(data), VA + 64)
    assert bench.receive(response(p.READ_RESPONSE_FIRST, 5004, data[:MTU]))[0] == DROP
    assert bench.sender.snd_una == 5005
    bench.receive(response(p.READ_RESPONSE_MIDDLE, 5005, data[MTU : 2 * MTU]))
    bench.receive(response(p.READ_RESPONSE_LAST, 5006, data[2 * MTU :]))
    assert bytes(bench.data[64 : 64 + len(data)]) == data
    assert (bench.sender.snd_una, bench.qp.receiver[1].msn) == (5007, 1)
    assert bench.events() == {"RESPONSE_PLACED": 3} and bench.canaries_intact()


def test_an_atomics_answer(bench: Bench) -> None:
    bench.reset(snd_una=5000, snd_nxt=5010)
    outgoing(bench, 0, 5004, 8, kind=2)
    bench.receive(
        p.frame(p.ATOMIC_ACKNOWLEDGE, 5004, QPN, b"", p.aeth(p.ACK) + (0x1122334455667788).to_bytes(8, "big"))
    )
    assert bench.qp.outgoing[0].original == 0x1122334455667788
    assert (bench.sender.snd_una, bench.qp.receiver[1].msn) == (5005, 1)


def test_a_missing_response_is_asked_for_once(bench: Bench) -> None:
    bench.reset(snd_una=5000, snd_nxt=5010)
    outgoing(bench, 0, 5004, 4 * MTU)
    bench.receive(response(p.READ_RESPONSE_FIRST, 5004, b"a" * MTU))
    bench.receive(response(p.READ_RESPONSE_MIDDLE, 5006, b"c" * MTU))
    assert (bench.sender.snd_una, bench.sender.naks) == (5005, 1)
    bench.receive(response(p.READ_RESPONSE_LAST, 5007, b"d" * MTU))
    assert bench.sender.naks == 1
    # Asked anew from there on, the answer starts with a First packet.
    bench.receive(response(p.READ_RESPONSE_FIRST, 5005, b"b" * MTU))
    bench.receive(response(p.READ_RESPONSE_FIRST, 5004, b"?" * MTU))  # an old one
    bench.receive(response(p.READ_RESPONSE_MIDDLE, 5006, b"c" * MTU))
    bench.receive(response(p.READ_RESPONSE_LAST, 5007, b"d" * MTU))
    assert bytes(bench.data[: 4 * MTU]) == b"".join(bytes([c]) * MTU for c in b"abcd")
    assert bench.events() == {"RESPONSE_PLACED": 4, "RESPONSE_SEQ_ERROR": 2, "RESPONSE_DUPLICATE": 1}
    assert bench.sender.snd_una == 5008


@pytest.mark.parametrize("syndrome", [p.ACK, p.NAK_SEQUENCE])
def test_an_acknowledgement_that_jumps_over_a_read(bench: Bench, syndrome: int) -> None:
    bench.reset(snd_una=5000, snd_nxt=5010)
    outgoing(bench, 0, 5004, 4)
    bench.receive(p.frame(p.ACKNOWLEDGE, 5007, QPN, extension=p.aeth(syndrome)))
    assert (bench.sender.snd_una, bench.sender.naks) == (5004, 1)


def test_a_fault_behind_an_unanswered_read_is_told_with_its_psn(bench: Bench) -> None:
    bench.reset(snd_una=5000, snd_nxt=5010)
    outgoing(bench, 0, 5004, 4)
    bench.receive(p.frame(p.ACKNOWLEDGE, 5007, QPN, extension=p.aeth(p.NAK_ACCESS)))
    assert (bench.sender.snd_una, bench.sender.error, bench.sender.error_psn) == (5004, p.NAK_ACCESS, 5007)
    assert bench.qp.config.state == QpState.ERROR


BAD_RESPONSES = {
    "atomic for a read": ("NAK_OPCODE_SEQ", p.frame(p.ATOMIC_ACKNOWLEDGE, 5004, QPN, b"", p.aeth(p.ACK) + bytes(8))),
    "too long": ("NAK_LENGTH", response(p.READ_RESPONSE_ONLY, 5004, bytes(MTU))),
    "too short": ("NAK_LENGTH", response(p.READ_RESPONSE_ONLY, 5004, bytes(8))),
    "first that is all": ("NAK_LENGTH", response(p.READ_RESPONSE_FIRST, 5004, bytes(12))),
}


@pytest.mark.parametrize("name", BAD_RESPONSES)
def test_a_bad_response_ends_the_connection(bench: Bench, name: str) -> None:
    event, frame = BAD_RESPONSES[name]
    bench.reset(snd_una=5000, snd_nxt=5010)
    outgoing(bench, 0, 5004, 12)
    assert bench.receive(frame)[0] == DROP
    assert bench.events() == {event: 1}
    assert bench.qp.config.state == QpState.ERROR and not any(bench.data)


@pytest.mark.parametrize("fault", ["key", "bounds", "right"])
def test_a_response_to_memory_that_is_not_ours(bench: Bench, fault: str) -> None:
    bench.reset(snd_una=5000, snd_nxt=5010)
    outgoing(bench, 0, 5004, 12, VA + REGION_LENGTH - 8 if fault == "bounds" else VA)
    if fault == "key":
        bench.qp.outgoing[0].lkey = RKEY ^ 0x10
    if fault == "right":
        bench.region.access = 0xE
    bench.receive(response(p.READ_RESPONSE_ONLY, 5004, bytes(12)))
    assert bench.events() == {"NAK_BOUNDS" if fault == "bounds" else "NAK_RKEY": 1}
    assert bench.qp.config.state == QpState.ERROR and bench.canaries_intact()


def test_what_go_back_n_does_not_speak(bench: Bench) -> None:
    """Plait's extensions and IRN's read acknowledgements belong to other transports."""
    bench.reset(snd_una=5000, snd_nxt=5010)
    assert bench.receive(p.frame(p.READ_ACKNOWLEDGE, 5003, QPN, extension=p.aeth(p.ACK)))[0] == DROP
    assert bench.events() == {"DROP_BAD_OPCODE": 1}
