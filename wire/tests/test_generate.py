"""The generator: the committed files are fresh, `--check` says when they are not, and what it cannot do it names."""

import shutil
from pathlib import Path

import pytest

from wire import codes
from wire.declarations import WireError
from wire.generate import EMITTERS, ROOT, SOURCES, generate, main
from wire.read import read

from .ibta import LAYOUTS


def test_committed_files_are_fresh(capsys):
    assert main(["--check"]) == 0, capsys.readouterr().out


@pytest.fixture
def copy(tmp_path) -> Path:
    for path in SOURCES:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, tmp_path / path)
    assert main(["--root", str(tmp_path)]) == 0
    return tmp_path


def test_a_second_run_writes_nothing(copy, capsys):
    capsys.readouterr()
    assert main(["--root", str(copy)]) == 0
    assert capsys.readouterr().out == ""


def test_check_shows_what_is_stale_and_writes_nothing(copy, capsys):
    path = copy / SOURCES[1]
    path.write_text(path.read_text().replace("RTR   = 2", "RTR   = 9"))
    before = {name: (copy / "wire" / name).read_text() for name in EMITTERS}
    capsys.readouterr()
    assert main(["--root", str(copy), "--check"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "wire/wire.h is stale; run: python -m wire.generate",
        "  -\tWIRE_QP_STATE_RTR = 2,",
        "  +\tWIRE_QP_STATE_RTR = 9,",
        "wire/codes.py is stale; run: python -m wire.generate",
        "  -    RTR = 2",
        "  +    RTR = 9",
    ]
    assert before == {name: (copy / "wire" / name).read_text() for name in EMITTERS}


def test_check_shortens_a_long_diff(copy, capsys):
    (copy / "wire" / "wire.h").unlink()
    capsys.readouterr()
    assert main(["--root", str(copy), "--check"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 22 and lines[-1].endswith("more lines")


def test_generated_files_say_so():
    for path, text in generate().items():
        head = "\n".join(text.splitlines()[:3])
        assert f"Do not edit; generated from {SOURCES[0]} and {SOURCES[1]} by wire/generate.py." in head, path


def test_layouts_are_those_of_the_standards():
    headers, _ = generate_sources()
    described = {
        declaration.name: [(field.name, field.bits) for field in declaration.fields]
        for declaration in headers.declarations
        if hasattr(declaration, "fields")
    }
    assert {name: described[name] for name in LAYOUTS} == LAYOUTS


def generate_sources():
    return read(ROOT, SOURCES)


def test_codes():
    assert codes.ROCEV2_UDP_PORT == 4791
    assert (codes.BTH_LEN, codes.RETH_LEN, codes.AETH_LEN, codes.IMMDT_LEN, codes.ICRC_BYTES) == (12, 16, 4, 4, 4)
    assert codes.PSN_MASK == 0xFFFFFF
    assert codes.BthOpcode.RC_ACKNOWLEDGE == 0x11
    assert codes.EtherType(0x0800).name == "IPV4"


def read_text(tmp_path: Path, text: str):
    (tmp_path / "x.p4").write_text(text)
    return read(tmp_path, ["x.p4"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("struct s_t { bit<8> a; }", "s_t: only const, typedef, enum bit<N> and header can become C and Python"),
        ("enum e_t { A, B }", "e_t: only const, typedef, enum bit<N> and header"),
        ("const bool X = true;", "const X: only bit<N> constants are supported, not bool"),
        ("const int<8> X = 1;", "const X: type int<8> is not bit<N>"),
        ("const int X = 1;", "const X: type int is not bit<N>"),
        ("header h_t { bit<4> a; }", "header h_t: 4 bits are not a whole number of bytes"),
        ("header h_t { }", "header h_t: 0 bits are not a whole number of bytes"),
        ("header h_t { bit<128> a; }", "header h_t: field a has 128 bits; 1 to 64 are supported"),
        ("header h_t { varbit<32> a; }", r"header h_t: field a: type varbit<32> is not bit<N>"),
        ("const bit<8> X = 256;", "256"),
        ("const bit<8> X = ;", "x.p4 does not compile:\n(.|\n)*x.p4"),
    ],
)
def test_unsupported(tmp_path, text, message):
    with pytest.raises(WireError, match=message):
        read_text(tmp_path, text)


def test_missing_file(tmp_path, capsys):
    assert main(["--root", str(tmp_path)]) == 1
    assert "headers.p4" in capsys.readouterr().err


def test_too_wide_for_c(tmp_path):
    for text, message in [
        ("header h_t { bit<4> a; bit<64> b; bit<4> c; }", "header h: field b touches more than 8 bytes"),
        ("const bit<128> X = 1;", "const X: 128 bits do not fit a C integer; 64 are supported"),
        ("enum bit<32> e_t { A = 0x80000000 }", "enum e: A = 0x80000000 does not fit a C int"),
    ]:
        with pytest.raises(WireError, match=message):
            EMITTERS["wire.h"](read_text(tmp_path, text))


def test_values_are_folded(tmp_path):
    (source,) = read_text(tmp_path, "typedef bit<24> psn_t;\nconst psn_t HALF = 1 << 23;\nconst bit<16> N = 3 * 2;")
    assert [(d.name, d.bits) for d in source.declarations] == [("psn", 24), ("HALF", 24), ("N", 16)]
    assert [d.value for d in source.declarations[1:]] == [1 << 23, 6]


def test_includes_are_not_repeated(tmp_path):
    (tmp_path / "a.p4").write_text("typedef bit<24> psn_t;\n")
    (tmp_path / "b.p4").write_text('#include "a.p4"\nconst psn_t X = 1;\n')
    first, second = read(tmp_path, ["a.p4", "b.p4"])
    assert [d.name for d in first.declarations] == ["psn"]
    assert [d.name for d in second.declarations] == ["X"]


def test_a_name_has_one_home(tmp_path):
    (tmp_path / "a.p4").write_text("const bit<8> X = 1;\n")
    (tmp_path / "b.p4").write_text("const bit<8> X = 2;\n")
    with pytest.raises(WireError, match="X is declared in a.p4 and in b.p4"):
        read(tmp_path, ["a.p4", "b.p4"])
