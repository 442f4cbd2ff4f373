"""`plait queue` against a running plait-switch: what it sets is what it shows, and what each refusal says."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fastswitch.control import ControlError
from lab import queue_cli
from lab.errors import NoLabError, PlaitError
from lab.running import LabRecord, SwitchRecord
from lab.units import parse_depth, parse_packet_rate

BUFFER = {"total_bytes": 500_000, "alpha": "1/4", "reserved_bytes": 1_000}
PFC = {"priorities": [1], "headroom_bytes": 20_000, "xoff_bytes": 9_000, "xon_gap_bytes": 100, "pause_quanta": 600}


@pytest.fixture(name="socket", scope="module")
def _socket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The control socket of two switches with a link between their ports 1; s2 is given queues and a buffer."""
    folder = tmp_path_factory.mktemp("queues")
    switch = {"grpc_addr": "127.0.0.1:0", "cpu_port": 510, "priority_queues": 2}
    queues = [
        {"port": 1, "priority": 1, "rate_pps": 5_000, "alpha": 8, "reserved_bytes": 0},
        {"port": 1, "rate_bps": 10**6},
    ]
    document = {
        "switches": [
            {"name": "s1", "device_id": 1, **switch},
            {"name": "s2", "device_id": 2, **switch, "buffer": BUFFER | {"pfc": PFC}, "queues": queues},
        ],
        "links": [{"a": ["s1", 1], "b": ["s2", 1], "rate_bps": 10**9, "queue_packets": 77}],
        "control": str(folder / "c.sock"),
    }
    (folder / "fabric.json").write_text(json.dumps(document))
    command = [sys.executable, "-m", "fastswitch.daemon", "--fabric", str(folder / "fabric.json")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        yield folder / "c.sock"
        process.terminate()


def plait(socket: Path, *words: str) -> str:
    """What a command prints; its error is raised."""
    result = CliRunner().invoke(queue_cli.app, [*words, "--socket", str(socket)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def shown(socket: Path, *words: str) -> dict:
    (row,) = json.loads(plait(socket, "show", *words, "--json"))
    return row


def test_what_fabric_json_says_holds(socket: Path) -> None:
    low, high = (shown(socket, "s2", "1", str(priority)) for priority in (0, 1))
    assert (low["depth_packets"], low["depth_bytes"], low["port_rate_bps"], low["rate_pps"]) == (77, None, 10**6, 0)
    assert (low["alpha"], low["reserved_bytes"], high["alpha"], high["reserved_bytes"]) == ("1/4", 1_000, "8", 0)
    assert (high["rate_pps"], high["rate_bps"]) == (5_000, 0)
    found = json.loads(plait(socket, "buffer", "s2", "--json"))
    assert found["buffer"] == BUFFER | {"pfc": PFC}
    # Three queues (two of the CPU port) have a reserve, one link has headroom for one priority.
    assert found["state"] == {"pool_bytes": 500_000 - 3 * 1_000 - 20_000, "used_bytes": 0, "max_used_bytes": 0}


def test_rates_and_depths(socket: Path) -> None:
    plait(socket, "set", "s1", "1", "--rate", "100M", "--depth", "50p", "--depth", "64KB")
    plait(socket, "set", "s1", "1", "1", "--rate", "5M")
    low, high = (shown(socket, "s1", "1", str(priority)) for priority in (0, 1))
    assert (low["port_rate_bps"], low["rate_bps"], high["rate_bps"]) == (10**8, 0, 5 * 10**6)
    assert (high["depth_packets"], high["depth_bytes"]) == (50, 64_000)
    plait(socket, "set", "s1", "1", "--rate-pps", "1k", "--depth", "unlimited")
    low, high = (shown(socket, "s1", "1", str(priority)) for priority in (0, 1))
    assert (low["rate_pps"], high["rate_pps"], high["rate_bps"], high["depth_bytes"]) == (1_000, 1_000, 0, None)
    assert low["port_rate_bps"] == 10**8
    plait(socket, "set", "s1", "1", "--rate", "unlimited", "--rate-pps", "unlimited")
    low = shown(socket, "s1", "1", "0")
    assert (low["port_rate_bps"], low["rate_pps"]) == (0, 0)


def test_pause_and_resume(socket: Path) -> None:
    plait(socket, "pause", "s1", "1", "1")
    assert [row["held"] for row in json.loads(plait(socket, "show", "s1", "1", "--json"))] == [False, True]
    assert "paused here" in plait(socket, "list", "s1")
    plait(socket, "resume", "s1", "1")
    assert not shown(socket, "s1", "1", "1")["held"]


def test_people_can_read_it(socket: Path) -> None:
    table = plait(socket, "list", "s2")
    assert [line.split("│")[1:3] for line in table.splitlines() if "│" in line][1][0].strip() == "1"
    assert "5,000 p/s" in table and "1.0 Mb/s" in table and "77p" in table
    text = plait(socket, "show", "s2", "1", "1")
    assert text.startswith("s2 port 1 priority 1\n  waiting")
    assert "drops: headroom              0 packets" in text and "0 B + 8 x free" in text


def test_a_buffer_is_set_and_taken_away(socket: Path) -> None:
    assert plait(socket, "buffer", "s1") == "s1 has no shared buffer: each queue has limits of its own\n"
    flow_control = ["--lossless", "0,1", "--xoff", "1/8", "--headroom", "30KB"]
    plait(socket, "buffer", "s1", "--total", "1MB", "--alpha", "1/2", "--reserved", "2KB", *flow_control)
    assert json.loads(plait(socket, "buffer", "s1", "--json"))["buffer"] == {
        "total_bytes": 10**6,
        "alpha": "1/2",
        "reserved_bytes": 2_000,
        "pfc": {
            "priorities": [0, 1],
            "headroom_bytes": 30_000,
            "xoff_alpha": "1/8",
            "xon_gap_bytes": 3036,
            "pause_quanta": 65535,
        },
    }
    assert "pool 932.00 kB, used 0 B, at the most 0 B" in plait(socket, "buffer", "s1")
    plait(socket, "set", "s1", "1", "1", "--alpha", "4", "--reserved", "1KB")
    assert shown(socket, "s1", "1", "1")["threshold_bytes"] == 1_000 + 4 * 933_000
    plait(socket, "buffer", "s1", "--off")
    assert "no shared buffer" in plait(socket, "buffer", "s1")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("set s1 1", "nothing to set: give --rate, --rate-pps, --depth, --reserved or --alpha."),
        ("set s1 1 --rate fast", "rate 'fast' is not a number with a unit, such as 100M or 10Gbps."),
        ("set s1 1 --rate-pps 0", "packet rate '0': need a positive number of k, M or G packets per second"),
        ("set s1 1 --depth 50", "depth '50' needs a unit: packets such as 50p, or bytes such as 64KB."),
        ("set s1 1 --alpha half", "queue_set: alpha: 'half' is no fraction such as 1/2 or 8"),
        ("set s1 1 --alpha 2", "queue_set: port 1 of switch s1: a reserve and alpha need a shared buffer"),
        ("set s1 1 0 --rate 1M --rate-pps 1", "set_queue: a queue has a rate in bits or in packets a second, not both"),
        ("set s1 9 --rate 1M", "queue_set: port 9 of switch s1: there is none"),
        ("set s1 1 2 --rate 1M", "queue_set: queue 2 of port 1: the port has 2 queues"),
        ("pause s9 1", "queue_hold: no switch is named 's9'"),
        ("buffer s1 --alpha 2", "a shared buffer needs --total, such as --total 12MB."),
        ("buffer s1 --total 1MB --xoff 1KB", "--xoff is for flow control: give its priorities, such as --lossless 3."),
        ("buffer s1 --total 1MB --lossless 1", "flow control needs --xoff, such as 64KB or 1/8, and --headroom"),
        ("buffer s1 --total 1MB --lossless a --xoff 1KB --headroom 1KB", "priorities 'a' are not numbers with commas"),
        ("buffer s1 --total 1MB --lossless 7 --xoff 1KB --headroom 1KB", "lossless priorities of switch s1: its ports"),
        ("buffer s1 --total 1KB --reserved 1KB", "buffer of switch s1: 4000 bytes reserved for queues and 0 of"),
    ],
)
def test_refusals(socket: Path, words: str, message: str) -> None:
    with pytest.raises((PlaitError, ControlError)) as error:
        plait(socket, *words.split())
    assert message in str(error.value)


def test_a_change_tells_machines_what_the_queue_is_like_now(socket: Path) -> None:
    (row,) = json.loads(plait(socket, "set", "s1", "1", "1", "--depth", "33p", "--json"))
    assert (row["port"], row["priority"], row["depth_packets"]) == (1, 1, 33)
    (row,) = json.loads(plait(socket, "pause", "s1", "1", "1", "--json"))
    assert row["held"]
    (row,) = json.loads(plait(socket, "resume", "s1", "1", "1", "--json"))
    assert not row["held"]
    assert plait(socket, "set", "s1", "1", "1", "--depth", "77p") == ""


def test_without_a_laboratory_or_with_bmv2(monkeypatch: pytest.MonkeyPatch) -> None:
    def run() -> None:
        result = CliRunner().invoke(queue_cli.app, ["list", "s1"])
        assert result.exception is not None
        raise result.exception

    def no_lab() -> LabRecord:
        raise NoLabError("no laboratory is running")

    monkeypatch.setattr(queue_cli, "running_lab", no_lab)
    with pytest.raises(NoLabError, match="no laboratory is running"):
        run()
    record = LabRecord("l", 1, "bmv2", {"s2": SwitchRecord("127.0.0.1:1", 2)}, {})
    monkeypatch.setattr(queue_cli, "running_lab", lambda: record)
    with pytest.raises(PlaitError, match="no switch 's1' in the running laboratory; it has s2"):
        run()
    record.switches["s1"] = SwitchRecord("127.0.0.1:1", 1)
    with pytest.raises(PlaitError, match=r"needs the fast switch .* over Thrift only \(simple_switch_CLI") as error:
        run()
    assert isinstance(error.value, PlaitError) and error.value.exit_code == 3


def test_units() -> None:
    assert [parse_depth(text) for text in ("50p", "1 packets", "64KB", "1.5 KiB")] == [
        (50, None),
        (1, None),
        (None, 64_000),
        (None, 1_536),
    ]
    assert [parse_packet_rate(text) for text in ("1000", "1.5kpps", "2M")] == [1000, 1500, 2 * 10**6]
