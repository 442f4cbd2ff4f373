"""The language beyond ordinary programs: compiled, run by the reference interpreter, compared with values by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fastswitch.interpreter import Interpreter
from p4front.driver import Compiled
from p4front.tests.kit import PARSER, ip_fields, ip_frame, program_text, run_packet

Compile = Callable[..., Compiled]


def after(compiled: Compiled, **fields: int) -> dict[str, int]:
    """The fields of the IP header behind the switch."""
    left = run_packet(compiled, ip_frame(**fields))
    assert left is not None
    return ip_fields(left[1])


def test_exit_ends_the_action(compile_parts: Compile) -> None:
    compiled = compile_parts(
        locals="action a() { if (hdr.ip.ttl == 1) { exit; } hdr.ip.dst = 5; }", ingress="a(); hdr.ip.src = 6;"
    )
    assert after(compiled, ttl=1, src=2, dst=3) == {"ttl": 1, "proto": 17, "sum": 0, "src": 2, "dst": 3}
    assert (after(compiled, ttl=2)["src"], after(compiled, ttl=2)["dst"]) == (6, 5)


# arrays


@pytest.mark.parametrize("index", [0, 2, 3, 200])
def test_arrays_with_an_index_of_run_time(compile_parts: Compile, index: int) -> None:
    compiled = compile_parts(
        ingress="""bit<8>[4] a; bit<8> b[2]; a = {10, 11, 12, 13}; b[0] = 1; b[1] = a[1];
            a[hdr.ip.ttl] = 99; hdr.ip.dst = a[0] ++ a[1] ++ a[2] ++ a[3]; hdr.ip.proto = b[1];
            hdr.ip.sum[7:0] = a[2];"""
    )
    expected = [10, 11, 12, 13]
    if index < 4:
        expected[index] = 99
    fields = after(compiled, ttl=index)
    assert (fields["dst"], fields["proto"], fields["sum"]) == (int.from_bytes(bytes(expected), "big"), 11, expected[2])


def test_an_array_is_read_with_an_index_of_run_time(compile_parts: Compile) -> None:
    compiled = compile_parts(ingress="bit<8>[3] a = {7, 8, 9}; hdr.ip.proto = a[hdr.ip.ttl];")
    assert [after(compiled, ttl=index)["proto"] for index in range(3)] == [7, 8, 9]


def test_an_array_in_a_header_is_on_the_wire_in_order(compile_parts: Compile) -> None:
    parser = PARSER.replace("pkt.extract(hdr.ip); transition", "pkt.extract(hdr.ip); pkt.extract(hdr.x); transition")
    compiled = compile_parts(
        declarations="header x_t { bit<4>[3] n; bit<4> last; }", headers="x_t x;", parser=parser,
        ingress="hdr.ip.proto = (bit<8>)hdr.x.n[1]; hdr.x.n[2] = 15;",
    )  # fmt: skip
    left = run_packet(compiled, ip_frame() + bytes([0x12, 0x34]))
    assert left is not None and ip_fields(left[1])["proto"] == 2 and left[1][-2:] == bytes([0x12, 0xF4])


def test_a_stack_is_initialised_by_a_list(compile_parts: Compile) -> None:
    compiled = compile_parts(
        declarations="header b_t { bit<8> v; }", headers="b_t[3] bs;", ingress="hdr.bs = {{1}, {2}, ...};"
    )
    left = run_packet(compiled, ip_frame())
    assert left is not None and left[1][26:] == bytes([1, 2])


# parsers


STACK = {"declarations": "header b_t { bit<8> v; }", "headers": "b_t[3] bs;"}


def test_lookahead_of_structures_and_stacks(compile_parts: Compile) -> None:
    look = """s_t ahead = pkt.lookahead<s_t>(); meta.mark = ahead.bs[1].v; meta.flow = ahead.n;
              transition select(ahead.bs[0].v, ahead.bs[2].isValid()) { (1, true): one; default: accept; }"""
    parser = PARSER.replace("pkt.extract(hdr.ip); transition accept;", f"pkt.extract(hdr.ip); {look}")
    compiled = compile_parts(
        declarations=STACK["declarations"] + "struct s_t { b_t[3] bs; bit<16> n; }", headers=STACK["headers"],
        parser=parser + "state one { pkt.extract(hdr.bs.next); transition accept; }",
        ingress="hdr.ip.ttl = meta.mark; hdr.ip.sum = meta.flow; if (hdr.bs[0].isValid()) { hdr.ip.src = 1; }",
    )  # fmt: skip
    left = run_packet(compiled, ip_frame(src=9) + bytes([1, 2, 3, 4, 5]))
    assert left is not None
    fields = ip_fields(left[1])
    assert (fields["ttl"], fields["sum"], fields["src"]) == (2, 0x0405, 1)
    left = run_packet(compiled, ip_frame(src=9) + bytes([7, 2, 3, 4, 5]))
    assert left is not None and ip_fields(left[1])["src"] == 9


def test_extract_into_an_element_chosen_at_run_time(compile_parts: Compile) -> None:
    extract = "bit<32> i = (bit<32>)hdr.ip.ttl; pkt.extract(hdr.bs[i]); hdr.bs[i].v = hdr.bs[i].v + 1;"
    parser = PARSER.replace("pkt.extract(hdr.ip);", f"pkt.extract(hdr.ip); {extract}")
    compiled = compile_parts(**STACK, parser=parser, ingress="hdr.ip.proto = hdr.bs[2].v;")
    left = run_packet(compiled, ip_frame(ttl=2) + b"\x41")
    assert left is not None and ip_fields(left[1])["proto"] == 0x42 and left[1][26:] == b"\x42"


@pytest.mark.parametrize("index", [0, 2, 3, 255])
def test_no_index_reaches_beyond_the_stack(
    compile_parts: Compile, index: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BMv2 ends at such an index, so that the JSON must never compute one."""
    locate = Interpreter.locate

    def strict(self: Interpreter, *args: object) -> str:
        found = locate(self, *args)  # type: ignore[arg-type]
        assert found is not None
        return found

    monkeypatch.setattr(Interpreter, "locate", strict)
    compiled = compile_parts(
        **STACK,
        ingress="""hdr.bs = {{1}, {2}, {3}}; hdr.bs[hdr.ip.ttl].v = 9; hdr.bs[hdr.ip.ttl + 1].setInvalid();
                   bit<8> n = hdr.bs[hdr.ip.ttl].v; hdr.ip.proto = hdr.ip.ttl < 3 ? n : 0;""",
    )
    stack: list[int | None] = [1, 2, 3]
    if index < 3:
        stack[index] = 9
    if (index + 1) % 256 < 3:
        stack[(index + 1) % 256] = None
    left = run_packet(compiled, ip_frame(ttl=index))
    assert left is not None
    assert left[1][26:] == bytes(value for value in stack if value is not None)
    assert ip_fields(left[1])["proto"] == (9 if index < 3 else 0)


