"""The programs of p4src/ against p4c (P4Info must be equal) and BMv2 (the JSON must load), where they are installed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from finsy.proto import p4i
from google.protobuf import text_format

from p4front.driver import compile_file
from p4front.tests.kit import P4SRC, tool

PROGRAMS = sorted(P4SRC.glob("*.p4"))
LOAD_SECONDS = 1.0


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_p4info_equals_p4c(program: Path, tmp_path: Path) -> None:
    p4c = tool("p4c-bm2-ss")
    info, config = tmp_path / "p4c.txtpb", tmp_path / "p4c.json"
    command = [p4c, "--p4v", "16", "--p4runtime-files", str(info), "-o", str(config), str(program)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    expected = text_format.Parse(info.read_text(), p4i.P4Info())
    assert compile_file(program).p4info == expected


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_bmv2_loads_the_json(program: Path, tmp_path: Path) -> None:
    switch = tool("simple_switch_grpc")
    config = tmp_path / "config.json"
    config.write_text(compile_file(program).json_text)
    process = subprocess.Popen(
        [switch, "--device-id", "77", "--log-file", str(tmp_path / "log"), str(config),
         "--", "--grpc-server-addr", "127.0.0.1:0"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=tmp_path,
    )  # fmt: skip
    try:
        output, _ = process.communicate(timeout=LOAD_SECONDS)
    except subprocess.TimeoutExpired:
        return  # it runs: it has loaded the configuration
    finally:
        process.kill()
        process.communicate()
    pytest.fail(f"simple_switch_grpc ended with {process.returncode}: {output}")
