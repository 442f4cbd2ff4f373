"""Shared by the tests that bring a laboratory up."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PLAIT = [sys.executable, "-m", "lab.cli"]


def plait(*arguments: str, timeout: float = 180, **kwargs) -> subprocess.CompletedProcess[str]:
    """Runs the `plait` command to its end."""
    return subprocess.run(
        [*PLAIT, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=timeout, check=False, **kwargs
    )


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="namespaces and XDP need root")
