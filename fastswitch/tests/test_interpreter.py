"""The reference itself: its hashes against published check values, and one hand-computed packet."""

from __future__ import annotations

import pytest

from fastswitch.interpreter import EndlessError, Interpreter
from fastswitch.interpreter_hash import HASHES
from fastswitch.tests.codegen_programs import assign, call, const, field, one_action, op, program, state

CHECK = b"123456789"  # the input of the CRC catalogue's check values


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("crc16", 0xBB3D),  # CRC-16/ARC
        ("crc32", 0xCBF43926),  # CRC-32/ISO-HDLC
        ("crcCCITT", 0x29B1),  # CRC-16/IBM-3740
        ("crc8_custom", 0xF4),  # CRC-8/SMBUS
        ("identity", 0x3132333435363738),
        ("xor16", 0x3132 ^ 0x3334 ^ 0x3536 ^ 0x3738 ^ 0x3900),
        ("xor32", 0x31323334 ^ 0x35363738 ^ 0x39000000),
        ("xxh64", 0x8CB841DB40E6AE83),
    ],
)
def test_check_values(name: str, expected: int) -> None:
    assert HASHES[name](CHECK) == expected


def test_the_example_of_rfc_1071() -> None:
    assert HASHES["csum16"](bytes.fromhex("0001f203f4f5f6f7")) == 0xDDF2 ^ 0xFFFF
    assert HASHES["csum16"](bytes(4)) == 0xFFFF


def test_xxh64_of_nothing_and_of_much() -> None:
    assert HASHES["xxh64"](b"") == 0xEF46DB3751D8E999
    xxhash = pytest.importorskip("xxhash")
    for size in (31, 32, 33, 100):
        data = bytes(range(size))
        assert HASHES["xxh64"](data) == xxhash.xxh64(data).intdigest()


def test_a_packet_by_hand() -> None:
    document = one_action(
        {"h": [["a", 4], ["b", 12]]},
        [assign(field("h", "b"), op("-", field("h", "a"), const(2)))],
    )
    switch = Interpreter(document)
    packet = switch.parse(bytes.fromhex("1abc77"), {"ingress_port": 4})
    assert (switch.get(packet, "h", "a"), switch.get(packet, "h", "b")) == (1, 0xABC)
    switch.run("ingress", packet)
    switch.run("egress", packet)
    assert switch.deparse(packet).hex() == "1fff77"


def test_loops_without_end_are_named() -> None:
    reference = Interpreter(one_action({"h": [["v", 8]]}, [call("_jump", const(0))]))
    packet = reference.parse(b"\0")
    with pytest.raises(EndlessError, match="action run jumps"):
        reference.run("ingress", packet)
    reference = Interpreter(program({"h": [["v", 8]]}, states=[state("start", [], default="start")]))
    with pytest.raises(EndlessError, match="the parser visits"):
        reference.parse(b"\0")
