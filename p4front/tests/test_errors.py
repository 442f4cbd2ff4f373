"""Errors: their text, their place, and that all of a phase are reported."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from p4front.diagnostics import CompileError
from p4front.tests.kit import program_text


def test_place_line_and_carets(errors_of: Callable[[str], str]) -> None:
    text = errors_of("const bit<8> a = 1;\nconst bit<8> b = a + nothing;\n")
    lines = text.split("\n")
    assert lines[0].endswith("test.p4(2:22): error: nothing: declaration not found")
    assert lines[1] == "const bit<8> b = a + nothing;"
    assert lines[2] == "                     ^^^^^^^"


def test_place_in_an_included_file_and_behind_tabs(tmp_path, compile_text) -> None:
    (tmp_path / "inc.p4").write_text("\n\tconst bit<8> x = y;\n")
    with pytest.raises(CompileError) as info:
        compile_text('#include "inc.p4"\n')
    (error,) = info.value.diagnostics
    assert error.location is not None
    assert (error.location.file, error.location.line, error.location.column) == (str(tmp_path / "inc.p4"), 2, 19)
    assert error.excerpt == ("\tconst bit<8> x = y;", "\t                 ^")


def test_all_errors_of_a_phase(errors_of: Callable[[str], str]) -> None:
    text = errors_of(program_text(ingress="hdr.eth.kind = true; hdr.nope = 1; sm.egress_spec = 10w1;"))
    assert text.count("error:") == 3


def test_syntax_errors_recover(errors_of: Callable[[str], str]) -> None:
    text = errors_of("const bit<8> a = ;\nconst bit<8> b = 1;\nheader h { bit<8 x; }\nstruct s { bit<8> x }\n")
    assert text.count("syntax error") == 3


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"ingress": "hdr.ip.ttl = hdr.eth.dst;"}, "cannot convert 'bit<48>' to 'bit<8>' implicitly"),
        ({"ingress": "hdr.ip.tll = 1;"}, "'ip_t' has no field 'tll'; did you mean 'ttl'?"),
        ({"ingress": "meta.flag = hdr.ip.ttl + 1;"}, "cannot convert 'bit<8>' to 'bool' implicitly"),
        ({"ingress": "if (hdr.ip.ttl) { }"}, "cannot convert 'bit<8>' to 'bool' implicitly in the condition"),
        ({"ingress": "meta.mark = hdr.ip.ttl + hdr.ip.sum;"}, "'+' cannot join 'bit<8>' and 'bit<16>'"),
        ({"ingress": "meta.mark = (bit<8>)meta.flag;"}, "cannot cast 'bool' to 'bit<8>'"),
        ({"ingress": "meta.mark = hdr.ip.src[40:33];"}, "[40:33] is not a slice of 'bit<32>'"),
        ({"ingress": "meta.mark = 1 << hdr.ip.ttl;"}, "needs a width"),
        ({"ingress": "t.apply();"}, "t: declaration not found"),
        ({"ingress": "hdr.ip.isvalid();"}, "'ip_t' has no method 'isvalid'"),
        ({"ingress": "mark_to_drop(sm, sm);"}, "arguments expected, 2 given"),
        ({"ingress": "return 1;"}, "there is no value to return here"),
        ({"egress": "bit<8> x; bit<8> x;"}, "x: duplicate declaration"),
        ({"locals": "table t { key = { hdr.ip.dst: lpn; } actions = { } }"}, "lpn is not a match_kind"),
        ({"locals": "table t { actions = { nope; } }"}, "nope: declaration not found"),
        ({"locals": "action a(bit<8> x) { x = 1; }"}, "x is a parameter without direction and cannot be changed"),
        ({"locals": "action a() { } table t { actions = { a; } default_action = b(); }"}, "b' is not an action of the"),
        ({"locals": "counter(8) c;"}, "counter: no argument for 'type'"),
        ({"locals": "register<bit<8>>(8) r;", "ingress": "r.reed(meta.mark, 0);"}, "did you mean 'read'?"),
        ({"parser": "state start { transition nowhere; }"}, "there is no state 'nowhere'"),
        ({"parser": "state begin { transition accept; }"}, "parser prs has no state 'start'"),
        ({"declarations": "header h { bool a; string b; }"}, "b: a field of a header cannot have type 'string'"),
        ({"declarations": "enum bit<8> e { A }"}, "A: a member of this enum needs a value"),
        ({"declarations": "typedef nope_t x;"}, "nope_t: type not found"),
        ({"declarations": "const bit<8> a = a;"}, "a"),
        (
            {
                "locals": "table t { key = { } actions = { } implementation = action_profile(4); }",
                "ingress": "t.apply();",
            },
            "'implementation' needs a @name",
        ),
        ({"ingress": "exit; bit<8> x = 8w1 / 0;"}, ""),
        (
            {
                "declarations": "struct s0 { bit<8> a; } "
                + " ".join(f"struct s{i} {{ s{i - 1} a; s{i - 1} b; s{i - 1} c; s{i - 1} d; }}" for i in range(1, 14)),
                "ingress": "s13 x;",
            },
            "more than 100000 fields",
        ),
    ],
)
def test_messages(parts: dict[str, str], message: str, compile_parts) -> None:
    if not message:
        compile_parts(**parts)
        return
    with pytest.raises(CompileError) as info:
        compile_parts(**parts)
    assert message in str(info.value)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"declarations": "header_union u { eth_t2 a; } header eth_t2 { bit<8> x; }"}, "eth_t2: type not found"),
        ({"declarations": "extern void f();", "ingress": "f();"}, "BMv2 has no extern function 'f'"),
        ({"declarations": "extern e { e(); void m(); }", "locals": "e() i;", "ingress": "i.m();"},
         "BMv2 has no extern method 'e.m'"),
        ({"declarations": "struct s { bit<8> a; }", "locals": "register<s>(1) r;", "ingress": "r.write(0, {1});"},
         "BMv2 registers hold numbers, not 's'"),
        ({"ingress": "clone(CloneType.E2E, 32w1);"}, "clone of kind E2E is possible only in egress"),
        ({"egress": "resubmit_preserving_field_list(0);"}, "resubmit is possible only in ingress"),
        ({"locals": "action a() { switch (hdr.ip.ttl) { 1: {} } }", "ingress": "a();"},
         "a switch on a value in an action is not possible"),
        ({"parser": "state start { transition two; } state two { transition start; }"},
         "parser prs never reaches accept or reject"),
        ({"locals": "direct_meter<bit<2>>(MeterType.bytes) m; action a() { bit<2> c; m.read(c); } "
                    "table t { actions = { a; } }", "ingress": "t.apply();"},
         "direct meter ing.m is no table's 'meters'"),
        ({"locals": '@name(".x") action a() {} @name(".x") action b() {}', "ingress": "a(); b();"},
         "another action has the control plane name 'x'"),
        ({"locals": """action a() {} table t { key = { hdr.ip.ttl: optional; } actions = { a; }
                       const entries = { 1 &&& 3: a(); } }""", "ingress": "t.apply();"},
         "a mask is no value of a key of kind optional"),
        ({"locals": """action a() {} table t { key = { hdr.ip.ttl: range; } actions = { a; }
                       const entries = { 4..3: a(); } }""", "ingress": "t.apply();"},
         "a range key needs a value or a range that is not empty"),
        ({"headers": "odd_t odd;", "declarations": "header odd_t { bit<7> x; }"}, "BMv2 needs a multiple of 8"),
    ],
)
def test_what_bmv2_cannot_do_is_named(parts: dict[str, str], message: str, compile_parts) -> None:
    with pytest.raises(CompileError) as info:
        compile_parts(**parts)
    assert message in str(info.value)


def test_the_architecture_has_versions(compile_text) -> None:
    with pytest.raises(CompileError, match="V1MODEL_VERSION must be 20180101 to 20200408"):
        compile_text("#define V1MODEL_VERSION 20000101\n" + program_text())


def test_the_headers_are_a_structure(compile_text) -> None:
    text = program_text(parser="state start { pkt.extract(hdr); transition accept; }")
    text = text.replace("headers_t hdr", "eth_t hdr")
    with pytest.raises(CompileError, match="the headers must be a struct of headers, stacks and unions, not 'eth_t'"):
        compile_text(text)


@pytest.mark.parametrize(
    ("parts", "names"),
    [
        ({"ingress": "bit<8> x;"}, ["x"]),
        ({"ingress": "bit<8> x; hdr.ip.ttl = x;"}, []),
        ({"ingress": '@noWarn("unused") bit<8> x;'}, []),
        ({"locals": "action a(bit<8> p, bit<8> q) { hdr.ip.ttl = q; } table t { actions = { a; } }"}, ["p", "t"]),
        ({"declarations": "const bit<8> c = 1; typedef bit<8> b_t;"}, ["c", "b_t"]),
        ({"blocks": "control c() { apply {} } bit<8> f<T>(in T x) { bit<8> y; return 1; }"}, ["c", "f"]),
        ({"locals": "register<bit<8>>(4) r; counter(4, CounterType.bytes) n;", "ingress": "n.count(0);"}, ["r"]),
    ],
)
def test_unused_declarations(compile_parts, parts: dict[str, str], names: list[str]) -> None:
    found = [warning.message for warning in compile_parts(**parts).warnings if warning.kind == "unused"]
    assert [message.split("'")[1] for message in found] == names


@pytest.mark.parametrize(
    ("ingress", "names"),
    [
        ("bit<8> x; hdr.ip.ttl = x + 1;", ["x"]),
        ("bit<8> x; if (hdr.ip.ttl == 1) { x = 1; } hdr.ip.ttl = x;", []),
        ("bit<8> x; x[3:0] = 1; hdr.ip.ttl = x;", []),
        ("metadata_t m; hdr.ip.ttl = m.mark;", ["m"]),
        ("for (bit<8> i in 0 .. 3) { hdr.ip.ttl = hdr.ip.ttl + i; }", []),
        ("eth_t e; if (e.isValid()) { hdr.ip.ttl = 1; }", []),
    ],
)
def test_variables_that_never_get_a_value(compile_parts, ingress: str, names: list[str]) -> None:
    found = [item.message for item in compile_parts(ingress=ingress).warnings if item.kind == "uninitialized-use"]
    assert [message.split()[0] for message in found] == names


def test_priorities_that_look_wrong(compile_parts) -> None:
    entries = "priority = 5: 1 : a(); priority = 7: 2 : a(); priority = 5: 3 : a();"
    table = "action a() {} table t { key = { hdr.ip.ttl: ternary; } actions = { a; } %s entries = { " + entries + " } }"
    kinds = {warning.kind for warning in compile_parts(locals=table % "", ingress="t.apply();").warnings}
    assert kinds == {"duplicate-priorities", "entries-out-of-priority-order"}
    quiet = '@noWarn("duplicate-priorities") @noWarn("entries-out-of-priority-order")'
    assert not compile_parts(locals=table % quiet, ingress="t.apply();").warnings


def test_warnings_do_not_stop(compile_parts) -> None:
    compiled = compile_parts(ingress="hdr.ip.ttl = 256;")
    (warning,) = compiled.warnings
    assert "256" in str(warning) and "test.p4(" in str(warning)
