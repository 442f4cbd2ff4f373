"""Switch processes for tests: packets come and go through the test port, so neither needs interfaces nor root.

All sockets are Unix sockets in a folder of the process's own, but for BMv2's Thrift server, which wants a TCP port.
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from lab.errors import MissingFeatureError, UsageError
from lab.stf.device import Device, SwitchError
from mininet_topos.fabric import long_options
from mininet_topos.system import Child, end_children, start_child

_BMV2 = "simple_switch_grpc"
_DEVICE_ID = 1
_DYING_S = 2.0  # between closed connections and an exit code


def _plait(common: list[str], folder: Path) -> list[str]:
    return [sys.executable, "-m", "fastswitch.daemon", "--die-with-parent", *common]


def _bmv2(common: list[str], folder: Path) -> list[str]:
    """Where it has a Thrift port and a notification socket, all BMv2 of the machine would share them."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        thrift = probe.getsockname()[1]
    own = {"--thrift-port": str(thrift), "--notifications-addr": f"ipc://{folder}/notifications"}
    known = long_options([_BMV2])
    options = [word for option, value in own.items() if option in known for word in (option, value)]
    return ["setpriv", "--pdeathsig", "TERM", _BMV2, *options, *common]


_COMMANDS: dict[str, Callable[[list[str], Path], list[str]]] = {"plait": _plait, "bmv2": _bmv2}


def check_target(target: str) -> None:
    """UsageError for an unknown target, MissingFeatureError for one that this machine lacks."""
    if target not in _COMMANDS:
        raise UsageError(f"--target {target!r}: known are {', '.join(_COMMANDS)}.")
    if target == "bmv2" and shutil.which(_BMV2) is None:
        raise MissingFeatureError(f"--target bmv2: {_BMV2} is not on PATH.")


class TestSwitch:
    """A switch that is started when a case needs it, and again after it has died."""

    __test__ = False  # for pytest: this is no test

    def __init__(self, target: str) -> None:
        self._target = target
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._process: Child | None = None
        self._device: Device | None = None

    def device(self) -> Device:
        """The running switch; SwitchError if it does not start."""
        if self._device is None or not self._is_alive():
            self.stop()
            self._start()
        assert self._device is not None
        return self._device

    def died(self, wait: bool = False) -> str:
        """How the process ended, or "" while it runs; `wait` a moment for one that has closed its connections."""
        if self._process is None:
            return ""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_DYING_S if wait else 0)
        code = self._process.poll()
        if code is None:
            return ""
        said = (self._log().read_text(errors="replace").strip().splitlines() or [""])[-1]
        ending = f"signal {-code}" if code < 0 else f"exit code {code}"
        return f"the switch ended with {ending}{': ' + said if said else ''}"

    def stop(self) -> None:
        """End the process, if there is one."""
        if self._device is not None:
            self._device.close()
            self._device = None
        if self._process is not None:
            end_children([self._process])
            self._process = None
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def _start(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="plait-stf-")
        folder = Path(self._folder.name)
        p4runtime, dataplane = (f"unix:{folder}/{name}" for name in ("p4runtime", "dataplane"))
        common = ["--no-p4", "--device-id", str(_DEVICE_ID), "--"]
        common += ["--grpc-server-addr", p4runtime, "--dp-grpc-server-addr", dataplane]
        command = _COMMANDS[self._target](common, folder)
        self._process = start_child(command, self._log(), os.environ)
        self._device = Device(p4runtime, dataplane, _DEVICE_ID)
        try:
            self._device.connect(self._is_alive)
        except SwitchError as error:
            how = self.died()
            self.stop()
            raise SwitchError(how or str(error)) from None

    def _log(self) -> Path:
        assert self._folder is not None
        return Path(self._folder.name, "log")

    def _is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def __enter__(self) -> "TestSwitch":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
