"""Runs the C unit tests, plain and under the sanitizers; and the Python tests once more against a sanitized core."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.build import build_with_tests

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "engine" / "_build"

pytestmark = pytest.mark.skipif("PLAIT_ENGINE_SANITIZED" in os.environ, reason="is the outer run")


@pytest.mark.parametrize("suffix", ["", "-sanitized"])
def test_c_unit_tests(suffix: str) -> None:
    build_with_tests(ROOT, sanitize=True)
    command = [str(BUILD / f"unit{suffix}"), str(BUILD / f"pipeline_echo{suffix}.so")]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stdout.split("\n")[-2] == "ok control"


def test_no_data_races_between_packets_and_control() -> None:
    build_with_tests(ROOT, sanitize=True)
    command = [str(BUILD / "race"), str(BUILD / "pipeline_echo.so")]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (0, "ok\n"), result.stderr


def test_python_tests_against_a_sanitized_core() -> None:
    runtime = subprocess.run(["cc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
    environment = os.environ | {
        "PLAIT_ENGINE_SANITIZED": "1",
        "LD_PRELOAD": runtime.stdout.strip(),
        "ASAN_OPTIONS": "detect_leaks=0",  # the interpreter's own
    }
    files = ["test_tables.py", "test_switch.py", "test_link.py", "test_real_time.py", "test_drain.py"]
    files += ["test_traffic_manager.py", "test_pfc.py"]
    command = [sys.executable, "-m", "pytest", "-q", "-x", *(str(ROOT / "engine" / "tests" / f) for f in files)]
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=ROOT)
    assert result.returncode == 0, result.stdout + result.stderr
