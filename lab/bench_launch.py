"""How long a laboratory takes to come up, what it needs, how fast it is repaired: part of `plait bench control`.

Each figure is of a laboratory in a process of its own, started as the `plait` command is, with warm caches:

- first byte: from the command until a byte that one host wrote by RDMA is in the memory of another
- launch: from the command until NICs are up and all entries are read back; tables: of that, the controller's time for
  program, writing and reading back, on all switches
- memory: proportional set size of all processes of the laboratory
- repair: from the command that takes a link between switches down until the last entry is changed, detection included
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from controller.decisions import read_decisions
from controller.defaults import LAB_VARIABLE, RUN_DIR
from lab.errors import PlaitError
from lab.results import ROOT

TOPOLOGIES = ("fattree:k=4", "fattree:k=6", "fattree:k=8", "jellyfish:like=fattree:k=8")

_TIMEOUT_S = 180.0
_REPAIRS = 5
_REPAIR_TIMEOUT_S = 20.0
_POLL_S = 0.002


def run(talk: Callable[[str], None], topologies: Sequence[str] = TOPOLOGIES) -> list[dict[str, Any]]:
    """Per topology: {"topology", "switches", "hosts", "first_byte_s", "launch_s", "tables_s", "entries", "rss_mb",
    "repair_s", "repair_worst_s"}.  PlaitError if a laboratory does not come up, or one runs already."""
    found = []
    for topology in topologies:
        talk(f"a laboratory of {topology} …")
        command = [sys.executable, "-m", "lab.bench_launch", topology, repr(time.time())]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
        if done.returncode != 0:
            raise PlaitError(f"the laboratory of {topology} did not come up:\n{done.stderr.strip()}")
        found.append(json.loads(done.stdout))
    return found


def explain(launches: Sequence[dict[str, Any]]) -> str:
    lines = ["laboratories from the command to the first RDMA byte, with one XDP NIC a host"]
    head = ("topology", "switches", "hosts", "first byte", "launch", "tables", "entries", "memory", "repair", "worst")
    lines.append("  {:28}{:>9}{:>7}{:>12}{:>9}{:>9}{:>9}{:>10}{:>10}{:>10}".format(*head))
    for each in launches:
        lines.append(
            f"  {each['topology']:28}{each['switches']:9}{each['hosts']:7}{each['first_byte_s']:10.2f} s"
            f"{each['launch_s']:7.2f} s{each['tables_s']:7.2f} s{each['entries']:9,}{each['rss_mb']:7,.0f} MB"
            f"{1000 * each['repair_s']:7.0f} ms{1000 * each['repair_worst_s']:7.0f} ms"
        )
    return "\n".join(lines)


# --- in the laboratory's process ---


def measure(topology: str, started: float) -> dict[str, Any]:
    """started: when the command was given, seconds since 1970."""
    from lab.config import LabConfig
    from lab.emulation import Emulation
    from mininet_topos.catalogue import parse_choice

    config = LabConfig.from_options(parse_choice(topology))
    with Emulation(config, lambda text: None, controller_stays=True) as lab:
        launched = time.time() - started
        first_byte = _first_byte(lab) - started
        report = lab.installed
        rss = _memory_bytes()
        repairs = _repairs(lab)
        return {
            "topology": topology,
            "switches": len(lab.topology.switches),
            "hosts": len(lab.topology.hosts),
            "first_byte_s": first_byte,
            "launch_s": launched,
            "tables_s": sum(report.seconds.values()),
            "entries": report.verified,
            "rss_mb": rss / (1 << 20),
            "repair_s": statistics.median(repairs),
            "repair_worst_s": max(repairs),
        }


def _first_byte(lab: Any) -> float:
    """When a byte of the first host's was in the last host's memory."""
    from rdma.verbs import Access, Device, Opcode, SendWR

    src, dst = lab.topology.hosts[0].name, lab.topology.hosts[-1].name
    with Device.open(lab.verbs_socket(src)) as near, Device.open(lab.verbs_socket(dst)) as far:
        source = near.alloc_pd().reg_mr(1)
        destination = far.alloc_pd().reg_mr(1, Access.LOCAL_WRITE | Access.REMOTE_WRITE)
        completions = near.create_cq()
        sender = source.pd.create_qp(completions)
        lab.connect(src, sender, dst, destination.pd.create_qp(far.create_cq()))
        source.buf[0] = 1
        write = SendWR(1, Opcode.RDMA_WRITE, source.sge(), remote_addr=destination.addr, rkey=destination.rkey)
        sender.post_send(write)
        while not destination.buf[0]:
            for completion in completions.poll():
                if not completion.ok:
                    raise PlaitError(f"{src} -> {dst}: RDMA WRITE completed with {completion.status}.")
        return time.time()


def _repairs(lab: Any) -> list[float]:
    """Seconds from taking a link between switches down to the controller's last write, of several links in turn."""
    from fastswitch.control import Client
    from mininet_topos.fabric import CONTROL_SOCKET

    hosts = {host.name for host in lab.topology.hosts}
    links = [link for link in lab.topology.links if not {link.a, link.b} & hosts]
    seconds = []
    with Client(RUN_DIR / CONTROL_SOCKET) as fabric:
        for link in random.Random(1).sample(links, _REPAIRS):
            for up in (False, True):
                began = time.time()
                fabric.link_set(f"{link.a}:{link.port_a}", up=up)
                repaired = _await_repair(began)
                if not up:
                    seconds.append(repaired - began)
    return seconds


def _await_repair(since: float) -> float:
    """When the controller had made its changes; returns once they were read back, so that the next begins afresh."""
    from lab.controller_process import LOG

    deadline = time.monotonic() + _REPAIR_TIMEOUT_S
    repaired = 0.0
    while time.monotonic() < deadline:
        for decision in read_decisions(LOG)[0]:
            if decision.time > since and decision.kind == "repair":
                repaired = decision.time
            if decision.time > since and decision.kind == "verify" and repaired:
                return repaired
        time.sleep(_POLL_S)
    raise PlaitError("the controller repaired nothing")


def _memory_bytes() -> int:
    """Of this process and all that carry the laboratory's mark."""
    total, mark = 0, f"{LAB_VARIABLE}=".encode()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            own = int(entry.name) == os.getpid()
            if own or any(each.startswith(mark) for each in (entry / "environ").read_bytes().split(b"\0")):
                rollup = (entry / "smaps_rollup").read_text()
                total += next(int(line.split()[1]) << 10 for line in rollup.splitlines() if line.startswith("Pss:"))
        except (OSError, StopIteration):
            continue  # ended meanwhile
    return total


def main() -> int:
    parser = argparse.ArgumentParser(prog="lab.bench_launch")
    parser.add_argument("topology")
    parser.add_argument("started", type=float)
    options = parser.parse_args()
    from controller.errors import ControllerError
    from mininet_topos.topology import TopologyError

    try:
        print(json.dumps(measure(options.topology, options.started)))
    except (PlaitError, ControllerError, TopologyError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
