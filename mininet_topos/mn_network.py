"""What `mininet_topos/mn.py` gives to Mininet's `mn`: topologies, switch targets, and the network for them.

It runs in the system's Python, which has Mininet but not Plait's other packages: compiler, switch and controller are
started as Plait's commands.
"""

from __future__ import annotations

import atexit
import dataclasses
import fcntl
import ipaddress
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import mininet.net
import mininet.node
from mininet.log import info
from mininet.topo import Topo

from controller.defaults import RUN_DIR
from mininet_topos.catalogue import FILE_PARAMETERS, GENERATORS, choose
from mininet_topos.fabric import Links
from mininet_topos.network import LabNetwork, TargetKind
from mininet_topos.quantities import parse_time
from mininet_topos.system import Child, NetworkError, await_ready, end_children, lab_environment, start_child
from mininet_topos.topology import Link, Node, Topology, TopologyError

ROOT = Path(__file__).resolve().parent.parent
_PROGRAM = ROOT / "p4src" / "ecmp.p4"
_DEFINES = {"plait": [], "bmv2": ["-DPLAIT_FEEDBACK"]}  # see p4src/include/live_state.p4

# Of `switches`' options: brings switches up without a program, for other controllers.
NO_PROGRAM = "none"

_READY_S = 60

# Of Mininet's topologies: the first host's address, and the rate of links that have none.
_FIRST_ADDRESS = ipaddress.IPv4Address("10.0.0.1")
_RATE_MBPS = 100


def _refuse(text: object) -> NoReturn:
    """Ends `mn` with a sentence.  Exceptions would not do: `mn` then runs Mininet's clean-up, which removes everything
    that looks like Mininet's on the machine, a running laboratory included."""
    sys.exit(f"mn: {text}")


class PlaitTopo(Topo):
    """A topology as `mn` knows it: names, ports, addresses, rates, delays and losses.

    With `--switch plait` or `bmv2` the network is made from `topology`; other switches get what Mininet can do.
    """

    topology: Topology

    def build(self, name: str, *values: object, **named: object) -> None:
        """`values` are those of the topology's first parameters: `plait-fattree,6`."""
        try:
            parameters = FILE_PARAMETERS if name not in GENERATORS else GENERATORS[name].parameters
            if len(values) > len(parameters):
                raise TopologyError(name, f"has {len(parameters)} parameters, and {len(values)} are given")
            given = {parameter.name: value for parameter, value in zip(parameters, values, strict=False)}
            self.topology = choose(name, {**given, **named}).build()
        except TopologyError as error:
            _refuse(error)
        for switch in self.topology.switches:
            self.addSwitch(switch.name, dpid=f"{switch.device_id:016x}")
        for host in self.topology.hosts:
            self.addHost(host.name, ip=host.ipv4, mac=host.mac)
        for link in self.topology.links:
            self.addLink(
                link.a, link.b, link.port_a, link.port_b,
                bw=link.rate_bps / 1e6, delay=f"{link.delay_ns / 1000:g}us", loss=100 * link.loss,
            )  # fmt: skip


def topology_of(topo: Topo) -> Topology:
    """The model of any Mininet topology, such as `tree,2`: names, ports, addresses, and links' bw, delay and loss.

    Hosts without an address get Mininet's own, 10.0.0.1/8 and so on; the gateway of each network is its last address.
    TopologyError for what the model has not, such as hosts with two links.
    """
    nodes = [Node.switch(i, "switch", i - 1, name) for i, name in enumerate(topo.switches(), 1)]
    for i, name in enumerate(topo.hosts()):
        given = topo.nodeInfo(name)
        address = given.get("ip") or str(_FIRST_ADDRESS + i)
        ipv4 = address if "/" in address else f"{address}/8"
        gateway = str(ipaddress.IPv4Interface(ipv4).network.broadcast_address - 1)
        host = dataclasses.replace(Node.host(i, ipv4, name), gateway_ipv4=gateway)
        nodes.append(dataclasses.replace(host, mac=given["mac"].lower()) if "mac" in given else host)
    links = []
    for a, b, values in topo.links(sort=True, withInfo=True):
        try:
            rate, delay = round(float(values.get("bw", _RATE_MBPS)) * 1e6), parse_time(str(values.get("delay", "0us")))
            loss = float(values.get("loss", 0)) / 100
        except ValueError as error:
            raise TopologyError(f"link {a} {b}", str(error)) from None
        links.append(Link(values["node1"], values["port1"], values["node2"], values["port2"], rate, delay, loss))
    return Topology(tuple(nodes), tuple(links), name=type(topo).__name__)


