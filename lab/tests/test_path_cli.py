"""What `plait path` reads from copies of packets, what it prints, and what it refuses."""

import asyncio
import contextlib
import json

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from typer.testing import CliRunner

from controller.tracing import Copy, Hop, PacketPath
from lab import cli, path_cli, path_trace
from lab.errors import PlaitError, UsageError
from lab.path_trace import Packet, find_host, sighting_of
from lab.running import LabRecord, SwitchRecord
from mininet_topos.tests.examples import dumbbell
from wire.layers import BTH

TOPOLOGY = dumbbell()
FIRST, LAST = Hop("s1", 1, 3, 7, 90), Hop("s2", 3, 2, 0, 1)


def packet(ttl, dport=4791, psn=70000):
    head = Ether() / IP(src="10.0.1.2", dst="10.0.2.3", ttl=ttl) / UDP(sport=51000, dport=dport)
    return bytes(head / BTH(opcode=0x06, psn=psn))


def test_what_a_copy_tells():
    seen = sighting_of(Copy(FIRST, packet(63)))
    assert seen.packet == Packet("10.0.1.2", "10.0.2.3", 51000, 0x06, 70000)
    assert (seen.ttl, seen.hop) == (63, FIRST)
    assert sighting_of(Copy(FIRST, packet(63, dport=53))) is None
    assert sighting_of(Copy(FIRST, packet(63)[:53])) is None


def test_hosts_have_names_and_addresses():
    assert find_host(TOPOLOGY, "h4") == find_host(TOPOLOGY, "10.0.2.3") == TOPOLOGY.node("h4")
    with pytest.raises(UsageError) as refused:
        find_host(TOPOLOGY, "s1")
    assert str(refused.value) == "no host 's1' in the running laboratory; it has h1, h2, h3, h4."


@pytest.fixture(name="lab")
def _lab(monkeypatch):
    """A laboratory whose switches send these copies, and nothing after them."""
    selections = []

    def sends(*copies):
        @contextlib.asynccontextmanager
        async def tracing(targets, selection):
            selections.append((targets, selection))
            queue = asyncio.Queue()
            for copy in copies:
                queue.put_nowait(copy)
            yield queue

        monkeypatch.setattr(path_trace, "tracing", tracing)
        return selections

    record = LabRecord("l", 1, "plait", {"s1": SwitchRecord("127.0.0.1:1", 1)}, {})
    monkeypatch.setattr(path_cli, "running_lab", lambda: record)
    monkeypatch.setattr(path_cli, "running_topology", lambda: TOPOLOGY)
    return sends


def run(*arguments):
    return CliRunner().invoke(cli.app, ["path", *arguments], catch_exceptions=True)


def test_a_whole_path(lab):
    selections = lab(Copy(LAST, packet(62)), Copy(FIRST, packet(63)))
    shown = run("h1", "h4", "--sport", "51000", "--psn", "70000")
    assert shown.exit_code == 0, shown.output
    assert shown.output.splitlines() == [
        "h1 -> s1 -> s2 -> h4  (UDP port 51000, opcode 0x06, PSN 70000)",
        "switch  came_in  left_by  queue_packets  queued_us",
        "s1      1 (h1)   3 (s2)               7         90",
        "s2      3 (s1)   2 (h4)               0          1",
    ]
    ((targets, selection),) = selections
    assert [target.name for target in targets] == ["s1"]
    assert (selection.src_addr, selection.dst_addr, selection.src_port) == ("10.0.1.2", "10.0.2.3", 51000)
    assert (selection.dst_port, selection.psn) == (4791, 70000)


def test_as_json(lab):
    lab(Copy(FIRST, packet(63)), Copy(LAST, packet(62)))
    (found,) = json.loads(run("h1", "h4", "--json").output)
    assert found["complete"] is True and found["packet"]["psn"] == 70000
    assert [hop["switch"] for hop in found["hops"]] == ["s1", "s2"]


def test_a_packet_that_was_lost_is_told_when_time_ends(lab):
    lab(Copy(FIRST, packet(63)), Copy(LAST, packet(62, psn=1)))  # of the second, only the end was seen
    shown = run("h1", "h4", "--wait", "1ms")
    assert shown.exit_code == 0
    assert shown.output.startswith("h1 -> s1 -> …  (UDP port 51000, opcode 0x06, PSN 70000)\n")
    assert shown.output.endswith("(its trace ends here: the packet or a copy was lost)\n")
    assert "s2 -> h4" not in shown.output


def test_no_packet_at_all(lab):
    lab()
    refused = run("h1", "h4", "--wait", "1ms").exception
    assert isinstance(refused, PlaitError)
    assert str(refused) == "no chosen packet from h1 to h4 in 1ms."


def test_whole_paths_come_first():
    whole, part = PacketPath(1, (FIRST, LAST), "h1", "h4"), PacketPath(2, (FIRST,), "h1", None)
    assert sorted([part, whole], key=path_trace.complete, reverse=True) == [whole, part]
