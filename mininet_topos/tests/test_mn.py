"""Mininet's own `mn` with mininet_topos/mn.py.  Live tests run in namespaces of their own."""

import importlib.util
import os
import shutil
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("mininet", reason="Mininet is not installed")

from mininet.topo import Topo  # noqa: E402

from mininet_topos.catalogue import choose  # noqa: E402
from mininet_topos.mn_network import PlaitTopo, topology_of, topos  # noqa: E402
from mininet_topos.system import isolated  # noqa: E402
from mininet_topos.topology import TopologyError, interface_name  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
CUSTOM = "mininet_topos/mn.py"

needs_root = pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("mn"), reason="mn needs root")

# In namespaces of their own, but another laboratory would take what runs there for leftovers of a killed one.
alone = pytest.mark.usefixtures("only_network")

# BMv2 and Mininet look at their interfaces in /sys; what a laboratory leaves would be in /run.
PLACE = (
    "ip link set lo up && mount -t sysfs sysfs /sys && mount -t tmpfs tmpfs /run && mkdir /run/tmp"
    " && export TMPDIR=/run/tmp"
)


def require_switch(target):
    if target == "bmv2" and not shutil.which("simple_switch_grpc"):
        pytest.skip("simple_switch_grpc (BMv2) is not on PATH")
    if target == "plait" and not (
        list((ROOT / "engine" / "_build").glob("_engine*.so")) and importlib.util.find_spec("cffi")
    ):
        pytest.skip("the engine is not built: `make build`")


def in_namespaces(command):
    """A shell command line in namespaces of its own, as arguments for a process."""
    return isolated(["bash", "-c", f"{PLACE} && cd {ROOT} && {command}"])


def mn(*options):
    """Output of `mn` with the custom file, both streams."""
    command = in_namespaces(f"mn --custom {CUSTOM} {' '.join(options)}")
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=90)


@pytest.mark.parametrize("name", ["fattree", "leafspine", "jellyfish", "dumbbell", "mprdma"])
def test_a_mininet_topology_has_names_ports_and_addresses_of_the_model(name):
    topology, topo = choose(name).build(), topos[f"plait-{name}"]()
    assert topo.topology == topology
    assert set(topo.switches()) == {switch.name for switch in topology.switches}
    assert {name: topo.nodeInfo(name)["ip"] for name in topo.hosts()} == {h.name: h.ipv4 for h in topology.hosts}
    linked = {
        frozenset({interface_name(i["node1"], i["port1"]), interface_name(i["node2"], i["port2"])})
        for _, _, i in topo.links(withInfo=True)
    }
    assert linked == {frozenset(interface_name(*end) for end in link.ends) for link in topology.links}
    assert len({topo.nodeInfo(switch)["dpid"] for switch in topo.switches()}) == len(topology.switches)


def test_parameters_come_by_place_and_by_name():
    assert PlaitTopo("fattree", 6).topology == choose("fattree", {"k": 6}).build()
    made = PlaitTopo("leafspine", 1, leaves=2, rate="20M").topology
    assert made == choose("leafspine", {"spines": 1, "leaves": 2, "rate": "20M"}).build()


def test_a_file_is_a_topology_too(tmp_path):
    file = tmp_path / "net.json"
    file.write_text(choose("dumbbell").build().to_json())
    assert topos["plait-file"](str(file)).topology == choose("dumbbell").build()


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("fattree", {"k": 3}, "mn: k: must be even and from 2 to 254, is 3"),
        ("fattree", {"kk": 4}, "mn: kk: no parameter of fattree; did you mean k?"),
        ("no.json", {}, "mn: no.json: cannot be read: No such file or directory"),
    ],
)
def test_a_mistake_ends_mn_without_an_exception_of_which_it_would_clean_up(name, values, message):
    with pytest.raises(SystemExit) as ended:
        PlaitTopo(name, **values)
    assert ended.value.code == message


