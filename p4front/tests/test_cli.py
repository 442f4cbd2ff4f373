"""The command: files, exit codes, and where messages go."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from finsy.proto import p4i
from google.protobuf import text_format

from p4front.__main__ import main
from p4front.driver import compile_file, parse_declarations
from p4front.syntax import ConstDecl, EnumDecl, StructDecl
from p4front.tests.kit import P4SRC, ROOT, program_text


def test_writes_both_outputs(tmp_path: Path) -> None:
    info, binary, config = tmp_path / "x.txtpb", tmp_path / "x.bin", tmp_path / "x.json"
    arguments = ["--p4v", "16", "--std", "p4-16", "--target", "bmv2", "--arch", "v1model", "--Wdisable=unused"]
    assert main([*arguments, "--p4runtime-files", f"{info},{binary}", "-o", str(config), str(P4SRC / "ecmp.p4")]) == 0
    message = text_format.Parse(info.read_text(), p4i.P4Info())
    assert message == p4i.P4Info.FromString(binary.read_bytes()) and len(message.tables) == 3
    assert json.loads(config.read_text())["program"].endswith("ecmp.p4")


def test_warnings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "p.p4"
    program.write_text(program_text(ingress="hdr.ip.ttl = 256;"))
    assert main([str(program)]) == 0 and "warning: 256" in capsys.readouterr().err
    assert main(["--Wdisable", str(program)]) == 0 and capsys.readouterr().err == ""
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
    assert main([str(tmp_path / "none.p4")]) == 1
    assert "cannot read" in capsys.readouterr().err
    assert main([str(P4SRC / "ecmp.p4"), "-o", str(tmp_path / "no" / "out.json")]) == 1
    assert "cannot write" in capsys.readouterr().err


def test_is_fast_enough() -> None:
    compile_file(P4SRC / "ecmp.p4")
    start = time.monotonic()
    compile_file(P4SRC / "ecmp.p4")
    assert time.monotonic() - start < 0.5


def test_runs_as_a_module() -> None:
    done = subprocess.run([sys.executable, "-m", "p4front", str(P4SRC / "ecmp.p4")], cwd=ROOT, capture_output=True)
    assert done.returncode == 0, done.stderr


def test_declarations_for_generators() -> None:
    declarations = {decl.name: decl for decl in parse_declarations(P4SRC / "include" / "headers.p4")}
    opcodes, bth, port = declarations["bth_opcode_t"], declarations["bth_t"], declarations["ROCEV2_UDP_PORT"]
    assert isinstance(opcodes, EnumDecl) and opcodes.type.members["RC_ACKNOWLEDGE"] == 0x11  # type: ignore[attr-defined]
    assert isinstance(bth, StructDecl) and list(bth.type.fields)[0] == "opcode"  # type: ignore[attr-defined]
    assert isinstance(port, ConstDecl) and port.value.value == 4791  # type: ignore[attr-defined]
