"""Mininet networks of namespaces and veth pairs, with a stand-in for the switch process.  Needs root and Mininet."""

import io
import json
import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("mininet", reason="Mininet is not installed")

from mininet.cli import CLI  # noqa: E402
from mininet.log import lg  # noqa: E402

from mininet_topos.fattree import fattree  # noqa: E402
from mininet_topos.network import LabNetwork  # noqa: E402
from mininet_topos.system import LAB_GROUP, NetworkError, ip_batch, network_namespace  # noqa: E402
from mininet_topos.tests.examples import dumbbell  # noqa: E402
from mininet_topos.topology import Link, Node, Topology  # noqa: E402

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")

STAND_IN = str(Path(__file__).with_name("stand_in_switch.py"))


def stand_in(behaviour="serve"):
    return [sys.executable, STAND_IN, behaviour]


def network(tmp_path, topology=None, behaviour="serve", **more):
    more.setdefault("switch_command", stand_in(behaviour))
    return LabNetwork(topology or dumbbell(), lab="test lab", run_dir=tmp_path, **more)


def root_interfaces():
    return sorted(name for name in os.listdir("/sys/class/net") if "-eth" in name)


def group_members():
    shown = subprocess.run(["ip", "-o", "link", "show", "group", str(LAB_GROUP)], capture_output=True, text=True)
    return len(shown.stdout.splitlines())


@pytest.fixture
def nothing_left():
    before = root_interfaces()
    yield
    assert root_interfaces() == before
    assert group_members() == 0


@needs_root
@pytest.mark.usefixtures("only_network", "nothing_left")
class TestUp:
    def test_hosts_are_set_up(self, tmp_path):
        with network(tmp_path) as net:
            h1 = net["h1"]
            assert "h1-eth0" in h1.cmd("ip -br address") and "10.0.1.2/24" in h1.cmd("ip -br address")
            assert h1.cmd("ip route").split("\n")[0].startswith("default via 10.0.1.1 dev h1-eth0")
            # Even a host of the same network is behind the gateway.
            assert "via 10.0.1.1" in h1.cmd("ip route get 10.0.1.3")
            assert "10.0.1.1 dev h1-eth0 lladdr 06:00:00:01:00:01 PERMANENT" in h1.cmd("ip neigh")
            assert "02:00:0a:00:01:02" in h1.cmd("cat /sys/class/net/h1-eth0/address")
            assert "inet6" not in h1.cmd("ip address show h1-eth0")
            offloads = h1.cmd("ethtool -k h1-eth0")
            for feature in (
                "tx-checksumming",
                "rx-checksumming",
                "tcp-segmentation-offload",
                "generic-receive-offload",
            ):
                assert f"{feature}: off" in offloads
            assert h1.cmd("echo $PLAIT_LAB").strip() == "test lab"
            assert (tmp_path / "fabric.lab").read_text() == "test lab"
            assert net.nic_hosts()[0] == {
                "name": "h1",
                "pid": h1.pid,
                "interface": "h1-eth0",
                "ipv4": "10.0.1.2",
                "mac": "02:00:0a:00:01:02",
                "gateway_mac": "06:00:00:01:00:01",
                "rate_bps": 10**9,
            }

    def test_switch_interfaces_are_set_up(self, tmp_path):
        with network(tmp_path) as net:
            assert root_interfaces() == sorted(net.interfaces) == ["s1-eth1", "s1-eth2", "s2-eth1", "s2-eth2"]
            assert group_members() == 4
            shown = subprocess.run(["ip", "address", "show", "s2-eth1"], capture_output=True, text=True).stdout
            assert "inet" not in shown and "state UP" in shown
            # Not the port's own, or the root namespace would take packets for the gateway.
            assert "0a:00:00:02:00:01" in shown

    def test_veth_links_have_both_ends(self, tmp_path):
        with network(tmp_path, links="veth", mtu=4000) as net:
            assert {"s1-eth3", "s2-eth3"} <= set(net.interfaces) == set(root_interfaces())
            assert Path("/sys/class/net/s1-eth3/mtu").read_text().strip() == "4000"
            assert net["h1"].cmd("cat /sys/class/net/h1-eth0/mtu").strip() == "4000"

    def test_fattree_comes_up_and_goes_down_quickly(self, tmp_path):
        started = time.monotonic()
        with network(tmp_path, fattree(4, 10**9, 1000)) as net:
            assert time.monotonic() - started < 3
            assert list(net.seconds) == ["hosts", "links", "addresses", "switches"]
            assert len(root_interfaces()) == 16
            stopping = time.monotonic()
        assert time.monotonic() - stopping < 3

    def test_stop_is_idempotent_and_needs_no_start(self, tmp_path):
        net = network(tmp_path)
        net.stop()
        net.start()
        pids = [host.pid for host in net.hosts] + [child.pid for child in net.runner.children]
        net.stop()
        net.stop()
        assert not any(Path("/proc", str(pid)).exists() for pid in pids)

    def test_stop_ends_what_outlives_the_hosts_shells(self, tmp_path):
        with network(tmp_path) as net:
            net["h1"].cmd("setsid nohup sleep 1000 > /dev/null 2>&1 &")
            stubborn = "import signal, time; signal.signal(15, 1); print('ready', flush=True); time.sleep(1000)"
            h2 = net["h2"].popen([sys.executable, "-c", stubborn])
            assert h2.stdout.readline() == b"ready\n"
            pids = [int(word) for word in net["h1"].cmd("pgrep --ns $$ --nslist net sleep").split()]
            assert len(pids) == 1
            net.stop()
            assert network_namespace(pids[0]) is None  # gone, or a zombie that nobody waits for
            h2.communicate()
            assert h2.returncode == -signal.SIGKILL

    def test_a_host_s_shell_that_was_killed_is_named(self, tmp_path):
        with network(tmp_path) as net:
            os.kill(net["h1"].pid, signal.SIGKILL)
            with pytest.raises(NetworkError, match="h1: its shell has ended"):
                net["h1"].cmd("true")

    def test_two_runs_one_after_the_other(self, tmp_path):
        for _ in range(2):
            with network(tmp_path):
                pass

    def test_mininet_command_line(self, tmp_path):
        script = tmp_path / "script"
        commands = [
            "nodes",
            "net",
            "links",
            "h1 echo from $PLAIT_LAB",
            "s1 echo switch $((6*7))",
            "link s1 s2 down",
            "link s2 h3 down",
        ]
        script.write_text("\n".join([*commands, "links", "h1 echo $(echo h2)", "dump"]) + "\n")
        shown = io.StringIO()
        handler = logging.StreamHandler(shown)
        handler.terminator = ""
        lg.setLogLevel("output")
        lg.addHandler(handler)
        # The command line polls its input; nobody types here.
        reader, writer = os.pipe()
        with network(tmp_path) as net, os.fdopen(reader) as stdin:
            CLI(net, stdin=stdin, script=str(script))
        os.close(writer)
        lg.removeHandler(handler)
        text = shown.getvalue()
        assert "h1 h2 h3 h4 s1 s2" in text
        assert "s1-eth1:h1-eth0" in text and "h1 h1-eth0:s1-eth1" in text
        assert "h1-eth0<->s1-eth1 (OK OK)" in text
        assert "s1-eth3<->s2-eth3 (OK OK)" in text
        assert "s1-eth3<->s2-eth3 (DOWN DOWN)" in text
        assert "from test lab" in text and "switch 42" in text
        requests = [json.loads(line) for line in (tmp_path / "fabric.requests").read_text().splitlines()]
        # Mininet's command line asks at both ends.
        assert requests == [{"verb": "link_set", "link": end, "up": False} for end in ("s1:3",) * 2 + ("s2:1",) * 2]

    def test_switch_that_fails_is_quoted_and_everything_is_removed(self, tmp_path):
        with pytest.raises(NetworkError) as failed:
            network(tmp_path, behaviour="fail").start()
        assert "plait-switch ended with code 1 while starting:\ncannot bind 127.0.0.1:9559" in str(failed.value)

    def test_switch_that_is_never_ready(self, tmp_path):
        with pytest.raises(NetworkError, match="plait-switch was not ready in time:\nloading"):
            network(tmp_path, behaviour="hang", start_timeout_s=0.5).start()

    def test_interface_that_exists(self, tmp_path):
        ip_batch(["link add s2-eth1 type veth peer name other-eth9"])
        try:
            with pytest.raises(NetworkError, match="interface s2-eth1 exists already: another laboratory's, or left"):
                network(tmp_path).start()
        finally:
            ip_batch(["link delete s2-eth1"])

    def test_ip_names_the_command_that_failed(self):
        with pytest.raises(NetworkError, match=r"ip: link set no-eth7 up: .*"):
            ip_batch(["link show lo", "link set no-eth7 up"])


