"""What `plait capture` does: follows the packets of a link while they pass, and hands them to tcpdump or on as pcap.

A Plait fabric's links are captured by the switch process, whether they are interfaces or memory: it writes a file, and
what of it was read is given back to the file system at once, so that a capture may run for days. BMv2's are
interfaces, where tcpdump listens itself.
"""

import ctypes
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import IO

from controller.defaults import RUN_DIR
from lab.errors import MissingFeatureError, UsageError
from lab.running import LabRecord, running_lab, running_topology
from mininet_topos.topology import Link, Topology, interface_name

_POLL_S = 0.05
_KEEP_SIZE, _PUNCH_HOLE = 0x01, 0x02  # fallocate(2)
_BLOCK = 1 << 20


def find_link(topology: Topology, name: str) -> Link:
    """The link that a person means: `s1-s5`, `h1`, `s1-eth2`, `s1:2`; UsageError says what is wrong or ambiguous."""
    for link in topology.links:
        ends = {f"{node}:{port}" for node, port in link.ends} | {interface_name(*end) for end in link.ends}
        if name == link.name or name in ends:
            return link
    if name in topology.by_name:
        if topology.node(name).is_host:
            return topology.host_port(name).link
        near = ", ".join(f"{name}-{neighbor.node.name}" for neighbor in topology.neighbors(name))
        raise UsageError(f"{name} is a switch: say which of its links, {near}.")
    a, _, b = name.partition("-")  # no node's name has a dash
    found = topology.links_between(a, b) if {a, b} <= set(topology.by_name) else ()
    if len(found) > 1:
        either = ", ".join(interface_name(*link.ends[0]) for link in found)
        raise UsageError(f"there are {len(found)} links {name}: say which by an end, {either}.")
    if not found:
        some = ", ".join(f"{link.a}-{link.b}" for link in topology.links[:6])
        raise UsageError(f"no link {name!r} in the running laboratory; it has {some}, …")
    return found[0]


def show_link(name: str, expression: str, write: str | None, count: int | None) -> int:
    """Until Ctrl-C, `count` packets, or the laboratory's end; returns an exit code.  Errors as `find_link`."""
    lab, topology = running_lab(), running_topology()
    link = find_link(topology, name)
    raw = write is not None and not expression and count is None
    if not raw and shutil.which("tcpdump") is None:
        raise MissingFeatureError("tcpdump is not on PATH; without it: plait capture LINK -w - | plait inspect -")
    if write == "-" and sys.stdout.isatty():
        raise UsageError("pcap is not for a terminal: pipe it, as in `-w - | plait inspect -`, or give -w a file.")
    if lab.target == "bmv2":
        return _tcpdump_on(_interface(topology, link), expression, write, count)
    with _captured(topology, link) as (file, stop):
        if raw:
            with _opened(str(write)) as sink:
                _follow(file, stop, sink, lab)
            return 0
        return _into(["tcpdump", "-n", "-r", "-", *_options(expression, write, count)], file, stop, lab)


def _options(expression: str, write: str | None, count: int | None) -> list[str]:
    options = ["-l"] if write is None else ["-U", "-w", write]
    return [*options, *(["-c", str(count)] if count is not None else []), *([expression] if expression else [])]


def _interface(topology: Topology, link: Link) -> str:
    return interface_name(*next(end for end in link.ends if not topology.node(end[0]).is_host))


def _tcpdump_on(interface: str, expression: str, write: str | None, count: int | None) -> int:
    if shutil.which("tcpdump") is None:
        raise MissingFeatureError("links of BMv2 are captured by tcpdump, which is not on PATH.")
    command = ["tcpdump", "-n", "--immediate-mode", "-i", interface, *_options(expression, write, count)]
    child = subprocess.Popen(command)
    while True:
        with suppress(KeyboardInterrupt):  # it ends by the same Ctrl-C, and tells what it counted
            return child.wait()


@contextmanager
def _captured(topology: Topology, link: Link) -> Iterator[tuple[Path, Callable[[], None]]]:
    """A file into which the link's packets are written until the end, and what ends that earlier, with all in it.

    UsageError where somebody else has them.
    """
    from fastswitch.control import Client, ControlError
    from lab.plait_view import daemon_link
    from mininet_topos.fabric import CONTROL_SOCKET

    path = RUN_DIR / f"capture-{os.getpid()}.pcap"
    with Client(RUN_DIR / CONTROL_SOCKET) as client:
        known = daemon_link(client.links(), topology, link)
        try:
            client.capture_start(known, path)
        except ControlError as error:
            raise UsageError(f"link {link.name}: {error}") from None

        def stop() -> None:
            with suppress(ControlError):  # it has stopped, or the laboratory has ended
                client.capture_stop(known)

        try:
            yield path, stop
        finally:
            stop()
            path.unlink(missing_ok=True)


@contextmanager
def _opened(write: str) -> Iterator[IO[bytes]]:
    if write == "-":
        yield sys.stdout.buffer
        return
    try:
        with open(write, "wb") as sink:
            yield sink
    except OSError as error:
        raise UsageError(f"cannot write {write}: {error.strerror or error}.") from None


def _into(command: list[str], file: Path, stop: Callable[[], None], lab: LabRecord) -> int:
    # It ignores Ctrl-C's signal, which is ours, and ends when there is nothing more to read.
    child = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
    assert child.stdin is not None
    try:
        _follow(file, stop, child.stdin, lab, child)
    finally:
        with suppress(BrokenPipeError):
            child.stdin.close()
        code = child.wait()
    return 2 if code else 0


def _follow(
    file: Path,
    stop: Callable[[], None],
    sink: IO[bytes],
    lab: LabRecord,
    reader: subprocess.Popen[bytes] | None = None,
) -> None:
    """Passes on what the file gains, until Ctrl-C, or nobody reads any more, or the laboratory has ended."""
    with file.open("r+b", buffering=0) as source, suppress(BrokenPipeError):
        try:
            while (reader is None or reader.poll() is None) and Path("/proc", str(lab.pid)).exists():
                _pass_on(source, sink)
                time.sleep(_POLL_S)
        except KeyboardInterrupt:
            if sys.stderr.isatty():
                print(file=sys.stderr)  # after the terminal's ^C
        stop()
        _pass_on(source, sink)


def _pass_on(source: FileIO, sink: IO[bytes]) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    while data := source.read(_BLOCK):
        start = source.tell() - len(data)
        sink.write(data)
        sink.flush()
        # Given back: whole pages of it at least. The size stays, since the writer appends.
        libc.fallocate(source.fileno(), _KEEP_SIZE | _PUNCH_HOLE, ctypes.c_long(start), ctypes.c_long(len(data)))
