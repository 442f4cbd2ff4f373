"""The preprocessor: what it keeps, expands, drops, and where it says things come from."""

from __future__ import annotations

from pathlib import Path

import pytest

from p4front.diagnostics import CompileError
from p4front.preprocessor import Preprocessor


def text_of(source: str, defines: tuple[str, ...] = ()) -> str:
    result = Preprocessor(defines=defines).run_text(source)
    return "\n".join(line.strip() for line in result.text.split("\n") if line.strip())


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("#define N 8\nbit<N> x;", "bit<8> x;"),
        ("#define ADD(a, b) ((a) + (b))\nx = ADD(1, f(2, 3));", "x = ((1) + (f(2, 3)));"),
        ("#define NAME(a) a ## _t\nNAME(ipv4) x;", "ipv4_t x;"),
        ("#define STR(a) #a\n@name(STR(x))", '@name("x")'),
        ("#define A B\n#define B A\nA B", "A B"),
        ("#define F(a) [a]\nF (1) F", "[1] F"),
        ("#define F(a, b) a-b\nF(1,\n  2)", "1-2"),
        ("#define X\n#ifdef X\nyes\n#else\nno\n#endif", "yes"),
        ("#ifndef X\nyes\n#endif", "yes"),
        ("#define V 3\n#if V >= 2 && defined(V) && !defined(W)\nyes\n#elif V\nno\n#endif", "yes"),
        ("#if 0\na\n#elif 1\nb\n#elif 1\nc\n#else\nd\n#endif", "b"),
        ("#if 0\n#if 1\na\n#endif\n#error no\n#endif\nb", "b"),
        ("#define A 1\n#undef A\nA", "A"),
        ("a /* one\n two */ b // three", "a\nb"),
        ('@name("// not a comment")', '@name("// not a comment")'),
        ("#define LONG 1 + \\\n  2\nLONG", "1 +    2"),
    ],
)
def test_directives(source: str, expected: str) -> None:
    assert text_of(source) == expected


def test_defines_from_the_command_line() -> None:
    assert text_of("A B", ("A", "B=x+1")) == "1 x+1"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("#if 1\n", "unterminated conditional"),
        ("#endif", "#endif without #if"),
        ("#error stop here", "#error stop here"),
        ("#if 1 +\n#endif", "in #if"),
        ("#include <none.p4>", "none.p4: no such file or directory"),
        ("#include <psa.p4>", "no such file or directory; the architecture is v1model, others are not supported"),
        ("#include none", "#include expects"),
        ("#define 1", "macro names must be identifiers"),
        ("#if 1 / 0\n#endif", "in #if: division by zero"),
        ("#if (4 % (2 - 2)) == 0\n#endif", "in #if: division by zero"),
        ("#frobnicate", "invalid preprocessing directive #frobnicate"),
        ("#define F(a) a\nF(1", "unterminated argument list"),
        ("#define F(a) a\nF(1, 2)", "takes 1 arguments, 2 given"),
    ],
)
def test_errors(source: str, message: str) -> None:
    with pytest.raises(CompileError, match=message.replace("(", r"\(").replace("+", r"\+")):
        text_of(source)


@pytest.mark.parametrize("condition", ["0 && 1 / 0", "1 || 1 % 0", "1 ? 1 : 1 / 0", "-7 / 2 == -3", "-7 % 2 == -1"])
def test_a_division_that_c_does_not_evaluate(condition: str) -> None:
    text = text_of(f"#if {condition}\nyes\n#else\nno\n#endif")
    assert ("yes" in text) == (not condition.startswith("0 &&"))


def test_includes_are_relative_to_the_file_and_keep_its_lines(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "main.p4").write_text('#include "inner/a.p4"\nmain\n')
    (tmp_path / "inner" / "a.p4").write_text('\n#include "b.p4"\na\n')
    (tmp_path / "inner" / "b.p4").write_text("b\n")
    source = Preprocessor().run(tmp_path / "main.p4")
    places = {word: source.locate(source.text.index(word)) for word in ("a", "b", "main")}
    assert (places["a"].file, places["a"].line) == (str(tmp_path / "inner" / "a.p4"), 3)
    assert (places["b"].file, places["b"].line) == (str(tmp_path / "inner" / "b.p4"), 1)
    assert (places["main"].file, places["main"].line) == (str(tmp_path / "main.p4"), 2)


def test_include_directories(tmp_path: Path) -> None:
    (tmp_path / "lib.p4").write_text("found")
    assert "found" in Preprocessor([tmp_path]).run_text("#include <lib.p4>").text


def test_endless_include_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.p4").write_text('#include "a.p4"\n')
    with pytest.raises(CompileError, match="nested too deeply"):
        Preprocessor().run(tmp_path / "a.p4")