class TestRefusals:
    def test_root_is_needed(self, tmp_path, monkeypatch):
        monkeypatch.setattr(os, "geteuid", lambda: 1000)
        with pytest.raises(NetworkError, match="network namespaces need root"):
            network(tmp_path)

    def test_missing_program(self, tmp_path):
        with pytest.raises(NetworkError, match="no program 'no-such-switch' on PATH"):
            network(tmp_path, switch_command=["no-such-switch"])

    def test_missing_run_directory(self, tmp_path):
        with pytest.raises(NetworkError, match="run directory .*/absent does not exist"):
            network(tmp_path / "absent")

    def test_long_names(self, tmp_path):
        nodes = (Node.switch(1, "any", 0, name="a_long_switch"), Node.host(0, "10.0.0.2/24"))
        topology = Topology(nodes, (Link("h1", 0, "a_long_switch", 1, 1, 0),))
        with pytest.raises(NetworkError, match="a_long_switch-eth1: names of interfaces have at most 15 characters"):
            network(tmp_path, topology)

    def test_bmv2_has_no_memory_links(self, tmp_path):
        with pytest.raises(NetworkError, match="BMv2 switches cannot share memory"):
            network(tmp_path, target="bmv2", links="memory")

    @needs_root
    def test_bmv2_says_what_it_does_not_do(self, tmp_path):
        net = network(tmp_path, target="bmv2")
        assert net.limits == ("BMv2's links have no rate, delay or loss: the topology's values are not in force",)
        assert network(tmp_path).limits == ()
