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
        ({"locals": "action a() { } table t { actions = { a; } default_action = b(); }"}, "not an action of the table"),
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
        ({"ingress": "for (bit<8> i = 0; i < 4; i = i + 1) { }"}, "'for' statements are not supported yet"),
        ({"declarations": "T same<T>(in T x) { return x; }"}, "generic functions are not supported yet"),
        ({"headers": "odd_t odd;", "declarations": "header odd_t { bit<7> x; }"}, "BMv2 needs a multiple of 8"),
    ],
)
def test_what_is_not_supported_is_named(parts: dict[str, str], message: str, compile_parts) -> None:
    with pytest.raises(CompileError) as info:
        compile_parts(**parts)
    assert message in str(info.value)


def test_warnings_do_not_stop(compile_parts) -> None:
    compiled = compile_parts(ingress="hdr.ip.ttl = 256;")
    (warning,) = compiled.warnings
    assert "256" in str(warning) and "test.p4(" in str(warning)
