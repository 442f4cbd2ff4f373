"""The PTF tests of every program, on Plait's switch, and on BMv2 where it is on PATH."""

import shutil
import subprocess
import sys

import pytest

from tests.conftest import ROOT, needs_root

pytestmark = needs_root

PROGRAMS = sorted(path.stem for path in (ROOT / "p4src").glob("*.p4"))


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("target", ["plait", "bmv2"])
def test_program(program: str, target: str) -> None:
    if target == "bmv2" and (missing := [p for p in ("simple_switch_grpc", "p4c-bm2-ss") if not shutil.which(p)]):
        pytest.skip(f"{' and '.join(missing)} not on PATH")
    command = [sys.executable, "-m", "ptf_tests.runner", program, "--target", target]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "\nOK\n" in result.stdout + result.stderr
