"""Nothing stays behind: normal end, error, Ctrl-C, kill -9 and `plait clean`."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pexpect
import pytest

from tests.conftest import PLAIT, ROOT, needs_root, plait
from tests.leftovers import Snapshot

pytestmark = needs_root

PROMPT = "plait>"


@contextmanager
def launched() -> Iterator[pexpect.spawn]:
    terminal = pexpect.spawn(
        PLAIT[0], [*PLAIT[1:], "launch", "fattree", "--k", "2"], cwd=str(ROOT), encoding="utf-8", timeout=90
    )
    try:
        terminal.expect(PROMPT)
        yield terminal
    finally:
        terminal.close(force=True)


def assert_nothing_new(before: Snapshot, seconds: float = 10) -> None:
    """The kernel frees maps and programs a moment after their last user ends."""
    deadline = time.monotonic() + seconds
    while (left := Snapshot.take() - before) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert left == []


def test_the_snapshot_sees_what_a_laboratory_makes() -> None:
    before = Snapshot.take()
    with launched():
        made = Snapshot.take() - before
    kinds = {line.split(" ")[0] for line in made}
    assert {"namespace", "interface", "XDP", "BPF", "process", "file"} <= kinds
    plait("clean")
    assert_nothing_new(before)


def test_normal_end() -> None:
    before = Snapshot.take()
    with launched() as terminal:
        terminal.sendline("h1 ping -c 1 h2")
        terminal.expect("1 received")
        terminal.sendline("exit")
        terminal.expect(pexpect.EOF)
    assert_nothing_new(before)


def test_sigterm() -> None:
    before = Snapshot.take()
    with launched() as terminal:
        os.kill(terminal.pid, signal.SIGTERM)
        terminal.expect(pexpect.EOF)
    assert_nothing_new(before)


def test_ctrl_c_while_a_demo_runs() -> None:
    before = Snapshot.take()
    terminal = pexpect.spawn(
        PLAIT[0], [*PLAIT[1:], "demo", "--rate", "2M", "--k", "2"], cwd=str(ROOT), encoding="utf-8", timeout=90
    )
    terminal.expect("sending")
    terminal.sendintr()
    terminal.expect("interrupted")
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert terminal.exitstatus == 130
    assert_nothing_new(before)


def test_kill_9_and_clean() -> None:
    before = Snapshot.take()
    with launched() as terminal:
        os.kill(terminal.pid, signal.SIGKILL)
        terminal.expect(pexpect.EOF)
    result = plait("clean")
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith(("removed", "nothing was left behind"))
    assert_nothing_new(before)
    assert plait("clean").stdout == "nothing was left behind\n"


@pytest.mark.parametrize(("module", "name"), [("fastswitch.daemon", "plait-switch"), ("rdma.daemon", "the NIC daemon")])
def test_a_process_that_is_killed_ends_the_demo_with_its_name(module: str, name: str) -> None:
    before = Snapshot.take()
    terminal = pexpect.spawn(
        PLAIT[0], [*PLAIT[1:], "demo", "--rate", "2M", "--k", "2"], cwd=str(ROOT), encoding="utf-8", timeout=20
    )
    terminal.expect("sending")
    children = Path("/proc", str(terminal.pid), "task", str(terminal.pid), "children").read_text().split()
    (victim,) = (int(pid) for pid in children if module.encode() in Path("/proc", pid, "cmdline").read_bytes())
    os.kill(victim, signal.SIGKILL)
    terminal.expect(f"plait: {name} was ended by SIGKILL")
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert terminal.exitstatus == 1
    assert_nothing_new(before)


def test_two_laboratories_do_not_collide() -> None:
    with launched() as terminal:
        second = plait("launch", "fattree", "--k", "2")
        assert second.returncode == 4
        assert f"a laboratory is running on this machine: 'fattree-2' (pid {terminal.pid})" in second.stderr
        refused = plait("clean")
        assert refused.returncode == 4
        assert "a laboratory is running" in refused.stderr
        # The first one still works.
        terminal.sendline("h1 ping -c 1 h2")
        terminal.expect("1 received")
        terminal.sendline("exit")
        terminal.expect(pexpect.EOF)


def test_commands_that_need_a_laboratory_say_so() -> None:
    for command in (["table", "list", "s1"], ["shell", "s1"]):
        result = plait(*command)
        assert result.returncode == 5
        assert "no laboratory is running on this machine" in result.stderr
