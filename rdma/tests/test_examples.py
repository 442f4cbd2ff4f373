"""The programs of examples/, each with its two sides, and what they say when they cannot."""

from __future__ import annotations

import re
import socket
import subprocess
import sys

import pytest

from rdma.tests.lab import ROOT, Lab

EXAMPLES = ("pingpong", "kv_get", "write_bw")


def command(name: str, *words: str) -> list[str]:
    return [sys.executable, str(ROOT / "examples" / f"{name}.py"), *words]


def free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return str(probe.getsockname()[1])


def play(lab: Lab, name: str, *words: str, client: tuple[str, ...] = ()) -> tuple[str, str]:
    """What the server's side and the client's side print."""
    port = free_port()
    ends = [[*command(name, *words), "--device", str(lab.socket(host)), "--port", port] for host in (1, 2)]
    server = subprocess.Popen(ends[0], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        asked = subprocess.run([*ends[1], *client, "127.0.0.1"], capture_output=True, text=True, timeout=60)
        served = server.communicate(timeout=60)[0]
    finally:
        server.kill()
        server.wait()
    assert asked.returncode == 0, asked.stderr + served
    assert server.returncode == 0, served
    return served, asked.stdout


def test_ping_pong(direct: Lab) -> None:
    for printed in play(direct, "pingpong", "--size", "2000", "--iters", "60"):
        names, values = printed.splitlines()
        assert names.split() == ["#bytes", "#iterations", "t_min[usec]", "t_typical", "t_avg", "99%"]
        size, iterations, *times = map(float, values.split())
        assert (size, iterations) == (2000, 60) and 0 < times[0] <= times[1] <= times[3]


def test_gets_by_one_sided_reads(direct: Lab) -> None:
    served, asked = play(direct, "kv_get", "--keys", "300", client=("--gets", "100"))
    assert served == "served 300 keys in 600 slots of 64 bytes\n"
    assert re.match(r"100 GETs right, [123]\.\d\d READs a GET\n\d+ GETs/s, median [\d.]+ usec\n$", asked)


def test_bandwidth(direct: Lab) -> None:
    words = ("--size", "30000", "--iters", "40", "--qp", "3", "--tx-depth", "8")
    served, asked = play(direct, "write_bw", *words)
    assert served == ""
    names, values = asked.splitlines()
    assert re.split(r"\s{2,}", names.strip()) == [
        *("#bytes", "#iterations", "BW peak[MiB/sec]", "BW average[MiB/sec]", "MsgRate[Mpps]")
    ]
    size, iterations, peak, average, rate = map(float, values.split())
    assert (size, iterations) == (30000, 40) and peak >= average > 0
    assert average == pytest.approx(rate * 1e6 * 30000 / 2**20, rel=0.01)


@pytest.mark.parametrize("name", EXAMPLES)
def test_each_has_a_help(name: str) -> None:
    shown = subprocess.run(command(name, "--help"), capture_output=True, text=True, check=True).stdout
    assert "--device" in shown and f"plait h2 .venv/bin/python examples/{name}.py h1" in shown


@pytest.mark.parametrize(
    ("name", "words", "code", "says"),
    [
        ("pingpong", ("--device", "/none.sock"), 1, "error: no agent at /none.sock: No such file or directory"),
        ("write_bw", ("--qp", "0"), 2, "error: --qp must be at least 1"),
        ("kv_get", ("--keys", "x"), 2, "argument --keys: invalid int value: 'x'"),
    ],
)
def test_mistakes_are_one_line(name: str, words: tuple[str, ...], code: int, says: str) -> None:
    result = subprocess.run(command(name, *words), capture_output=True, text=True)
    assert result.returncode == code
    assert says in result.stderr and "Traceback" not in result.stderr


def test_sides_that_differ(direct: Lab) -> None:
    port = free_port()
    ends = [
        [*command("pingpong", "--iters", str(5 + host)), "--device", str(direct.socket(host)), "--port", port]
        for host in (1, 2)
    ]
    server = subprocess.Popen(ends[0], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    asked = subprocess.run([*ends[1], "127.0.0.1"], capture_output=True, text=True, timeout=60)
    served = server.communicate(timeout=60)[0]
    for printed in (asked.stderr, served):
        assert "both sides need the same --size and --iters" in printed
