"""`plait host …` and `plait h1 …`: commands inside the hosts of the running laboratory."""

import os
import signal
import subprocess
from dataclasses import dataclass
from typing import Annotated

import typer

from lab.arguments import JsonOption, known, show
from lab.completion import hosts
from lab.errors import MissingFeatureError, PlaitError
from lab.running import running_lab, running_topology

app = typer.Typer(no_args_is_help=True, help="The hosts, and commands inside them; `plait h1 CMD` for short.")

Host = Annotated[str, typer.Argument(help="Host, such as h1.", autocompletion=hosts)]


@dataclass(frozen=True, slots=True)
class HostRow:
    host: str
    address: str
    mac: str
    switch: str
    port: int
    pid: int  # of the shell whose network namespace is the host's


@app.command("list")
def list_hosts(as_json: JsonOption = False) -> None:
    """The hosts: addresses, and the switch port that each hangs on.

    Example: plait host list
    """
    lab, topology = running_lab(), running_topology()
    rows = []
    for host in topology.hosts:
        at = topology.host_port(host.name)
        rows.append(
            HostRow(host.name, str(host.ipv4), host.mac, at.node.name, at.node_port, lab.pids.get(host.name, 0))
        )
    show(rows, as_json)


@app.command(
    "exec",
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "allow_interspersed_args": False},
)
def execute(context: typer.Context, host: Host) -> None:
    """Runs a command inside a host; names of hosts among its words become their addresses.

    Example: plait host exec h1 ping -c 1 h2
    """
    lab = running_lab()
    known("host", host, lab.hosts)
    if not context.args:
        raise PlaitError(f"what is to run in {host}? Such as: plait {host} ping -c 1 {list(lab.hosts)[-1]}")
    if host not in lab.pids:
        raise PlaitError(f"{host} is not up yet.")
    addresses = {each.name: each.address for each in running_topology().hosts}
    words = [addresses.get(word, word) for word in context.args]
    raise typer.Exit(run_inside(lab.pids[host], lab.name, words))


def is_host(name: str) -> bool:
    """Whether the running laboratory has a host of that name; without one, nothing is a host."""
    try:
        return name in running_lab().hosts
    except PlaitError:
        return False


def run_inside(pid: int, lab: str, words: list[str]) -> int:
    """Runs a command in the foreground, in the namespaces of a host's shell; its exit code, 128 + N after a signal."""
    from mininet_topos.system import lab_environment

    try:
        child = subprocess.Popen(["mnexec", "-a", str(pid), *words], env=lab_environment(lab))
    except FileNotFoundError:
        raise MissingFeatureError("mnexec, a program of Mininet, is not on PATH.") from None
    # Ctrl-C is for the command, which decides what it means.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        code = child.wait()
    finally:
        signal.signal(signal.SIGINT, before)
        if child.poll() is None:
            os.kill(child.pid, signal.SIGTERM)
    return code if code >= 0 else 128 - code
