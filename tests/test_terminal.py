"""The command line as a person meets it: a laboratory's prompt in a real terminal, and other commands beside it."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from lab.tests.test_cli_start import SLOW
from tests.conftest import PLAIT, ROOT, needs_root, plait
from tests.leftovers import Snapshot
from tests.test_clean import assert_nothing_new

pytestmark = needs_root

PROMPT = "\nplait> "


class Terminal:
    """A laboratory's prompt, 120 columns wide."""

    def __init__(self) -> None:
        command = [*PLAIT[1:], "launch", "fattree", "--k", "2"]
        environment = {**os.environ, "TERM": "dumb"}
        self.child = pexpect.spawn(
            PLAIT[0], command, cwd=str(ROOT), env=environment, encoding="utf-8", timeout=60, dimensions=(50, 120)
        )
        self.child.expect_exact(PROMPT)

    def says(self, line: str) -> str:
        """What a line prints."""
        self.child.sendline(line)
        self.child.expect_exact(PROMPT)
        return f"{self.child.before}\n".replace("\r\n", "\n").replace("\r", "").partition("\n")[2]

    def completed(self, text: str) -> str:
        """What the line is after a tab; it is then given up."""
        self.child.send(f"{text}\t")
        self.child.send("<")  # the tab has been dealt with when this is echoed
        self.child.expect_exact("<")
        line = self.child.before
        self.child.send("\x15\r")  # readline's unix-line-discard
        self.child.expect_exact(PROMPT)
        return str(line).replace("\a", "")


@pytest.fixture(scope="module", name="terminal")
def _terminal() -> Iterator[Terminal]:
    before = Snapshot.take()
    terminal = Terminal()
    try:
        yield terminal
        terminal.child.sendline("exit")
        terminal.child.expect(pexpect.EOF)
        terminal.child.close()
        assert terminal.child.exitstatus == 0
        assert_nothing_new(before)
    finally:
        terminal.child.close(force=True)


def test_verbs_of_mininet_and_of_plait(terminal: Terminal) -> None:
    assert "h1 h2 s1 s2 s3 s4 s5" in terminal.says("nodes")
    assert "1 received" in terminal.says("h1 ping -c 1 h2")
    assert "ipv4_lpm " in terminal.says("table list s1")
    assert "ipv4_lpm " in terminal.says("plait table list s1")  # out of habit
    assert json.loads(terminal.says("table dump s1 neighbor --json"))[0]["match"]
    # Both have a `link`: which is meant is told by the second word.
    assert terminal.says("link s4 s2 down") == ""
    assert "0 received" in terminal.says("h1 ping -c 1 -W 1 h2")
    assert terminal.says("link s4 s2 up") == ""
    assert "up" in terminal.says("link list")
    assert "Example: plait table add" in terminal.says("help table add").replace("\x1b[0m", "")
    assert "multicast" in terminal.says("help")
    assert terminal.says("table dump s1 | wc -l").strip().isdigit()


def test_mistakes_are_told_in_a_line(terminal: Terminal) -> None:
    for line, told in (
        ("tabel list s1", "plait: no command 'tabel': did you mean 'table'?"),
        ("table lst s1", "No such command 'lst'. Did you mean 'list'"),
        ("table list s9", "plait: no switch 's9' in the running laboratory; it has s1, s2, s3, s4, s5."),
        ("table add s1 neighbor egress_spec=h1 -a NoAction", "h1 has no port that this switch knows"),
        ("host exec h3 ls", "plait: no host 'h3' in the running laboratory; it has h1, h2."),
        ("table list 's1", "No closing quotation"),
        ("launch fattree --k 2", "plait: a laboratory is running on this machine"),
    ):
        printed = terminal.says(line)
        assert told in " ".join(printed.split()), line
        assert "Traceback" not in printed


def test_completion_at_the_prompt(terminal: Terminal) -> None:
    assert terminal.completed("mult") == "multicast "
    assert terminal.completed("table du") == "table dump "
    assert terminal.completed("table dump s1 nei") == "table dump s1 neighbor "
    assert terminal.completed("table add s1 neighbor st") == "table add s1 neighbor standard_metadata.egress_spec="
    assert (
        terminal.completed("table add s1 neighbor x=1 -a set")
        == "table add s1 neighbor x=1 -a set_macs(src_mac=, dst_mac="
    )
    assert terminal.completed("counter show s1 port_t") == "counter show s1 port_tx "
    assert terminal.completed("capture s1-") == "capture s1-s"  # to s2, or to s3
    assert terminal.completed("h1 ping h") == "h1 ping h"


def completions(line: str) -> tuple[list[str], list[str]]:
    """What the shell is offered, and which slow modules that took."""
    script = (
        "import json, sys; from lab import invoke; offered = invoke.complete(sys.argv[1]); "
        "print(json.dumps([offered, [name for name in json.loads(sys.argv[2]) if name in sys.modules]]))"
    )
    command = [sys.executable, "-c", script, line, json.dumps(SLOW)]
    offered, slow = json.loads(subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout)
    return offered, slow


