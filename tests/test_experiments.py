"""`plait run` from its file to its results, on a laboratory."""

import csv
import io
import json
import select
import signal
import subprocess
import time
from pathlib import Path

from lab.reorder import report
from tests.conftest import PLAIT, ROOT, needs_root, plait
from tests.leftovers import Snapshot

pytestmark = needs_root

SMALL = f"""
seeds = [1]
capture_hosts = 16
keep_captures = true
[topology]
rate = "20M"
queue_packets = 256
[[balancer]]
program = "ecmp"
[[balancer]]
name = "spray, in turn"
program = "spray"
parameters = {{ spray = "round-robin" }}
[[workload]]
kind = "permutation"
size = "60KB"
[[workload]]
kind = "poisson"
sizes = "{ROOT}/experiments/sizes/ali-storage-2019.txt"
scale = 0.2
load = 0.3
flows = 20
"""


def rows(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def test_ecmp_keeps_the_order_and_spray_does_not(tmp_path: Path) -> None:
    file = tmp_path / "small.toml"
    file.write_text(SMALL)
    before = Snapshot.take()
    result = plait("run", str(file), "--out", str(tmp_path))
    assert result.returncode == 0, result.stderr
    assert Snapshot.take() - before == []
    assert "[4/4" in result.stderr
    for text in ("load balancer", "spray, in turn", "ideal FCT = base RTT", "processors idle", "results: "):
        assert text in result.stdout
    (folder,) = (path for path in tmp_path.iterdir() if path.is_dir())

    runs = {(run["balancer"], run["workload"]): run for run in rows(folder / "runs.csv")}
    assert len(runs) == 4
    units = json.loads((folder / "units.json").read_text())
    assert {"slowdown_mean", "queue_max_bytes", "goodput_bps"} <= units.keys()
    assert float(runs["spray, in turn", "permutation"]["out_of_order_share"]) > 0
    for (balancer, _), run in runs.items():
        if balancer == "ecmp":
            assert float(run["out_of_order_share"]) == 0
        assert (run["failed"], run["drops_queue"]) == ("0", "0")
        assert int(run["captured_packets"]) > 0
    # A flow in an otherwise idle network cannot be faster than the ideal, but by the precision of its clock's reading.
    flows = rows(folder / "flows.csv")
    assert len(flows) == 2 * (16 + 20)
    assert all(float(flow["slowdown"]) > 0.98 for flow in flows)
    again = sum(int(flow["retransmissions"]) for flow in flows if flow["balancer"] != "ecmp")
    assert again > 0
    # Both load balancers had the same flows.
    ends = [[(flow["src"], flow["dst"], flow["bytes"]) for flow in flows if flow["balancer"] == name]
            for name in ("ecmp", "spray, in turn")]  # fmt: skip
    assert ends[0] == ends[1]

    late = {"ecmp": 0, "spray": 0}
    for capture in folder.glob("*permutation*.pcap"):
        out = io.StringIO()
        report(capture, out, as_json=True)
        found = [json.loads(line) for line in out.getvalue().splitlines()]
        assert found
        late[capture.name.split("-")[0]] += sum(flow["out_of_order"] for flow in found)
    assert late["ecmp"] == 0
    assert late["spray"] > 0
    inspected = plait("inspect", "--reorder", str(folder / "spray-in-turn-gbn-0-0-permutation-1-h1.pcap"))
    assert inspected.returncode == 0, inspected.stderr
    assert "out of order" in inspected.stdout.splitlines()[0]

    page = (folder / "report.html").read_text()
    assert page.count("data:image/png;base64,") == 5
    assert "spray, in turn: spray.p4 (spray=round-robin)" in page
    assert "http://" not in page and "https://" not in page
    assert json.loads((folder / "config.json").read_text())["seeds"] == [1]
    assert (folder / "experiment.toml").read_text() == SMALL


def test_ctrl_c_leaves_nothing(tmp_path: Path) -> None:
    file = tmp_path / "small.toml"
    file.write_text(SMALL.replace("60KB", "20MB").replace("keep_captures = true", ""))
    before = Snapshot.take()
    command = [*PLAIT, "run", str(file), "--out", str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True, bufsize=1) as child:
        assert child.stderr is not None
        seen = ""
        deadline = time.monotonic() + 60
        while "ready after" not in seen and time.monotonic() < deadline:
            if select.select([child.stderr], [], [], 1.0)[0]:
                seen += child.stderr.readline()
        # The captures begin with the first workload, which takes 8 s or more.
        while not list(tmp_path.glob("*/*.pcap")) and time.monotonic() < deadline:
            assert child.poll() is None, seen
            select.select([], [], [], 0.05)
        child.send_signal(signal.SIGINT)
        seen += child.stderr.read()
        assert child.wait(30) == 130, seen
    assert "interrupted; everything was removed" in seen
    assert "Traceback" not in seen
    assert Snapshot.take() - before == []
    assert [path for path in tmp_path.iterdir() if path.is_dir()] == []


def test_a_mistake_is_told_before_anything_is_made(tmp_path: Path) -> None:
    file = tmp_path / "small.toml"
    file.write_text(SMALL.replace("load = 0.3", "laod = 0.3"))
    result = plait("run", str(file), "--out", str(tmp_path / "out"))
    assert result.returncode == 2
    assert result.stderr == f"plait: {file}: [[workload]] 2: load is missing; it is a number from 0.01 to 2.\n"
    assert not (tmp_path / "out").exists()