@needs_root
@alone
@pytest.mark.parametrize("target", ["plait", "bmv2"])
def test_all_hosts_reach_each_other(target):
    require_switch(target)
    done = mn(f"--topo plait-leafspine,spines=2,leaves=2,hosts_per_leaf=1 --switch {target} --test pingall")
    assert "0% dropped (2/2 received)" in done.stdout + done.stderr


@needs_root
@alone
def test_mininets_own_topologies_run_on_the_switch_too():
    require_switch("plait")
    done = mn("--topo tree,depth=2,fanout=2 --switch plait --test pingall")
    assert "0% dropped (12/12 received)" in done.stdout + done.stderr


def test_the_model_of_a_mininet_topology():
    class Pair(Topo):
        def build(self):
            self.addSwitch("left")
            self.addSwitch("right")
            self.addHost("a")
            self.addHost("b", ip="10.1.0.7/24", mac="08:00:00:00:00:0A")
            self.addLink("a", "left")
            self.addLink("right", "b", bw=2.5, delay="3ms", loss=10)
            self.addLink("left", "right", port1=7)
            self.addLink("left", "right")

    topology = topology_of(Pair())
    assert [(h.name, h.ipv4, h.gateway) for h in topology.hosts] == [
        ("a", "10.0.0.1/8", "10.255.255.254"),
        ("b", "10.1.0.7/24", "10.1.0.254"),
    ]
    assert topology.node("b").mac == "08:00:00:00:00:0a"
    assert {(k.name, k.rate_bps, k.delay_ns, k.loss) for k in topology.links} == {
        ("a-eth0:left-eth1", 100_000_000, 0, 0.0),
        ("right-eth1:b-eth0", 2_500_000, 3_000_000, 0.1),
        ("left-eth7:right-eth2", 100_000_000, 0, 0.0),
        ("left-eth3:right-eth3", 100_000_000, 0, 0.0),
    }


def test_a_mininet_topology_that_the_model_has_not():
    class Twice(Topo):
        def build(self):
            self.addSwitch("s1")
            self.addHost("h1")
            self.addLink("h1", "s1")
            self.addLink("h1", "s1")

    with pytest.raises(TopologyError, match=r"links\[1\].port_a: a host's port is 0, not 1"):
        topology_of(Twice())


@needs_root
@alone
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--topo plait-dumbbell --switch plait,links=vet", "mn: links: 'vet'; it is memory or veth"),
        ("--topo plait-dumbbell --switch plait,colour=1", "mn: colour: no option of --switch plait; known are "),
        ("--topo plait-dumbbell,1,1 --switch plait,program=no.p4", "mn: error: cannot read no.p4: No such file"),
    ],
)
def test_what_mn_says_of_a_mistake(options, message):
    if "program" in options:
        require_switch("plait")
    done = mn(options)
    assert done.returncode == 1 and done.stderr.splitlines()[-1].startswith(message), done.stderr


@needs_root
@alone
def test_its_command_line_in_a_terminal_and_nothing_left_after_exit():
    pexpect = pytest.importorskip("pexpect")
    require_switch("plait")
    look = "echo left $(ls /sys/class/net /run/tmp); ps ax"
    script = f"mn --custom {CUSTOM} --topo plait-dumbbell,1,1 --switch plait; {look}"
    command, *arguments = in_namespaces(script)
    terminal = pexpect.spawn(command, arguments, encoding="utf-8", timeout=60)
    terminal.expect("mininet> ")
    terminal.sendline("h1 ping -c 1 h2")
    terminal.expect("1 received")
    terminal.sendline("link s1 s2 down")
    terminal.expect("mininet> ")
    terminal.sendline("h1 ping -c 1 -W 0.3 h2")
    terminal.expect("0 received")
    terminal.sendline("exit")
    terminal.expect("completed in")
    terminal.expect(r"left /run/tmp: /sys/class/net: lo\s")
    processes = terminal.read()
    assert not [word for word in ("plait-switch", "mn_controller", "mininet:") if word in processes.replace(script, "")]
