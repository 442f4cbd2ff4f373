"""The laboratory's controller: a process of its own, which may end, be killed and be started again at any time."""

import os
import signal
import sys
import time
from pathlib import Path

from controller.control import InstallReport, Program
from controller.daemon import Config, read_ready_line
from controller.defaults import LAB_VARIABLE, RUN_DIR
from controller.destinations import ROUTINGS
from controller.overrides import load_overrides
from controller.policy import Policy
from controller.targets import Target
from lab.errors import PlaitError, UsageError
from mininet_topos.system import Child, fault, lab_environment, last_lines, start_child
from mininet_topos.topology import Topology

LOG, OUTPUT = RUN_DIR / "controller.log", RUN_DIR / "controller.out"
_CONFIG, _PID = RUN_DIR / "controller.json", RUN_DIR / "controller.pid"

_START_TIMEOUT_S = 60.0
_POLL_S = 0.01


def policy_from_options(seed: int, routing: str, overrides: Path | None, topology: Topology) -> Policy:
    """UsageError or ControllerError for what cannot be."""
    if routing not in ROUTINGS:
        raise UsageError(f"--routing {routing!r}: known are {', '.join(ROUTINGS)}.")
    routes = load_overrides(overrides, topology) if overrides is not None else ()
    return Policy(seed=seed, routing=routing, overrides=routes)  # type: ignore[arg-type] # checked


def configure(topology: Path, program: Program, targets: tuple[Target, ...], policy: Policy) -> None:
    """Says what the controller of this process's laboratory keeps; before `start`."""
    _CONFIG.write_text(Config(topology, program, targets, policy, LOG, lab_pid=os.getpid()).to_json())


def start(lab: str, wait_for_all: bool = False) -> Child:
    """Starts the controller as `configure` said; PlaitError if it runs already.  See `await_ready`."""
    if (pid := running_pid()) is not None:
        raise PlaitError(f"the controller runs already (pid {pid}).")
    command = [sys.executable, "-m", "controller.daemon", "--config", str(_CONFIG)]
    child = start_child([*command, *(["--wait-for-all"] if wait_for_all else [])], OUTPUT, lab_environment(lab))
    _PID.write_text(str(child.pid))
    return child


def await_ready(child: Child) -> InstallReport:
    """What it did, once switches hold what they should; PlaitError with the end of its output if they do not."""
    deadline = time.monotonic() + _START_TIMEOUT_S
    while True:
        for line in OUTPUT.read_text(errors="replace").splitlines(keepends=True):
            if line.endswith("\n") and (report := read_ready_line(line)) is not None:
                return report
        if reason := fault("the controller", child, OUTPUT, " while starting"):
            raise PlaitError(reason)
        if time.monotonic() > deadline:
            raise PlaitError(f"the controller was not ready in time:\n{last_lines(LOG) or last_lines(OUTPUT)}")
        time.sleep(_POLL_S)


def running_pid() -> int | None:
    """The process that is the laboratory's controller; None where there is none."""
    try:
        pid = int(_PID.read_text())
        environment = Path("/proc", str(pid), "environ").read_bytes()
    except (OSError, ValueError):
        return None
    # A dead child whose parent has not waited has no environment left; a number used anew has not this one.
    return pid if any(entry.startswith(f"{LAB_VARIABLE}=".encode()) for entry in environment.split(b"\0")) else None


def stop(patience_s: float = 5.0) -> bool:
    """Ends the controller, whoever started it; False if there is none."""
    if (pid := running_pid()) is None:
        return False
    for number, patience in ((signal.SIGTERM, patience_s), (signal.SIGKILL, 1.0)):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return True
        end = time.monotonic() + patience
        while running_pid() == pid and time.monotonic() < end:
            time.sleep(_POLL_S)
        if running_pid() != pid:
            return True
    return True