class SwitchTarget:
    """Stands in `mn`'s list of switches; the laboratory's network asks it what its user wants."""

    target: TargetKind = "plait"

    def __init__(
        self, name: str, program: str | Path = _PROGRAM, links: Links | None = None, seed: int = 1, **unknown: object
    ) -> None:
        """`program`: P4 source, or "none"; `links`, `seed`: see `LabNetwork`."""
        for option in unknown:
            _refuse(f"{option}: no option of --switch {self.target}; known are program, links, seed")
        if links not in (None, "memory", "veth"):
            _refuse(f"links: {links!r}; it is memory or veth")
        self.program = None if str(program) == NO_PROGRAM else Path(program)
        self.links = links
        self.seed = seed


class Bmv2Target(SwitchTarget):
    target = "bmv2"


class MnNetwork(LabNetwork):
    """A laboratory's network with a controller, but without NICs: what `mn` starts, tests and stops."""

    def __init__(self, topology: Topology, wanted: SwitchTarget) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="plait-mn-"))
        self._program = wanted.program
        self._controller: list[Child] = []
        super().__init__(
            topology,
            lab=f"mn-{topology.name}",
            target=wanted.target,
            links=wanted.links,
            run_dir=self.folder,
            seed=wanted.seed,
            switch_command=(_command("plait-switch"), "--die-with-parent") if wanted.target == "plait" else None,
        )
        self._target = wanted.target
        # `mn` stops the network after its tests or its command line, but not after Ctrl-C elsewhere.
        atexit.register(self.stop)

    def start(self) -> None:
        """As `LabNetwork.start`, and returns when the controller has written all tables; what fails ends `mn`."""
        try:
            super().start()
            hosts, switches = len(self.topology.hosts), len(self.topology.switches)
            info(f"*** {self.topology.name}: {hosts} hosts, {switches} switches ({self._target})\n")
            info(f"*** P4Runtime: {self.targets[0].name} at {self.targets[0].address}, the others at the ports after\n")
            for limit in self.limits:
                info(f"*** note: {limit}\n")
            if self._program is not None:
                self._start_controller(self._program)
        except NetworkError as error:
            self.stop()
            _refuse(error)

    def _start_controller(self, program: Path) -> None:
        files = [self.folder / f"{program.stem}.{suffix}" for suffix in ("p4info.txtpb", "json")]
        compiler = [_command("plait"), "compile", *_DEFINES[self._target]]
        compiler += ["--p4runtime-files", str(files[0]), "-o", str(files[1]), str(program)]
        done = subprocess.run(compiler, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise NetworkError(done.stderr.strip() or f"{program} does not compile")
        topology, log = self.folder / "topology.json", self.folder / "controller.out"
        topology.write_text(self.topology.to_json())
        arguments = [_command("python"), "-m", "mininet_topos.mn_controller", *map(str, (topology, *files))]
        environment = {**lab_environment(self.lab), "PYTHONPATH": str(ROOT)}
        child = start_child(arguments, log, environment)
        self._controller.append(child)
        end = time.monotonic() + _READY_S
        await_ready("the controller", lambda: "ready" in log.read_text(errors="replace"), child, log, end)
        info(f"*** controller: {program.name} on all switches\n")

    def stop(self) -> None:
        end_children(self._controller)
        self._controller.clear()
        super().stop()
        shutil.rmtree(self.folder, ignore_errors=True)


def _command(name: str) -> str:
    """A command of the Python that Plait is installed in."""
    beside = ROOT / ".venv" / "bin" / name
    return str(beside) if beside.exists() else name


def _hold_lock() -> None:
    """Holds the machine's laboratory lock (see `lab.running`) until this process ends."""
    try:
        RUN_DIR.mkdir(parents=True, exist_ok=True)
        lock = os.open(RUN_DIR / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except PermissionError:
        _refuse("network namespaces need root")
    except BlockingIOError:
        _refuse("a laboratory is running on this machine: leave it first")


def Mininet(topo: Topo, switch: Any, **options: Any) -> mininet.net.Mininet:  # noqa: N802 (the name that `mn` calls)
    """The network of `mn`: a laboratory's for the switches of this file, Mininet's own for all others."""
    if not (isinstance(switch, type) and issubclass(switch, SwitchTarget)):
        return mininet.net.Mininet(topo=topo, switch=switch, **options)
    try:
        topology = topo.topology if isinstance(topo, PlaitTopo) else topology_of(topo)
        wanted = switch("mn")
        _hold_lock()
        return MnNetwork(topology, wanted)
    except (NetworkError, TopologyError) as error:
        _refuse(error)


def findController() -> type[mininet.node.Controller]:  # noqa: N802 (the name that `mn` calls)
    """Mininet's default controller, or none where OpenFlow is not installed: these switches do not need one."""
    return mininet.node.findController() or mininet.node.NullController


topos: dict[str, Callable[..., PlaitTopo]] = {f"plait-{name}": partial(PlaitTopo, name) for name in GENERATORS}
topos["plait-file"] = PlaitTopo
switches = {"plait": SwitchTarget, "bmv2": Bmv2Target}
