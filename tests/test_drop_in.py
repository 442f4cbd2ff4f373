"""plait-switch started with simple_switch_grpc's flags and a JSON argument: its captures hold what it received."""

import subprocess
import sys
from pathlib import Path

from scapy.utils import RawPcapReader

from lab.compiling import compile_program
from lab.config import DEFAULT_PROGRAM
from mininet_topos.system import isolated
from tests.conftest import ROOT, needs_root
from tests.drop_in import FRAMES

pytestmark = needs_root


def test_one_switch_with_a_program_and_captures(tmp_path: Path) -> None:
    program = compile_program(DEFAULT_PROGRAM, "plait", tmp_path)
    command = isolated([sys.executable, "-m", "tests.drop_in", str(program.json), str(tmp_path)])
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, result.stderr
    with RawPcapReader(str(tmp_path / "sw1.pcap")) as capture:
        assert [frame for frame, _ in capture] == FRAMES
    with RawPcapReader(str(tmp_path / "sw2.pcap")) as capture:
        assert list(capture) == []  # without entries the program drops everything
