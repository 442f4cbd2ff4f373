"""The benchmarks' JSON keys, which stay; their figures are not tested, since timing on a shared machine is no test."""

import json
import shutil
from pathlib import Path

from lab.nics import TRANSPORTS
from tests.conftest import needs_root, plait

pytestmark = needs_root


def test_switch(tmp_path: Path) -> None:
    result = plait("bench", "switch", "--json", "--seconds", "0.3", "--program", "ecmp", "--out", str(tmp_path))
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    veth, memory = report["veth"], report["memory"]
    assert veth.keys() >= {"pps", "bare_pps", "ratio", "bmv2_pps", "bmv2_ratio"}
    assert veth["pps"] > 0 and veth["bare_pps"] > 0
    assert (veth["bmv2_pps"] is None) == (shutil.which("simple_switch_grpc") is None)
    assert memory["packet_hops_per_s"] > 0
    assert memory["packet_hops_per_cpu_s"] > 0
    curves = report["curves"]
    assert {kind: [size for size, _ in points] for kind, points in curves["entries"].items()} == dict.fromkeys(
        ("exact", "lpm", "ternary"), [10, 100, 1_000, 10_000, 100_000]
    )
    assert [count for count, _ in curves["switches"]] == [1, 5, 20, 45, 80]
    assert all(cost > 0 for points in [*curves["entries"].values(), curves["switches"]] for _, cost in points)
    assert report["programs"]["ecmp"]["ratio_to_ecmp"] == 1
    assert all(Path(path).is_relative_to(tmp_path) and Path(path).exists() for path in report["pictures"])


def test_switch_names_the_programs_there_are() -> None:
    result = plait("bench", "switch", "--program", "ecpm")
    assert result.returncode == 2
    assert "--program 'ecpm': known are " in result.stderr and "ecmp" in result.stderr


def test_nic() -> None:
    result = plait("bench", "nic", "--megabytes", "4", "--json")
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["empty_ns"] > 0
    assert report["transports"]["gbn"].keys() >= {"in_order_ns", "out_of_order_ns"}
    assert report["transports"]["gbn"]["in_order_ns"] > report["empty_ns"]
    streams = report["stream"]["streams"]
    assert streams.keys() == set(TRANSPORTS)
    assert all(stream["goodput_bps"] > 0 for stream in streams.values())
    assert [count for count, *_ in report["stream"]["queue_pairs"]] == [1, 10, 100, 1000]
