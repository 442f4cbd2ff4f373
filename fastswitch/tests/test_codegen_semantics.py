"""What surprises in BMv2's meaning of a program, one case each, through generated code and interpreter."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fastswitch.interpreter import Interpreter
from fastswitch.interpreter_hash import HASHES
from fastswitch.tests.codegen_programs import (
    action,
    always,
    assign,
    call,
    conditional,
    const,
    extract,
    field,
    header,
    on,
    one_action,
    op,
    param,
    program,
    state,
    table,
)
from fastswitch.tests.codegen_support import Compiled, compare
from fastswitch.tests.test_codegen_ecmp import SANITIZED, run_sanitized

BYTE: list[list[Any]] = [["v", 8]]


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("semantics")


class Both:
    """A program in both, and frames through them."""

    def __init__(self, document: dict[str, Any], folder: Path) -> None:
        self.compiled, self.reference = Compiled(document, folder), Interpreter(document)

    def __enter__(self) -> Both:
        return self

    def __exit__(self, *_: object) -> None:
        self.compiled.close()

    def send(self, frame: str, **standard: int) -> str:
        self.result = compare(self.compiled, self.reference, bytes.fromhex(frame), {"ingress_port": 1, **standard})
        return self.result["frame"].hex()

    def add(self, *args: Any, **more: Any) -> Any:
        self.reference.add_entry(*args, **more)
        return self.compiled.add_entry(*args, **more)


def test_locals_live_from_ingress_to_egress(folder: Path) -> None:
    document = program(
        {"h": BYTE},
        [["local", 8]],
        actions=[
            action(0, "save", [assign(field("scalars", "local"), field("h", "v"))]),
            action(1, "use", [assign(field("h", "v"), op("+", field("scalars", "local"), const(1)))]),
        ],
        ingress=[always("in", 0, "save")],
        egress=[always("out", 1, "use")],
    )
    with Both(document, folder) as both:
        assert both.send("07ff") == "08ff"


def test_set_valid_zeroes_an_invalid_header_only(folder: Path) -> None:
    body = [call("add_header", header("h")), call("add_header", header("new"))]
    document = one_action({"h": BYTE, "new": BYTE}, body, states=[state("start", [extract("h")])])
    with Both(document, folder) as both:
        assert both.send("07ff") == "0700ff"
    again = [assign(field("h", "v"), const(9)), call("remove_header", header("h")), *body]
    with Both(one_action({"h": BYTE, "new": BYTE}, again, states=[state("start", [extract("h")])]), folder) as both:
        assert both.send("07ff") == "0000ff"


def test_a_checksum_is_compared_in_64_bits(folder: Path) -> None:
    body = {"name": "c", "id": 0, "algo": "csum16", "input": [field("h", "v")]}
    sums = [{"name": "s", "id": 0, "type": "generic", "target": ["h", "sum"], "calculation": "c", "update": False}]
    wide = program({"h": [["v", 16], ["sum", 80]]}, calculations=[body], checksums=sums)
    with Both(wide, folder) as both:
        both.send("0001" + "ffff" + "000000000000fffe")
        assert both.compiled.std.checksum_error == 0
        both.send("0001" + "ffff" + "000000000001fffe")
        assert both.compiled.std.checksum_error == 1


def test_a_wide_checksum_may_cover_itself(folder: Path) -> None:
    body = {"name": "c", "id": 0, "algo": "csum16", "input": [field("h", "sum")]}
    sums = [{"name": "s", "id": 0, "type": "generic", "target": ["h", "sum"], "calculation": "c", "verify": False}]
    document = program({"h": [["sum", 80]]}, calculations=[body], checksums=sums)
    with Both(document, folder) as both:
        assert both.send("00000000000000000005") == "0000000000000000fffa"


def test_a_condition_that_decides_nothing_needs_nothing(folder: Path) -> None:
    same = op("==", header("a"), header("b"))
    document = program({"a": BYTE, "b": BYTE}, conditionals=[conditional("if", same, None, None)], start="if")
    document["header_types"][3]["name"] = "unused"
    document["headers"][3]["header_type"] = document["headers"][2]["header_type"]
    with Both(document, folder) as both:
        assert both.send("0102ff") == "0102ff"


def test_a_comparison_that_is_shifted_away_needs_nothing(folder: Path) -> None:
    gone = op(">>", op("b2d", None, op("==", header("h"), header("h"))), const(9))
    with Both(one_action({"h": BYTE}, [assign(field("h", "v"), gone)]), folder) as both:
        assert both.send("07ff") == "00ff"


def test_an_invalid_header_copies_its_invalidity_only(folder: Path) -> None:
    body = [call("assign_header", header("a"), header("b"))]
    document = one_action({"a": BYTE, "b": BYTE}, body, states=[state("start", [extract("a")])])
    with Both(document, folder) as both:
        assert both.send("07ff") == "ff"


def test_select_without_match_accepts(folder: Path) -> None:
    first = state("start", [extract("a")], [field("a", "v")], [on("0x01", "second")], None)
    document = program({"a": BYTE, "b": BYTE}, states=[first, state("second", [extract("b")])], order=["b", "a"])
    with Both(document, folder) as both:
        assert both.send("0102ff") == "0201ff"
        assert both.send("0502ff") == "0502ff"
        assert both.compiled.std.parser_error == 0


def test_a_select_with_no_case_still_needs_what_it_looks_ahead_to(folder: Path) -> None:
    key = [{"type": "lookahead", "value": [0, 16]}]
    states = [state("start", [extract("a")], key, [], "second"), state("second", [extract("b")])]
    with Both(program({"a": BYTE, "b": BYTE}, states=states, order=["b", "a"]), folder) as both:
        assert both.send("010203") == "020103"
        assert both.send("0102") == "0102"
        assert both.compiled.std.parser_error == 1


def test_select_masks_and_padding(folder: Path) -> None:
    key = [field("a", "low"), field("a", "high")]  # 4 and 12 bits: three bytes of key
    transitions = [on("0x010abc", "second", "0x0f0ff0"), on("0x020000", None, "0xff0000")]
    states = [state("start", [extract("a")], key, transitions, None), state("second", [extract("b")])]
    document = program({"a": [["low", 4], ["high", 12]], "b": BYTE}, states=states, order=["b", "a"])
    with Both(document, folder) as both:
        assert both.send("1ab777") == "771ab7"
        assert both.send("2ab777") == "2ab777"


def test_parser_errors_keep_what_was_extracted(folder: Path) -> None:
    document = program({"a": BYTE, "b": [["v", 16]]})
    with Both(document, folder) as both:
        assert both.send("01") == "01"
        assert both.compiled.std.parser_error == 1
        assert both.send("010203") == "010203"
        assert both.compiled.std.parser_error == 0


def test_verify_raises_its_error(folder: Path) -> None:
    check = {"op": "verify", "parameters": [op("==", field("a", "v"), const(1)), const(6)]}
    document = program({"a": BYTE, "b": BYTE}, states=[state("start", [extract("a"), check, extract("b")])])
    with Both(document, folder) as both:
        both.send("0102")
        assert both.compiled.std.parser_error == 0
        both.send("0202")
        assert both.compiled.std.parser_error == 6


def stack_program(body: list[dict[str, Any]]) -> dict[str, Any]:
    more = state(
        "start", [extract("s", "stack")], [{"type": "stack_field", "value": ["s", "more"]}], [on("0x01", "start")]
    )
    types = [{"name": "e_t", "id": 9, "fields": [["more", 1], ["v", 7]]}]
    document = one_action({}, body, states=[more], stacks={"s": ("e_t", 3)}, order=["s[0]", "s[1]", "s[2]"])
    document["header_types"] += types
    return document


def test_stacks_overflow_shift_and_index(folder: Path) -> None:
    stack = {"type": "header_stack", "value": "s"}
    with Both(stack_program([]), folder) as both:
        assert both.send("81820344") == "81820344"
        both.send("8182838404")
        assert both.compiled.std.parser_error == 3  # StackOutOfBounds
    with Both(stack_program([call("push", stack, const(1))]), folder) as both:
        assert both.send("8102ee") == "8102ee"  # the pushed element is invalid, the others moved up
        assert both.send("81820344") == "818244"
    with Both(stack_program([call("pop", stack, const(1))]), folder) as both:
        assert both.send("81820344") == "820344"
    with Both(stack_program([call("pop", stack, const(200))]), folder) as both:
        assert both.send("81820344") == "44"
    element = op("dereference_header_stack", stack, field("s[0]", "v"))
    target = op("access_field", element, 1)  # type: ignore[arg-type]
    with Both(stack_program([assign(target, op("+", target, const(1)))]), folder) as both:
        assert both.send("81820344") == "81830344"
        assert both.send("82820344") == "82820444"
        assert both.send("fe820344") == "fe820344"  # no such element: nothing happens
    last = op("last_stack_index", None, stack)
    with Both(stack_program([assign(field("s[0]", "v"), last)]), folder) as both:
        assert both.send("81820344") == "82820344"


def test_varbit(folder: Path) -> None:
    extract_vl = {
        "op": "extract_VL",
        "parameters": [
            {"type": "regular", "value": "o"},
            op("&", op("<<", field("h", "v"), const(3)), const(0xFFFF)),
        ],
    }
    document = program(
        {"h": BYTE, "o": [["kind", 8], ["data", "*"], ["end", 8]]}, states=[state("start", [extract("h"), extract_vl])]
    )
    with Both(document, folder) as both:
        for frame in ("000102ff", "03010a0b0c02ff", "3e" + "01" * 70, "3f" + "01" * 70, "05010203"):
            assert both.send(frame) == frame
        assert both.compiled.std.parser_error == 1
        both.send("3f" + "01" * 70)
        assert both.compiled.std.parser_error == 4  # HeaderTooShort: max_length is 64


def test_sanitizers_find_nothing_in_stacks_and_varbits(folder: Path) -> None:
    stack = {"type": "header_stack", "value": "s"}
    element = op("dereference_header_stack", stack, field("s[0]", "v"))
    target = op("access_field", element, 1)  # type: ignore[arg-type]
    body = [assign(target, const(9)), call("push", stack, field("s[1]", "v")), call("add_header", element)]
    first = {"type": "lookahead", "value": [3, 17]}
    extract_vl = {
        "op": "extract_VL",
        "parameters": [{"type": "regular", "value": "o"}, op("<<", field("h", "v"), const(2))],
    }
    states = [state("start", [extract("h")], [first], [on("0x000001", None)], "more"), state("more", [extract_vl])]
    varbit = program({"h": BYTE, "o": [["kind", 8], ["data", "*"]]}, states=states)
    for name, document in (("stack", stack_program(body)), ("varbit", varbit)):
        path = folder / f"{name}.json"
        path.write_text(json.dumps(document))
        run_sanitized(SANITIZED, folder, path, 2000)


def test_lookahead_never_reads_beyond_the_packet(folder: Path) -> None:
    peek = {"type": "lookahead", "value": [4, 12]}
    states = [
        state("start", [extract("a")], [peek], [on("0x0abc", "second")], None),
        state("second", [extract("b")]),
    ]
    document = program({"a": BYTE, "b": [["v", 16]]}, states=states, order=["b", "a"])
    with Both(document, folder) as both:
        assert both.send("017abc") == "7abc01"
        both.send("017a")
        assert both.compiled.std.parser_error == 1


def test_mark_to_drop_clears_the_multicast_group(folder: Path) -> None:
    body = [
        assign(field("standard_metadata", "mcast_grp"), const(5)),
        call("mark_to_drop", header("standard_metadata")),
    ]
    with Both(one_action({"h": BYTE}, body), folder) as both:
        both.send("01")
        assert both.result["port"] == 511
        both.compiled.instance.drop_port = 77
        both.compiled.start(b"\x01")
        both.compiled.run("pi")
        assert (both.compiled.std.egress_spec, both.compiled.std.mcast_grp) == (77, 0)


def test_exit_ends_the_pipeline_but_not_its_action(folder: Path) -> None:
    document = program(
        {"h": BYTE},
        actions=[
            action(0, "leave", [call("exit"), assign(field("h", "v"), const(1))]),
            action(1, "never", [assign(field("h", "v"), const(2))]),
            action(2, "add", [assign(field("h", "v"), op("+", field("h", "v"), const(0x10)))]),
        ],
        ingress=[always("first", 0, "leave", "second"), always("second", 1, "never")],
        egress=[always("out", 2, "add")],
    )
    with Both(document, folder) as both:
        assert both.send("07") == "11"


def test_jumps(folder: Path) -> None:
    body = [
        call("_jump_if_zero", field("h", "v"), const(3)),
        assign(field("h", "v"), const(1)),
        call("_jump", const(4)),
        assign(field("h", "v"), const(2)),
    ]
    with Both(one_action({"h": BYTE}, body), folder) as both:
        assert (both.send("07"), both.send("00")) == ("01", "02")
    endless = [call("no_op"), call("_jump", const(0))]
    compiled = Compiled(one_action({"h": BYTE}, endless), folder)
    compiled.start(b"\x01")
    compiled.run("pied")  # ends
    compiled.close()


def test_a_parser_without_progress_ends(folder: Path) -> None:
    compiled = Compiled(program({"h": BYTE}, states=[state("start", [], default="start")]), folder)
    compiled.start(b"\x01")
    compiled.run("p")
    assert compiled.std.parser_error == 5  # ParserTimeout
    compiled.close()


def test_tables_and_hit_or_miss(folder: Path) -> None:
    rows = table("t", [("ternary", "h", "a"), ("exact", "h", "b")], [(0, "set"), (1, "nop")], default=(0, ["0x63"]))
    rows["next_tables"] = {"__HIT__": "after", "__MISS__": None}
    document = program(
        {"h": [["a", 8], ["b", 4], ["c", 4], ["out", 8]]},
        actions=[
            action(0, "set", [assign(field("h", "out"), param(0))], [("value", 8)]),
            action(1, "nop", []),
            action(2, "count_up", [assign(field("h", "c"), op("+", field("h", "c"), const(1)))]),
        ],
        ingress=[rows, always("after", 2, "count_up")],
    )
    with Both(document, folder) as both:
        both.add("t", [("ternary", 0x10, 0xF0), ("exact", 1)], 0, [1], 5)
        both.add("t", [("ternary", 0x12, 0xFF), ("exact", 1)], 0, [2], 9)
        assert both.send("121000") == "121102"
        assert both.send("131000") == "131101"
        assert both.send("231000") == "231063"


def test_const_entries_in_program_order(folder: Path) -> None:
    def entry(low: str, high: str, value: str, priority: int) -> dict[str, Any]:
        return {
            "match_key": [{"match_type": "range", "start": low, "end": high}],
            "action_entry": {"action_id": 0, "action_data": [value]},
            "priority": priority,
        }

    entries = [entry("0x10", "0x20", "0x01", 1), entry("0x00", "0xff", "0x02", 2)]
    rows = table("t", [("range", "h", "a")], [(0, "set")], default=(0, ["0x63"]), entries=entries)
    document = program(
        {"h": [["a", 8], ["out", 8]]},
        actions=[action(0, "set", [assign(field("h", "out"), param(0))], [("value", 8)])],
        ingress=[rows],
    )
    with Both(document, folder) as both:
        assert [both.send(f"{value:02x}00") for value in (0x10, 0x20, 0x21)] == ["1001", "2001", "2102"]


def test_fields_of_invalid_headers_match_as_zero(folder: Path) -> None:
    rows = table("t", [("exact", "b", "v")], [(0, "set")])
    remove = [assign(field("b", "v"), const(7)), call("remove_header", header("b"))]
    document = program(
        {"a": BYTE, "b": BYTE},
        actions=[action(0, "set", [assign(field("a", "v"), const(0x55))]), action(1, "remove", remove)],
        ingress=[always("first", 1, "remove", "t"), rows],
    )
    with Both(document, folder) as both:
        both.add("t", [("exact", 0)], 0, [])
        assert both.send("0102") == "55"


def test_counters_count_arrivals_and_ignore_bad_indexes(folder: Path) -> None:
    arrays = [{"name": "c", "id": 0, "size": 4, "is_direct": False}]
    counter = {"type": "counter_array", "value": "c"}
    body = [call("count", counter, field("h", "v")), call("add_header", header("big"))]
    document = one_action(
        {"h": BYTE, "big": [["v", 80]]}, body, states=[state("start", [extract("h")])], counter_arrays=arrays
    )
    with Both(document, folder) as both:
        both.send("03aabb")
        both.send("04aabb")
        both.send("ffaabb")
        assert both.compiled.counter("c", 3) == [1, 3] == both.reference.counters["c"][3]
        assert both.compiled.std.packet_length == 13  # in egress, with the header that was added


def test_registers_narrow_and_wide(folder: Path) -> None:
    arrays = [
        {"name": "r", "id": 0, "size": 4, "bitwidth": 12},
        {"name": "w", "id": 1, "size": 4, "bitwidth": 100},
    ]
    narrow, wide = ({"type": "register_array", "value": name} for name in "rw")
    body = [
        call("register_read", field("h", "old"), narrow, field("h", "i")),
        call("register_write", narrow, field("h", "i"), field("h", "new")),
        call("register_read", field("h", "wide"), wide, field("h", "i")),
        call("register_write", wide, field("h", "i"), op("+", field("h", "wide"), const(2**99 + 5))),
    ]
    document = one_action({"h": [["i", 8], ["old", 16], ["new", 16], ["wide", 104]]}, body, register_arrays=arrays)
    with Both(document, folder) as both:
        assert both.send("02" + "ffff" + "abcd" + "00" * 13)[2:6] == "0000"
        assert both.send("02" + "ffff" + "1111" + "00" * 13) == "02" + "0bcd" + "1111" + f"{2**99 + 5:026x}"
        assert both.send("09" + "ffff" + "1111" + "77" * 13) == "09" + "ffff" + "1111" + "77" * 13
        assert both.compiled.register("r") == both.reference.registers["r"] == [0, 0, 0x111, 0]
        assert both.compiled.register("w") == both.reference.registers["w"]


ALGORITHMS = sorted(HASHES)


@pytest.mark.parametrize("payload", [False, True])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_hashes_skip_invalid_headers(folder: Path, algorithm: str, payload: bool) -> None:
    inputs: list[dict[str, Any]] = [field("a", "x"), field("b", "v"), field("a", "y")]
    inputs.append({"type": "hexstr", "value": "0x5a", "bitwidth": 7})
    inputs += [field("a", "wide"), *([{"type": "payload", "value": None}] if payload else [])]
    calculation = {"name": "calc", "id": 0, "algo": algorithm, "input": inputs}
    body = [
        call(
            "modify_field_with_hash_based_offset",
            field("a", "out"),
            const(3),
            {"type": "calculation", "value": "calc"},
            field("a", "size"),
        )  # fmt: skip
    ]
    layout: list[list[Any]] = [["x", 3], ["y", 13], ["wide", 280], ["size", 64], ["out", 64]]
    first = state("start", [extract("a")], [field("a", "x")], [on("0x01", "second")], None)
    document = one_action(
        {"a": layout, "b": [["v", 24]]},
        body,
        states=[first, state("second", [extract("b")])],
        calculations=[calculation],
    )
    with Both(document, folder) as both:
        for size in ("ffffffffffffffff", "00000000000000ff", "0000000000000000"):
            for start in ("2", "4"):
                both.send(start + "1237" + "c3" * 34 + "9" + size + "00" * 8 + "010203" + "a5" * 7)


def test_checksums(folder: Path) -> None:
    calculation = {"name": "calc", "id": 0, "algo": "csum16", "input": [field("h", "a"), field("h", "b")]}
    checksum = {
        "name": "sum", "id": 0, "target": ["h", "sum"], "type": "generic", "calculation": "calc",
        "verify": True, "update": True, "if_cond": op("!=", field("h", "a"), const(0)),
    }  # fmt: skip
    document = program({"h": [["a", 8], ["b", 24], ["sum", 16]]}, calculations=[calculation], checksums=[checksum])
    with Both(document, folder) as both:
        total = 0x1234 + 0x5678 ^ 0xFFFF
        assert both.send("123456780000") == f"12345678{total:04x}"
        assert both.compiled.std.checksum_error == 1
        both.send(f"12345678{total:04x}")
        assert both.compiled.std.checksum_error == 0
        assert both.send("003456780001") == "003456780001"
        assert both.compiled.std.checksum_error == 0


def test_requests_to_the_engine(folder: Path) -> None:
    body = [
        call("clone_ingress_pkt_to_egress", const(5), const(2)),
        call("clone_ingress_pkt_to_egress", field("h", "v"), const(1)),
        call("resubmit", const(3)),
        call("recirculate", const(0)),
        call("truncate", const(9)),
        call("truncate", const(2)),
    ]
    with Both(one_action({"h": BYTE}, body), folder) as both:
        assert both.send("07aabb") == "07aa"
        assert both.compiled.std.clone_session == 0x80000007
        assert both.compiled.std.resubmit_field_list == 4
        assert both.compiled.std.recirculate_field_list == 0


def test_digest_and_log(folder: Path) -> None:
    vector = {"type": "parameters_vector", "value": [field("h", "v"), field("h", "s")]}
    body = [
        call("generate_digest", const(1), const(2)),
        call("log_msg", {"type": "string", "value": 'v={} "%s" s={}\\'}, vector),
    ]
    lists = [{"id": 2, "name": "d", "elements": [field("h", "v"), field("standard_metadata", "ingress_port")]}]
    document = one_action({"h": [["v", 8], ["s", 8, True]]}, body, learn_lists=lists)
    with Both(document, folder) as both:
        both.send("07fe", ingress_port=259)
        assert both.compiled.digest() == (2, bytes([7, 1, 3]))
        assert both.compiled.log() == ['v=7 "%s" s=-2\\'] == both.reference.logs


def test_meters_write_a_color(folder: Path) -> None:
    meters = [{"name": "m", "id": 0, "type": "bytes", "rate_count": 2, "size": 4, "is_direct": False}]
    body = [call("execute_meter", {"type": "meter_array", "value": "m"}, field("h", "v"), field("h", "color"))]
    document = one_action({"h": [["v", 8], ["color", 8]]}, body, meter_arrays=meters)
    with Both(document, folder) as both:
        both.compiled.library.harness_meter_color(both.compiled.handle, 0, 2, 1)
        both.reference.meter_colors[("m", 2)] = 1
        assert [both.send(frame) for frame in ("01ff", "02ff", "04ff")] == ["0100", "0201", "04ff"]


def test_value_sets_are_tables_after_the_others(folder: Path) -> None:
    member = {"type": "parse_vset", "value": "pvs", "mask": None, "next_state": "second"}
    states = [state("start", [extract("a")], [field("a", "v")], [member], None), state("second", [extract("b")])]
    document = program(
        {"a": BYTE, "b": BYTE}, states=states, order=["b", "a"],
        parse_vsets=[{"name": "pvs", "id": 0, "compressed_bitwidth": 8}],
    )  # fmt: skip
    with Both(document, folder) as both:
        assert both.send("0102") == "0102"
        both.compiled.add_value("pvs", b"\x01")
        both.reference.value_sets["pvs"].add(1)
        assert both.send("0102") == "0201"


def test_an_assertion_drops_the_packet(folder: Path) -> None:
    body = [call("assert", op("==", field("h", "v"), const(1)))]
    with Both(one_action({"h": BYTE}, body), folder) as both:
        both.send("01")
        assert both.result["port"] == 0
        both.send("02")
        assert both.result["port"] == 511


def test_a_header_listed_twice_is_emitted_twice(folder: Path) -> None:
    with Both(program({"a": BYTE}, order=["a", "a"]), folder) as both:
        assert both.send("0102") == "010102"


def test_conditionals(folder: Path) -> None:
    document = program(
        {"h": [["a", 8], ["out", 8]]},
        actions=[action(i, f"set{i}", [assign(field("h", "out"), const(i))]) for i in (1, 2)],
        ingress=[always("one", 1, "set1"), always("two", 2, "set2")],
        conditionals=[conditional("if", op(">", field("h", "a"), const(10)), "one", "two")],
        start="if",
    )
    with Both(document, folder) as both:
        assert (both.send("0b00"), both.send("0a00")) == ("0b01", "0a02")


def test_field_lists_and_metadata_reset(folder: Path) -> None:
    document = program(
        {"h": BYTE},
        [["keep", 8], ["lose", 8]],
        actions=[
            action(0, "save", [assign(field("scalars", name), field("h", "v")) for name in ("keep", "lose")]),
            action(
                1,
                "show",
                [
                    assign(
                        field("h", "v"), op("+", op("<<", field("scalars", "keep"), const(4)), field("scalars", "lose"))
                    )
                ],
            ),
        ],
        ingress=[always("in", 0, "save")],
        egress=[always("out", 1, "show")],
        field_lists=[{"id": 1, "name": "fl", "elements": [field("scalars", "keep")]}],
    )
    compiled = Compiled(document, folder)
    for number, expected in ((1, "30"), (2, "00")):
        compiled.start(b"\x03")
        compiled.run("pi")
        compiled.library.harness_copy_field_list(compiled.handle, number)
        compiled.run("ped")
        assert compiled.frame().hex() == expected
    compiled.start(b"\x03")
    compiled.run("pi")
    compiled.library.harness_reset_metadata(compiled.handle)
    compiled.run("ed")
    assert compiled.frame() == b"\0"
    compiled.close()


@pytest.mark.parametrize(
    ("kind", "row"),
    [
        ("exact", {"key": "0x75"}),
        ("lpm", {"key": "0x75", "prefix_length": 8}),
        ("ternary", {"key": "0x75", "mask": "0xff"}),
    ],
)
def test_a_key_that_is_masked_masks_its_entries_too(kind: str, row: dict[str, Any], folder: Path) -> None:
    """As when BMv2 adds an entry: bits outside the mask neither keep it from matching nor tell it from another."""
    entry = {"match_key": [{"match_type": kind, **row}], "priority": 1}
    entry["action_entry"] = {"action_id": 0, "action_data": []}
    rows = table("t", [(kind, "h", "v")], [(0, "hit")], entries=[entry])
    rows["key"][0]["mask"] = "0x0f"
    hit = action(0, "hit", [assign(field("h", "w"), const(1))])
    with Both(program({"h": [["v", 8], ["w", 8]]}, actions=[hit], ingress=[rows]), folder) as both:
        assert [both.send(f"{value}00") for value in ("05", "f5", "74")] == ["0501", "f501", "7400"]
