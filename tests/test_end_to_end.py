"""The whole path: P4 source to bytes in the destination's memory."""

import csv
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import ROOT, needs_root, plait
from tests.leftovers import Snapshot

pytestmark = needs_root

TRANSFER_KEYS = {"src", "dst", "bytes", "seconds", "goodput_bps", "retransmissions", "paths", "sha256_equal"}


def run_demo(tmp_path: Path, *arguments: str) -> tuple[dict, Path]:
    before = Snapshot.take()
    result = plait("demo", "--json", "--out", str(tmp_path), *arguments)
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["ok"] is True
    for transfer in report["transfers"]:
        assert transfer.keys() >= TRANSFER_KEYS
        assert transfer["sha256_equal"] is True
        assert transfer["paths"] >= 1
    assert Snapshot.take() - before == []
    return report, Path(report["out"])


def rows(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def test_the_interpreter_crosses_the_fat_tree(tmp_path: Path) -> None:
    report, folder = run_demo(tmp_path)
    assert len(report["transfers"]) == 4  # one a pod
    sources = {transfer["src"] for transfer in report["transfers"]}
    assert len(sources) == 4
    for name in ("config.json", "transfers.csv", "links.csv", "ports.csv", "units.json", "topology.png", "report.html"):
        assert (folder / name).stat().st_size > 0, name
    captures = sorted(folder.glob("*.pcap"))
    assert len(captures) == 2
    for capture in captures:
        inspected = plait("inspect", str(capture), "--count", "20", "--json")
        assert inspected.returncode == 0, inspected.stderr
        assert "RC_WRITE" in inspected.stdout
        if shutil.which("tcpdump"):
            shown = subprocess.run(
                ["tcpdump", "-nr", str(capture), "-c", "5"], capture_output=True, text=True, check=True
            )
            assert ".4791: UDP" in shown.stdout
    page = (folder / "report.html").read_text()
    assert "http://" not in page and "https://" not in page and "<script src" not in page
    # Every data packet of a transfer leaves its host's link once, and again if it was sent again.
    for transfer, record in zip(report["transfers"], rows(folder / "transfers.csv"), strict=True):
        host_link = next(row for row in rows(folder / "links.csv") if row["source"] == transfer["src"])
        assert int(host_link["packets"]) >= int(record["packets_sent"])
    # The P4 program counted what the links carried: its counters and the engine's know nothing of each other.
    left = {}
    for row in rows(folder / "ports.csv"):
        left[row["switch"]] = left.get(row["switch"], 0) + int(row["tx_packets"])
    carried: dict[str, int] = {}
    for row in rows(folder / "links.csv"):
        if row["source"].startswith("s"):
            carried[row["source"]] = carried.get(row["source"], 0) + int(row["packets"])
    carried = {name: count for name, count in carried.items() if count}
    assert carried.keys() == left.keys()
    # It is read a moment later: what was sent again in vain may still have been under way, a window a transfer at most.
    assert all(0 <= left[name] - count <= 200 for name, count in carried.items())


@pytest.mark.parametrize("arguments", [["--loss", "0.01"], ["--links", "veth", "--k", "2"]])
def test_variants(tmp_path: Path, arguments: list[str]) -> None:
    small = tmp_path / "small.bin"
    small.write_bytes(bytes(index * 7919 % 251 for index in range(1_500_001)))
    report, folder = run_demo(tmp_path, "--file", str(small), *arguments)
    lost = sum(int(row["drops_loss"]) for row in rows(folder / "links.csv"))
    again = sum(transfer["retransmissions"] for transfer in report["transfers"])
    if "--loss" in arguments:
        assert lost > 0
        assert again > 0
    else:
        assert lost == 0


def test_bmv2_or_one_sentence_why_not(tmp_path: Path) -> None:
    missing = [name for name in ("simple_switch_grpc", "p4c-bm2-ss") if shutil.which(name) is None]
    if not missing:
        small = tmp_path / "small.bin"
        small.write_bytes(bytes(range(256)) * 512)
        run_demo(tmp_path, "--target", "bmv2", "--rate", "10M", "--file", str(small))
        return
    result = plait("demo", "--target", "bmv2", "--out", str(tmp_path))
    assert result.returncode == 3
    assert result.stderr.count("\n") == 1
    assert f"{missing[0]} is not on PATH" in result.stderr
    pytest.skip(f"{' and '.join(missing)} not on PATH: only the message was tested")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--k", "3"], "k: must be even and from 2 to"),
        (["--file", "/nonexistent"], "cannot read --file /nonexistent: No such file or directory."),
        (["--file", "/dev/null"], "--file /dev/null is empty: there is nothing to send."),
        (["--rate", "fast"], "rate: 'fast' is not a rate such as 100M"),
        (["--target", "tofino"], "--target 'tofino': known are plait, bmv2."),
        (["--links", "carrier-pigeon"], "--links 'carrier-pigeon': known are memory, veth."),
        (["--program", "/nonexistent.p4"], "/nonexistent.p4"),
        (["--out", "/dev/null/x"], "/dev/null is not a folder that can be written."),
    ],
)
def test_a_users_mistake_gets_one_clear_line(tmp_path: Path, arguments: list[str], message: str) -> None:
    result = plait("demo", "--out", str(tmp_path), *arguments)
    assert result.returncode != 0
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_error_in_the_program_is_shown_as_p4c_would(tmp_path: Path) -> None:
    source = tmp_path / "wrong.p4"
    source.write_text(
        (ROOT / "p4src" / "ecmp.p4")
        .read_text()
        .replace('"include/', f'"{ROOT}/p4src/include/')
        .replace('"lb/', f'"{ROOT}/p4src/lb/')
        .replace('"aqm/', f'"{ROOT}/p4src/aqm/')
        .replace("hdr, meta, standard_metadata, routable", "hdr, meta, standard_metadata, routible")
    )
    line = next(number for number, text in enumerate(source.read_text().splitlines(), 1) if "routible" in text)
    result = plait("demo", "--program", str(source), "--out", str(tmp_path / "out"))
    assert result.returncode == 1
    message, quoted, carets = result.stderr.splitlines()[:3]
    assert message.startswith(f"{source}({line}:")
    assert "routible" in message
    assert carets.strip("^ ") == ""
    assert "^" in carets
    assert quoted[carets.index("^") :].startswith("routible")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("target", ["plait", "bmv2"])
def test_a_program_that_names_every_queue_loses_nothing(tmp_path: Path, target: str) -> None:
    """srpt gives acknowledgements the highest of eight priorities; without that queue they would be dropped."""
    if target == "bmv2" and not (shutil.which("simple_switch_grpc") and shutil.which("p4c-bm2-ss")):
        pytest.skip("simple_switch_grpc and p4c-bm2-ss not on PATH")
    small = tmp_path / "small.bin"
    small.write_bytes(bytes(range(256)) * 400)
    program = str(ROOT / "p4src" / "srpt.p4")
    report, _ = run_demo(tmp_path, "--file", str(small), "--k", "2", "--program", program, "--target", target)
    assert report["ok"]
