"""The fenced blocks of the documentation, and what runs them.

```sh            shell commands, run from a copy of the clone's top folder
```sh lab        … while a laboratory runs; `lab=NAME`: with the program p4src/NAME.p4
```sh launch     starts a laboratory, which stays until a `plait` block says exit
```sh parse      only read: every `plait` in it must be a verb with options that exist
```console       `$ command` lines with what they print; `…` is anything, numbers are not compared
```plait         lines for the laboratory's prompt
```X file=NAME   a file of this content
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pexpect
import typer

from tests.conftest import ROOT

_FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PROMPT = "plait> "
_TIMEOUT_S = 120


@dataclass(frozen=True)
class Block:
    path: Path
    line: int
    language: str
    mark: str
    text: str

    @property
    def name(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}"

    def commands(self) -> list[str]:
        """The commands of a `sh` or `console` block, one each."""
        lines = [line for line in self.text.splitlines() if line.strip()]
        if self.language == "console":
            return [command for command, _ in self.dialogue()]
        joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
        return [line for line in joined.splitlines() if not line.lstrip().startswith("#")]

    def dialogue(self) -> list[tuple[str, list[str]]]:
        """A `console` block as commands with the lines that they print."""
        found: list[tuple[str, list[str]]] = []
        end = ""
        for line in self.text.splitlines():
            continued = found and (end or found[-1][0].endswith("\\"))
            if continued:
                found[-1] = (f"{found[-1][0]}\n{line}", [])
                end = "" if line == end else end
            elif line.startswith("$ "):
                found.append((line[2:], []))
                document = re.search(r"<<'?(\w+)'?", line)
                end = document[1] if document else ""
            elif line.strip():
                found[-1][1].append(line)
        return found


def blocks(path: Path) -> list[Block]:
    text = path.read_text()
    found = []
    for match in _FENCE.finditer(text):
        language, _, mark = match[1].strip().partition(" ")
        found.append(Block(path, text[: match.start()].count("\n") + 1, language, mark.strip(), match[2]))
    return found


def pages() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


class Runner:
    """Runs blocks in a folder that looks like the clone, but whose new files are its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for entry in ROOT.iterdir():
            if entry.name not in (".git", "out"):
                (folder / entry.name).symlink_to(entry)
        self.environment = {**os.environ, "PATH": f"{ROOT / '.venv' / 'bin'}:{os.environ['PATH']}", "COLUMNS": "160"}
        self.terminal: pexpect.spawn | None = None

    def run(self, block: Block) -> None:
        if block.mark.startswith("file="):
            (self.folder / block.mark.removeprefix("file=")).write_text(block.text)
        elif block.mark == "parse":
            for command in block.commands():
                parse(command)
        elif block.mark == "launch":
            self.launch(block.text.strip())
        elif block.language == "plait":
            self.type(block.text.splitlines())
        elif block.language == "console":
            for command, expected in block.dialogue():
                compare(self.shell(command), expected)
        else:
            self.shell(block.text)

    def shell(self, text: str) -> str:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", text],
            cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=_TIMEOUT_S, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr, done.stderr
        return done.stdout

    def launch(self, command: str) -> None:
        assert self.terminal is None
        self.terminal = pexpect.spawn(
            "bash", ["-c", f"exec {command}"], cwd=str(self.folder), env=self.environment, encoding="utf-8",
            timeout=_TIMEOUT_S, dimensions=(50, 120),
        )  # fmt: skip
        self.terminal.expect_exact(_PROMPT)

    def type(self, lines: list[str]) -> str:
        """What the prompt printed; AssertionError for a complaint of any kind."""
        assert self.terminal is not None
        printed = ""
        for line in lines:
            self.terminal.sendline(line)
            if line == "exit":
                self.terminal.expect(pexpect.EOF)
                self.terminal.close()
                assert self.terminal.exitstatus == 0
                self.terminal = None
                break
            self.terminal.expect_exact(_PROMPT)
            printed += self.terminal.before
        assert not re.search(r"^(plait: |\*\*\* |Traceback|Usage: )", printed, re.MULTILINE), printed
        return printed

    def close(self) -> None:
        if self.terminal is not None:
            self.terminal.sendline("exit")
            self.terminal.expect(pexpect.EOF)
            self.terminal.close(force=True)


def compare(printed: str, expected: list[str]) -> None:
    """The expected lines, in this order, are among those printed; `…` is anything, and numbers are any numbers."""
    rest = iter([_plain(line) for line in printed.splitlines()])
    for line in expected:
        pattern = ".*".join(re.escape(part.strip()) for part in _plain(line).split("…"))
        assert any(re.fullmatch(rf"\s*{pattern}\s*", found) for found in rest), f"{line!r} is not in\n{printed}"


def _plain(line: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"0x[0-9a-f]+|\d+([.,]\d+)*", "#", line)).strip()


def parse(command: str) -> None:
    """AssertionError where a `plait` of the command has a verb or an option that does not exist."""
    for words in plait_calls(command):
        _parse(words)


def plait_calls(command: str) -> Iterator[list[str]]:
    """The words after each `plait` that begins a command of the line."""
    for part in re.split(r"\||&&|;|\$\(", command.split(" # ")[0]):
        try:
            words = shlex.split(part, comments=True)
        except ValueError:
            continue
        words = words[next((i for i, word in enumerate(words) if word == "plait"), len(words)) :]
        if words and "…" not in words:
            yield words[1:]


def _parse(words: list[str]) -> None:
    from lab.cli import app

    command: Any = typer.main.get_command(app)
    path = "plait"
    while hasattr(command, "get_command") and words and words[0] != "--help":
        below = command.get_command(typer.Context(command), words[0])
        if below is None:
            # A host's name is not a verb that could be looked up.
            assert re.fullmatch(r"h\d+", words[0]), f"{path}: no verb {words[0]}"
            return
        path, command, words = f"{path} {words[0]}", below, words[1:]
    if command.context_settings.get("ignore_unknown_options"):
        return
    options = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    for word in words:
        if word.startswith("-") and word != "-" and not word[1:].isdigit():
            assert word.split("=")[0] in {*options, "--help"}, f"{path} has no option {word}"
