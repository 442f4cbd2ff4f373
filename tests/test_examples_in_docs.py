"""Every example in README.md, docs/ and the help texts: run, or where that is another test's work, read."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from lab.cli import app
from mininet_topos.fattree import fattree
from ptf_tests.packets import write
from tests.conftest import ROOT, needs_root
from tests.doc_blocks import Block, Runner, blocks, compare, pages, parse

TUTORIAL = ROOT / "docs" / "tutorial.md"
BLOCKS = [block for page in pages() if page != TUTORIAL for block in blocks(page)]
COMMAND = re.compile(r"^(\$ )?(plait|plait-switch|make|ptf|python -m p4runtime_sh) ", re.MULTILINE)
SHELL = ("sh", "console")
SIMPLE = re.compile(r"plait (?!shell)[^|<>;&`$]*")

# RoCEv2 packets of several paths, again and again, from inside a host.
SENDER = """
import socket, sys, time
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind((sys.argv[1], 0))
packet = bytearray.fromhex(sys.argv[2])
while True:
    for port in range(50000, 50016):
        packet[34:36] = port.to_bytes(2, "big")
        s.send(packet)
        time.sleep(0.003)
"""


def marked(*marks: str) -> list[Any]:
    chosen = (block for block in BLOCKS if block.language in SHELL and block.mark in marks)
    return [pytest.param(block, id=block.name) for block in chosen]


def test_every_block_of_commands_says_how_it_is_run() -> None:
    unmarked = [
        block.name for block in BLOCKS if COMMAND.search(block.text) and block.language not in (*SHELL, "python")
    ]
    assert unmarked == []
    known = re.compile(r"|parse|lab(=\w+)?")
    assert [block.name for block in BLOCKS if block.language in SHELL and not known.fullmatch(block.mark)] == []


@pytest.mark.parametrize("block", marked("parse"))
def test_examples_that_are_read(block: Block) -> None:
    for command in block.commands():
        parse(command)


def test_commands_within_sentences() -> None:
    for page in pages():
        text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
        for span in re.findall(r"`([^`]*)`", text):
            if re.match(r"plait [a-z]", span):
                parse(span)


def test_a_wrong_example_is_seen() -> None:
    for command, message in (("plait tabel list", "no verb"), ("plait table list s1 --jsn", "no option --jsn")):
        with pytest.raises(AssertionError, match=message):
            parse(command)


@needs_root
@pytest.mark.parametrize("block", marked(""))
def test_examples(block: Block, tmp_path: Path) -> None:
    Runner(tmp_path).run(block)


@needs_root
@pytest.mark.parametrize("program", sorted({block.mark for block in BLOCKS if block.mark.startswith("lab")}))
def test_examples_in_a_laboratory(program: str, tmp_path: Path) -> None:
    """All of a program's, in one laboratory, with RDMA packets on their way from h1 to h8."""
    runner = Runner(tmp_path)
    chosen = program.partition("=")[2] or "ecmp"
    h1, h8 = (fattree(4, 10**8, 50_000).node(name) for name in ("h1", "h8"))
    packet = write(h8.address, psn=7)
    packet["IP"].src = h1.address
    del packet["IP"].chksum
    try:
        runner.launch(f"plait launch fattree --k 4 --program p4src/{chosen}.p4")
        (tmp_path / "sender.py").write_text(SENDER)
        runner.type([f"h1 {sys.executable} sender.py h1-eth0 {bytes(packet).hex()} &"])
        for block in BLOCKS:
            if block.language not in SHELL or block.mark != program:
                continue
            if block.language == "console":
                runner.run(block)
            for command in block.commands() if block.language == "sh" else ():
                typed = command.partition(" # ")[0].rstrip()
                if SIMPLE.fullmatch(typed):  # the prompt takes it as well, and has everything loaded
                    runner.type([typed])
                else:
                    runner.shell(command)
    finally:
        runner.close()


# --- help texts ---


def commands(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    """All verbs that do something: a topology's name after a verb is its argument."""
    if hasattr(command, "commands") and not (command.help or "").count("Example: "):
        for name, below in command.commands.items():
            yield from commands(below, f"{path} {name}")
    else:
        yield path, command


VERBS = dict(commands(typer.main.get_command(app), "plait"))


@pytest.mark.parametrize("path", VERBS)
def test_every_verb_has_one_example(path: str) -> None:
    examples = re.findall(r"Example: (.*)", VERBS[path].help or "")
    assert len(examples) == 1
    assert examples[0].startswith(f"{path} ") or examples[0] == path
    parse(examples[0])


def test_examples_of_what_consoles_print() -> None:
    compare("a 1\nb  2.5 kB\nc\n", ["a 7", "b …", "c"])
    with pytest.raises(AssertionError):
        compare("a 1\nc\n", ["c", "a 1"])
