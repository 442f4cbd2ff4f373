"""A plait-switch process under the sanitizers, to be treated badly."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from engine.build import build as build_engine
from fuzz.process import environment, resident_bytes
from fuzz.target import Fault

ROOT = Path(__file__).resolve().parents[1]
CPU_PORT = 510
_MEMORY_LIMIT = 3 << 30
_STARTS_WITHIN = 60.0  # seconds


class Daemon:
    """`address` is where P4Runtime is served; `arguments` come after the options that all share."""

    def __init__(self, *arguments: str) -> None:
        build_engine(ROOT, sanitize=True)
        self._scratch = tempfile.TemporaryDirectory(prefix="plait-fuzz-")
        self.folder = Path(self._scratch.name)
        self.address = f"127.0.0.1:{free_port()}"
        self._log = self.folder / "log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "fastswitch.daemon", "--die-with-parent", *self._options(), *arguments],
                cwd=ROOT,
                env={**environment(sanitized=True), "XDG_CACHE_HOME": self._scratch.name},
                stdout=subprocess.PIPE,
                stderr=log,
            )
        assert self._process.stdout is not None
        if self._process.stdout.readline() != b"ready\n":
            raise Fault(f"the daemon does not start: {self.log()[-3000:]}")

    def _options(self) -> list[str]:
        return ["--no-p4", "--device-id", "1", "--grpc-server-addr", self.address, "--cpu-port", str(CPU_PORT)]

    def log(self) -> str:
        """What it has said on stderr."""
        return self._log.read_text(errors="replace")

    def check(self) -> None:
        """Fault if it ended, grew, or logged an error that nobody foresaw."""
        if self._process.poll() is not None:
            raise Fault(f"the daemon ended with {self._process.returncode}: {self.log()[-6000:]}")
        said = self.log()
        for sign in ("Traceback", "runtime error:", "AddressSanitizer"):
            if sign in said:
                raise Fault(f"the daemon logged: {said[-6000:]}")
        if resident_bytes(self._process.pid) > _MEMORY_LIMIT:
            raise Fault(f"the daemon holds more than {_MEMORY_LIMIT >> 20} MB")

    def close(self) -> None:
        """Ends it; Fault if it does not end by itself when it is asked to."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                os.kill(self._process.pid, signal.SIGKILL)
                raise Fault("the daemon does not end when it is told to") from None
        self._scratch.cleanup()


class Fabric(Daemon):
    """Two switches, a memory link between their ports 1; `control` is the path of the control socket."""

    def _options(self) -> list[str]:
        self.control = self.folder / "control"
        switches = [
            {"name": f"s{i}", "device_id": i, "grpc_addr": address, "cpu_port": CPU_PORT}
            for i, address in enumerate((self.address, f"127.0.0.1:{free_port()}"), 1)
        ]
        link = {"a": ["s1", 1], "b": ["s2", 1], "rate_bps": 10**9, "delay_ns": 1000}
        fabric = self.folder / "fabric.json"
        fabric.write_text(json.dumps({"switches": switches, "links": [link], "control": str(self.control)}))
        return ["--fabric", str(fabric)]


def free_port() -> int:
    """A port of loopback that nobody uses at the moment."""
    with socket.create_server(("127.0.0.1", 0)) as one:
        return int(one.getsockname()[1])
