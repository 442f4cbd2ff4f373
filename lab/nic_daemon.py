"""The NIC daemon of a laboratory: one process for all hosts, which alone holds a BPF compiler."""

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from types import TracebackType

from controller.defaults import RUN_DIR
from lab.errors import PlaitError
from mininet_topos.network import LabNetwork
from mininet_topos.system import end_children, fault, lab_environment, last_lines, start_child

_START_TIMEOUT_S = 60.0
_POLL_S = 0.01


class NicDaemon:
    """Starts on entry without waiting, since compiling takes a while; `await_ready` waits."""

    def __init__(
        self, network: LabNetwork, memory_bytes: int, path_mtu_bytes: int, rtt_ns: int, transports: Sequence[str]
    ) -> None:
        self._config = {
            "hosts": network.nic_hosts(),
            "memory_bytes": memory_bytes,
            "mtu": path_mtu_bytes,
            "transport": transports[0],
            "transports": list(transports),
            "rtt_us": max(1, rtt_ns // 1000),
            "run_dir": str(RUN_DIR),
        }
        self._environment = lab_environment(network.lab)
        self._log = RUN_DIR / "nic.log"
        self._child: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "NicDaemon":
        path = RUN_DIR / "nic.json"
        path.write_text(json.dumps(self._config, indent=1))
        command = [sys.executable, "-m", "rdma.daemon", "--config", str(path), "--exit-with-parent"]
        self._child = start_child(command, self._log, self._environment)
        return self

    def await_ready(self) -> None:
        """PlaitError with the end of the daemon's log if it does not come up."""
        assert self._child is not None
        deadline = time.monotonic() + _START_TIMEOUT_S
        while "ready" not in self._log.read_text(errors="replace").splitlines():
            if self._child.poll() is not None or time.monotonic() > deadline:
                raise PlaitError(f"the XDP NICs did not come up:\n{last_lines(self._log)}")
            time.sleep(_POLL_S)

    def fault(self) -> str:
        """That the daemon has ended, how, and the end of its log; "" while it runs."""
        return fault("the NIC daemon", self._child, self._log) if self._child is not None else ""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._child is not None:
            end_children([self._child])
