"""RoCEv2 frames of every transport, sound and damaged, and queue pairs in many states to receive them."""

from __future__ import annotations

import random
import struct
from typing import Any

from ebpf.tests import packets as p
from ebpf.tests.rigs import (
    COUNTER_BYTES,
    MTU,
    PARTNER_MAC,
    QP_BYTES,
    QPN,
    RECV_BYTES,
    REGION_AT,
    REGION_LENGTH,
    RKEY,
    RQ_BYTES,
    SLOTS,
    STATE_BYTES,
    TRANSPORTS,
    VA,
    Bench,
    Rig,
    ffi,
    lib,
)

EPSN, UNA, NXT = 100, 5000, 5020
BODY = bytes(range(256))
_DATA, _ACK = 1, 2  # enum bth_extension_t
_HEADERS = range(14, 110)
_FLAGS = (
    0,
    0,
    lib.NIC_QP_CREDITS,
    lib.NIC_QP_SRQ,
    lib.NIC_QP_SELECTIVE,
    lib.NIC_QP_HOLD_LAST,
    lib.NIC_QP_SELECTIVE | 4,
)


def _xdata(flags: int, msn: int, ipsn: int, number: int) -> bytes:
    return struct.pack("!IIII", flags << 24 | msn, ipsn, number, EPSN)


def _xack(flags: int, sack_psn: int) -> bytes:
    return struct.pack("!IHH", flags << 24 | sack_psn, 0xC123, 0)


def _write(opcode: int, psn: int, body: bytes, length: int, **more: Any) -> bytes:
    return p.frame(opcode, psn, QPN, body, p.reth(VA, RKEY, length), **more)


def _plain() -> list[bytes]:
    """As IBTA has them."""
    value = b"\1\2\3\4"
    return [
        _write(p.WRITE_ONLY, EPSN, BODY[:77], 77),
        p.frame(p.WRITE_ONLY, EPSN, QPN, BODY, p.reth(VA + REGION_LENGTH - MTU, RKEY, MTU)),
        _write(p.WRITE_ONLY, EPSN, b"", 0),
        _write(p.WRITE_FIRST, EPSN, BODY, 2 * MTU + 9),
        p.frame(p.WRITE_MIDDLE, EPSN + 1, QPN, BODY, ackreq=1),
        p.frame(p.WRITE_LAST, EPSN + 2, QPN, BODY[:9]),
        p.frame(p.WRITE_LAST_IMM, EPSN + 2, QPN, BODY[:9], value),
        p.frame(p.WRITE_ONLY_IMM, EPSN, QPN, BODY[:9], p.reth(VA, RKEY, 9) + value),
        *(
            p.frame(opcode, EPSN + at, QPN, BODY)
            for at, opcode in enumerate((p.SEND_FIRST, p.SEND_MIDDLE, p.SEND_LAST))
        ),
        p.frame(p.SEND_ONLY, EPSN, QPN, BODY[:50]),
        p.frame(p.SEND_ONLY_IMM, EPSN, QPN, BODY[:50], value),
        p.frame(p.SEND_LAST_INVALIDATE, EPSN + 2, QPN, BODY[:50], value),
        p.frame(p.READ_REQUEST, EPSN, QPN, b"", p.reth(VA, RKEY, 3 * MTU)),
        p.frame(p.COMPARE_SWAP, EPSN, QPN, b"", p.atomic(VA + 8, RKEY, 7, 9)),
        p.frame(p.FETCH_ADD, EPSN + 1, QPN, b"", p.atomic(VA + 16, RKEY, 7)),
        p.frame(p.READ_RESPONSE_FIRST, UNA + 3, QPN, BODY, p.aeth(p.ACK)),
        p.frame(p.READ_RESPONSE_MIDDLE, UNA + 4, QPN, BODY),
        p.frame(p.READ_RESPONSE_LAST, UNA + 5, QPN, BODY[:88], p.aeth(p.ACK)),
        p.frame(p.ATOMIC_ACKNOWLEDGE, UNA + 6, QPN, b"", p.aeth(p.ACK) + bytes(8)),
        *(
            p.frame(p.ACKNOWLEDGE, UNA + at, QPN, extension=p.aeth(syndrome, at))
            for at, syndrome in enumerate((p.ACK, p.NAK_SEQUENCE, p.RNR | 5, p.NAK_ACCESS, p.NAK_INVALID, 4, p.ACK))
        ),
        p.frame(p.CNP, 0, QPN, bytes(16)),
        bytes.fromhex("0180c2000001" + PARTNER_MAC.replace(":", "") + "8808" + "0101" + "00ff" + "0010" * 8).ljust(
            60, b"\0"
        ),
    ]