def test_assignment_to_the_next_element(compile_parts: Compile) -> None:
    parser = PARSER.replace("pkt.extract(hdr.ip);", "pkt.extract(hdr.ip); pkt.extract(hdr.bs.next); hdr.bs.next = {9};")
    left = run_packet(compile_parts(**STACK, parser=parser), ip_frame() + b"\x01")
    assert left is not None and left[1][26:] == bytes([1, 9])


def test_a_select_without_keys(compile_parts: Compile) -> None:
    parser = PARSER.replace("pkt.extract(hdr.ip); transition accept;",
                            "pkt.extract(hdr.ip); transition select() { default: accept; }")  # fmt: skip
    assert after(compile_parts(parser=parser), ttl=3)["ttl"] == 3


# generics


def test_a_generic_function_for_two_types(compile_parts: Compile) -> None:
    compiled = compile_parts(
        blocks="""T larger<T>(in T a, in T b) { if (a > b) { return a; } return b; }
                  void swap<T, U>(inout T a, inout T b, out U n) { T c = a; a = b; b = c; n = 1; }""",
        ingress="""hdr.ip.ttl = larger(hdr.ip.ttl, 100); hdr.ip.dst = larger<bit<32>>(hdr.ip.dst, hdr.ip.src);
                   swap(hdr.ip.src, hdr.ip.dst, hdr.ip.proto);""",
    )  # fmt: skip
    assert after(compiled, ttl=7, src=30, dst=20) == {"ttl": 100, "proto": 1, "sum": 0, "src": 30, "dst": 30}
    assert after(compiled, ttl=200, src=10, dst=20)["src"] == 20


