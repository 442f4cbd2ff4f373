"""Packets through a whole fabric: hosts, switches and controller, on plait-switch and on BMv2.  Needs root."""

import asyncio
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("mininet", reason="Mininet is not installed")

from controller.control import Program, install  # noqa: E402
from controller.counters import read_port_counters  # noqa: E402
from mininet_topos.fattree import fattree  # noqa: E402
from mininet_topos.network import LabNetwork  # noqa: E402

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
    pytest.mark.usefixtures("only_network"),
]

ROOT = Path(__file__).resolve().parents[2]


def _plait():
    if not list((ROOT / "engine" / "_build").glob("_engine*.so")) or not importlib.util.find_spec("cffi"):
        pytest.skip("the engine is not built: `make build`")
    return {"target": "plait", "switch_command": [sys.executable, "-m", "fastswitch.daemon"]}


def _bmv2():
    if not shutil.which("simple_switch_grpc"):
        pytest.skip("simple_switch_grpc (BMv2) is not on PATH")
    return {"target": "bmv2"}


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    p4front = pytest.importorskip("p4front.driver")
    folder = tmp_path_factory.mktemp("program")
    compiled = p4front.compile_file(ROOT / "p4src" / "ecmp.p4")
    made = Program(folder / "ecmp.p4info.txtpb", folder / "ecmp.json")
    made.p4info.write_text(compiled.p4info_text)
    made.json.write_text(compiled.json_text)
    return made


@pytest.fixture(params=[_plait, _bmv2], ids=["plait", "bmv2"])
def net(request, tmp_path, program, monkeypatch, only_network):
    """A 4-ary fat-tree, up and routed."""
    monkeypatch.chdir(ROOT)
    topology = fattree(4, 100_000_000, 50_000)
    with LabNetwork(topology, lab="live test", run_dir=tmp_path, **request.param()) as network:
        asyncio.run(install(topology, network.targets, program))
        yield network


def received(net, src, dst, *options):
    shown = net[src].cmd("ping", "-n", "-q", "-i", "0.02", *options, net[dst].IP())
    found = re.search(r"(\d+) received", shown)
    assert found, shown
    return int(found.group(1))


def test_every_host_reaches_every_host(net):
    assert net.pingAll(timeout="1") == 0


# Every flow has a source port of its own, so that its hash is its own.
SENDER = """
import socket, sys, time
for port in range(20000, 20400):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind(("", port))
        s.sendto(b"x" * 64, (sys.argv[1], 9))
    time.sleep(0.001)  # all at once would fill BMv2's queues
"""


def test_flows_spread_over_all_paths(net, tmp_path):
    script = tmp_path / "sender.py"
    script.write_text(SENDER)
    assert net["h1"].cmd(sys.executable, script, net["h16"].IP()) == ""
    cores = [switch.name for switch in net.topology.switches if switch.layer == "core"]

    def carried():
        counted = asyncio.run(read_port_counters(net.targets))
        return [sum(port.rx_packets for port in counted[core].values()) for core in cores]

    _until(lambda: sum(carried()) >= 400)
    # Four cores, 100 flows each on average; 40 off is more than four standard deviations (8.7).
    assert all(60 < packets < 140 for packets in carried()), carried()


def test_a_link_that_is_down_carries_nothing_and_works_again(net):
    edge = net.topology.host_port("h1").node.name
    assert received(net, "h1", "h2", "-c", "3") == 3
    net.configLinkStatus(edge, "h1", "down")
    assert received(net, "h1", "h2", "-c", "3", "-W", "0.3") == 0
    net.configLinkStatus(edge, "h1", "up")
    assert received(net, "h1", "h2", "-c", "3", "-W", "1") == 3


def test_the_controller_routes_around_a_failed_link(net, program):
    edge = net.topology.host_port("h1").node.name
    aggregation = net.topology.neighbors(edge)[-1].node.name
    net.configLinkStatus(edge, aggregation, "down")
    left = net.topology.without(net.topology.links_between(edge, aggregation))
    report = asyncio.run(install(left, net.targets, program))
    # A neighbour and a marking curve at either end are gone, all else that is written is groups with other members.
    assert (report.inserted, report.deleted) == (0, 4) and 0 < report.modified < 100
    assert net.pingAll(timeout="1") == 0
    net.configLinkStatus(edge, aggregation, "up")
    report = asyncio.run(install(net.topology, net.targets, program))
    assert (report.inserted, report.deleted) == (4, 0)
    assert net.pingAll(timeout="1") == 0


def test_delay_of_the_links_is_felt_on_plait_switch(tmp_path, program, monkeypatch):
    monkeypatch.chdir(ROOT)
    topology = fattree(2, 100_000_000, 5_000_000)
    with LabNetwork(topology, lab="live test", run_dir=tmp_path, **_plait()) as network:
        asyncio.run(install(topology, network.targets, program))
        shown = network["h1"].cmd("ping -n -q -c 3 -i 0.1", network["h2"].IP())
    least_ms = float(re.search(r"= ([\d.]+)/", shown).group(1))
    # Six links, there and back; whatever is more is scheduling.
    assert 60 <= least_ms < 120


KILLED = """
import sys
from pathlib import Path
from mininet_topos.fattree import fattree
from mininet_topos.network import LabNetwork
net = LabNetwork(fattree(2, 10**8, 1000), lab="killed test", run_dir=Path(sys.argv[1]), switch_command=sys.argv[2:])
net.start()
print("up", net.hosts[0].pid, *[child.pid for child in net.runner.children], flush=True)
input()
"""


def test_hosts_and_interfaces_do_not_survive_a_killed_laboratory(tmp_path):
    stand_in = [sys.executable, str(Path(__file__).with_name("stand_in_switch.py")), "serve"]
    command = [sys.executable, "-c", KILLED, str(tmp_path), *stand_in]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as lab:
        word, host, switch = lab.stdout.readline().split()
        assert word == "up" and Path("/sys/class/net/s4-eth1").exists()
        lab.kill()
    try:
        _until(lambda: not Path("/proc", host).exists() and not Path("/sys/class/net/s4-eth1").exists())
        # The switch process is left to whoever cleans up: it is marked.
        assert b"PLAIT_LAB=killed test" in Path("/proc", switch, "environ").read_bytes()
    finally:
        os.kill(int(switch), signal.SIGTERM)


def _until(condition, timeout_s=5.0):
    end = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end, "not in time"
        time.sleep(0.05)
