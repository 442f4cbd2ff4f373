"""What old compilers and P4-14 programs write: each construct by hand-computed results and against the interpreter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fastswitch import ProgramError
from fastswitch.codegen import generate_c
from fastswitch.interpreter import Interpreter
from fastswitch.tests.codegen_programs import (
    action,
    assign,
    call,
    const,
    extract,
    field,
    one_action,
    op,
    param,
    program,
    state,
    table,
)
from fastswitch.tests.codegen_support import Compiled, compare

BYTE: list[list[Any]] = [["v", 8]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("old_json")


def outcome(document: dict[str, Any], folder: Path, frame: bytes) -> dict[str, Any]:
    compiled = Compiled(document, folder, sanitize=False)
    try:
        return compare(compiled, Interpreter(document), frame, {"ingress_port": 1})
    finally:
        compiled.close()


# ---------------------------------------------------------------------------------------------------------------
# Headers whose length is computed from their own fields

OPTIONS: list[list[Any]] = [["words", 8], ["options", "*"], ["after", 8]]


def with_length(stack: bool = False) -> dict[str, Any]:
    """One or more headers of `words` 32-bit words, the two fixed bytes included."""
    words = {"type": "local", "value": 0}
    stacks = {"s": ("o_t", 2)} if stack else None
    ops = [extract("s", "stack"), extract("s", "stack")] if stack else [extract("o")]
    document = program(
        {"o": OPTIONS},
        states=[state("start", ops)],
        stacks=stacks,
        order=["s[0]", "s[1]"] if stack else ["o"],
    )
    kind = next(each for each in document["header_types"] if each["name"] == "o_t")
    kind["length_exp"] = op("-", op("*", words, const(32)), const(16))
    kind["max_length"] = 14
    return document


@pytest.mark.parametrize(
    ("frame", "error", "consumed"),
    [
        ("01aabb ee77", 0, 4),  # two bytes of options
        ("03" + "11" * 10 + "ee77", 0, 12),
        ("04" + "11" * 14 + "ee77", 4, 0),  # HeaderTooShort: longer than max_length
        ("03112233", 1, 0),  # PacketTooShort
        ("00ee77", 6, 0),  # a negative length
        ("01", 1, 0),
        ("", 1, 0),
    ],
)
def test_a_header_that_tells_its_own_length(frame: str, error: int, consumed: int, folder: Path) -> None:
    data = bytes.fromhex(frame)
    found = outcome(with_length(), folder, data)
    assert (found["packet"].parser_error, found["packet"].cursor) == (error, consumed)
    assert found["frame"] == data


def test_headers_of_a_stack_tell_their_own_lengths(folder: Path) -> None:
    data = bytes.fromhex("01aabbee" + "02" + "cc" * 6 + "ff" + "99")
    found = outcome(with_length(stack=True), folder, data)
    assert (found["packet"].cursor, found["packet"].filled["s"]) == (12, 2)
    assert found["frame"] == data


def test_a_length_cannot_depend_on_what_comes_after(folder: Path) -> None:
    document = with_length()
    kind = next(each for each in document["header_types"] if each["name"] == "o_t")
    kind["length_exp"] = {"type": "expression", "value": {"type": "local", "value": 2}}
    with pytest.raises(ProgramError, match="a field that comes after it"):
        generate_c(document)


# ---------------------------------------------------------------------------------------------------------------
# Checksums of type ipv4, saturating fields, constants in field lists, error codes

IPV4: list[list[Any]] = [
    ["version", 4], ["ihl", 4], ["tos", 8], ["length", 16], ["id", 16], ["flags", 16], ["ttl", 8], ["protocol", 8],
    ["checksum", 16], ["src", 32], ["dst", 32],
]  # fmt: skip
# The worked example of Wikipedia's "Internet checksum", whose checksum is b861.
EXAMPLE = bytes.fromhex("45000073000040004011b861c0a80001c0a800c7")


def test_the_checksum_of_a_whole_ipv4_header(folder: Path) -> None:
    checksums = [{"name": "c", "id": 0, "target": ["h", "checksum"], "type": "ipv4"}]
    document = one_action({"h": IPV4}, [assign(field("h", "ttl"), field("h", "ttl"))], checksums=checksums)
    found = outcome(document, folder, EXAMPLE)
    assert (found["packet"].checksum_error, found["frame"]) == (False, EXAMPLE)
    wrong = EXAMPLE[:11] + b"\x62" + EXAMPLE[12:]
    found = outcome(document, folder, wrong)
    assert (found["packet"].checksum_error, found["frame"]) == (True, EXAMPLE)
    assert outcome(document, folder, b"\x45")["packet"].checksum_error is False


def test_a_checksum_elsewhere_is_no_ipv4_checksum() -> None:
    checksums = [{"name": "c", "id": 0, "target": ["h", "id"], "type": "ipv4"}]
    with pytest.raises(ProgramError, match="the 16 bits after the first 10 bytes"):
        generate_c(one_action({"h": IPV4}, [], checksums=checksums))


def test_saturating_fields_take_the_nearest_number(folder: Path) -> None:
    fields: list[list[Any]] = [["a", 8], ["b", 8], ["sum", 8, False, True], ["gap", 8, False, True]]
    fields += [["signed", 8, True, True]]
    body = [
        assign(field("h", "sum"), op("+", field("h", "a"), field("h", "b"))),
        call("subtract", field("h", "gap"), field("h", "a"), field("h", "b")),
        assign(field("h", "signed"), op("-", field("h", "a"), op("*", field("h", "b"), const(2)))),
    ]
    document = one_action({"h": fields}, body)
    for (a, b), expected in {(200, 100): "ff6400", (1, 255): "ff0080", (3, 1): "040201", (255, 0): "ffff7f"}.items():
        assert outcome(document, folder, bytes([a, b, 0, 0, 0]))["frame"][2:].hex() == expected


def test_constants_in_a_field_list_have_nothing_to_keep() -> None:
    elements = [{"type": "field", "value": ["scalars", "m"]}, {"type": "hexstr", "value": "0x7", "bitwidth": 16}]
    lists = [{"id": 1, "name": "l", "elements": elements}]
    assert "scalars" in generate_c(program({"h": BYTE}, [["m", 8]], field_lists=lists))
    with pytest.raises(ProgramError, match="'hexstr' in a list of fields"):
        generate_c(program({"h": BYTE}, [["m", 8]], learn_lists=lists))


def test_errors_that_a_compiler_left_out_are_numbered_after_the_others(folder: Path) -> None:
    document = program({"h": BYTE}, errors=[["Mine", 4], ["PacketTooShort", 2]])
    assert outcome(document, folder, b"")["packet"].parser_error == 2
    document = program({"h": BYTE}, errors=[["Mine", 4]])
    assert outcome(document, folder, b"")["packet"].parser_error == 6  # NoError is 5


# ---------------------------------------------------------------------------------------------------------------
# Registers wider than 64 bits in expressions


def test_wide_registers_are_operands(folder: Path) -> None:
    cell = {"type": "register", "value": ["r", field("h", "i")]}
    body = [
        call("register_write", {"type": "register_array", "value": "r"}, const(1), field("h", "wide")),
        assign(field("h", "high"), op(">>", cell, const(64))),
        assign(field("h", "wide"), op("+", cell, const(1))),
    ]
    fields: list[list[Any]] = [["i", 8], ["high", 40], ["wide", 100], ["pad", 4]]
    registers = [{"name": "r", "id": 0, "size": 2, "bitwidth": 100}]
    document = one_action({"h": fields}, body, register_arrays=registers)
    value = 0x123456789ABCDEF0123456789
    tail = (value << 4).to_bytes(13, "big")
    assert outcome(document, folder, b"\x01" + bytes(5) + tail)["frame"].hex() == (
        f"01{value >> 64:010x}{(value + 1) << 4:026x}"
    )
    assert outcome(document, folder, b"\x09" + bytes(5) + tail)["frame"].hex() == f"09{0:010x}{1 << 4:026x}"


# ---------------------------------------------------------------------------------------------------------------
# Hashes

# Check values (the CRC of "123456789") of the catalogue of parametrised CRC algorithms.
CHECKS = {
    "crc_8": 0xF4, "crc_8_darc": 0x15, "crc_8_i_code": 0x7E, "crc_8_itu": 0xA1, "crc_8_maxim": 0xA1,
    "crc_8_rohc": 0xD0, "crc_8_wcdma": 0x25,
    "crc_16": 0xBB3D, "crc_16_buypass": 0xFEE8, "crc_16_dds_110": 0x9ECF, "crc_16_dect": 0x007E,
    "crc_16_dnp": 0xEA82, "crc_16_en_13757": 0xC2B7, "crc_16_genibus": 0xD64E, "crc_16_maxim": 0x44C2,
    "crc_16_mcrf4xx": 0x6F91, "crc_16_riello": 0x63D0, "crc_16_t10_dif": 0xD0DB, "crc_16_teledisk": 0x0FB3,
    "crc_16_usb": 0xB4C8, "x_25": 0x906E, "xmodem": 0x31C3, "modbus": 0x4B37, "kermit": 0x2189,
    "crc_ccitt_false": 0x29B1, "crc_aug_ccitt": 0xE5CC,
    "crc_32": 0xCBF43926, "crc_32_bzip2": 0xFC891918, "crc_32c": 0xE3069283, "crc_32d": 0x87315576,
    "crc_32_mpeg": 0x0376E6E7, "posix": 0x765E7680, "crc_32q": 0x3010BF7F, "jamcrc": 0x340BC6D9, "xfer": 0xBD0BE338,
    "crc_64": 0x46A5A9388A5BEFFE, "crc_64_we": 0x62EC59E3F1A4F00A, "crc_64_jones": 0xCAA717168609F281,
    "crcCCITT": 0x29B1, "crc8_custom": 0xF4, "toeplitz": 0,
    # Spelled out, as P4-14 allows.
    "poly_0x104c11db7_init_0xffffffff_xout_0xffffffff": 0xCBF43926, "poly_0x11021_not_rev": 0x31C3,
    "poly_0x107_not_rev_init_0x0_xout_0x55": 0xA1,
}  # fmt: skip


def test_every_crc_by_its_check_value(folder: Path) -> None:
    fields: list[list[Any]] = [[f"o{index}", 64] for index in range(len(CHECKS))]
    inputs = [{"type": "field", "value": ["in", "text"]}]
    calculations = [{"name": name, "id": i, "algo": name, "input": inputs} for i, name in enumerate(CHECKS)]
    calculate = "modify_field_with_hash_based_offset"
    body = [
        call(calculate, field("out", f"o{i}"), const(0), {"type": "calculation", "value": name}, const(2**64 - 1))
        for i, name in enumerate(CHECKS)
    ]
    compiled = Compiled(one_action({"in": [["text", 72]], "out": fields}, body, calculations=calculations), folder)
    compiled.start(b"123456789" + bytes(8 * len(CHECKS)))
    compiled.run("pied")
    found = compiled.frame()[9:]
    got = {name: int.from_bytes(found[8 * i : 8 * i + 8], "big") for i, name in enumerate(CHECKS)}
    compiled.close()
    assert got == CHECKS


@pytest.mark.parametrize(
    "name", ["random", "round_robin_consistent", "poly_0x1102", "poly_0x21021", "poly_0x11021_lsb"]
)
def test_hashes_that_bmv2_lacks_or_that_need_memory_are_named(name: str) -> None:
    document = program({"h": BYTE}, calculations=[{"name": "c", "id": 0, "algo": name, "input": []}])
    with pytest.raises(ProgramError, match=f"calculations.0..algo: no hash algorithm named '{name}'"):
        generate_c(document)


def selecting() -> dict[str, Any]:
    """A table with a round-robin selector in the old form, where the table itself holds it."""
    rows = table("t", [("exact", "h", "v")], [(0, "set")], type="indirect_ws", act_prof_name="p")
    rows["selector"] = {"algo": "round_robin", "input": [{"type": "field", "value": ["h", "v"]}]}
    return program(
        {"h": BYTE}, actions=[action(0, "set", [assign(field("h", "v"), param(0))], [("p", 8)])], ingress=[rows]
    )


def test_a_selector_may_take_turns(folder: Path) -> None:
    document = selecting()
    compiled, reference = Compiled(document, folder), Interpreter(document)
    for switch in (compiled, reference):
        switch.add_entry("t", [("exact", 7)], 0, [0], group=[(0, [10]), (0, [11]), (0, [12])])
    frames = [compare(compiled, reference, b"\x07", {"ingress_port": 1})["frame"] for _ in range(5)]
    assert [frame[0] for frame in frames] == [10, 11, 12, 10, 11]
    again = Compiled(document, folder)  # another switch begins anew
    again.add_entry("t", [("exact", 7)], 0, [0], group=[(0, [10]), (0, [11])])
    again.start(b"\x07")
    again.run("pied")
    assert again.frame() == b"\x0a"
    again.close()
    compiled.close()
