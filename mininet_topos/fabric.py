"""What runs the switches of a network: one `plait-switch` for all of them, or a BMv2 each.

Both are given the same interfaces and listen for P4Runtime at the same addresses, so that nothing above can tell them
apart except by what they can do.
"""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Container, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from controller import defaults
from controller.targets import Target
from mininet_topos import paths
from mininet_topos.system import (
    Child,
    NetworkError,
    ask_to_end,
    await_ready,
    end_children,
    fault,
    lab_environment,
    start_child,
)
from mininet_topos.topology import Link, Topology, interface_name

Links = Literal["memory", "veth"]

# BMv2's and most switches' usual depth; a fabric's queues are never shorter.
MIN_QUEUE_PACKETS = 64

# Of every port. A packet whose priority has no queue is dropped, as in BMv2, so all that a program can name are there.
PRIORITY_QUEUES = 8

# Queues hold this many bandwidth-delay products, so that ECN marks long before anything is dropped.
_QUEUE_BDPS = 4

# Of a Plait fabric, in its run directory.
CONTROL_SOCKET = "fabric.sock"

_SPECIAL_PORTS = {"cpu_port": defaults.CPU_PORT, "drop_port": defaults.DROP_PORT}


@dataclass(frozen=True, slots=True)
class Wiring:
    """A topology and which of its links are interfaces of the kernel."""

    topology: Topology
    links: Links

    def in_memory(self, link: Link) -> bool:
        """Whether a link is inside the switch process: links of hosts never are."""
        return self.links == "memory" and not any(self.topology.node(name).is_host for name, _ in link.ends)

    def interfaces(self, link: Link) -> tuple[tuple[str, int], ...]:
        """The (switch, port) ends of a link that are interfaces of the root namespace."""
        if self.in_memory(link):
            return ()
        return tuple(end for end in link.ends if not self.topology.node(end[0]).is_host)


def queue_packets(link: Link, rtt_ns: int, packet_bytes: int) -> int:
    """The depth of the queues at a link's ends: several bandwidth-delay products at this round-trip time."""
    return max(MIN_QUEUE_PACKETS, _QUEUE_BDPS * paths.link_bdp_packets(link, rtt_ns, packet_bytes))


class Switches(ABC):
    """The processes that run a network's switches.  `command`: the program, with what stands before its arguments."""

    command: Sequence[str]

    def __init__(self, wiring: Wiring, targets: Sequence[Target], lab: str, run_dir: Path) -> None:
        self.wiring = wiring
        self.targets = targets
        self.run_dir = run_dir
        self.environment = lab_environment(lab)
        self.children: list[Child] = []
        self._logs: list[tuple[str, Path]] = []  # what each child is, and where its output goes

    @property
    def control_socket(self) -> Path | None:
        """The fabric's control socket, where there is one."""
        return None

    @abstractmethod
    def start(self, timeout_s: float) -> None:
        """Starts all switches and returns when all answer; NetworkError with the log's end if one does not."""

    def fault(self) -> str:
        """Which switch process has ended although it should run, how, and the end of its log; "" while all run."""
        watched = zip(self._logs, self.children, strict=True)
        return next(filter(None, (fault(what, child, log) for (what, log), child in watched)), "")

    def stop_soon(self) -> None:
        """Asks all switches to end, without waiting."""
        ask_to_end(self.children)

    def stop(self) -> None:
        """Ends all switches; does nothing if none runs."""
        end_children(self.children)
        self.children.clear()
        self._logs.clear()

    def _start(self, what: str, arguments: Sequence[str], log: Path) -> Child:
        child = start_child(arguments, log, self.environment)
        self.children.append(child)
        self._logs.append((what, log))
        return child


