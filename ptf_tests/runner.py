"""Runs the PTF tests of a program against a switch, in a network namespace that ends with this process.

python -m ptf_tests.runner ecmp [--target plait|bmv2]
"""

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from controller.control import InstallReport, Program, install_entries
from controller.errors import SwitchUnreachableError
from controller.targets import Target
from lab.compiling import compile_program
from lab.results import ROOT
from mininet_topos.system import disable_ipv6, disable_offloads, end_children, ip_batch, lab_environment, start_child

PORTS = (1, 2, 3, 4)
COMMANDS = {
    "plait": [sys.executable, "-m", "fastswitch.daemon", "--die-with-parent"],
    "bmv2": ["simple_switch_grpc"],
}
_TARGET = Target("s1", "127.0.0.1:9559", 1)
_READY_S = 20.0


def _make_ports() -> None:
    ends = [f"{side}{port}" for port in PORTS for side in ("sw", "ptf")]
    ip_batch(["link set lo up"] + [f"link add sw{port} type veth peer name ptf{port}" for port in PORTS])
    disable_ipv6(ends)  # or the kernel's own packets would be taken for the switch's
    disable_offloads(ends)
    ip_batch([f"link set {end} up" for end in ends])


async def _load(program: Program) -> None:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _READY_S
    while True:
        try:
            return await install_entries([_TARGET], program, {_TARGET.name: []}, InstallReport())
        except SwitchUnreachableError:
            if loop.time() > deadline:
                raise
            await asyncio.sleep(0.1)


def _run(name: str, target: str) -> int:
    _make_ports()
    with tempfile.TemporaryDirectory(prefix="plait-ptf-") as folder:
        compiled = compile_program(ROOT / "p4src" / f"{name}.p4", target, Path(folder))
        flags = ["--device-id", str(_TARGET.device_id), "--no-p4"]
        flags += [word for port in PORTS for word in ("-i", f"{port}@sw{port}")]
        flags += ["--", "--grpc-server-addr", _TARGET.address]
        switch = start_child([*COMMANDS[target], *flags], Path(folder, "switch.log"), lab_environment("ptf"))
        try:
            asyncio.run(_load(Program(compiled.p4info, compiled.json)))
            command = [str(Path(sys.executable).with_name("ptf")), "--test-dir", str(ROOT / "ptf_tests"), name]
            command += ["--pypath", str(ROOT), "--log-dir", folder, "--disable-ipv6"]
            command += [word for port in PORTS for word in ("-i", f"0-{port}@ptf{port}")]
            command += ["--test-params", f"grpcaddr='{_TARGET.address}';device_id='{_TARGET.device_id}'"]
            # Its logs go to its working directory whatever it is told.
            return subprocess.run(
                command, cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False
            ).returncode
        finally:
            end_children([switch])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", choices=sorted(p.stem for p in (ROOT / "p4src").glob("*.p4")))
    parser.add_argument("--target", choices=sorted(COMMANDS), default="plait")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.inside:
        return _run(arguments.program, arguments.target)
    command = [sys.executable, "-m", "ptf_tests.runner", arguments.program, "--target", arguments.target, "--inside"]
    return subprocess.run(["unshare", "--net", "--mount", *command], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
