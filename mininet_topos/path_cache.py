"""Paths that took long to find, kept on disk by the hash of the graph that they are of.

A file is its content's SHA-256 and the content: what was cut off or changed does not fit and counts as not there.
Files are written beside their place and renamed, so that of several writers one wins and none is half read. Whatever
goes wrong with the disk costs time only.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import tempfile
import zlib
from array import array
from collections.abc import Sequence
from pathlib import Path

# Changes whenever the same graph would give other paths, or the same paths another content.
_VERSION = "plait-paths-1"
_DIGEST_BYTES = 32

# Graphs with failed links come and go: the oldest are forgotten.
_KEPT_FILES = 64

Paths = list[list[list[int]]]


def folder() -> Path:
    """Beside the compiled programs, in the user's cache."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "plait" / "paths"


def key(nodes: int, edges: Sequence[tuple[int, int]], pairs: Sequence[tuple[int, int]], k: int) -> str:
    """A name for everything that the paths depend on."""
    state = hashlib.sha256(f"{_VERSION} {nodes} {len(edges)} {len(pairs)} {k} ".encode())
    for numbers in (edges, pairs):
        state.update(_bytes([number for pair in numbers for number in pair]))
    return state.hexdigest()


def load(name: str, pairs: int) -> Paths | None:
    """Per pair its paths as `store` had them; None where they are not, or not whole."""
    try:
        data = (folder() / name).read_bytes()
    except (OSError, RuntimeError):  # RuntimeError: nobody has a home
        return None
    digest, packed = data[:_DIGEST_BYTES], data[_DIGEST_BYTES:]
    if hashlib.sha256(packed).digest() != digest:
        return None
    numbers = array("I")
    numbers.frombytes(zlib.decompress(packed))
    if sys.byteorder == "big":
        numbers.byteswap()
    return _unpacked(numbers.tolist(), pairs)


def store(name: str, paths: Paths) -> None:
    numbers = []
    for of_pair in paths:
        numbers.append(len(of_pair))
        for path in of_pair:
            numbers += [len(path), *path]
    packed = zlib.compress(_bytes(numbers), 1)
    with contextlib.suppress(OSError, RuntimeError):
        folder().mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder(), prefix="new-", delete=False) as file:
            try:
                file.write(hashlib.sha256(packed).digest() + packed)
                file.close()
                os.replace(file.name, folder() / name)
            except BaseException:
                os.unlink(file.name)
                raise
        _forget_oldest()


def _forget_oldest() -> None:
    files = sorted(folder().iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in files[_KEPT_FILES:]:
        path.unlink(missing_ok=True)


def _bytes(numbers: Sequence[int]) -> bytes:
    """As 32-bit words, the lowest byte first."""
    words = array("I", numbers)
    if sys.byteorder == "big":
        words.byteswap()
    return words.tobytes()


def _unpacked(numbers: list[int], pairs: int) -> Paths:
    found: Paths = []
    at = 0
    for _ in range(pairs):
        count = numbers[at]
        at += 1
        paths = []
        for _ in range(count):
            length = numbers[at]
            paths.append(numbers[at + 1 : at + 1 + length])
            at += 1 + length
        found.append(paths)
    return found
