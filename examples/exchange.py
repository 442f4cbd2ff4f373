"""What two programs do before they can use RDMA: find their device, tell each other their numbers over TCP, connect."""

from __future__ import annotations

import argparse
import errno
import hashlib
import json
import secrets
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rdma.verbs import QP, Device, VerbsError

RUN_DIR = Path("/run/plait")
PORT = 18515  # as perftest
LINE_MAX = 1 << 20
_DIAL_S, _DIAL_PAUSE_S = 10.0, 0.05


class ExampleError(Exception):
    """What the user has to know; printed without a traceback."""


def arguments(description: str, example: str) -> argparse.ArgumentParser:
    """The options that all examples have."""
    parser = argparse.ArgumentParser(
        description=description, epilog=example, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("server", nargs="?", help="address of the other side, which was started without one")
    parser.add_argument("-d", "--device", type=Path, help="the agent's socket (default: that of the host one runs in)")
    parser.add_argument("-p", "--port", type=int, default=PORT, help="TCP port for the exchange (%(default)s)")
    parser.add_argument("--transport", help="gbn, irn, mprdma, eunomia, ideal; the agent's default without")
    return parser


def _is_here(address: str) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((address, 0))
        except OSError as error:
            if error.errno == errno.EADDRNOTAVAIL:
                return False
            raise
    return True


def open_device(path: Path | None) -> Device:
    """The device at `path`, or that of the laboratory's host whose address is one of this network namespace."""
    if path is not None:
        return Device.open(path)
    for found in sorted(RUN_DIR.glob("*.rdma.sock")):
        device = Device.open(found)
        if _is_here(device.ipv4):
            return device
        device.close()
    raise ExampleError("this is no host of a running laboratory: use `plait h1 ...`, or name a --device")


class Peer:
    """The TCP connection to the other side: a JSON value a line."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        # For reading only: a text file for both would forget what it has read ahead when it writes.
        self._lines = connection.makefile("r", encoding="utf-8")

    @classmethod
    def meet(cls, server: str | None, port: int) -> Peer:
        """Waits for the other side, or goes to it; it may still be starting."""
        if server is None:
            with socket.create_server(("", port)) as listener:
                return cls(listener.accept()[0])
        deadline = time.monotonic() + _DIAL_S
        while True:
            try:
                connection = socket.create_connection((server, port), timeout=_DIAL_S)
                connection.settimeout(None)  # the other side may have much to do between two words
                return cls(connection)
            except OSError as error:
                if time.monotonic() > deadline:
                    raise ExampleError(f"nobody at {server}:{port}: {error.strerror or error}") from error
                time.sleep(_DIAL_PAUSE_S)

    def swap(self, mine: Any) -> Any:
        """Sends a value and takes one.  Both sides do it, so it is a barrier too."""
        self._connection.sendall(json.dumps(mine).encode() + b"\n")
        line = self._lines.readline(LINE_MAX)
        if not line:
            raise ExampleError("the other side has left")
        return json.loads(line)

    def close(self) -> None:
        self._lines.close()
        self._connection.close()


def connect(device: Device, peer: Peer, qps: list[QP], transport: str | None = None, **mine: Any) -> dict[str, Any]:
    """Brings the queue pairs to RTS, each with the other side's of the same place; returns what that says of itself.

    mine: what else the other side should know, such as an address and rkey.
    """
    psns = [secrets.randbits(24) for _ in qps]
    about = {"ipv4": device.ipv4, "mac": device.mac, "qpns": [qp.qp_num for qp in qps], "psns": psns}
    other: dict[str, Any] = peer.swap({**mine, **about})
    if len(other["qpns"]) != len(qps):
        raise ExampleError(f"the other side has {len(other['qpns'])} queue pairs, this one {len(qps)}")
    for qp, psn, qpn, their_psn in zip(qps, psns, other["qpns"], other["psns"], strict=True):
        mac = device.gateway_mac or other["mac"]
        qp.modify_rtr(dest_qpn=qpn, dest_ip=other["ipv4"], rq_psn=their_psn, dest_mac=mac, transport=transport)
        qp.modify_rts(sq_psn=psn)
    peer.swap("ready")
    return other


def digest(memory: memoryview) -> str:
    return hashlib.sha256(memory).hexdigest()


def run(main: Callable[[], None]) -> None:
    """`main`, with errors as one line and exit code 1."""
    try:
        main()
    except (ExampleError, VerbsError, OSError) as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
