"""Distributions of flow sizes, in the text format that simulators share: `bytes percent` lines, linear in between."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.errors import UsageError


@dataclass(frozen=True, slots=True)
class SizeDistribution:
    """points: (bytes, cumulative share), both ascending, the shares from 0 to 1."""

    name: str
    points: tuple[tuple[float, float], ...]

    @classmethod
    def read(cls, path: Path) -> SizeDistribution:
        """UsageError names the file, the line and what is wrong there."""
        try:
            text = path.read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"cannot read the flow sizes {path}: {getattr(error, 'strerror', error)}.") from error
        return cls.parse(text, str(path), path.stem)

    @classmethod
    def parse(cls, text: str, where: str, name: str) -> SizeDistribution:
        points: list[tuple[float, float]] = []
        for number, line in enumerate(text.splitlines(), 1):
            words = line.partition("#")[0].split()
            if not words:
                continue
            try:
                size, percent = map(float, words)
            except ValueError:
                raise UsageError(f"{where}:{number}: {line.strip()!r} is not `bytes percent`.") from None
            if not 0 <= percent <= 100 or not 0 <= size <= 1 << 40:
                raise UsageError(f"{where}:{number}: {line.strip()!r}: bytes to 2^40, percent from 0 to 100.")
            if points and (size < points[-1][0] or percent / 100 < points[-1][1]):
                raise UsageError(f"{where}:{number}: {line.strip()!r} is below the line before; both columns ascend.")
            points.append((size, percent / 100))
        if len(points) < 2 or points[0][1] != 0 or points[-1][1] != 1 or points[-1][0] < 1:
            raise UsageError(f"{where}: the percents must go from 0 in the first line to 100 in the last.")
        return cls(name, tuple(points))

    def scaled(self, factor: float) -> SizeDistribution:
        """Every size times `factor`."""
        return SizeDistribution(self.name, tuple((size * factor, share) for size, share in self.points))

    def size_at(self, share: float) -> int:
        """The size in bytes, at least 1, below which this share (0 to 1) of the flows lies."""
        last = bisect_left(self.points, share, key=lambda point: point[1])
        (low, below), (high, above) = self.points[max(0, last - 1)], self.points[last]
        size = high if above == below else low + (high - low) * (share - below) / (above - below)
        return max(1, round(size))

    def share_above(self, size: float) -> float:
        """The share of flows that are larger."""
        for (low, below), (high, above) in _pairs(self.points):
            if size < low:
                return 1 - below
            if size < high:
                return 1 - below - (above - below) * (size - low) / (high - low)
        return 0.0

    @property
    def mean(self) -> float:
        """Bytes."""
        return sum((low + high) / 2 * (above - below) for (low, below), (high, above) in _pairs(self.points))

    def mean_packets(self, payload_bytes: int) -> float:
        """Of a flow, at so many payload bytes a packet: the sum over n of the share with more than n packets."""
        count = int(self.points[-1][0] // payload_bytes) + 1
        return 1 + sum(self.share_above(number * payload_bytes) for number in range(1, count))


def _pairs(points: Sequence[tuple[float, float]]) -> zip[tuple[tuple[float, float], tuple[float, float]]]:
    return zip(points, points[1:], strict=False)
