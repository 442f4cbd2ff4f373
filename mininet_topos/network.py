"""Builds the Mininet network of a topology: hosts in namespaces, switches in the processes of `mininet_topos.fabric`.

    with LabNetwork(fattree(4, 100_000_000, 50_000)) as net:
        net.hosts[0].cmd("ping -c 1 10.0.0.3")

Everything is made in batches: all host shells at once, all links by one `ip`, the hosts' addresses by their own shells
side by side.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

from mininet.net import Mininet

from controller import defaults
from controller.targets import Target, targets_of
from mininet_topos.fabric import PRIORITY_QUEUES, Bmv2Switches, Links, PlaitSwitches, Switches, Wiring
from mininet_topos.nodes import LabHost, LabLink, LabSwitch
from mininet_topos.system import (
    LAB_GROUP,
    MAX_INTERFACE_NAME,
    NetworkError,
    disable_ipv6,
    disable_offloads,
    end_processes_in,
    interface_exists,
    ip_batch,
    lab_environment,
    network_namespace,
    set_swallowing,
)
from mininet_topos.topology import Link, Node, Topology, interface_name

TargetKind = Literal["plait", "bmv2"]

# The largest MTU at which veth takes a native XDP program on a kernel with pages of 4 KiB is about 3,500.
DEFAULT_MTU = 1500


class LabNetwork(Mininet):
    """The network of a topology.  `build` makes hosts and links, `start` the switches, `stop` removes everything.

    `stop` may be called at any time and more than once; as a context manager it is called for you.
    """

    def __init__(
        self,
        topology: Topology,
        *,
        lab: str = "plait",
        target: TargetKind = "plait",
        links: Links | None = None,
        run_dir: Path = defaults.RUN_DIR,
        mtu: int = DEFAULT_MTU,
        seed: int = 1,
        priority_queues: int = PRIORITY_QUEUES,
        switch_command: Sequence[str] | None = None,
        start_timeout_s: float = 30.0,
    ) -> None:
        """Checks what can be checked without making anything; NetworkError says what is wrong.

        `links`: "memory" keeps links between switches inside the switch process, "veth" makes interfaces of them, where
        tcpdump can look, and frames are serialised once more; BMv2 knows "veth" only. `priority_queues`: of each port.
        `switch_command` replaces the switch's program. The run directory must exist.
        """
        if target == "bmv2" and links == "memory":
            raise NetworkError("BMv2 switches cannot share memory: links must be veth")
        wiring = Wiring(topology, links or ("memory" if target == "plait" else "veth"))
        self.topology = topology
        self.lab = lab
        self.run_dir = run_dir
        self.mtu = mtu
        self.start_timeout_s = start_timeout_s
        self.targets: tuple[Target, ...] = targets_of(topology)
        self.wiring = wiring
        self.runner = self._runner(target, seed, priority_queues, switch_command)
        self.seconds: dict[str, float] = {}
        self._swallowing: set[Link] = set()
        self._check()
        super().__init__(topo=None, build=False, controller=None)

    def _runner(
        self, target: TargetKind, seed: int, priority_queues: int, command: Sequence[str] | None
    ) -> Switches:
        where = (self.wiring, self.targets, self.lab, self.run_dir)
        if target == "bmv2":
            return Bmv2Switches(*where, priority_queues=priority_queues, command=command)
        return PlaitSwitches(
            *where, seed=seed, packet_bytes=self.mtu, priority_queues=priority_queues, command=command
        )

    @property
    def limits(self) -> tuple[str, ...]:
        """What this network does not do although its topology says so, in sentences for people."""
        if isinstance(self.runner, Bmv2Switches):
            return ("BMv2's links have no rate, delay or loss: the topology's values are not in force",)
        return ()

    @property
    def interfaces(self) -> tuple[str, ...]:
        """The interfaces of the root namespace that this network makes: known before anything is made."""
        ends = (end for link in self.topology.links for end in self.wiring.interfaces(link))
        return tuple(interface_name(switch, port) for switch, port in ends)

    def nic_hosts(self) -> list[dict[str, Any]]:
        """Per host, what a NIC daemon needs: name, pid (of a process in its namespace), interface, addresses, rate."""
        return [
            {
                "name": host.name,
                "pid": self[host.name].pid,
                "interface": interface_name(host.name, 0),
                "ipv4": host.address,
                "mac": host.mac,
                "gateway_mac": self.topology.gateway_mac(host.name),
                "rate_bps": self.topology.host_port(host.name).link.rate_bps,
            }
            for host in self.topology.hosts
        ]

    def _check(self) -> None:
        for link in self.topology.links:
            for name, port in link.ends:
                if len(interface := interface_name(name, port)) > MAX_INTERFACE_NAME:
                    raise NetworkError(f"{interface}: names of interfaces have at most {MAX_INTERFACE_NAME} characters")
        if not shutil.which(program := self.runner.command[0]):
            raise NetworkError(f"no program {program!r} on PATH")
        if not self.run_dir.is_dir():
            raise NetworkError(f"run directory {self.run_dir} does not exist")
        if os.geteuid() != 0:
            raise NetworkError("network namespaces need root")

    # --- up ---

    def build(self) -> None:
        """Makes hosts, links and addresses.  What was made is removed again if it fails."""
        existing = [name for name in self.interfaces if interface_exists(name)]
        if existing:
            raise NetworkError(f"interface {existing[0]} exists already: another laboratory's, or left by a killed one")
        try:
            self._timed("hosts", self._make_nodes)
            self._timed("links", self._make_links)
            self._timed("addresses", self._configure_hosts)
        except BaseException:
            self.stop()
            raise
        self.built = True

    def start(self) -> None:
        """Builds what is not built, starts the switches and returns when all of them answer P4Runtime."""
        if not self.built:
            self.build()
        try:
            self._timed("switches", lambda: self.runner.start(self.start_timeout_s))
        except BaseException:
            self.stop()
            raise

    def _timed(self, phase: str, work: Any) -> None:
        started = time.monotonic()
        work()
        self.seconds[phase] = time.monotonic() - started

    def _make_nodes(self) -> None:
        environment = lab_environment(self.lab)
        for switch in self.topology.switches:
            self.addSwitch(switch.name, cls=LabSwitch, device_id=switch.device_id, environment=environment)
        for host in self.topology.hosts:
            self.addHost(host.name, cls=LabHost, ip=host.ipv4, mac=host.mac, environment=environment)
        for node in self.hosts:
            node.await_shell()

    def _make_links(self) -> None:
        commands, roots = [], []
        for link in self.topology.links:
            self._note_link(link)
            if not self.wiring.in_memory(link):
                # A host's end is made in its namespace at once: to move it there would take the kernel 16 ms.
                first, second = sorted(link.ends, key=lambda end: self.topology.node(end[0]).is_host)
                near, far = self._end(*first), self._end(*second)
                commands.append(f"link add {near} group {LAB_GROUP} type veth peer name {far}")
                roots += [interface_name(*end) for end in self.wiring.interfaces(link)]
        ip_batch(commands)
        disable_ipv6(roots)
        disable_offloads(roots)
        ip_batch([f"link set {name} up" for name in roots])

    def _end(self, name: str, port: int) -> str:
        """One end of a veth pair as `ip link add` wants it."""
        node = self.topology.node(name)
        mac, place = (node.mac, f" netns {self[name].pid}") if node.is_host else (_bystander_mac(node, port), "")
        return f"{interface_name(name, port)} mtu {self.mtu} address {mac}{place}"

    def _note_link(self, link: Link) -> None:
        ends = [
            (self[name], port, interface_name(name, port), self.topology.mac(name, port)) for name, port in link.ends
        ]
        self.links.append(LabLink(ends, partial(self._set_link_up, link)))
        for name, _ in link.ends:
            node = self.topology.node(name)
            if node.is_host:
                self[name].defaultIntf().set_address(node.address, node.network.prefixlen)

    def _set_link_up(self, link: Link, up: bool) -> str:
        if isinstance(self.runner, PlaitSwitches):
            return self.runner.set_link_up(link, up)
        if up != (link in self._swallowing):  # Mininet's command line asks at both ends
            return ""
        # BMv2 stands still while one of its interfaces is down, so that the link is made to swallow everything.
        try:
            for name, port in link.ends:
                namespace = ["mnexec", "-a", str(self[name].pid)] if self.topology.node(name).is_host else []
                set_swallowing(interface_name(name, port), not up, namespace)
        except NetworkError as error:
            return str(error)
        (self._swallowing.discard if up else self._swallowing.add)(link)
        return ""

    def _configure_hosts(self) -> None:
        for host in self.topology.hosts:
            self[host.name].sendCmd(_host_script(host, self.topology.gateway_mac(host.name)))
        for host in self.hosts:
            complaint = host.waitOutput().strip()
            if complaint:
                raise NetworkError(f"{host.name}: {complaint}")

    # --- down ---

    def stop(self) -> None:
        """Ends switches, hosts and all that runs on them, and deletes the interfaces; may be called at any time."""
        namespaces = {network_namespace(host.pid) for host in self.hosts} - {network_namespace(os.getpid()), None}
        self.runner.stop_soon()
        try:
            for host in self.hosts:
                host.terminate_soon()
            if self.links:
                self._delete_interfaces()
            for node in (*self.hosts, *self.switches):
                node.terminate()
            end_processes_in(namespaces)
        finally:
            self.runner.stop()
        self.hosts.clear()
        self.switches.clear()
        self.links.clear()
        self.nameToNode.clear()
        self.built = False

    def _delete_interfaces(self) -> None:
        if any(map(interface_exists, self.interfaces)):
            # The whole group at once: one by one, the kernel waits for 16 ms after each. Some go with their namespaces
            # at this very moment, so that only the outcome tells whether it worked.
            ip_batch([f"link delete group {LAB_GROUP}"], force=True)
        left = [name for name in self.interfaces if interface_exists(name)]
        if left:
            raise NetworkError(f"interface {left[0]} could not be deleted")

    def __enter__(self) -> LabNetwork:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def _bystander_mac(switch: Node, port: int) -> str:
    """A MAC for a switch's interface that is not its port's.

    Hosts address packets to the port's MAC. If the interface had it, the root namespace's own IP stack would take those
    packets as well, and on a machine that forwards IP (one that runs containers, say) send them on a second time.
    """
    return f"0a:{switch.mac.split(':', 1)[1].rsplit(':', 2)[0]}:{port >> 8:02x}:{port & 0xFF:02x}"


def _host_script(host: Node, gateway_mac: str) -> str:
    """A line of shell that gives a host its address, its gateway and quiet; it prints nothing unless it fails.

    The gateway is on every path, even to hosts of the same network: the switches route, and answer no ARP.
    """
    interface = interface_name(host.name, 0)
    commands = [
        "link set lo up",
        f"address add {host.ipv4} dev {interface} noprefixroute",
        f"link set {interface} up",
        f"neighbour replace {host.gateway} lladdr {gateway_mac} dev {interface} nud permanent",
        f"route add {host.gateway} dev {interface} scope link",
        f"route add default via {host.gateway} dev {interface}",
    ]
    quoted = " ".join(f"'{command}'" for command in commands)
    quiet = "for f in /proc/sys/net/ipv6/conf/{all,default}/disable_ipv6; do [ -e $f ] && echo 1 > $f; done"
    offloads = f"ethtool -K {interface} rx off tx off sg off tso off gso off gro off > /dev/null"
    return f"unset HISTFILE; set +m; {quiet}; {offloads}; printf '%s\\n' {quoted} | ip -batch -"
