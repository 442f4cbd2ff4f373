"""The folder that a run leaves: configuration, records with named columns and units, captures, pictures, report."""

import csv
import dataclasses
import json
import os
import platform
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from lab.errors import UsageError

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True)
class TransferRecord:
    """One RDMA transfer. The first eight fields are the keys of `plait demo --json`."""

    src: str
    dst: str
    bytes: int
    seconds: float  # from posting the first work request to the last completion
    goodput_bps: float  # application bits per second
    retransmissions: int  # packets sent again
    paths: int  # different switch-level paths that its data packets took
    sha256_equal: bool  # the destination's memory against the source
    timeouts: int
    packets_sent: int
    route: str  # the switches of the first path, in order


@dataclass(frozen=True, slots=True)
class LinkRecord:
    """One direction of a link over the run."""

    source: str
    destination: str
    rate_bps: int
    packets: int
    bytes: int
    drops_queue: int  # packets: the queue was full
    drops_loss: int  # packets: the link's configured loss
    max_queue_bytes: int
    load: float  # share of the rate used while transfers ran


@dataclass(frozen=True, slots=True)
class PortRecord:
    """What the P4 program counted at a port since it was loaded, read over P4Runtime."""

    switch: str
    port: int
    rx_packets: int
    rx_bytes: int
    tx_packets: int
    tx_bytes: int


COLUMN_UNITS = {
    "bytes": "bytes",
    "seconds": "s",
    "goodput_bps": "bit/s",
    "retransmissions": "packets",
    "paths": "count",
    "sha256_equal": "true/false",
    "timeouts": "count",
    "packets_sent": "packets",
    "rate_bps": "bit/s",
    "packets": "packets",
    "drops_queue": "packets",
    "drops_loss": "packets",
    "max_queue_bytes": "bytes",
    "load": "fraction of rate_bps",
    "rx_packets": "packets",
    "rx_bytes": "bytes",
    "tx_packets": "packets",
    "tx_bytes": "bytes",
    "start_s": "s",
    "late_s": "s",
    "fct_s": "s",
    "ideal_fct_s": "s",
    "slowdown": "FCT / ideal FCT",
    "flows": "count",
    "failed": "count of flows",
    "slowdown_mean": "FCT / ideal FCT",
    "slowdown_median": "FCT / ideal FCT",
    "slowdown_p99": "FCT / ideal FCT",
    "fct_mean_s": "s",
    "retransmitted_share": "fraction of packets_sent",
    "seq_errors": "packets",
    "early_placed": "packets",
    "naks": "count",
    "loss": "probability of a packet on a link between switches",
    "captured_packets": "packets",
    "out_of_order_share": "fraction of captured_packets",
    "mean_extent": "packets",
    "max_extent": "packets",
    "queue_mean_bytes": "bytes",
    "queue_max_bytes": "bytes",
    "marked_share": "fraction of data packets at the NICs",
    "idle_share": "fraction of the processors' time",
    "late_p99_s": "s",
    "alone_slowdown": "FCT / ideal FCT",
}


def new_folder(kind: str, base: Path | None) -> Path:
    """Makes `<base or out>/<kind>-<time>`, a name that no other run has."""
    stem = time.strftime(f"{kind}-%Y%m%d-%H%M%S")
    parent = base or Path("out")
    for suffix in ("", *(f"-{number}" for number in range(2, 1000))):
        folder = parent / f"{stem}{suffix}"
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            raise UsageError(f"cannot make the results folder {folder}: {error.strerror}.") from error
        return folder
    raise UsageError(f"cannot find a free name for the results folder {parent / stem}.")


def check_base(base: Path | None) -> None:
    """UsageError where `new_folder` could not make a folder, without making anything."""
    parent = (base or Path("out")).absolute()
    existing = next(path for path in (parent, *parent.parents) if path.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK):
        raise UsageError(f"cannot make the results folder in {parent}: {existing} is not a folder that can be written.")


def write_csv(path: Path, records: Sequence[Any]) -> None:
    """One row a record (dataclasses of one type), columns named after its fields; `units.json` has their units."""
    names = [field.name for field in dataclasses.fields(records[0])] if records else []
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(map(dataclasses.asdict, records))


def write_units(folder: Path) -> None:
    (folder / "units.json").write_text(json.dumps(COLUMN_UNITS, indent=1) + "\n")


def versions() -> dict[str, str]:
    """What a reader needs to judge or repeat the run: versions of Plait, the system and the libraries."""
    commit = subprocess.run(
        ["git", "-C", str(ROOT), "describe", "--always", "--dirty"], capture_output=True, text=True, check=False
    )
    return {
        "plait": metadata.version("plait"),
        "commit": commit.stdout.strip() or "unknown",
        "kernel": platform.release(),
        "python": platform.python_version(),
        "cpus": str(os.cpu_count()),
        **{name: metadata.version(name) for name in ("finsy", "grpcio", "protobuf", "scapy")},
    }
