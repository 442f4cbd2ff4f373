"""The command: files, exit codes, and where messages go."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from finsy.proto import p4i, p4r
from google.protobuf import text_format

from p4front.__main__ import main
from p4front.driver import parse_declarations
from p4front.syntax import ConstDecl, EnumDecl, StructDecl
from p4front.tests.kit import P4SRC, ROOT, program_text


def test_writes_both_outputs(tmp_path: Path) -> None:
    info, binary, config = tmp_path / "x.txtpb", tmp_path / "x.bin", tmp_path / "x.json"
    program = tmp_path / "x.p4"
    program.write_text(program_text(locals="table t { actions = { NoAction; } }", ingress="t.apply();"))
    arguments = ["--p4v", "16", "--std", "p4-16", "--target", "bmv2", "--arch", "v1model", "--Wdisable=unused"]
    assert main([*arguments, "--p4runtime-files", f"{info},{binary}", "-o", str(config), str(program)]) == 0
    message = text_format.Parse(info.read_text(), p4i.P4Info())
    assert message == p4i.P4Info.FromString(binary.read_bytes()) and len(message.tables) == 1
    assert json.loads(config.read_text())["program"] == str(program)


def test_writes_the_entries(tmp_path: Path) -> None:
    program, entries, binary = tmp_path / "x.p4", tmp_path / "e.txtpb", tmp_path / "e.json"
    table = """action a(bit<9> p) {} table t { key = { hdr.ip.src: ternary; hdr.ip.ttl: exact; } actions = { a; }
               const entries = { (0x0a000000 &&& 0xff000000, 1): a(3); (_, 2): a(300); } }"""
    program.write_text(program_text(locals=table, ingress="t.apply();"))
    assert main(["--p4runtime-entries-files", f"{entries},{binary}", str(program)]) == 0
    request = text_format.Parse(entries.read_text(), p4r.WriteRequest())
    first, second = (update.entity.table_entry for update in request.updates)
    assert json.loads(binary.read_text())["updates"]
    assert (first.priority, second.priority, first.is_const) == (2, 1, True)
    assert [(m.field_id, m.ternary.mask, m.exact.value) for m in first.match] == [
        (1, b"\xff\0\0\0", b""), (2, b"", b"\1"),
    ]  # fmt: skip
    assert [m.field_id for m in second.match] == [2] and second.action.action.params[0].value == b"\x01\x2c"


def test_an_unknown_suffix_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "x.p4"
    program.write_text(program_text())
    assert main(["--p4runtime-files", "x.pb", str(program)]) == 2
    assert "x.pb: the suffix must be one of .txtpb, .txt, .bin, .json" in capsys.readouterr().err


def test_preprocesses_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "x.p4"
    program.write_text("#if defined(A) && !defined(B)\nconst bit<A> x = 1;\n#endif\n")
    assert main(["-E", "-D", "A=7", "-D", "B", "-U", "B", str(program)]) == 0
    assert capsys.readouterr().out.strip() == "const bit<7> x = 1;"


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0 and capsys.readouterr().out.startswith("p4front ")


def test_warnings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "p.p4"
    program.write_text(program_text(ingress="hdr.ip.ttl = 256;"))
    assert main([str(program)]) == 0 and "[--Wwarn=overflow] warning: 256" in capsys.readouterr().err
    assert main(["--Wdisable", str(program)]) == 0 and capsys.readouterr().err == ""
    assert main(["--Wdisable=overflow", str(program)]) == 0 and capsys.readouterr().err == ""
    assert main(["--Wdisable=unused", str(program)]) == 0 and "warning: 256" in capsys.readouterr().err
    assert main(["--Werror=unused", str(program)]) == 0
    assert main(["--Werror=overflow", str(program)]) == 1


def test_macros_and_include_directories(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc" / "c.p4").write_text("const bit<8> c = VALUE;")
    program = tmp_path / "p.p4"
    program.write_text("#include <c.p4>\n")
    assert main(["-I", str(tmp_path / "inc"), "-D", "VALUE=3", str(program)]) == 1
    assert capsys.readouterr().err == "error: the program has no 'main'\n"


def test_errors_go_to_stderr(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "bad.p4"
    program.write_text("const bit<8> x = y;\n")
    assert main([str(program), "-o", str(tmp_path / "out.json")]) == 1
    out, err = capsys.readouterr()
    assert out == "" and err == f"{program}(1:18): error: y: declaration not found\nconst bit<8> x = y;\n{' ' * 17}^\n"
    assert not (tmp_path / "out.json").exists()


def test_a_missing_file_and_an_unwritable_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "none.p4")]) == 2
    assert "cannot read" in capsys.readouterr().err
    assert main([sys.executable, "-o", str(tmp_path / "out.json")]) == 2
    assert capsys.readouterr().err == f"error: cannot read {sys.executable}: not a text file\n"
    assert main([str(P4SRC / "ecmp.p4"), "-o", str(tmp_path / "no" / "out.json")]) == 2
    assert "cannot write" in capsys.readouterr().err


def test_runs_as_a_module() -> None:
    done = subprocess.run([sys.executable, "-m", "p4front", str(P4SRC / "ecmp.p4")], cwd=ROOT, capture_output=True)
    assert done.returncode == 0, done.stderr


def test_declarations_for_generators() -> None:
    declarations = {decl.name: decl for decl in parse_declarations(P4SRC / "include" / "headers.p4")}
    opcodes, bth, port = declarations["bth_opcode_t"], declarations["bth_t"], declarations["ROCEV2_UDP_PORT"]
    assert isinstance(opcodes, EnumDecl) and opcodes.type.members["RC_ACKNOWLEDGE"] == 0x11  # type: ignore[attr-defined]
    assert isinstance(bth, StructDecl) and list(bth.type.fields)[0] == "opcode"  # type: ignore[attr-defined]
    assert isinstance(port, ConstDecl) and port.value.value == 4791  # type: ignore[attr-defined]
