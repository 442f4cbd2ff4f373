"""The commands of docs/wire.md print what the page says."""

import os
import re
import subprocess
import sys
from pathlib import Path

from wire.generate import ROOT

PAGE = ROOT / "docs" / "wire.md"
_BLOCK = re.compile(r"^( *)```console\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
_COMMAND = re.compile(r"^\$ ([^\n]*<<'(\w+)'\n.*?^\2\n|[^\n]*\n)", re.DOTALL | re.MULTILINE)


def examples() -> list[tuple[str, str]]:
    """(command, expected output) in the order of the page; a command is one line, with its here-document."""
    found = []
    for block in _BLOCK.finditer(PAGE.read_text()):
        text = re.sub(f"^{block[1]}", "", block[2], flags=re.MULTILINE)
        commands = list(_COMMAND.finditer(text))
        ends = [command.start() for command in commands[1:]] + [len(text)]
        found += [(command[1], text[command.end() : end]) for command, end in zip(commands, ends, strict=True)]
    return found


def test_commands(tmp_path: Path):
    assert len(examples()) == 4
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    for command, expected in examples():
        # The installed `plait` may be of another tree than the one under test.
        command = command.replace("plait inspect", "python -m lab.inspect")
        result = subprocess.run(
            ["bash", "-c", command], cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT), "PATH": path},
            capture_output=True, text=True,
        )  # fmt: skip
        assert (result.returncode, result.stdout) == (0, expected), result.stderr