def _extended() -> list[bytes]:
    """With Plait's headers."""
    data: dict[str, Any] = {"resv7": _DATA}
    made: list[bytes] = []
    for ipsn, (opcode, size) in enumerate(((p.WRITE_FIRST, MTU), (p.WRITE_MIDDLE, MTU), (p.WRITE_LAST, 9))):
        head = _xdata(0x20 if ipsn == 2 else 0, 1, ipsn, 0) + p.reth(VA, RKEY, 2 * MTU + 9)
        made.append(p.frame(opcode, EPSN + ipsn, QPN, BODY[:size], head, **data))
    for ipsn, (opcode, size) in enumerate(((p.SEND_FIRST, MTU), (p.SEND_MIDDLE, MTU), (p.SEND_LAST, 30))):
        made.append(p.frame(opcode, EPSN + ipsn, QPN, BODY[:size], _xdata(0, 1, ipsn, 0), **data))
    for number, opcode in enumerate((p.SEND_ONLY, p.SEND_ONLY_IMM, p.SEND_ONLY_INVALIDATE)):
        value = b"" if opcode == p.SEND_ONLY else b"\1\2\3\4"
        made.append(p.frame(opcode, EPSN + number, QPN, BODY[:40], _xdata(0x40, number, 0, number) + value, **data))
    only = _xdata(0xA0, 1, 0, 0) + p.reth(VA, RKEY, 40)
    made.append(p.frame(p.WRITE_ONLY, EPSN, QPN, BODY[:40], only, **data))
    made.append(p.frame(p.WRITE_ONLY_IMM, EPSN + 3, QPN, BODY[:40], only + b"\1\2\3\4", **data))
    made.append(p.frame(p.READ_REQUEST, EPSN, QPN, b"", _xdata(0, 1, 0, 0) + p.reth(VA, RKEY, 3 * MTU), **data))
    made.append(p.frame(p.FETCH_ADD, EPSN + 1, QPN, b"", _xdata(0, 1, 0, 1) + p.atomic(VA, RKEY, 7), **data))
    for ipsn, (opcode, size) in enumerate(
        ((p.READ_RESPONSE_FIRST, MTU), (p.READ_RESPONSE_MIDDLE, MTU), (p.READ_RESPONSE_LAST, 88))
    ):
        aeth = b"" if opcode == p.READ_RESPONSE_MIDDLE else p.aeth(p.ACK)
        made.append(p.frame(opcode, EPSN + ipsn, QPN, BODY[:size], _xdata(0, 1, ipsn, 0) + aeth, **data))
    original = _xdata(0, 1, 0, 1) + p.aeth(p.ACK) + bytes(8)
    made.append(p.frame(p.ATOMIC_ACKNOWLEDGE, EPSN + 3, QPN, b"", original, **data))
    for opcode in (p.ACKNOWLEDGE, p.READ_ACKNOWLEDGE):
        for at, (syndrome, flags) in enumerate(((p.ACK, 0x80), (p.NAK_SEQUENCE, 0x80), (p.RNR | 3, 0), (p.ACK, 0xC0))):
            ext = _xack(flags, UNA + at + 2) + p.aeth(syndrome, at)
            made.append(p.frame(opcode, UNA + at, QPN, extension=ext, resv7=_ACK))
    return made


_PLAIN, _EXTENDED = _plain(), _extended()


