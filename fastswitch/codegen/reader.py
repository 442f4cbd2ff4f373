"""Typed, bounded access to the untrusted JSON: every accessor checks, and every failure says where it happened."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from .errors import ProgramError

MAX_LIST = 100_000  # elements of any one list
MAX_NAME = 1024  # characters of any one name
MAX_CONSTANT_BITS = 8192
_HEXSTR = re.compile(r"-?(0[xX])?[0-9a-fA-F]+\Z")


class Reader:
    """One JSON value and its path in the document."""

    __slots__ = ("value", "where")

    def __init__(self, value: Any, where: str) -> None:
        self.value = value
        self.where = where

    def error(self, problem: str) -> ProgramError:
        return ProgramError(self.where, problem)

    def _object(self) -> dict[str, Any]:
        if not isinstance(self.value, dict):
            raise self.error(f"expected an object, found {_kind(self.value)}")
        return self.value

    def __getitem__(self, key: str) -> Reader:
        members = self._object()
        if key not in members:
            raise self.error(f"'{key}' is missing")
        return Reader(members[key], f"{self.where}.{key}" if self.where else key)

    def has(self, key: str) -> bool:
        """Whether `key` is there and not null."""
        return self._object().get(key) is not None

    def optional(self, key: str) -> Reader | None:
        return self[key] if self.has(key) else None

    def flag(self, key: str, default: bool = False) -> bool:
        found = self.optional(key)
        return default if found is None else found.boolean()

    def keys(self) -> list[str]:
        return list(self._object())

    def elements(self, size: int | None = None) -> list[Reader]:
        if not isinstance(self.value, list):
            raise self.error(f"expected a list, found {_kind(self.value)}")
        if size is not None and len(self.value) != size:
            raise self.error(f"expected {size} elements, found {len(self.value)}")
        if len(self.value) > MAX_LIST:
            raise self.error(f"more than {MAX_LIST} elements")
        return [Reader(value, f"{self.where}[{index}]") for index, value in enumerate(self.value)]

    def list_of(self, key: str) -> Iterator[Reader]:
        """Elements of an optional list: older files lack sections that newer ones leave empty."""
        found = self.optional(key)
        return iter(found.elements() if found is not None else [])

    def text(self) -> str:
        if not isinstance(self.value, str):
            raise self.error(f"expected a string, found {_kind(self.value)}")
        if len(self.value) > MAX_NAME:
            raise self.error(f"a string of more than {MAX_NAME} characters")
        if not self.value.isprintable():
            raise self.error("a name with unprintable characters")
        return self.value

    def message(self) -> str:
        """A free text such as a log format: anything goes, but not without limit."""
        if not isinstance(self.value, str) or len(self.value) > MAX_NAME:
            raise self.error(f"expected a string of at most {MAX_NAME} characters")
        return self.value

    def boolean(self) -> bool:
        if not isinstance(self.value, bool):
            raise self.error(f"expected true or false, found {_kind(self.value)}")
        return self.value

    def integer(self, low: int, high: int) -> int:
        if not isinstance(self.value, int) or isinstance(self.value, bool):
            raise self.error(f"expected an integer, found {_kind(self.value)}")
        if not low <= self.value <= high:
            raise self.error(f"{str(self.value)[:40]} is outside [{low}, {high}]")
        return self.value

    def hexstr(self) -> int:
        if not isinstance(self.value, str) or len(self.value) > MAX_CONSTANT_BITS // 4 + 3:
            raise self.error("expected a hexadecimal string")
        if not _HEXSTR.match(self.value):
            raise self.error(f"{self.value[:40]!r} is not a hexadecimal number")
        return int(self.value, 16)

    def unsigned(self, bits: int) -> int:
        value = self.hexstr()
        if value < 0 or value.bit_length() > bits:
            raise self.error(f"{str(self.value)[:40]} does not fit {bits} bits")
        return value

    def bytes(self, size: int) -> int:
        """A hexadecimal string of exactly `size` bytes, leading zeros and all."""
        value = self.unsigned(8 * size)
        digits = len(str(self.value).lower().removeprefix("0x"))
        if (digits + 1) // 2 != size:
            raise self.error(f"{str(self.value)[:40]} is {(digits + 1) // 2} bytes, expected {size}")
        return value


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")
