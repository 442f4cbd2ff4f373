"""Runs the PTF tests of a program against a switch, in a network namespace that ends with this process.

python -m ptf_tests.runner ecmp [--target plait|bmv2]
"""

import argparse
import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import finsy as fy

from controller.control import InstallReport, Program, install_entries
from controller.defaults import CPU_PORT
from controller.targets import Target
from lab.compiling import compile_program
from lab.results import ROOT
from mininet_topos.system import (
    disable_ipv6,
    disable_offloads,
    end_children,
    ip_batch,
    isolated,
    last_lines,
    start_child,
)

PORTS = (1, 2, 3, 4)
COMMANDS = {
    "plait": [sys.executable, "-m", "fastswitch.daemon", "--die-with-parent"],
    "bmv2": ["simple_switch_grpc"],
}
TARGET = Target("s1", "127.0.0.1:9559", 1)
_READY_S = 20.0


def make_ports() -> None:
    """In a namespace of this process's own (`isolated`)."""
    # /sys shows the interfaces of the namespace in which it was mounted; BMv2 reads there which of its ports are up.
    subprocess.run(["mount", "-t", "sysfs", "sysfs", "/sys"], check=True)
    ends = [f"{side}{port}" for port in PORTS for side in ("sw", "ptf")]
    ip_batch(["link set lo up"] + [f"link add sw{port} type veth peer name ptf{port}" for port in PORTS])
    disable_ipv6(ends)  # or the kernel's own packets would be taken for the switch's
    disable_offloads(ends)
    ip_batch([f"link set {end} up" for end in ends])


async def load(program: Program, entries: Sequence[fy.P4TableEntry] = ()) -> None:
    """Loads the program and its entries."""
    await install_entries([TARGET], program, {TARGET.name: list(entries)}, InstallReport())


def _await_listener() -> None:
    """gRPC itself would wait longer and longer between its attempts to connect."""
    deadline = time.monotonic() + _READY_S
    while True:
        try:
            host, port = TARGET.address.split(":")
            socket.create_connection((host, int(port)), timeout=1).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


@contextlib.contextmanager
def running_switch(target: str, log: Path) -> Iterator[None]:
    """A switch of this namespace on the ports that `make_ports` made, without a program."""
    flags = ["--device-id", str(TARGET.device_id), "--no-p4"]
    flags += [word for port in PORTS for word in ("-i", f"{port}@sw{port}")]
    flags += ["--", "--grpc-server-addr", TARGET.address, "--cpu-port", str(CPU_PORT), "--priority-queues", "8"]
    switch = start_child([*COMMANDS[target], *flags], log, os.environ)
    try:
        _await_listener()
        yield
    finally:
        end_children([switch])


def _run(name: str, target: str) -> int:
    make_ports()
    with tempfile.TemporaryDirectory(prefix="plait-ptf-") as folder:
        compiled = compile_program(ROOT / "p4src" / f"{name}.p4", target, Path(folder))
        with running_switch(target, Path(folder, "switch.log")):
            asyncio.run(load(Program(compiled.p4info, compiled.json)))
            command = [str(Path(sys.executable).with_name("ptf")), "--test-dir", str(ROOT / "ptf_tests"), name]
            command += ["--pypath", str(ROOT), "--log-dir", folder, "--disable-ipv6"]
            command += [word for port in PORTS for word in ("-i", f"0-{port}@ptf{port}")]
            parameters = {"grpcaddr": TARGET.address, "device_id": TARGET.device_id, "target": target}
            command += ["--test-params", ";".join(f"{name}={str(value)!r}" for name, value in parameters.items())]
            # Its logs go to its working directory whatever it is told.
            environment = {**os.environ, "PYTHONPATH": str(ROOT)}
            code = subprocess.run(command, cwd=folder, env=environment, check=False).returncode
            if code and (said := last_lines(Path(folder, "switch.log"))):
                print(f"the switch said:\n{said}", flush=True)
            return code


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", choices=sorted(p.stem for p in (ROOT / "p4src").glob("*.p4")))
    parser.add_argument("--target", choices=sorted(COMMANDS), default="plait")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.inside:
        return _run(arguments.program, arguments.target)
    command = [sys.executable, "-m", "ptf_tests.runner", arguments.program, "--target", arguments.target, "--inside"]
    return subprocess.run(isolated(command), cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
