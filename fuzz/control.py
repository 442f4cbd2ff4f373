"""The control socket of a live fabric: random JSON and bytes; it answers every line, and lives."""

from __future__ import annotations

import json
import random
import socket
from pathlib import Path
from typing import Any

from fastswitch.control import MAX_LINE
from fuzz.daemon import Fabric
from fuzz.mutation import Mutator, mutated_bytes
from fuzz.target import Fault, Target

_REQUESTS = 60
_ANSWER_SECONDS = 30
_VALID: list[dict[str, Any]] = [
    {"verb": "status"},
    {"verb": "links"},
    {"verb": "ports"},
    {"verb": "flows", "link": "s1:1"},
    {"verb": "flows"},
    {"verb": "record_flows", "link": None},
    {"verb": "capture_start", "link": "s1:1", "path": "PATH"},
    {"verb": "capture_stop", "link": "s1:1"},
    {"verb": "link_set", "link": "s2:1", "up": True, "rate_bps": 10**9, "delay_ns": 1000, "loss": 0.0},
    {"verb": "queue_set", "switch": "s1", "port": 1, "rate_bps": 10**6, "depth_packets": 9, "queue": 0},
]


class Control(Target):
    """Requests on one connection."""

    name = "control"
    sanitized = False  # the fabric's process is
    share = 0.5

    def __init__(self, keep: Path | None = None) -> None:
        super().__init__(keep)
        self._daemon = Fabric()

    def close(self) -> None:
        self._daemon.close()

    def case(self, rng: random.Random) -> int:
        path = str(self._daemon.folder / "capture.pcap")
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(_ANSWER_SECONDS)
            connection.connect(str(self._daemon.control))
            answers = connection.makefile("rb")
            for number in range(_REQUESTS):
                line = self._line(rng, path)
                self.save(f"{number:02}.json", line)
                connection.sendall(line + b"\n")
                answer = answers.readline()
                if not answer.endswith(b"\n"):
                    raise Fault(f"no answer to {line[:200]!r}")
                self._check(line, json.loads(answer))
        self._daemon.check()
        return _REQUESTS

    @staticmethod
    def _line(rng: random.Random, path: str) -> bytes:
        request = rng.choice(_VALID)
        if rng.random() < 0.7:
            request = Mutator(request).mutated(rng)
        # Files are written where the test says so, and nowhere else.
        if isinstance(request, dict) and str(request.get("path", "PATH")).startswith(("PATH", "/")):
            request = {**request, **({"path": path} if "path" in request else {})}
        line = json.dumps(request).encode()
        if rng.random() < 0.15:
            line = mutated_bytes(rng, line).replace(b"\n", b" ")
        if b"stop" in line.replace(b"capture_stop", b"") or b"capture_start" in line and path.encode() not in line:
            return b"{}"
        return line if line.strip() and len(line) < MAX_LINE else b"{}"  # after a longer one the fabric hangs up

    @staticmethod
    def _check(line: bytes, answer: Any) -> None:
        if set(answer) == {"ok"}:
            return
        if set(answer) != {"error"} or not answer["error"] or "internal" in answer["error"]:
            raise Fault(f"{line[:300]!r} is answered with {answer!r}")
