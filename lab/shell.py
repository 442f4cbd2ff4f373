"""p4runtime-shell on a switch of the running laboratory, in its own environment.

Its protobuf pin (< 3.21) fits no other package of Plait, so it lives in `.venv-shell`, made on first use.
"""

import subprocess
from collections.abc import Sequence

from controller.defaults import personal_election_id
from lab.arguments import switch_record
from lab.errors import MissingFeatureError
from lab.results import ROOT
from lab.running import running_lab

_PYTHON = ROOT / ".venv-shell" / "bin" / "python"


def open_on(switch: str, *, extra: Sequence[str] = (), stdin: int | None = None) -> int:
    """Runs the shell in the foreground and returns its exit code.

    UsageError for a switch that the laboratory does not have, NoLabError where none is running.
    """
    record = switch_record(running_lab(), switch)
    setup = subprocess.run([ROOT / "scripts" / "setup.sh", "shell"], check=False)
    if setup.returncode != 0 or not _PYTHON.exists():
        raise MissingFeatureError("p4runtime-shell's environment could not be made; see the lines above.")
    command = [str(_PYTHON), "-m", "p4runtime_sh", "--grpc-addr", record.address, "--device-id", str(record.device_id)]
    # It always arbitrates. A switch remembers the highest id, so that ours must not stand above those that come later.
    command += ["--election-id", f"0,{personal_election_id()}"]
    return subprocess.run([*command, *extra], stdin=stdin, check=False).returncode