def test_a_generic_control_has_an_instance_for_each_type(compile_parts: Compile) -> None:
    compiled = compile_parts(
        blocks="""control keep<T>(inout T value, in T limit)(T step) {
                      action cut() { value = limit; }
                      table t { actions = { cut; } const default_action = cut; }
                      apply { if (value > limit) { t.apply(); } value = value + step; } }""",
        locals="keep<bit<8>>(1) small; keep<bit<32>>(2) large;",
        ingress="small.apply(hdr.ip.ttl, 10); large.apply(hdr.ip.dst, 1000);",
    )
    fields = after(compiled, ttl=11, dst=5000)
    assert (fields["ttl"], fields["dst"]) == (11, 1002)
    assert [table.preamble.name for table in compiled.p4info.tables] == ["ing.small.t", "ing.large.t"]


def test_generic_blocks_in_the_package(compile_text: Compile) -> None:
    text = program_text(ingress="hdr.ip.ttl = 3;")
    text = text.replace("control egr(inout headers_t hdr", "control egr<H>(inout H hdr")
    text = text.replace("egr()", "egr<headers_t>()")
    assert after(compile_text(text))["ttl"] == 3


# default values


def test_default_initialisers(compile_parts: Compile) -> None:
    compiled = compile_parts(
        declarations="struct p_t { bit<8> a; bit<16> b; bool c; error e; }",
        ingress="""p_t p = { 5, ... }; p_t q = { b = 7, ... }; p_t r = ...; hdr.ip = { ttl = 4, dst = 8, ... };
            if (p.b == 0 && !p.c && p.e == error.NoError && q.a == 0 && r == { 0, 0, false, error.NoError }) {
                hdr.ip.proto = p.a + (bit<8>)q.b; }""",
    )
    assert after(compiled, src=3, total=5) == {"ttl": 4, "proto": 12, "sum": 0, "src": 0, "dst": 8}


def test_the_invalid_header(compile_parts: Compile) -> None:
    left = run_packet(compile_parts(ingress="hdr.ip = (ip_t){#};"), ip_frame())
    assert left is not None and len(left[1]) == 14


def test_constants_of_structures_and_tuples(compile_parts: Compile) -> None:
    compiled = compile_parts(
        declarations="""struct p_t { bit<8> a; bit<8> b; } enum e_t { X, Y }
            const p_t p = { 3, 4 }; const p_t q = { b = 6, a = 5 }; const tuple<bit<8>, p_t> u = { 9, { 1, 2 } };
            const bit<8> n = p.b + q.a; const bit<8> m = u[0] + u[1].b; const bool same = e_t.X == e_t.Y;""",
        ingress="bit<n> wide = 511; hdr.ip.ttl = wide[8:1]; hdr.ip.proto = same ? 8w0 : m;",
    )
    assert (after(compiled)["ttl"], after(compiled)["proto"]) == (255, 11)


def test_a_table_size_by_constructor_parameter(compile_parts: Compile) -> None:
    compiled = compile_parts(
        blocks="control c()(bit<32> n) { table t { actions = { NoAction; } size = n; } apply { t.apply(); } }",
        locals="c(77) inner;", ingress="inner.apply();",
    )  # fmt: skip
    assert compiled.p4info.tables[0].size == 77


def test_pragmas_are_annotations(compile_parts: Compile) -> None:
    table = '@pragma name "other"\n@pragma hot\ntable t { actions = { NoAction; } }'
    compiled = compile_parts(locals=table, ingress="t.apply();")
    assert compiled.p4info.tables[0].preamble.name == "ing.other"


def test_one_field_as_lpm_and_selector_key(compile_parts: Compile) -> None:
    compiled = compile_parts(
        locals="""action_selector(HashAlgorithm.crc16, 16, 8) ap;
            table t { key = { hdr.ip.dst: lpm; hdr.ip.dst: selector; hdr.ip.src: selector; }
                      actions = { NoAction; } implementation = ap; }""",
        ingress="t.apply();",
    )
    table = compiled.bmv2_json["pipelines"][0]["tables"][0]
    assert [key["match_type"] for key in table["key"]] == ["lpm"]
    selector = compiled.bmv2_json["pipelines"][0]["action_profiles"][0]["selector"]
    assert [part["value"] for part in selector["input"]] == [["ip", "dst"], ["ip", "src"]]
