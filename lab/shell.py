"""p4runtime-shell on a switch of the running laboratory, in its own environment.

Its protobuf pin (< 3.21) fits no other package of Plait, so it lives in `.venv-shell`, made on first use.
"""

import subprocess
from collections.abc import Sequence

from lab.errors import MissingFeatureError, UsageError
from lab.results import ROOT
from lab.running import running_lab

_PYTHON = ROOT / ".venv-shell" / "bin" / "python"
# p4runtime-shell always arbitrates; an id above the controller's makes it primary, so that its writes are accepted.
_ELECTION_ID = "1,0"


def open_on(switch: str, *, extra: Sequence[str] = (), stdin: int | None = None) -> int:
    """Runs the shell in the foreground and returns its exit code.

    UsageError for a switch that the laboratory does not have, NoLabError where none is running.
    """
    lab = running_lab()
    if switch not in lab.switches:
        raise UsageError(f"no switch {switch!r} in the running laboratory; it has {', '.join(lab.switches)}.")
    setup = subprocess.run([ROOT / "scripts" / "setup.sh", "shell"], check=False)
    if setup.returncode != 0 or not _PYTHON.exists():
        raise MissingFeatureError("p4runtime-shell's environment could not be made; see the lines above.")
    record = lab.switches[switch]
    command = [str(_PYTHON), "-m", "p4runtime_sh", "--grpc-addr", record.address, "--device-id", str(record.device_id)]
    return subprocess.run([*command, "--election-id", _ELECTION_ID, *extra], stdin=stdin, check=False).returncode
