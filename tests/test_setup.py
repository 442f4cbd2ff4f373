"""The two commands' set-up: what it says where it cannot work."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT, needs_root

pytestmark = needs_root


@pytest.fixture
def script() -> Iterator[Path]:
    """A copy of the set-up script where other users can read it, with nothing else beside it."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        target = Path(folder, "scripts", "setup.sh")
        target.parent.mkdir(mode=0o755)
        shutil.copy(ROOT / "scripts" / "setup.sh", target)
        yield target


def run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_without_root(script: Path) -> None:
    result = run(["setpriv", "--reuid", "65534", "--clear-groups", str(script)])
    assert result.returncode == 1
    assert result.stderr == "setup: Plait needs root, for network namespaces and XDP; run it with sudo.\n"


def test_on_another_system(script: Path, tmp_path: Path) -> None:
    release = tmp_path / "os-release"
    release.write_text('ID=slackware\nVERSION_ID=15.0\nPRETTY_NAME="Slackware 15.0"\n')
    system = Path("/etc/os-release").resolve()
    result = run(["unshare", "--mount", "sh", "-c", f"mount --bind {release} {system} && {script}"])
    assert result.returncode == 1
    assert "tested on Debian 12 and Ubuntu 24.04 only, and this is Slackware 15.0" in result.stderr


def test_a_second_set_up_is_quick_and_silent() -> None:
    result = run([str(ROOT / "scripts" / "setup.sh")])
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_make_alone_lists_the_verbs() -> None:
    result = run(["make", "--no-print-directory", "-C", str(ROOT)])
    assert result.returncode == 0
    listed = {line.split()[1] for line in result.stdout.splitlines()}
    assert {"demo", "test", "setup", "lint", "bench", "clean"} <= listed
