"""Which laboratory runs on this machine: one at a time, found by every command without configuration.

`/run/plait/lock` is held (flock) by the process of a running laboratory, so a killed one never looks alive.
`/run/plait/lab.json` and `topology.json` describe it.  What a killed one leaves is found without them: its processes
carry `PLAIT_LAB` in their environment, and its interfaces in the root namespace are in a link group.
"""

import dataclasses
import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from controller.defaults import RUN_DIR
from lab.errors import LabRunningError, MissingFeatureError, NoLabError
from mininet_topos.topology import Topology


@dataclass(frozen=True, slots=True)
class SwitchRecord:
    address: str  # host:port of its P4Runtime server
    device_id: int


@dataclass(frozen=True, slots=True)
class LabRecord:
    """What other commands need to know of a running laboratory."""

    name: str
    pid: int
    target: str
    switches: dict[str, SwitchRecord]
    hosts: dict[str, str]  # host -> path of its NIC's verbs socket
    pids: dict[str, int] = dataclasses.field(default_factory=dict)  # host -> its shell, once it is up

    @classmethod
    def of_this_process(cls, **fields: Any) -> "LabRecord":
        return cls(pid=os.getpid(), **fields)

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self), indent=1)

    @classmethod
    def from_json(cls, text: str) -> "LabRecord":
        data: dict[str, Any] = json.loads(text)
        data["switches"] = {name: SwitchRecord(**record) for name, record in data["switches"].items()}
        return cls(**data)


def _record_path() -> Path:
    return RUN_DIR / "lab.json"


def read_record() -> LabRecord | None:
    """The record of the running laboratory, or of one that was killed; None where there is neither."""
    try:
        return LabRecord.from_json(_record_path().read_text())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, KeyError, TypeError):
        return None  # cut off by a kill in the middle of a write: nothing was made yet


def write_record(record: LabRecord) -> None:
    temporary = _record_path().with_suffix(".new")
    temporary.write_text(record.to_json())
    temporary.rename(_record_path())


def write_topology(topology: Topology) -> None:
    """Leaves the laboratory's topology to other commands; before its record, which says that it is there."""
    topology_path().write_text(topology.to_json())


def running_topology() -> Topology:
    """The topology of the laboratory that `running_lab` found."""
    return Topology.from_json(topology_path().read_text())


def topology_path() -> Path:
    return RUN_DIR / "topology.json"


@contextmanager
def hold_lock() -> Iterator[None]:
    """Holds the machine's laboratory lock; LabRunningError where another process has it."""
    try:
        RUN_DIR.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(RUN_DIR / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except PermissionError as error:
        raise MissingFeatureError(f"a laboratory needs root, for namespaces and XDP ({error}).") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            record = read_record()
            who = f"{record.name!r} (pid {record.pid})" if record else "another one"
            raise LabRunningError(
                f"a laboratory is running on this machine: {who}. Leave it, or end that process, first."
            ) from None
        yield
    finally:
        os.close(descriptor)


def running_lab() -> LabRecord:
    """The laboratory that runs now; NoLabError where none does."""
    try:
        with hold_lock():
            pass
    except LabRunningError:
        if record := read_record():
            return record
    raise NoLabError("no laboratory is running on this machine; start one with `plait launch fattree --k 4`.")