def prepare(bench: Bench, chance: random.Random) -> str:
    """A queue pair of some transport with READs outstanding and receives posted; returns the transport."""
    bench.reset(epsn=EPSN, snd_una=UNA, snd_nxt=NXT)
    transport = chance.choice(TRANSPORTS)
    config = bench.qp.config
    config.transport = TRANSPORTS.index(transport)
    config.slots, config.window, config.delta = 1 << chance.randrange(3, 9), chance.randrange(1, 257), 32
    config.initial_window, config.random_seed = 10, chance.randrange(1, 1 << 32)
    config.first_psn = [UNA, EPSN]
    config.flags = chance.choice(_FLAGS)
    config.rnr_timer, config.ack_every = chance.randrange(32), chance.randrange(4)
    config.hold_at = REGION_AT + REGION_LENGTH - MTU
    bench.region.access = chance.choice((0xF, 0xF, 0xF, chance.randrange(16)))
    bench.post_receives(*[(VA + 1000, chance.choice((30, MTU, 10 * MTU)))] * chance.randrange(8))
    bench.emitter.posted = NXT
    response = bench.qp.receiver[1]
    response.epsn = EPSN
    bench.qp.sender[1].snd_una, bench.qp.emitter[1].snd_nxt = UNA, NXT
    for slot, (psn, length, kind) in enumerate(((UNA + 3, 2 * MTU + 88, 1), (UNA + 6, 8, 2), (UNA + 9, 4 * MTU, 1))):
        o = bench.qp.outgoing[slot]
        o.va, o.lkey, o.length, o.psn, o.kind = VA + 4096, RKEY, length, psn, kind if chance.random() < 0.9 else 0
    return transport


def _mend(frame: bytearray) -> None:
    """A right IPv4 checksum, so that the damage gets past it."""
    frame[24:26] = b"\0\0"
    total = sum(struct.unpack("!10H", frame[14:34]))
    total = (total & 0xFFFF) + (total >> 16)
    frame[24:26] = struct.pack("!H", 0xFFFF & ~((total & 0xFFFF) + (total >> 16)))


def _move_psn(frame: bytearray, chance: random.Random) -> None:
    psn = int.from_bytes(frame[51:54], "big") + chance.choice((-1, 1, 2, 7, 64, 256, 300, -300, 1 << 23))
    frame[51:54] = (psn % (1 << 24)).to_bytes(3, "big")


def frame(chance: random.Random, transport: str) -> bytes:
    """One frame that is meant for the transport, mostly; sound in one case of three."""
    plain = (transport == "gbn") != (chance.random() < 0.1)
    made = bytearray(chance.choice(_PLAIN if plain else _EXTENDED))
    if chance.random() < 0.3:
        _move_psn(made, chance)
    for _ in range(chance.choice((0, 0, 1, 1, 2, 4))):
        at = chance.choice(_HEADERS)
        if at < len(made):
            made[at] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256), made[at] ^ 1))
    if chance.random() < 0.15:
        length = chance.randrange(14, len(made) + 40)
        made = (made + chance.randbytes(40))[:length]
        if length >= 42 and chance.random() < 0.7:
            made[16:18] = struct.pack("!H", length - 14)
            made[38:40] = struct.pack("!H", length - 34)
    if len(made) >= 34 and chance.random() < 0.95 and made[12:14] == b"\x08\0":
        _mend(made)
    return bytes(made)


def counted(bench: Bench) -> int:
    """Frames that have been counted as some event."""
    return sum(sum(bench.rig.counters[host].events) for host in range(4))


def state(rig: Rig) -> tuple[bytes, ...]:
    """All that the NIC may change, but for the arena and for times."""
    return tuple(
        bytes(ffi.buffer(array, length))
        for array, length in (
            (rig.qps, SLOTS * QP_BYTES),
            (rig.rqs, SLOTS * RQ_BYTES),
            (rig.recvs, SLOTS * RECV_BYTES),
            (rig.host_states, 4 * STATE_BYTES),
            *((rig.counters + host, COUNTER_BYTES - 64) for host in range(4)),
        )
    )
