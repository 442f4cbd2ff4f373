"""The keys of `plait bench control`; its figures are not tested, since timing on a shared machine is no test."""

import shutil
from pathlib import Path

import pytest

from lab import bench_control
from lab.errors import PlaitError


def test_small_run() -> None:
    said: list[str] = []
    result = bench_control.run(said.append, entries=1_500, rounds=1, k=4, launches=())
    assert result.keys() == {
        "inserts_per_s",
        "bmv2_inserts_per_s",
        "pipeline_cold_s",
        "pipeline_warm_s",
        "fabric80_start_s",
        "fabric80_rss_mb",
        "ksp80_s",
        "ksp80_from_disk_s",
        "k4_first_byte_s",
        "k8_launch_s",
        "k8_tables_s",
        "k8_rss_mb",
        "repair_s",
        "launches",
        "conditions",
    }
    assert (result["bmv2_inserts_per_s"] is None) == (shutil.which("simple_switch_grpc") is None)
    assert all(value > 0 for value in result.values() if isinstance(value, float))
    of_laboratories = ("k4_first_byte_s", "k8_launch_s", "k8_tables_s", "k8_rss_mb", "repair_s")
    assert all(result[key] is None for key in of_laboratories)
    conditions = result["conditions"]
    assert (conditions["batch"], conditions["inserts"], conditions["rounds"]) == (1_000, 1_500, 1)
    assert (conditions["switches"], conditions["links"]) == (20, 32)
    text = bench_control.explain(result)
    assert "batches of 1,000" in text and "20 switches in one process" in text
    assert "no laboratories: they need root" in text
    assert len(said) == 4


def test_a_switch_that_does_not_come_up_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_control, "_PLAIT", ("sh", "-c", "echo no such luck >&2; exit 1", "sh"))
    with (
        pytest.raises(PlaitError, match="the switch did not come up: no such luck"),
        bench_control._one("plait", tmp_path, {}),
    ):
        pass