class PlaitSwitches(Switches):
    """All switches in one process, with the links between them in its memory."""

    def __init__(
        self,
        wiring: Wiring,
        targets: Sequence[Target],
        lab: str,
        run_dir: Path,
        *,
        seed: int = 1,
        packet_bytes: int = 1500,
        priority_queues: int = PRIORITY_QUEUES,
        command: Sequence[str] | None = None,
    ) -> None:
        super().__init__(wiring, targets, lab, run_dir)
        self.seed = seed
        self.priority_queues = priority_queues
        self.packet_bytes = packet_bytes
        self.command = command or (_installed("plait-switch"),)

    @property
    def control_socket(self) -> Path:
        return self.run_dir / CONTROL_SOCKET

    def config(self) -> dict[str, Any]:
        """What `plait-switch --fabric` reads: switches, links in memory, links that are interfaces."""
        topology = self.wiring.topology
        rtt_ns = paths.max_rtt_ns(topology, self.packet_bytes)
        links, interfaces = [], []
        for link in topology.links:
            depth = queue_packets(link, rtt_ns, self.packet_bytes)
            values = {"rate_bps": link.rate_bps, "delay_ns": link.delay_ns, "loss": link.loss, "queue_packets": depth}
            ends = self.wiring.interfaces(link)
            if not ends:
                links.append({"a": [link.a, link.port_a], "b": [link.b, link.port_b], **values})
            for index, (switch, port) in enumerate(ends):
                if len(ends) == 2:
                    # The daemon lets delay and loss hold at an interface in both directions: each end takes its half.
                    values |= {"delay_ns": (link.delay_ns + index) // 2, "loss": 1 - (1 - link.loss) ** 0.5}
                interfaces.append({"switch": switch, "port": port, "interface": interface_name(switch, port), **values})
        return {
            "seed": self.seed,
            "switches": [
                {
                    "name": t.name,
                    "device_id": t.device_id,
                    "grpc_addr": t.address,
                    "priority_queues": self.priority_queues,
                    **_SPECIAL_PORTS,
                }
                for t in self.targets
            ],
            "links": links,
            "interfaces": interfaces,
            "control": str(self.control_socket),
        }

    def start(self, timeout_s: float) -> None:
        end = time.monotonic() + timeout_s
        config, log = self.run_dir / "fabric.json", self.run_dir / "fabric.log"
        config.write_text(json.dumps(self.config(), indent=1))
        child = self._start("plait-switch", [*self.command, "--fabric", str(config)], log)
        # Its one line on stdout may come between lines of its log.
        await_ready("plait-switch", lambda: "ready" in log.read_text(errors="replace").splitlines(), child, log, end)

    def set_link_up(self, link: Link, up: bool) -> str:
        """Takes a link up or down; returns an error text or ""."""
        # A link in memory is one thing with two names; interfaces are one each.
        for switch, port in self.wiring.interfaces(link) or link.ends[:1]:
            reply = self.ask({"verb": "link_set", "link": f"{switch}:{port}", "up": up})
            if "error" in reply:
                return str(reply["error"])
        return ""

    def ask(self, request: dict[str, Any], timeout_s: float = 5.0) -> dict[str, Any]:
        """One request to the fabric's control socket and its reply, both JSON objects on one line."""
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
                connection.settimeout(timeout_s)
                connection.connect(str(self.control_socket))
                connection.sendall(json.dumps(request).encode() + b"\n")
                with connection.makefile("rb") as replies:
                    reply = json.loads(replies.readline())
        except (OSError, ValueError) as error:
            return {"error": f"{self.control_socket} does not answer: {error}"}
        return reply if isinstance(reply, dict) else {"error": f"the reply is no object: {reply!r}"}


class Bmv2Switches(Switches):
    """A `simple_switch_grpc` for every switch.  Its links have no rate, delay or loss of their own."""

    def __init__(
        self,
        wiring: Wiring,
        targets: Sequence[Target],
        lab: str,
        run_dir: Path,
        *,
        priority_queues: int = PRIORITY_QUEUES,
        command: Sequence[str] | None = None,
    ) -> None:
        super().__init__(wiring, targets, lab, run_dir)
        self.priority_queues = priority_queues
        self.command = command or ("simple_switch_grpc",)

    def arguments(self, index: int, known: Container[str]) -> list[str]:
        """The command line of the switch number `index`; `known` are the options that this BMv2 has."""
        target = self.targets[index]
        ports = self.wiring.topology.ports(target.name)
        return [
            *self.command,
            "--no-p4",
            *("--device-id", str(target.device_id)),
            *(word for option, value in self._services(index) if option in known for word in (option, value)),
            *(word for port in ports for word in ("-i", f"{port}@{interface_name(target.name, port)}")),
            "--",
            *("--grpc-server-addr", target.address),
            *("--cpu-port", str(defaults.CPU_PORT)),
            *("--drop-port", str(defaults.DROP_PORT)),
            *("--priority-queues", str(self.priority_queues)),
        ]

    def _services(self, index: int) -> tuple[tuple[str, str], ...]:
        """Options that are there if BMv2 was built with Thrift and nanomsg: two switches must not share these."""
        notifications = self.run_dir / f"{self.targets[index].name}-notifications.ipc"
        return (
            ("--thrift-port", str(defaults.THRIFT_BASE_PORT + index)),
            ("--notifications-addr", f"ipc://{notifications}"),
        )

    def start(self, timeout_s: float) -> None:
        end = time.monotonic() + timeout_s
        logs = [self.run_dir / f"{target.name}.log" for target in self.targets]
        known = long_options(self.command)
        for index, log in enumerate(logs):
            self._start(f"BMv2 of {self.targets[index].name}", self.arguments(index, known), log)
        for target, child, log in zip(self.targets, self.children, logs, strict=True):
            await_ready(f"BMv2 of {target.name}", partial(_listens, target.address), child, log, end)


def long_options(command: Sequence[str]) -> frozenset[str]:
    """The long options that a program's --help tells of."""
    try:
        shown = subprocess.run([*command, "--help"], capture_output=True, text=True, check=False, timeout=10)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NetworkError(f"cannot run {command[0]} --help: {error}") from None
    return frozenset(re.findall(r"--[a-z][a-z0-9-]*", shown.stdout + shown.stderr))


def _installed(program: str) -> str:
    """The program that was installed beside this Python, or else the one on PATH."""
    beside = Path(sys.executable).with_name(program)
    return str(beside) if beside.exists() else program


def _listens(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=1).close()
    except OSError:
        return False
    return True
