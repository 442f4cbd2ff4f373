"""The little of Linux that a laboratory's network needs: links by `ip -batch`, offloads by ioctl, children that end.

One `ip` process makes all links of a fabric, since a process per link is what makes large networks slow to start.
"""

from __future__ import annotations

import array
import contextlib
import fcntl
import os
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from pathlib import Path

from controller.defaults import LAB_VARIABLE

# Every interface that a laboratory makes in the root namespace is in this group (`ip link show group 20556`).
LAB_GROUP = 20556

# linux/if.h: the length of an interface's name without its terminator.
MAX_INTERFACE_NAME = 15

# linux/sockios.h and linux/ethtool.h.
_SIOCETHTOOL = 0x8946
_IFNAMSIZ = 16
_ETHTOOL_SETTERS = {
    "rx checksum": 0x15,
    "tx checksum": 0x17,
    "scatter-gather": 0x19,
    "tcp segmentation": 0x1F,
    "generic segmentation": 0x24,
    "generic receive": 0x2C,
}

# How often a process that starts is asked whether it is ready.
_POLL_S = 0.01

Child = subprocess.Popen[bytes]


class NetworkError(Exception):
    """The network could not be brought up or down: says which part and why."""


def lab_environment(lab: str) -> dict[str, str]:
    """The environment of a laboratory's child processes."""
    return {**os.environ, LAB_VARIABLE: lab}


def ip_batch(commands: Sequence[str], *, force: bool = False) -> None:
    """Runs `ip` commands in one process; NetworkError names the first that failed, unless `force` runs them all."""
    if not commands:
        return
    arguments = ["ip", *(["-force"] if force else []), "-batch", "-"]
    done = subprocess.run(arguments, input="\n".join(commands), text=True, capture_output=True, check=False)
    if done.returncode != 0 and not force:
        raise NetworkError(f"ip: {_batch_failure(done.stderr, commands)}")


def _batch_failure(stderr: str, commands: Sequence[str]) -> str:
    # "RTNETLINK answers: File exists\nCommand failed -:3"
    lines = [line for line in stderr.splitlines() if line]
    number = lines[-1].rpartition(":")[2] if lines else ""
    if number.isdigit() and 1 <= int(number) <= len(commands):
        return f"{commands[int(number) - 1]}: {'; '.join(lines[:-1])}"
    return "; ".join(lines) or "failed without a message"


def set_swallowing(interface: str, swallows: bool, prefix: Sequence[str] = ()) -> None:
    """Lets an interface swallow all that is sent by it, or send again.  `prefix`: a command that enters its namespace.

    Programs on both sides see no change, unlike with an interface that is down. Packets that XDP sends, or sockets with
    PACKET_QDISC_BYPASS, pass.
    """
    change = ["replace", "dev", interface, "root", "blackhole"] if swallows else ["delete", "dev", interface, "root"]
    done = subprocess.run([*prefix, "tc", "qdisc", *change], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NetworkError(f"{interface}: tc: {done.stderr.strip()}")


def interface_exists(name: str) -> bool:
    return Path("/sys/class/net", name).exists()


def disable_offloads(interfaces: Iterable[str]) -> None:
    """Turns off what would hand checksums and segmentation to hardware that a veth has not.

    A P4 switch would forward packets with unfinished checksums, or larger than the MTU. The interfaces must be in this
    process's namespace.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for interface in interfaces:
            for feature, command in _ETHTOOL_SETTERS.items():
                value = array.array("I", (command, 0))  # struct ethtool_value
                request = struct.pack(f"{_IFNAMSIZ}sP", interface.encode(), value.buffer_info()[0])
                try:
                    fcntl.ioctl(control, _SIOCETHTOOL, request)
                except OSError as error:
                    raise NetworkError(f"{interface}: cannot turn off {feature} offload: {error.strerror}") from None


def disable_ipv6(interfaces: Iterable[str]) -> None:
    """Keeps router solicitations and other unasked packets off interfaces of this namespace."""
    for interface in interfaces:
        setting = Path("/proc/sys/net/ipv6/conf", interface, "disable_ipv6")
        if setting.exists():  # not on a kernel without IPv6
            setting.write_text("1")


def network_namespace(pid: int) -> int | None:
    """The inode of the network namespace that a process is in, None where there is no such process."""
    try:
        return os.stat(f"/proc/{pid}/ns/net").st_ino
    except OSError:
        return None


def end_processes_in(namespaces: Container[int | None], patience_s: float = 1.0) -> None:
    """Ends what still runs in network namespaces that we made: SIGTERM, then SIGKILL after `patience_s`."""
    for number, patience in ((signal.SIGTERM, patience_s), (signal.SIGKILL, patience_s)):
        deadline = time.monotonic() + patience
        signalled: set[int] = set()
        while found := _processes_in(namespaces):
            for pid in found - signalled:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
            signalled |= found
            if time.monotonic() > deadline:
                break
            time.sleep(0.01)


def _processes_in(namespaces: Container[int | None]) -> set[int]:
    pids = (int(name) for name in os.listdir("/proc") if name.isdigit())
    return {pid for pid in pids if network_namespace(pid) in namespaces}


def last_lines(path: Path, count: int = 20) -> str:
    """The end of a log, for error messages."""
    try:
        return "\n".join(path.read_text(errors="replace").splitlines()[-count:])
    except OSError:
        return ""


def fault(what: str, child: Child, log: Path, when: str = "") -> str:
    """Says that a process that should run has ended, and how, with the end of its log; "" while it runs."""
    code = child.poll()
    if code is None:
        return ""
    how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
    # What it said while it was well is no reason.
    reason = "\n".join(line for line in last_lines(log).splitlines() if line != "ready")
    return f"{what} {how}{when}:\n{reason}".removesuffix(":\n")


def await_ready(what: str, ready: Callable[[], bool], child: Child, log: Path, end: float) -> None:
    """Returns when `ready()`; NetworkError with the log's end if the process ends first, or by monotonic time `end`."""
    while True:
        if reason := fault(what, child, log, " while starting"):
            raise NetworkError(reason)
        if ready():
            return
        if time.monotonic() > end:
            raise NetworkError(f"{what} was not ready in time:\n{last_lines(log)}")
        time.sleep(_POLL_S)


def isolated(command: Sequence[str]) -> list[str]:
    """The command in network, mount and process namespaces of its own, all of which end with it, children included."""
    return ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", *command]


def start_child(arguments: Sequence[str], log: Path, environment: Mapping[str, str]) -> Child:
    """Starts a process in a group of its own, so that the terminal's Ctrl-C is ours to handle; output goes to `log`."""
    with log.open("wb") as output:
        try:
            return subprocess.Popen(
                arguments,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            raise NetworkError(f"cannot start {arguments[0]}: {error.strerror}") from None


def ask_to_end(children: Iterable[Child]) -> list[Child]:
    """Asks all to end, without waiting; returns those that still run."""
    running = [child for child in children if child.poll() is None]
    for child in running:
        child.send_signal(signal.SIGTERM)
    return running


def end_children(children: Iterable[Child], patience_s: float = 10.0) -> None:
    """Asks all to end, waits for them, and kills those that have not after `patience_s`.  Returns when all are gone.

    The kernel takes some 25 ms to close each packet socket, which for hundreds of interfaces adds up to seconds.
    """
    running = ask_to_end(children)
    deadline = time.monotonic() + patience_s
    for child in running:
        try:
            child.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
