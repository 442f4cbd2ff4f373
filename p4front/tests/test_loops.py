"""Loops: against the same loop in Python, in actions, in controls, in functions and in parsers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from p4front.driver import Compiled
from p4front.tests.kit import PARSER, ip_fields, ip_frame, run_packet

Compile = Callable[..., Compiled]


def after(compiled: Compiled, **fields: int) -> dict[str, int]:
    """The fields of the IP header behind the switch."""
    left = run_packet(compiled, ip_frame(**fields))
    assert left is not None
    return ip_fields(left[1])


@pytest.mark.parametrize("place", ["action", "control", "function"])
@pytest.mark.parametrize("count", [0, 1, 7])
def test_runtime_bound(compile_parts: Compile, place: str, count: int) -> None:
    loop = """h.ip.dst = 0; for (bit<8> i = 1; i <= h.ip.ttl; i = i + 1) {
                  if (i == 3) { continue; } if (i == 6) { break; } h.ip.dst = h.ip.dst + (bit<32>)i; }"""
    parts = {"ingress": loop.replace("h.", "hdr.")}
    if place == "action":
        parts = {"locals": f"action a() {{ {loop.replace('h.', 'hdr.')} }}", "ingress": "a();"}
    elif place == "function":
        parts = {"blocks": f"void f(inout headers_t h) {{ {loop} }}", "ingress": "f(hdr);"}
    expected = 0
    for i in range(1, count + 1):
        if i == 6:
            break
        expected += 0 if i == 3 else i
    assert after(compile_parts(**parts), ttl=count)["dst"] == expected


def test_a_range_counts_to_the_largest_value_and_its_variable_may_change(compile_parts: Compile) -> None:
    compiled = compile_parts(
        ingress="hdr.ip.dst = 0; for (bit<8> i in 250..255) { hdr.ip.dst = hdr.ip.dst + (bit<32>)i; i = 0; }"
    )
    assert after(compiled)["dst"] == sum(range(250, 256))
    assert after(compile_parts(ingress="for (bit<8> i in 3..2) { hdr.ip.dst = 1; }"), dst=9)["dst"] == 9


def test_the_variable_of_a_range_is_evaluated_once(compile_parts: Compile) -> None:
    compiled = compile_parts(
        ingress="hdr.ip.dst = 0; for (bit<8> i in 1..hdr.ip.ttl) { hdr.ip.ttl = 1; hdr.ip.dst = hdr.ip.dst + 1; }"
    )
    assert after(compiled, ttl=5)["dst"] == 5


def test_nested_loops_and_several_variables(compile_parts: Compile) -> None:
    compiled = compile_parts(
        ingress="""hdr.ip.dst = 0;
            for (bit<8> i = 0, bit<32> x = 1; i < hdr.ip.ttl; i = i + 1, x = x << 1) {
                for (bit<8> j in 0..2) { if (j == 2) { break; } hdr.ip.dst = hdr.ip.dst + x; } }"""
    )
    assert after(compiled, ttl=4)["dst"] == 2 * (1 + 2 + 4 + 8)


def test_exit_and_return_leave_the_loop(compile_parts: Compile) -> None:
    body = "for (bit<8> i in 0..9) {{ hdr.ip.dst = hdr.ip.dst + 1; if (i == hdr.ip.ttl) {{ {}; }} }} hdr.ip.src = 0;"
    for leave in ("exit", "return"):
        compiled = compile_parts(ingress=body.format(leave))
        assert (after(compiled, ttl=2, dst=0)["dst"], after(compiled, ttl=2)["src"]) == (3, 0x0A000001)
        assert (after(compiled, ttl=20, dst=0)["dst"], after(compiled, ttl=20)["src"]) == (10, 0)
        inside = compile_parts(locals=f"action a() {{ {body.format(leave)} }}", ingress="a();")
        assert after(inside, ttl=2, dst=0) == after(compiled, ttl=2, dst=0)


def test_return_from_a_function_in_a_loop(compile_parts: Compile) -> None:
    first = """bit<8> first(bit<8> low, bit<8> mask) {
                   for (bit<8> i in low..255) { if (i & mask == mask) { return i; } } return 0; }"""
    compiled = compile_parts(blocks=first, ingress="hdr.ip.ttl = first(hdr.ip.ttl, 0x30);")
    assert after(compiled, ttl=0x41)["ttl"] == 0x70 and after(compiled, ttl=0xF1)["ttl"] == 0xF1


def test_over_the_elements_of_a_stack_and_of_a_list(compile_parts: Compile) -> None:
    compiled = compile_parts(
        declarations="header b_t { bit<8> v; }", headers="b_t[3] bs;",
        ingress="""hdr.bs[0] = {5}; hdr.bs[2] = {7}; hdr.ip.dst = 0; hdr.ip.src = 0;
            for (b_t b in hdr.bs) { if (!b.isValid()) { continue; } hdr.ip.dst = hdr.ip.dst + (bit<32>)b.v; }
            for (bit<32> n in (tuple<bit<32>, bit<32>>){hdr.ip.dst, 3}) { hdr.ip.src = hdr.ip.src + n; }""",
    )  # fmt: skip
    fields = after(compiled)
    assert (fields["dst"], fields["src"]) == (12, 15)


def test_in_a_parser(compile_parts: Compile) -> None:
    loop = "for (bit<8> i = 0; i < hdr.ip.ttl; i = i + 1) { meta.flow = meta.flow + 3; if (i == 4) { break; } }"
    parser = PARSER.replace("pkt.extract(hdr.ip);", f"pkt.extract(hdr.ip); {loop}")
    compiled = compile_parts(parser=parser, ingress="hdr.ip.sum = meta.flow;")
    assert [after(compiled, ttl=count)["sum"] for count in (0, 3, 9)] == [0, 9, 15]


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"ingress": "break;"}, "'break' is not in a loop"),
        ({"ingress": "continue;"}, "'continue' is not in a loop"),
        ({"ingress": "for (bool b in 1..2) {}"}, "a loop over a range needs a number, not 'bool'"),
        ({"ingress": "for (bit<8> b in hdr) {}"}, "a loop over 'headers_t' has no elements of type 'bit<8>'"),
        ({"locals": "table t { actions = { NoAction; } }", "ingress": "for (bit<8> i in 1..2) { t.apply(); }"},
         "table ing.t is applied in a loop: BMv2 cannot do that"),
    ],
)  # fmt: skip
def test_errors(errors_of: Callable[[str], str], parts: dict[str, str], message: str) -> None:
    from p4front.tests.kit import program_text

    assert message in errors_of(program_text(**parts))
