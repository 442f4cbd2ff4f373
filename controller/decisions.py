"""What the controller saw and what it did about it, for people: a line each, in a file that outlives the controller.

A line is a JSON object: `time` (seconds since 1970), `kind`, `text`, and what a machine may want to know besides.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Decision:
    """kind: start, stop, switch, link, repair, verify, wiring or election."""

    kind: str
    text: str
    time: float
    details: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{datetime.fromtimestamp(self.time).strftime('%H:%M:%S.%f')[:-3]}  {self.kind:8}  {self.text}"


class DecisionLog:
    """Appends to a file; whole lines only, so that another process may read it at any time."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", buffering=1)

    def add(self, kind: str, text: str, **details: Any) -> None:
        line = {"time": time.time(), "kind": kind, "text": text, **details}
        self._file.write(json.dumps(line, separators=(",", ":")) + "\n")

    def close(self) -> None:
        self._file.close()


def read_decisions(path: Path, offset: int = 0) -> tuple[list[Decision], int]:
    """The decisions from a place in the file on, and the place behind them; a line that is not whole yet is left."""
    with path.open("rb") as file:
        file.seek(offset)
        data = file.read()
    whole = data[: data.rfind(b"\n") + 1]
    return list(_decisions(whole)), offset + len(whole)


def _decisions(data: bytes) -> Iterator[Decision]:
    for line in data.splitlines():
        record = json.loads(line)
        yield Decision(record.pop("kind"), record.pop("text"), record.pop("time"), record)
