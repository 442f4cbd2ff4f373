"""The daemon as a process and a server: bad requests, bad configurations, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rdma.protocol import LINE_MAX
from rdma.tests.lab import ROOT, Lab, eventually, lab
from rdma.verbs import Device, VerbsError


def ask(path: Path, *lines: bytes) -> list[dict[str, Any]]:
    with socket.socket(socket.AF_UNIX) as raw:
        raw.connect(str(path))
        raw.sendall(b"".join(line + b"\n" for line in lines))
        received = b""
        while received.count(b"\n") < len(lines):
            chunk = raw.recv(LINE_MAX)
            if not chunk:
                break
            received += chunk
    return [json.loads(line) for line in received.splitlines()]


BAD = {
    b"not json": "BAD_JSON",
    b"[1]": "BAD_JSON",
    b"\xff\xfe": "BAD_JSON",
    b"[" * 5000: "BAD_JSON",
    b"{}": "BAD_VALUE",
    b'{"id": "x", "op": "open"}': "BAD_VALUE",
    b'{"id": 1}': "UNKNOWN_OP",
    b'{"id": 1, "op": ["open"]}': "UNKNOWN_OP",
    b'{"id": 1, "op": "close"}': "UNKNOWN_OP",
    b'{"id": 1, "op": "open", "extra": 1}': "BAD_MEMBER",
    b'{"id": 1, "op": "reg_mr"}': "BAD_VALUE",
    b'{"id": 1, "op": "reg_mr", "pd": 1, "length": -1, "access": 1}': "BAD_VALUE",
    b'{"id": 1, "op": "reg_mr", "pd": 1, "length": 1, "access": 1}': "NOT_FOUND",
    b'{"id": 1, "op": "reg_mr", "pd": true, "length": 1, "access": 1}': "BAD_VALUE",
    b'{"id": 1, "op": "create_cq", "cqe": 1e3}': "BAD_VALUE",
    b'{"id": 1, "op": "create_cq", "cqe": 99999999999999999999999}': "BAD_VALUE",
    b'{"id": 1, "op": "destroy_qp", "qpn": 5}': "NOT_FOUND",
    b'{"id": 1, "op": "poll_cq", "cq": 0, "max": 1}': "NOT_FOUND",
    b'{"id": 1, "op": "post_send", "qpn": 5, "requests": {}}': "BAD_VALUE",
    b'{"id": 1, "op": "post_send", "qpn": 5, "requests": [{}]}': "BAD_VALUE",
    b'{"id": 1, "op": "post_send", "qpn": 5, "requests": []}': "NOT_FOUND",
    b'{"id": 1, "op": "post_recv", "qpn": 5, "receives": []}': "NOT_FOUND",
    b'{"id": 1, "op": "post_srq_recv", "srq": 5, "receives": []}': "NOT_FOUND",
    b'{"id": 1, "op": "post_srq_recv", "srq": 5, "receives": [{"wr_id": 1}]}': "BAD_VALUE",
    b'{"id": 1, "op": "create_srq", "pd": 1, "max_wr": 65537}': "BAD_VALUE",
    b'{"id": 1, "op": "destroy_srq", "srq": 5}': "NOT_FOUND",
}


def test_bad_requests_get_a_named_error(direct: Lab) -> None:
    replies = ask(direct.socket(1), *BAD)
    assert [reply["error"] for reply in replies] == list(BAD.values())
    assert all(reply["message"] for reply in replies)
    assert ask(direct.socket(1), b'{"id": 7, "op": "alloc_pd"}')[0]["id"] == 7


def test_a_line_without_end_is_cut_off(direct: Lab) -> None:
    with socket.socket(socket.AF_UNIX) as raw:
        raw.connect(str(direct.socket(1)))
        try:
            raw.sendall(b"x" * (3 * LINE_MAX))
            received = raw.recv(LINE_MAX)
        except ConnectionError:
            received = b""
        assert not received or json.loads(received)["error"] == "TOO_LONG"
    assert direct.device(1).name == "h1"


def test_others_things_do_not_exist(direct: Lab) -> None:
    pair = direct.pair(4096)
    stranger = direct.device(1)
    for op, members in {
        "destroy_qp": {"qpn": pair.qps[0].qp_num},
        "query_qp": {"qpn": pair.qps[0].qp_num},
        "dereg_mr": {"key": pair.regions[0].lkey},
        "destroy_cq": {"cq": pair.cqs[0].handle},
        "dealloc_pd": {"pd": pair.pds[0].handle},
    }.items():
        with pytest.raises(VerbsError, match="NOT_FOUND"):
            stranger.call(op, **members)
    with pytest.raises(VerbsError, match="EBUSY"):
        pair.pds[0].dealloc()
    with pytest.raises(VerbsError, match="EBUSY"):
        pair.cqs[0].destroy()
    for qp in pair.qps:
        qp.destroy()
    pair.cqs[0].destroy()


def test_what_a_queue_pair_has_chosen_is_not_changed_by_a_request_that_fails(direct: Lab) -> None:
    pair = direct.pair(64, rtr={"slots": 16})
    peer, qpn = direct.device(2), pair.qps[0].qp_num
    with pytest.raises(VerbsError, match="EISCONN"):
        pair.qps[0].modify_rtr(1, peer.ipv4, 0, dest_mac=peer.mac, slots=256, congestion="none")
    (chosen,) = (one for one in direct.device(1).call("queue_pairs")["queue_pairs"] if one["qpn"] == qpn)
    assert (chosen["slots"], chosen["congestion"]) == (16, "window")


def test_dcqcn_needs_a_rate(direct: Lab) -> None:
    with pytest.raises(VerbsError, match="dcqcn needs a host with a rate_bps of at least 1,000,000"):
        direct.pair(64, rtr={"congestion": "dcqcn"})


def test_the_socket_is_its_users_own(direct: Lab) -> None:
    assert direct.socket(1).stat().st_mode & 0o777 == 0o600


def test_numbers_do_not_follow_each_other(direct: Lab) -> None:
    device = direct.device(1)
    pd, cq = device.alloc_pd(), device.create_cq()
    qpns = [pd.create_qp(cq).qp_num for _ in range(20)]
    keys = [pd.reg_mr(4096).rkey for _ in range(20)]
    for numbers in (qpns, keys):
        assert len(set(numbers)) == 20
        assert len({b - a for a, b in zip(numbers, numbers[1:], strict=False)}) > 15


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_nothing_stays_attached(folder: Path, number: signal.Signals) -> None:
    with lab(folder) as made:
        assert made.xdp_attached() == [True, True]
        client = made.device(1)
        made.daemon.send_signal(number)
        assert made.daemon.wait(10) == (-9 if number == signal.SIGKILL else 0)
        assert eventually(lambda: made.xdp_attached() == [False, False])
        if number != signal.SIGKILL:
            assert not list(folder.glob("*.sock"))
        with pytest.raises(VerbsError, match="DISCONNECTED"):
            client.counters()


def run_daemon(config: object, folder: Path) -> subprocess.CompletedProcess[str]:
    path = folder / "bad.json"
    path.write_text(config if isinstance(config, str) else json.dumps(config))
    command = [sys.executable, "-m", "rdma.daemon", "--config", str(path)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=20)


HOST = {"name": "h1", "netns": "plait-none", "interface": "v0", "ipv4": "10.0.0.1", "mac": "02:00:00:00:00:01"}


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ("{", "not JSON"),
        ([], "expected an object"),
        ({"hosts": []}, "missing key 'run_dir'"),
        ({"hosts": [], "run_dir": "x"}, "'hosts' is empty"),
        (
            {"hosts": [HOST], "run_dir": "x", "memory_byte": 5},
            "unknown key 'memory_byte'; did you mean 'memory_bytes'?",
        ),
        ({"hosts": [HOST], "run_dir": "x", "mtu": 1000}, "'mtu' must be one of 256, 512, 1024, 2048, 4096"),
        ({"hosts": [HOST, HOST], "run_dir": "x"}, "two hosts have the name 'h1'"),
        ({"hosts": [{**HOST, "ipv4": "10.0.0"}], "run_dir": "x"}, "hosts[0]: 'ipv4' is not an address"),
        ({"hosts": [{**HOST, "pid": 1}], "run_dir": "x"}, "give either 'pid' or 'netns'"),
        ({"hosts": [{**HOST, "rate_bps": -1}], "run_dir": "x"}, "'rate_bps' must be"),
        ({"hosts": [{"name": "h1"}], "run_dir": "x"}, "hosts[0]: missing key 'interface'"),
    ],
)
def test_a_bad_configuration_is_one_sentence(tmp_path: Path, config: object, says: str) -> None:
    result = run_daemon(config, tmp_path)
    assert result.returncode == 2
    assert says in result.stderr and result.stderr.startswith("error: ")
    assert len(result.stderr.splitlines()) == 1 and not result.stdout


def test_a_host_that_is_not_there(folder: Path) -> None:
    result = run_daemon({"hosts": [HOST], "run_dir": str(folder)}, folder)
    assert result.returncode == 1
    assert "network namespace 'plait-none': No such file" in result.stderr


def test_a_transport_that_is_not_there(folder: Path) -> None:
    with pytest.raises(RuntimeError, match="ended with 1"), lab(folder, transport="tcp"):
        pass


def test_an_interface_that_is_too_small(folder: Path) -> None:
    with pytest.raises(RuntimeError, match="ended with 1"), lab(folder, mtu=2048):
        pass


def test_no_agent(tmp_path: Path) -> None:
    with pytest.raises(VerbsError, match="no agent at"):
        Device.open(os.fspath(tmp_path / "none.sock"))
