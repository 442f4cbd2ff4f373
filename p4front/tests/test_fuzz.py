"""Whatever the text, the compiler compiles it or raises `CompileError`."""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from p4front.diagnostics import CompileError
from p4front.driver import check_source, compile_checked
from p4front.lexer import tokenize
from p4front.preprocessor import Preprocessor
from p4front.tests.kit import P4SRC, program_text

PROGRAM = Preprocessor().run(P4SRC / "ecmp.p4")
# The user's part alone: the library before it is the same in every case and would take most of the time.
USER = program_text(
    declarations="header h2 { bit<8> x; bit<8> y; } bit<8> f(in bit<8> x) { if (x == 1) { return 2; } return x; }",
    headers="h2[2] hs;",
    locals="""
        register<bit<8>>(8) r; action a(bit<8> v) { meta.mark = v; }
        table t { key = { hdr.ip.dst: lpm; hdr.ip.ttl & 7: exact @name("x"); } actions = { a; NoAction; }
                  const entries = { (0x0a000000 &&& 0xff000000, 2): a(3); } size = 16; }
    """,
    ingress="if (t.apply().hit) { r.write(0, f(hdr.ip.ttl)); } else { hdr.hs[1] = { 1, 2 }; exit; }",
    verify="verify_checksum(true, { hdr.ip.src }, hdr.ip.sum, HashAlgorithm.csum16);",
)
WORDS = [token.text for token in tokenize(USER) if token.kind != "eof"]
SLOW = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


def survive(text: str) -> None:
    try:
        source = Preprocessor().run_text(text, "fuzz.p4")
        compile_checked(P4SRC / "fuzz.p4", check_source(source))
    except CompileError as error:
        assert error.diagnostics


def test_the_whole_text_compiles() -> None:
    source = Preprocessor().run_text(USER, "fuzz.p4")
    assert compile_checked(P4SRC / "fuzz.p4", check_source(source)).bmv2_json


@SLOW
@given(st.integers(0, len(USER)))
def test_truncated(end: int) -> None:
    survive(USER[:end])


@SLOW
@given(st.randoms(use_true_random=False), st.integers(1, 4))
def test_tokens_deleted_doubled_swapped(rng: random.Random, count: int) -> None:
    words = list(WORDS)
    for _ in range(count):
        place, other = rng.randrange(len(words)), rng.randrange(len(words))
        match rng.randrange(4):
            case 0:
                del words[place]
            case 1:
                words.insert(place, words[other])
            case 2:
                words[place], words[other] = words[other], words[place]
            case 3:
                words[place] = rng.choice(["0", "1 << 70000", "8w256", "{}", "..", "_", '"', "<", "hdr", "main"])
    survive('#include <core.p4>\n#include <v1model.p4>\n' + " ".join(words[words.index("header") :]))


@SLOW
@given(st.text(max_size=80))
def test_any_text(text: str) -> None:
    survive(text)


@SLOW
@given(st.text(alphabet='#defin lu/*"<>()&|!1\n\\x', max_size=60))
def test_any_directives(text: str) -> None:
    survive(text)


@pytest.mark.parametrize(
    "text",
    [
        "const bit<8> x = " + "(" * 5000 + "1" + ")" * 5000 + ";",
        "const bit<8> x = " + "-" * 5000 + "1;",
        "const bit<8> x = " + "1 + " * 20000 + "1;",
        "const bit<8> x = a" + ".b" * 20000 + ";",
        "const bit<8> x = a" + "[1]" * 20000 + ";",
        "control c() { apply " + "{" * 5000 + "}" * 5000 + " }",
        "control c() { apply { " + "if (true) " * 5000 + "; } }",
        "typedef " + "tuple<" * 5000 + "bit<8>" + ">" * 5000 + " x;",
        "typedef bit<99999999999> x;",
        "const int x = 1 << 1000000000;",
        "const int x = 0x" + "f" * 20000 + ";",
        "const bit<8> x = " + "9" * 10000 + ";",
        "@a" + "(" * 5000,
        '@a["' + "x" * 100,
        "header h { h x; } header g { g[2] y; }",
        "control c(inout bit<8> x) { apply { c.apply(x); } }",
        "#define A A A A\nA\n#define B(x) x x x B(x)\nB(B(B(1)))",
        "#if " + "(" * 5000,
        "#include <" + "x" * 5000 + ">",
        "\0\x01\x02",
    ],
)
def test_hostile(text: str) -> None:
    survive(text)
