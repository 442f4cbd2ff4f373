"""The benchmarks' JSON keys, which stay; their figures are not tested, since timing on a shared machine is no test."""

import json
import shutil

from tests.conftest import needs_root, plait

pytestmark = needs_root


def test_switch() -> None:
    result = plait("bench", "switch", "--json", "--seconds", "0.3")
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    veth, memory = report["veth"], report["memory"]
    assert veth.keys() >= {"pps", "bare_pps", "ratio", "bmv2_pps", "bmv2_ratio"}
    assert veth["pps"] > 0 and veth["bare_pps"] > 0
    assert (veth["bmv2_pps"] is None) == (shutil.which("simple_switch_grpc") is None)
    assert memory["packet_hops_per_s"] > 0


def test_nic() -> None:
    result = plait("bench", "nic", "--json")
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["empty_ns"] > 0
    assert report["transports"]["gbn"].keys() >= {"in_order_ns", "out_of_order_ns"}
    assert report["transports"]["gbn"]["in_order_ns"] > report["empty_ns"]
