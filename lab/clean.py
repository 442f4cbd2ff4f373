"""Removes what a killed laboratory left: processes, interfaces, sockets."""

import json
import os
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from controller.defaults import LAB_VARIABLE, RUN_DIR
from lab.running import hold_lock
from mininet_topos.system import LAB_GROUP, ip_batch


@dataclass(slots=True)
class Removed:
    processes: list[int] = field(default_factory=list)
    interfaces: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        parts = [
            f"{len(things)} {word}{'' if len(things) == 1 else plural}"
            for things, word, plural in (
                (self.processes, "process", "es"),
                (self.interfaces, "interface", "s"),
                (self.files, "file", "s"),
            )
            if things
        ]
        return f"removed {', '.join(parts)}" if parts else "nothing was left behind"


def clean() -> Removed:
    """Removes everything of killed laboratories; LabRunningError while one is running."""
    with hold_lock():
        return remove_leftovers()


def remove_leftovers() -> Removed:
    """As `clean`, for a caller that holds the lock: then whatever carries a laboratory's mark is a leftover."""
    removed = Removed(processes=_end_processes(_marked_processes()))
    removed.interfaces = _remove_interfaces()
    removed.files = remove_files()
    return removed


def remove_files() -> list[str]:
    """Empties the run directory but for the lock, which says nothing once nobody holds it."""
    paths = [path for path in sorted(RUN_DIR.iterdir()) if path.name != "lock"] if RUN_DIR.is_dir() else []
    for path in paths:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    return list(map(str, paths))


def _remove_interfaces() -> list[str]:
    """Deletes what laboratories made in this namespace: all in their link group, and so all at once.

    A veth's other end goes with it, and so does an XDP program attached to either.
    """
    shown = subprocess.run(
        ["ip", "-json", "link", "show", "group", str(LAB_GROUP)], capture_output=True, text=True, check=True
    )
    names = [link["ifname"] for link in json.loads(shown.stdout or "[]") if link]
    if names:
        ip_batch([f"link delete group {LAB_GROUP}"])
    return names


def _marked_processes() -> list[int]:
    """Processes of laboratories, by the mark in their environment, without this one and its ancestors."""
    family = set()
    pid = os.getpid()
    while pid > 1:
        family.add(pid)
        pid = _parent(pid)
    mark = f"{LAB_VARIABLE}=".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) in family:
            continue
        try:
            environment = (entry / "environ").read_bytes()
        except OSError:
            continue  # ended meanwhile, or a kernel thread
        if any(variable.startswith(mark) for variable in environment.split(b"\0")):
            found.append(int(entry.name))
    return found


def _parent(pid: int) -> int:
    try:
        # The command name in parentheses may itself hold spaces and parentheses.
        return int(Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def _end_processes(pids: list[int], patience_s: float = 3.0) -> list[int]:
    """Asks first, so that daemons detach their XDP programs; insists after `patience_s`."""
    for signal_number, patience in ((signal.SIGTERM, patience_s), (signal.SIGKILL, 1.0)):
        deadline = time.monotonic() + patience
        for pid in pids:
            try:
                os.kill(pid, signal_number)
            except ProcessLookupError:
                continue
        while any(map(_alive, pids)) and time.monotonic() < deadline:
            time.sleep(0.02)
    return pids


def _alive(pid: int) -> bool:
    try:
        state = Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