def test_completion_in_a_shell_knows_the_running_laboratory(terminal: Terminal) -> None:
    assert completions("table list ") == ([f"s{i}" for i in range(1, 6)], [])
    assert completions("table dump s1 ipv4") == (["ipv4_lpm"], [])
    assert completions("host exec ") == (["h1", "h2"], [])
    assert completions("table set s1 trace hdr.ipv4.d") == (["hdr.ipv4.dst_addr="], [])
    assert completions("capture h") == ([], [])  # links begin at switches here
    done = subprocess.run(
        [*PLAIT[:1], "-m", "lab.cli"], capture_output=True, text=True, cwd=ROOT, check=False,
        env={**os.environ, "_PLAIT_COMPLETE": "complete_bash", "COMP_WORDS": "plait table d", "COMP_CWORD": "2"},
    )  # fmt: skip
    assert done.stdout.split() == ["dump", "del", "default"]


def test_commands_inside_hosts(terminal: Terminal) -> None:
    ran = plait("h1", "ping", "-c", "1", "h2")
    assert (ran.returncode, "1 received" in ran.stdout) == (0, True)
    assert plait("host", "exec", "h1", "sh", "-c", "exit 7").returncode == 7
    assert plait("h1", "sh", "-c", "kill -TERM $$").returncode == 128 + signal.SIGTERM
    rows = json.loads(plait("host", "list", "--json").stdout)
    assert [(row["host"], row["address"]) for row in rows] == [("h1", "10.0.0.2/24"), ("h2", "10.1.0.2/24")]
    nothing = plait("h1")
    assert (nothing.returncode, nothing.stderr) == (1, "plait: what is to run in h1? Such as: plait h1 ping -c 1 h2\n")
    unknown = plait("h3", "ls")
    assert (unknown.returncode, "No such command 'h3'" in unknown.stderr) == (2, True)


def test_links_in_memory_are_captured_as_packets_pass(terminal: Terminal, tmp_path: Path) -> None:
    file = tmp_path / "link.pcap"
    shown = subprocess.Popen(
        [*PLAIT, "capture", "s2-s4", "-c", "2", "icmp"], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    # Every other link is free meanwhile; each is captured by one at a time.
    written = subprocess.Popen([*PLAIT, "capture", "s1:1", "-w", str(file)], cwd=ROOT)
    while len(list(Path("/run/plait").glob("capture-*.pcap"))) < 2:
        assert shown.poll() is None and written.poll() is None
    refused = plait("capture", "h1", "-w", "/nonexistent/x")
    taken = plait("capture", "s1-eth1", "-c", "1")
    assert terminal.says("h1 ping -c 3 -i 0.2 h2").count("bytes from") == 3
    assert shown.communicate(timeout=20)[0].count("ICMP echo") == 2
    written.send_signal(signal.SIGINT)
    assert (shown.returncode, written.wait(20)) == (0, 0)
    decoded = plait("inspect", str(file), "--json")
    assert decoded.stdout.count("ICMP") == 6
    with file.open("rb") as packets:
        assert plait("inspect", "-", "--json", stdin=packets).stdout == decoded.stdout
    assert (taken.returncode, "one is running already on this link" in taken.stderr) == (2, True)
    assert (refused.returncode, refused.stderr) == (
        2, "plait: cannot write /nonexistent/x: No such file or directory.\n"
    )  # fmt: skip
    assert list(Path("/run/plait").glob("capture-*.pcap")) == []


@pytest.mark.parametrize(
    ("link", "told"),
    [
        ("s1-s5", "plait: no link 's1-s5' in the running laboratory; it has "),
        ("s1", "plait: s1 is a switch: say which of its links, s1-s2, s1-s3."),
        ("nowhere", "plait: no link 'nowhere' in the running laboratory"),
    ],
)
def test_links_that_are_not_there(terminal: Terminal, link: str, told: str) -> None:
    refused = plait("capture", link)
    assert (refused.returncode, refused.stderr.startswith(told)) == (2, True), refused.stderr


def test_ctrl_c_ends_a_verb_and_not_the_laboratory(terminal: Terminal) -> None:
    terminal.child.sendline("path h1 h2 --wait 60s")
    terminal.child.expect_exact("\n")
    terminal.child.sendintr()
    terminal.child.expect_exact(PROMPT)
    terminal.child.sendline("capture h1")
    terminal.child.expect_exact("reading from file")
    terminal.child.sendintr()
    terminal.child.expect_exact(PROMPT)
    terminal.child.sendline("h1 ping h2")
    terminal.child.expect_exact("64 bytes")
    terminal.child.sendintr()
    terminal.child.expect_exact(PROMPT)
    assert "1 received" in terminal.says("h1 ping -c 1 h2")


def test_values_by_name_in_the_running_laboratory(terminal: Terminal) -> None:
    edge = json.loads(plait("host", "list", "--json").stdout)[0]["switch"]
    dry = plait("table", "set", edge, "neighbor", "egress_spec=h1", "-a", f"set_macs({edge}-eth1, h1)", "--dry-run")
    assert dry.stdout == (
        f"{edge}: modify neighbor standard_metadata.egress_spec=1 -> "
        "set_macs(src_mac=06:00:00:04:00:01, dst_mac=02:00:0a:00:00:02)\n"
    )
    assert dry.stderr == "dry run: nothing was written\n"
    shown = json.loads(plait("table", "dump", edge, "ipv4_lpm", "--json").stdout)
    assert {row["match"]["hdr.ipv4.dst_addr"] for row in shown} == {"10.0.0.2/32", "10.1.0.0/24"}
