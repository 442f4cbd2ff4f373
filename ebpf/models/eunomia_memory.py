"""Eunomia's memory controller (section 4) as a row of blocks that are free or not."""

from __future__ import annotations

METADATA_BLOCKS = 24


class Controller:
    """`blocks`: of two bytes each. Addresses are block numbers; None: no room."""

    def __init__(self, blocks: int = 1024) -> None:
        self.used = bytearray(blocks)  # 1: in use

    def free(self) -> int:
        return self.used.count(0)

    def from_head(self, count: int = 1) -> int | None:
        """First-fit, as for bitmap blocks."""
        return self._take(self.used.find(bytes(count)), count)

    def from_tail(self, count: int) -> int | None:
        """Backward from the tail, as for metadata."""
        return self._take(self.used.rfind(bytes(count)), count)

    def give(self, start: int, count: int = 1) -> None:
        assert all(self.used[start : start + count])
        self.used[start : start + count] = bytes(count)

    def _take(self, start: int, count: int) -> int | None:
        if start < 0:
            return None
        self.used[start : start + count] = b"\1" * count
        return start
