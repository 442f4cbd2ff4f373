"""The agent's socket: one JSON object a line, either way.

A request is {"id": n, "op": "name", ...}; its reply {"id": n, "ok": true, ...} or {"id": n, "error": "NAME",
"message": "..."}.  Replies to `open` and `create_cq` carry a file descriptor (SCM_RIGHTS).  A line has at most
LINE_MAX bytes.  Both sides of the protocol take its words from here.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

VERSION = 2
LINE_MAX = 1 << 16
POST_MAX = 64  # work requests in one post_send
POLL_MAX = 256
MESSAGE_MAX = (1 << 31) - 1  # bytes
ATOMIC_BYTES = 8
RD_ATOMIC_MAX = 16  # READs and atomics outstanding: NIC_FETCH_MAX of ebpf/core/qp.h

# As NIC_ACCESS_* in ebpf/core/qp.h.
LOCAL_WRITE, REMOTE_WRITE, REMOTE_READ, REMOTE_ATOMIC = 1, 2, 4, 8


class RequestError(Exception):
    """A request that cannot be served: `name` is for programs, the text for people."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


@dataclass(frozen=True, slots=True)
class Whole:
    """An integer within bounds."""

    low: int
    high: int

    def read(self, value: object, where: str) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not self.low <= value <= self.high:
            raise RequestError("BAD_VALUE", f"{where} must be an integer in {self.low}..{self.high}")
        return value


@dataclass(frozen=True, slots=True)
class Text:
    """A string that `accept` takes."""

    accept: Callable[[object], bool]
    what: str

    def read(self, value: object, where: str) -> str:
        if not isinstance(value, str) or not self.accept(value):
            raise RequestError("BAD_VALUE", f"{where} must be {self.what}")
        return value


@dataclass(frozen=True, slots=True)
class Choice:
    """One of some names."""

    names: tuple[str, ...]

    def read(self, value: object, where: str) -> str:
        if not isinstance(value, str) or value not in self.names:
            raise RequestError("BAD_VALUE", f"{where} must be one of {', '.join(self.names)}")
        return value


@dataclass(frozen=True, slots=True)
class Truth:
    def read(self, value: object, where: str) -> bool:
        if not isinstance(value, bool):
            raise RequestError("BAD_VALUE", f"{where} must be true or false")
        return value


@dataclass(frozen=True, slots=True)
class Optional:
    """May be missing or null: then None."""

    kind: Whole | Text | Choice | Truth

    def read(self, value: object, where: str) -> Any:
        return None if value is None else self.kind.read(value, where)


@dataclass(frozen=True, slots=True)
class Objects:
    """A list of at most `most` objects with these members."""

    members: dict[str, Any]
    most: int

    def read(self, value: object, where: str) -> list[dict[str, Any]]:
        if not isinstance(value, list) or len(value) > self.most:
            raise RequestError("BAD_VALUE", f"{where} must be a list of at most {self.most}")
        return [read_members(self.members, item, f"{where}[{index}]") for index, item in enumerate(value)]


def read_members(members: dict[str, Any], raw: object, where: str) -> dict[str, Any]:
    """The members of a JSON object, each checked; anything else in it is refused."""
    if not isinstance(raw, dict):
        raise RequestError("BAD_VALUE", f"{where} must be an object")
    extra = sorted(set(raw) - set(members))
    if extra:
        raise RequestError("BAD_MEMBER", f"{where} has no member {extra[0]!r}; it takes {', '.join(sorted(members))}")
    return {name: kind.read(raw.get(name), f"{where}.{name}") for name, kind in members.items()}


def encode(message: dict[str, Any]) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def decode(line: bytes) -> dict[str, Any]:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise RequestError("BAD_JSON", f"not JSON: {error}") from error
    if not isinstance(message, dict):
        raise RequestError("BAD_JSON", "not a JSON object")
    return message
