"""Eunomia's memory experiment: what it draws, measures and claims."""

import csv
import json
import random
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import ebpf
import lab
from ebpf.c_module import BuildError, CModule
from lab import reproduce_eunomia as experiment
from lab.cli import app
from lab.errors import MissingFeatureError, UsageError


@pytest.mark.parametrize("degree", [0, 10, 100])
def test_each_packet_arrives_once_and_no_further_ahead_than_the_degree(degree: int) -> None:
    order = experiment.arrivals(degree, 512, random.Random(1))
    assert sorted(order) == list(range(512))
    came: set[int] = set()
    first_missing = 0
    for number in order:
        assert number - first_missing < max(1, 2.56 * degree)
        came.add(number)
        while first_missing in came:
            first_missing += 1


def test_no_reordering_takes_no_memory() -> None:
    record = experiment.measure(share=0, degree=100, seed=1, packets=64)
    assert (record.bitmap_bytes, record.metadata_bytes, record.peak_bytes) == (0, 0, 0)
    assert record.address_bytes == 80


def test_all_connections_at_the_cap() -> None:
    """Twenty times 24 blocks of metadata and 16 of bitmap, plus side rows of messages that ended out of order."""
    record = experiment.measure(share=100, degree=100, seed=1)
    assert 20 * 80 <= record.peak_bytes <= 20 * (80 + 6)
    assert 0.9 * 640 < record.bitmap_bytes < 640
    assert 0.9 * 20 * 48 < record.metadata_bytes <= 20 * 48
    assert record.total_bytes == record.bitmap_bytes + record.metadata_bytes
    assert experiment.at_cap() == 80


def test_where_a_line_crosses_a_level() -> None:
    assert experiment.crossing({0: 0.0, 50: 10.0, 100: 30.0}, 20) == 75
    assert experiment.crossing({0: 0.0, 100: 5.0}, 20) is None


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiment, "SHARES", (0, 50, 60, 70, 100))
    monkeypatch.setattr(experiment, "SEEDS", 1)
    result = CliRunner().invoke(app, ["reproduce", "eunomia/memory", "--out", str(tmp_path), "--json"])
    assert result.exit_code == 0, result.output
    printed = json.loads(result.stdout)
    assert all(statement["holds"] for statement in printed["statements"]), printed
    folder = Path(printed["out"])
    names = {path.name for path in folder.iterdir()}
    assert names == {"memory.csv", "memory.png", "memory.svg", "units.json", "summary.json"}
    with (folder / "memory.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 5 * 10
    assert set(json.loads((folder / "units.json").read_text())) == set(rows[0])


def test_no_compiler_is_said_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise BuildError("no C compiler: cc is not there; install gcc or set CC")

    monkeypatch.setattr(CModule, "build", refuse)
    for name in ("ebpf.hd_native", "lab.reproduce_eunomia"):
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr(lab, "reproduce_eunomia")
    monkeypatch.delattr(ebpf, "hd_native")
    result = CliRunner().invoke(app, ["reproduce", "eunomia/memory"])
    assert isinstance(result.exception, MissingFeatureError)
    assert str(result.exception) == "no C compiler: cc is not there; install gcc or set CC"


def test_an_unknown_figure_is_refused_by_name() -> None:
    result = CliRunner().invoke(app, ["reproduce", "eunomia/speed"])
    assert isinstance(result.exception, UsageError)
    assert str(result.exception) == "no figure named 'eunomia/speed'; there are: eunomia/memory."
